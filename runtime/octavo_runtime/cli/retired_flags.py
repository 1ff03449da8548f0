"""Flags of vLLM that Octavo has no use for: taken out of the arguments with one warning each, so that manifests start.

And flags of things that come in a later release: these are refused, since leaving them out would change what is served.
"""

from collections.abc import Mapping, Sequence

from octavo_runtime.errors import StartCause, StartError

RETIRED: Mapping[str, tuple[bool, str]] = {
    # flag: (takes a value, why it does nothing)
    "--api-server-count": (True, "there is one HTTP process"),
    "--async-scheduling": (False, "the engine decides"),
    "--block-manager-v2": (False, "there is one block manager"),
    "--compilation-config": (True, "nothing is compiled at start"),
    "--cuda-graph-sizes": (True, "there are no CUDA graphs on a CPU"),
    "--disable-async-output-proc": (False, "output is always processed beside the engine"),
    "--disable-cascade-attn": (False, "there is no cascade attention"),
    "--disable-custom-all-reduce": (False, "there is one device"),
    "--disable-frontend-multiprocessing": (False, "the engine always has its own process"),
    "--disable-log-requests": (False, "prompts are logged only with --log-prompts"),
    "--disable-log-stats": (False, "statistics are at /metrics"),
    "--disable-sliding-window": (False, "sliding windows are always right"),
    "--distributed-executor-backend": (True, "there is one device"),
    "--enable-log-requests": (False, "use --log-prompts to log the beginning of prompts"),
    "--enforce-eager": (False, "there are no CUDA graphs on a CPU"),
    "--engine-use-ray": (False, "Ray is not used"),
    "--guided-decoding-backend": (True, "structured output comes later"),
    "--max-context-len-to-capture": (True, "there are no CUDA graphs on a CPU"),
    "--max-cpu-loras": (True, "LoRA comes later"),
    "--max-log-len": (True, "of a prompt only the beginning is ever logged"),
    "--max-parallel-loading-workers": (True, "weights are read in one stream"),
    "--max-seq-len-to-capture": (True, "there are no CUDA graphs on a CPU"),
    "--multi-step-stream-outputs": (False, "every token is sent at once"),
    "--no-async-scheduling": (False, "the engine decides"),
    "--num-lookahead-slots": (True, "the scheduler decides"),
    "--num-scheduler-steps": (True, "every step is scheduled"),
    "--optimization-level": (True, "nothing is compiled at start"),
    "--ray-workers-use-nsight": (False, "Ray is not used"),
    "--scheduler-reserve-full-isl": (False, "the whole prompt must always fit"),
    "--tokenizer-mode": (True, "the tokenizer decides"),
    "--tokenizer-pool-size": (True, "tokenizing has its own threads"),
    "--use-v2-block-manager": (False, "there is one block manager"),
    "--uvicorn-log-level": (True, "use --log-level"),
    "--worker-cls": (True, "there is one worker"),
    "--worker-use-ray": (False, "Ray is not used"),
    "-O": (True, "nothing is compiled at start"),
}

LATER: Mapping[str, str] = {
    "--cpu-offload-gb": "offloading weights",
    "--enable-auto-tool-choice": "calling tools",
    "--enable-lora": "LoRA",
    "--enable-sleep-mode": "sleeping",
    "--lora-modules": "LoRA",
    "--reasoning-parser": "parsing reasoning",
    "--speculative-config": "speculative decoding",
    "--speculative-model": "speculative decoding",
    "--tool-call-parser": "calling tools",
}


def without_retired(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the other arguments, one warning per retired flag). StartError(INVALID_SETTINGS) for a flag of `LATER`."""
    kept: list[str] = []
    warnings: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        flag = _flag(argument)
        if flag in LATER:
            message = f"{flag}: {LATER[flag]} is not available in this release; leave the flag out."
            raise StartError(StartCause.INVALID_SETTINGS, message)
        if flag not in RETIRED:
            kept.append(argument)
            continue
        takes_value, reason = RETIRED[flag]
        if takes_value and argument == flag and rest and not rest[0].startswith("-"):
            rest.pop(0)
        warnings[flag] = f"{flag} has no effect: {reason}."
    return kept, list(warnings.values())


def _flag(argument: str) -> str:
    """The flag's name without its value; `-O3` is `-O`."""
    if argument.startswith("-O"):
        return "-O"
    return argument.partition("=")[0]
