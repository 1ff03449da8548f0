"""`Service`: what every handler works with, and the steps that chat and completions share.

Made by `app.py`, found by handlers under the application key `SERVICE`.
"""

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from octavo_runtime.engine.cache_demand import longest_output
from octavo_runtime.engine.messages import EngineReady
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import InvalidRequestError, NotFoundError, ServiceUnavailableError
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server.admission import Admission
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.connections import Connections
from octavo_runtime.server.drain import Drain
from octavo_runtime.server.generation import Generation, Job
from octavo_runtime.server.interfaces import Engine, TextLayer
from octavo_runtime.server.keys import Keys
from octavo_runtime.server.log_prompts import log_prompts
from octavo_runtime.server.params import OutputOptions, check_cache_salt, sampling_params
from octavo_runtime.server.prompts import Prompt, PromptEncoder, resolve_max_tokens
from octavo_runtime.server.schema import ChatBody, GenerationBody
from octavo_runtime.start_state import StartState

MAX_ID = 128
_PRIORITY_HEADER = "X-Vllm-Priority"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """The text side of the model, there when its files are; `root` is where they came from."""

    text: TextLayer
    encoder: PromptEncoder
    root: str


@dataclass(slots=True)
class Service:
    """The server's parts. The server listens before there is a model; `load` brings it."""

    engine: Engine
    config: ServerConfig
    metrics: ServerMetrics
    admission: Admission
    connections: Connections
    drain: Drain
    keys: Keys
    start: StartState
    started: int  # Unix time
    model: LoadedModel | None = None

    def load(self, text: TextLayer, root: str) -> None:
        """The model's files are on disk and its tokenizer is read."""
        self.model = LoadedModel(text, PromptEncoder(text), root)

    @property
    def ready(self) -> EngineReady | None:
        """Set once requests can be served: the engine has run a step, and the text side is there."""
        return None if self.model is None else self.engine.ready

    @property
    def text(self) -> TextLayer:
        """Raises ServiceUnavailableError before there is one."""
        return self._loaded().text

    @property
    def encoder(self) -> PromptEncoder:
        """Raises ServiceUnavailableError before there is one."""
        return self._loaded().encoder

    @property
    def root(self) -> str:
        """Raises ServiceUnavailableError before it is known."""
        return self._loaded().root

    def _loaded(self) -> LoadedModel:
        if self.model is None:
            raise ServiceUnavailableError("The model is still loading.")
        return self.model

    def close(self) -> None:
        """Give the threads back."""
        if self.model is not None:
            self.model.encoder.close()

    def check_model(self, name: str | None) -> None:
        """A body without a model means the one that is served."""
        if name is not None and name not in self.config.served_model_names:
            shown = name if len(name) <= MAX_ID else name[:MAX_ID] + "..."
            raise NotFoundError(f"The model {shown!r} does not exist; GET /v1/models lists what is served.", "model")

    def new_generation(
        self,
        request: web.Request,
        body: GenerationBody,
        prompts: Sequence[Prompt],
        wanted: "WantedTokens",
        options: OutputOptions,
    ) -> Generation:
        """Check everything that is left to check and count the call against the queue. Nothing runs yet."""
        limits = self.admission.limits()
        default = self._default_tokens(body, prompts, wanted.default)
        max_tokens = resolve_max_tokens(prompts, wanted.explicit, default, limits)
        params = sampling_params(body, max_tokens, self.config, self.text, limits.vocab_size)
        self._check_width(params, limits.max_num_seqs)
        check_cache_salt(body.cache_salt)
        job = Job(
            public_id=f"{_prefix(body)}-{_call_id(request, body)}",
            prompts=prompts,
            params=params,
            priority=_priority(request, body),
            cache_salt=body.cache_salt,
            stream_interval=options.stream_interval if options.stream else 1,
            wants_cached_tokens=self.config.enable_prompt_tokens_details
            and (not options.stream or options.include_usage),
            arrival=request.get(ARRIVAL, time.perf_counter()),
        )
        self.admission.check_queue(len(prompts), sum(len(prompt.token_ids) for prompt in prompts))
        if self.config.log_prompts:
            log_prompts(job.public_id, prompts)
        return Generation(self.engine, self.text, self.admission, self.metrics, job)

    def _default_tokens(self, body: GenerationBody, prompts: Sequence[Prompt], default: int | None) -> int | None:
        """What is generated without max_tokens: less than else where several sequences of it would overflow the cache."""
        ready, width = self.engine.ready, body.best_of or body.n or 1
        if ready is None or width <= 1:
            return default
        longest = max(len(prompt.token_ids) for prompt in prompts)
        fits = longest_output(longest, width, ready.num_blocks, ready.block_size)
        return fits if default is None else min(default, fits)

    @staticmethod
    def _check_width(params: SamplingParams, max_num_seqs: int) -> None:
        if params.num_sequences > max_num_seqs:
            field = "n" if params.best_of is None else "best_of"
            raise InvalidRequestError(
                f"{field} must be at most {max_num_seqs}, the sequences that this server runs at once, "
                f"got {params.num_sequences}.",
                field,
            )


@dataclass(frozen=True, slots=True)
class WantedTokens:
    """`explicit`: what the body asked for; `default`: what it gets when it did not, None for all that fits."""

    explicit: int | None
    default: int | None


SERVICE = web.AppKey("service", Service)
ARRIVAL = web.RequestKey("arrival", float)
REQUEST_ID = web.RequestKey("request_id", str)


def clean_id(text: str | None) -> str | None:
    """A client's id when it is short and plain enough to go into headers and logs."""
    return text if text and len(text) <= MAX_ID and text.isascii() and text.isprintable() else None


def new_id() -> str:
    return uuid.uuid4().hex


def _prefix(body: GenerationBody) -> str:
    return "chatcmpl" if isinstance(body, ChatBody) else "cmpl"


def _call_id(request: web.Request, body: GenerationBody) -> str:
    """X-Request-Id, or the body's request_id, or a new one."""
    if body.request_id is not None and clean_id(body.request_id) is None:
        raise InvalidRequestError(f"request_id must have 1 to {MAX_ID} printable ASCII characters.", "request_id")
    if clean_id(request.headers.get("X-Request-Id")) is None and body.request_id is not None:
        return body.request_id
    return request.get(REQUEST_ID) or new_id()


def _priority(request: web.Request, body: GenerationBody) -> int:
    if body.priority is not None:
        return body.priority
    header = request.headers.get(_PRIORITY_HEADER)
    if header is None:
        return 0
    try:
        value = int(header)
    except ValueError as error:
        raise InvalidRequestError(f"The header {_PRIORITY_HEADER} must be an integer.", _PRIORITY_HEADER) from error
    if not -(2**63) <= value < 2**63:
        raise InvalidRequestError(f"The header {_PRIORITY_HEADER} must fit 64 bits.", _PRIORITY_HEADER)
    return value
