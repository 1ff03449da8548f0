"""What this build cannot do is refused by name before anything is fetched; what it does differently is warned about.

Pure functions over the settings' groups. Each refusal goes when its feature comes.
"""

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.settings_groups import CacheSettings, DeviceSettings, ModelSettings


def check_supported(model: ModelSettings, device: DeviceSettings, cache: CacheSettings) -> None:
    """Raises StartError: DEVICE_UNAVAILABLE, PARALLELISM_UNSUPPORTED or QUANTIZATION_UNSUPPORTED."""
    if device.device == "cuda":
        message = "--device cuda: this build serves on the CPU only; set engine.device: cpu (--device cpu)."
        raise StartError(StartCause.DEVICE_UNAVAILABLE, message)
    for flag, number in (
        ("--tensor-parallel-size", device.tensor_parallel_size),
        ("--pipeline-parallel-size", device.pipeline_parallel_size),
    ):
        if number > 1:
            message = f"{flag} {number}: this build computes on one device; set it to 1 and run more replicas instead."
            raise StartError(StartCause.PARALLELISM_UNSUPPORTED, message)
    if model.quantization not in ("auto", "none"):
        message = (
            f"--quantization {model.quantization}: this build does not run such weights; take the bf16 model or a GGUF "
            "file, and leave the flag out."
        )
        raise StartError(StartCause.QUANTIZATION_UNSUPPORTED, message)
    if cache.kv_cache_dtype != "auto":
        message = f"--kv-cache-dtype {cache.kv_cache_dtype}: this build keeps the cache as --dtype says; leave it out."
        raise StartError(StartCause.QUANTIZATION_UNSUPPORTED, message)


def warnings_of(model: ModelSettings) -> list[str]:
    """One sentence for each setting that does not mean here what it says."""
    warnings = []
    if model.dtype is ModelDtype.FLOAT16:
        warnings.append(
            "--dtype float16: the CPU computes in float32, so weights and cache take twice the memory; "
            "bfloat16 takes half of that."
        )
    if model.trust_remote_code:
        warnings.append("--trust-remote-code has no effect: every model that this build serves runs without such code.")
    return warnings
