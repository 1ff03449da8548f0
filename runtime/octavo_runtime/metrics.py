"""Every metric of the serving process, under vLLM's names, today's and the old ones that dashboards still ask for.

Fed by the engine's `StepOutputs` (`step`) and by the front end (`RequestTimer`, `http_request`). Values are plain
numbers that become Prometheus families when the registry is scraped: a token costs no label lookup and no lock.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from octavo_runtime.engine.messages import EngineReady, FinishReason, RequestFinished, SchedulerStats, StepOutputs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.instruments import (
    COUNT_BUCKETS,
    PREEMPTION_BUCKETS,
    REQUEST_BUCKETS,
    STEP_TOKEN_BUCKETS,
    TOKEN_BUCKETS,
    TTFT_BUCKETS,
    Histogram,
    Rate,
    length_buckets,
)

Values = dict[tuple[str, ...], float]
"""Values by their own labels, beside `model_name` and `engine`."""


class ServerMetrics(Collector):
    """All metrics of one served model. Registers itself with `registry`."""

    def __init__(
        self,
        registry: CollectorRegistry,
        model_name: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._labels = (model_name, "0")
        self._clock = clock
        self._stats = SchedulerStats()
        self._prompt_rate = Rate(clock())
        self._generation_rate = Rate(clock())
        self._cache_config: dict[str, str] = {}
        self._reasons: Counter[str] = Counter(dict.fromkeys(FinishReason, 0))
        self._rejections = Counter({"max_num_queued_reqs": 0, "max_num_queued_tokens": 0})
        self._cached_tokens = 0
        self._http_requests: Counter[tuple[str, str, str]] = Counter()
        self._http_seconds: dict[tuple[str, str], Histogram] = {}
        self.time_to_first_token = Histogram(TTFT_BUCKETS)
        self.inter_token_latency = Histogram(TOKEN_BUCKETS)
        self.e2e_latency = Histogram(REQUEST_BUCKETS)
        self._time_per_token = Histogram(TOKEN_BUCKETS)
        self._queue_time = Histogram(REQUEST_BUCKETS)
        self._prefill_time = Histogram(REQUEST_BUCKETS)
        self._decode_time = Histogram(REQUEST_BUCKETS)
        self._inference_time = Histogram(REQUEST_BUCKETS)
        self._inference_milliseconds = Histogram([seconds * 1000 for seconds in REQUEST_BUCKETS])
        self._step_tokens = Histogram(STEP_TOKEN_BUCKETS)
        self._preemptions = Histogram(PREEMPTION_BUCKETS)
        self._n = Histogram(COUNT_BUCKETS)
        self._best_of = Histogram(COUNT_BUCKETS)
        self._set_lengths(length_buckets(1 << 20))
        registry.register(self)

    def _set_lengths(self, bounds: Sequence[int]) -> None:
        self._prompt_tokens = Histogram(bounds)
        self._generation_tokens = Histogram(bounds)
        self._max_generation_tokens = Histogram(bounds)
        self._max_tokens = Histogram(bounds)
        self._computed_prompt_tokens = Histogram(bounds)

    # what is observed

    def engine_ready(self, ready: EngineReady, prefix_caching: bool = True) -> None:
        """Sizes are known now: token histograms end at the model's context, cache_config_info gets its labels."""
        self._set_lengths(length_buckets(ready.max_model_len))
        self._cache_config = {
            "block_size": str(ready.block_size),
            "num_gpu_blocks": str(ready.num_blocks),
            "num_cpu_blocks": str(ready.num_host_blocks),
            "cache_dtype": ready.dtype,
            "enable_prefix_caching": str(prefix_caching),
        }

    def step(self, outputs: StepOutputs) -> None:
        """One step of the engine."""
        stats = self._stats = outputs.stats
        now = self._clock()
        self._prompt_rate.update(now, stats.prompt_tokens)
        self._generation_rate.update(now, stats.generation_tokens)
        if stats.iteration_tokens:
            self._step_tokens.observe(stats.iteration_tokens)
        for finished in outputs.finished:
            self._request_finished(finished)

    def _request_finished(self, finished: RequestFinished) -> None:
        self._cached_tokens += finished.num_cached_tokens
        self._prompt_tokens.observe(finished.num_prompt_tokens)
        self._generation_tokens.observe(finished.num_generation_tokens)
        self._computed_prompt_tokens.observe(finished.num_prompt_tokens - finished.num_cached_tokens)
        self._preemptions.observe(finished.num_preemptions)
        self._queue_time.observe(finished.queue_time)
        if finished.num_generation_tokens == 0:
            return
        inference = finished.prefill_time + finished.decode_time
        self._prefill_time.observe(finished.prefill_time)
        self._decode_time.observe(finished.decode_time)
        self._inference_time.observe(inference)
        self._inference_milliseconds.observe(inference * 1000)
        if finished.num_generation_tokens > 1:
            self._time_per_token.observe(finished.decode_time / (finished.num_generation_tokens - 1))

    def requests_accepted(self, params: SamplingParams, prompt_lengths: Sequence[int]) -> None:
        """Engine requests of one HTTP call are about to start."""
        for _ in prompt_lengths:
            self._n.observe(params.n)
            self._best_of.observe(params.num_sequences)
            if params.max_tokens is not None:
                self._max_tokens.observe(params.max_tokens)

    def request_ended(self, reason: FinishReason, longest: int, seconds: float) -> None:
        """One engine request is over, `seconds` after its arrival; its longest sequence has `longest` tokens."""
        self._reasons[reason] += 1
        self._max_generation_tokens.observe(longest)
        self.e2e_latency.observe(seconds)

    def rejected(self, reason: str) -> None:
        """A full queue refused a call; `reason` is the limit's name."""
        self._rejections[reason] += 1

    def http_request(self, handler: str, method: str, status: int, seconds: float) -> None:
        """One answered HTTP call; `handler` is the route, never a path that a client made up."""
        self._http_requests[handler, method, f"{status // 100}xx"] += 1
        histogram = self._http_seconds.get((handler, method))
        if histogram is None:
            histogram = self._http_seconds[handler, method] = Histogram(TTFT_BUCKETS)
        histogram.observe(seconds)

    # what is scraped

    def collect(self) -> Iterable[Metric]:
        yield from self._gauges()
        yield from self._counters()
        yield from self._histograms()
        yield from self._http()

    def describe(self) -> Iterable[Metric]:
        """Nothing to check at registration: names are frozen by a test."""
        return ()

    def _gauges(self) -> Iterable[Metric]:
        stats, now = self._stats, self._clock()
        hit_rate = stats.prefix_cache_hits / stats.prefix_cache_queries if stats.prefix_cache_queries else 0.0
        gauges = (
            ("num_requests_running", "Requests that the engine computes.", stats.num_running),
            ("num_requests_waiting", "Requests that wait to be scheduled.", stats.num_waiting),
            ("num_requests_swapped", "Requests whose blocks are in swap space.", stats.num_swapped),
            ("kv_cache_usage_perc", "Used share of the KV cache, 0 to 1.", stats.kv_cache_usage),
            ("gpu_cache_usage_perc", "Old name of kv_cache_usage_perc.", stats.kv_cache_usage),
            ("cpu_cache_usage_perc", "Used share of the swap space, 0 to 1.", stats.host_cache_usage),
            ("gpu_prefix_cache_hit_rate", "Hit share of the prefix cache, 0 to 1.", hit_rate),
            ("cpu_prefix_cache_hit_rate", "Always 0: swap space holds no prefix cache.", 0.0),
            (
                "avg_prompt_throughput_toks_per_s",
                "Prompt tokens per second, averaged over seconds.",
                self._prompt_rate.value(now, stats.prompt_tokens),
            ),
            (
                "avg_generation_throughput_toks_per_s",
                "Generated tokens per second, averaged over seconds.",
                self._generation_rate.value(now, stats.generation_tokens),
            ),
        )
        for name, text, value in gauges:
            yield self._gauge(name, text, {(): value})
        waiting: Values = {
            ("capacity",): stats.num_waiting - stats.num_deferred,
            ("deferred",): stats.num_deferred,
        }
        yield self._gauge("num_requests_waiting_by_reason", "Waiting requests by cause.", waiting, ("reason",))
        if self._cache_config:
            info = self._gauge(
                "cache_config_info",
                "Sizes of the KV cache, as labels.",
                {tuple(self._cache_config.values()): 1},
                tuple(self._cache_config),
            )
            yield info

    def _counters(self) -> Iterable[Metric]:
        stats = self._stats
        plain = (
            ("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", stats.prefix_cache_queries),
            ("prefix_cache_hits", "Prompt tokens found in the prefix cache.", stats.prefix_cache_hits),
            ("gpu_prefix_cache_queries", "Old name of prefix_cache_queries.", stats.prefix_cache_queries),
            ("gpu_prefix_cache_hits", "Old name of prefix_cache_hits.", stats.prefix_cache_hits),
            ("num_preemptions", "Times a running request was preempted.", stats.num_preemptions),
            ("prompt_tokens", "Prompt tokens computed.", stats.prompt_tokens),
            ("prompt_tokens_cached", "Prompt tokens of finished requests taken from the cache.", self._cached_tokens),
            ("generation_tokens", "Tokens generated.", stats.generation_tokens),
        )
        for name, text, value in plain:
            yield self._counter(name, text, {(): value})
        sources: Values = {
            ("local_compute",): max(0, stats.prompt_tokens - self._cached_tokens),
            ("local_cache_hit",): self._cached_tokens,
        }
        yield self._counter("prompt_tokens_by_source", "Prompt tokens by where they came from.", sources, ("source",))
        cached: Values = {("device",): self._cached_tokens}
        yield self._counter("prompt_tokens_cached_by_source", "Cached prompt tokens by place.", cached, ("source",))
        reasons: Values = {(str(reason),): count for reason, count in self._reasons.items()}
        yield self._counter("request_success", "Finished requests by reason.", reasons, ("finished_reason",))
        rejections: Values = {(reason,): count for reason, count in self._rejections.items()}
        yield self._counter("admission_rejections", "Calls refused by a full queue.", rejections, ("reason",))

    def _histograms(self) -> Iterable[Metric]:
        for name, text, histogram in (
            ("time_to_first_token_seconds", "Arrival to first token.", self.time_to_first_token),
            ("inter_token_latency_seconds", "Time between outputs of a sequence.", self.inter_token_latency),
            ("time_per_output_token_seconds", "Old name of inter_token_latency_seconds.", self.inter_token_latency),
            ("request_time_per_output_token_seconds", "Decode time / (tokens - 1).", self._time_per_token),
            ("e2e_request_latency_seconds", "Arrival to last token.", self.e2e_latency),
            ("request_queue_time_seconds", "Arrival at the engine to first scheduled.", self._queue_time),
            ("time_in_queue_requests", "Old name of request_queue_time_seconds.", self._queue_time),
            ("request_inference_time_seconds", "First scheduled to last token.", self._inference_time),
            ("request_prefill_time_seconds", "First scheduled to first token.", self._prefill_time),
            ("request_decode_time_seconds", "First token to last token.", self._decode_time),
            ("model_forward_time_milliseconds", "Inference time of a request.", self._inference_milliseconds),
            ("model_execute_time_milliseconds", "Inference time of a request.", self._inference_milliseconds),
            ("request_prompt_tokens", "Prompt tokens of a request.", self._prompt_tokens),
            ("request_generation_tokens", "Generated tokens of a request.", self._generation_tokens),
            (
                "request_max_num_generation_tokens",
                "Tokens of the longest sequence.",
                self._max_generation_tokens,
            ),
            ("request_params_max_tokens", "max_tokens of a request.", self._max_tokens),
            ("request_prefill_kv_computed_tokens", "Prompt tokens not cached.", self._computed_prompt_tokens),
            ("iteration_tokens_total", "Tokens computed by a step.", self._step_tokens),
            ("request_params_n", "n of a request.", self._n),
            ("request_params_best_of", "best_of of a request.", self._best_of),
            ("request_num_preemptions", "Preemptions of a request.", self._preemptions),
        ):
            family = HistogramMetricFamily(f"vllm:{name}", text, labels=("model_name", "engine"))
            family.add_metric(self._labels, *histogram.cumulative())
            yield family

    def _http(self) -> Iterable[Metric]:
        requests = CounterMetricFamily("http_requests", "HTTP calls answered.", labels=("handler", "method", "status"))
        for key, count in self._http_requests.items():
            requests.add_metric(key, count)
        yield requests
        seconds = HistogramMetricFamily("http_request_duration_seconds", "Answer time.", labels=("handler", "method"))
        for key_pair, histogram in self._http_seconds.items():
            seconds.add_metric(key_pair, *histogram.cumulative())
        yield seconds

    def _gauge(self, name: str, text: str, values: Values, labels: tuple[str, ...] = ()) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"vllm:{name}", text, labels=("model_name", "engine", *labels))
        for key, value in values.items():
            family.add_metric((*self._labels, *key), value)
        return family

    def _counter(self, name: str, text: str, values: Values, labels: tuple[str, ...] = ()) -> CounterMetricFamily:
        family = CounterMetricFamily(f"vllm:{name}", text, labels=("model_name", "engine", *labels))
        for key, value in values.items():
            family.add_metric((*self._labels, *key), value)
        return family


class RequestTimer:
    """Times one engine request where its client sees it. `arrival` and `now`: time.perf_counter()."""

    __slots__ = ("_arrival", "_ended", "_first_token", "_metrics")

    def __init__(self, metrics: ServerMetrics, arrival: float) -> None:
        self._metrics = metrics
        self._arrival = arrival
        self._first_token = False
        self._ended = False

    def tokens(self, now: float, last_output: float) -> None:
        """Tokens of a sequence came; `last_output` 0: its first ones."""
        if last_output:
            self._metrics.inter_token_latency.observe(now - last_output)
        elif not self._first_token:
            self._first_token = True
            self._metrics.time_to_first_token.observe(now - self._arrival)

    def ended(self, reason: FinishReason, longest: int) -> None:
        """The request is over; later calls do nothing."""
        if not self._ended:
            self._ended = True
            self._metrics.request_ended(reason, longest, time.perf_counter() - self._arrival)
