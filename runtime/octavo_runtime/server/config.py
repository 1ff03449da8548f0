"""`ServerConfig`: what the HTTP server is told at start. Made by `main.py` from the settings; frozen.

Knows neither flags nor the environment.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Names, limits and switches of the server. Sizes in bytes or tokens, times in seconds."""

    served_model_names: tuple[str, ...]  # the first one is reported; all are accepted
    version: str = "0.1.0"
    allowed_origins: tuple[str, ...] = ("*",)
    allowed_methods: tuple[str, ...] = ("*",)
    allowed_headers: tuple[str, ...] = ("*",)
    allow_credentials: bool = False
    root_path: str = ""  # prefix that a proxy leaves in front of every path
    max_body_bytes: int = 32 * 1024 * 1024
    max_num_queued_reqs: int = 2048  # requests without a first token that the engine has not started; 0: no limit
    max_num_queued_tokens: int = 0  # prompt tokens of those requests; 0: no limit
    max_logprobs: int = 20  # -1: no limit
    max_stop_strings: int = 4
    max_prompts: int = 1024
    stream_interval: int = 1  # tokens per event; the first token is always sent at once
    enable_request_id_headers: bool = False
    enable_prompt_tokens_details: bool = False
    access_log: bool = True
    log_prompts: bool = False
    liveness_timeout: float = 60.0  # with work, a heartbeat older than this means that the engine hangs; 0: never
    keep_alive: float = 75.0  # idle connections; longer than what proxies keep theirs

    @property
    def model_name(self) -> str:
        """The name that replies and metrics carry."""
        return self.served_model_names[0]
