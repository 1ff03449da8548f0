"""The serving runtime: an OpenAI-compatible server over its own paged-KV engine.

`docs/architecture.md` walks a request through it. The public names are loaded when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
    from octavo_runtime.engine.llm_engine import LLMEngine
    from octavo_runtime.engine.sampling_params import SamplingParams
    from octavo_runtime.llm import LLM
    from octavo_runtime.request_output import CompletionOutput, RequestOutput

__all__ = ["LLM", "AsyncLLMEngine", "CompletionOutput", "LLMEngine", "RequestOutput", "SamplingParams"]

_HOMES = {
    "LLM": "octavo_runtime.llm",
    "AsyncLLMEngine": "octavo_runtime.engine.async_llm_engine",
    "LLMEngine": "octavo_runtime.engine.llm_engine",
    "CompletionOutput": "octavo_runtime.request_output",
    "RequestOutput": "octavo_runtime.request_output",
    "SamplingParams": "octavo_runtime.engine.sampling_params",
}


def __getattr__(name: str) -> Any:
    """PEP 562: importing the package imports neither torch nor aiohttp."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
