"""Write the weights of a GGUF file as a bf16 safetensors folder with configuration, tokenizer and chat template.

    python convert_model.py model.gguf folder

Run by `peers` with the interpreter of an environment that has torch, transformers, accelerate and gguf, so it imports
nothing of ours.
"""

import argparse
from pathlib import Path


def convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),  # kept packed, it could not be saved
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes for its user alone; who serves it is another one


def main() -> None:
    parser = argparse.ArgumentParser(description="GGUF file -> bf16 safetensors folder.")
    parser.add_argument("gguf", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    convert(arguments.gguf.resolve(), arguments.folder)


if __name__ == "__main__":
    main()
