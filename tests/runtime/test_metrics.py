"""Names, labels and buckets that dashboards and autoscalers rely on. Change this file only to add."""

import re

from prometheus_client import CollectorRegistry, generate_latest

from octavo_runtime.engine.messages import FinishReason, RequestFinished, SchedulerStats, StepOutputs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.metrics import RequestTimer, ServerMetrics
from octavo_runtime.server.testing import ready_message

GAUGES = [
    "avg_generation_throughput_toks_per_s",
    "avg_prompt_throughput_toks_per_s",
    "cache_config_info",
    "cpu_cache_usage_perc",
    "cpu_prefix_cache_hit_rate",
    "gpu_cache_usage_perc",
    "gpu_prefix_cache_hit_rate",
    "kv_cache_usage_perc",
    "num_requests_running",
    "num_requests_swapped",
    "num_requests_waiting",
    "num_requests_waiting_by_reason",
]
COUNTERS = [
    "admission_rejections",
    "generation_tokens",
    "gpu_prefix_cache_hits",
    "gpu_prefix_cache_queries",
    "num_preemptions",
    "prefix_cache_hits",
    "prefix_cache_queries",
    "prompt_tokens",
    "prompt_tokens_by_source",
    "prompt_tokens_cached",
    "prompt_tokens_cached_by_source",
    "request_success",
]
HISTOGRAMS = [
    "e2e_request_latency_seconds",
    "inter_token_latency_seconds",
    "iteration_tokens_total",
    "model_execute_time_milliseconds",
    "model_forward_time_milliseconds",
    "request_decode_time_seconds",
    "request_generation_tokens",
    "request_inference_time_seconds",
    "request_max_num_generation_tokens",
    "request_num_preemptions",
    "request_params_best_of",
    "request_params_max_tokens",
    "request_params_n",
    "request_prefill_kv_computed_tokens",
    "request_prefill_time_seconds",
    "request_prompt_tokens",
    "request_queue_time_seconds",
    "request_time_per_output_token_seconds",
    "time_in_queue_requests",
    "time_per_output_token_seconds",
    "time_to_first_token_seconds",
]


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def fresh():
    registry, clock = CollectorRegistry(), Clock()
    metrics = ServerMetrics(registry, "m", clock)
    metrics.engine_ready(ready_message(max_model_len=1000))
    return (
        metrics,
        clock,
        lambda name, **labels: registry.get_sample_value(name, {"model_name": "m", "engine": "0", **labels}),
        registry,
    )


def test_names_and_kinds_are_frozen():
    _, _, _, registry = fresh()
    found = re.findall(r"^# TYPE vllm:(\S+) (\S+)$", generate_latest(registry).decode(), re.MULTILINE)
    kinds = {kind: sorted(name for name, its in found if its == kind) for kind in ("gauge", "counter", "histogram")}
    assert kinds == {
        "gauge": sorted(GAUGES),
        "counter": sorted(f"{name}_total" for name in COUNTERS),
        "histogram": sorted(HISTOGRAMS),
    }


def test_labels_are_frozen():
    _, _, _, registry = fresh()
    text = generate_latest(registry).decode()
    for line in text.splitlines():
        if line.startswith("vllm:"):
            assert 'model_name="m"' in line
            assert 'engine="0"' in line
    assert 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 0.0' in text
    assert re.search(r"vllm:cache_config_info\{.*block_size=\"16\".*num_gpu_blocks=\"64\".*\} 1.0", text)


def test_buckets_are_frozen():
    _, _, _, registry = fresh()
    text = generate_latest(registry).decode()

    def bounds(name):
        return re.findall(rf'^vllm:{name}_bucket{{.*le="([^"]+)"', text, re.MULTILINE)

    assert " ".join(bounds("time_to_first_token_seconds")) == (
        "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0 20.0 40.0 80.0 160.0 640.0 2560.0"
        " +Inf"
    )
    assert " ".join(bounds("inter_token_latency_seconds")) == (
        "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1.0 2.5 5.0 7.5 10.0 20.0 40.0 80.0 +Inf"
    )
    assert " ".join(bounds("e2e_request_latency_seconds")) == (
        "0.3 0.5 0.8 1.0 1.5 2.0 2.5 5.0 10.0 15.0 20.0 30.0 40.0 50.0 60.0 120.0 240.0 480.0 960.0 1920.0 7680.0 +Inf"
    )
    assert " ".join(bounds("iteration_tokens_total")) == (
        "1.0 8.0 16.0 32.0 64.0 128.0 256.0 512.0 1024.0 2048.0 4096.0 8192.0 16384.0 +Inf"
    )
    assert " ".join(bounds("request_prompt_tokens")) == ("1.0 2.0 5.0 10.0 20.0 50.0 100.0 200.0 500.0 1000.0 +Inf")


def test_a_step_moves_gauges_and_counters_under_old_and_new_names():
    metrics, _, value, _ = fresh()
    stats = SchedulerStats(
        num_running=3,
        num_waiting=2,
        num_swapped=1,
        kv_cache_usage=0.5,
        host_cache_usage=0.25,
        prefix_cache_queries=100,
        prefix_cache_hits=40,
        num_preemptions=4,
        prompt_tokens=70,
        generation_tokens=9,
        iteration_tokens=33,
    )
    metrics.step(StepOutputs(stats=stats))
    assert value("vllm:num_requests_running") == 3
    assert value("vllm:num_requests_waiting") == 2
    assert value("vllm:num_requests_swapped") == 1
    assert value("vllm:kv_cache_usage_perc") == value("vllm:gpu_cache_usage_perc") == 0.5
    assert value("vllm:cpu_cache_usage_perc") == 0.25
    assert value("vllm:prefix_cache_hits_total") == value("vllm:gpu_prefix_cache_hits_total") == 40
    assert value("vllm:gpu_prefix_cache_hit_rate") == 0.4
    assert value("vllm:num_preemptions_total") == 4
    assert value("vllm:generation_tokens_total") == 9
    assert value("vllm:iteration_tokens_total_bucket", le="64.0") == 1
    assert value("vllm:iteration_tokens_total_bucket", le="32.0") == 0
    assert value("vllm:iteration_tokens_total_sum") == 33


def test_a_finished_request_fills_its_histograms():
    metrics, _, value, _ = fresh()
    finished = RequestFinished(
        request_id="r",
        reason=FinishReason.STOP,
        num_prompt_tokens=30,
        num_cached_tokens=10,
        num_generation_tokens=5,
        num_preemptions=2,
        queue_time=1.0,
        prefill_time=2.0,
        decode_time=4.0,
    )
    metrics.step(StepOutputs(finished=[finished]))
    assert value("vllm:request_queue_time_seconds_sum") == value("vllm:time_in_queue_requests_sum") == 1
    assert value("vllm:request_inference_time_seconds_sum") == 6
    assert value("vllm:request_time_per_output_token_seconds_sum") == 1
    assert value("vllm:request_prompt_tokens_sum") == 30
    assert value("vllm:request_prefill_kv_computed_tokens_sum") == 20
    assert value("vllm:prompt_tokens_cached_total") == 10
    assert value("vllm:request_num_preemptions_bucket", le="1.0") == 0
    assert value("vllm:request_num_preemptions_bucket", le="2.0") == 1


def test_front_end_times_tokens_and_counts_the_end_once():
    metrics, _, value, _ = fresh()
    metrics.requests_accepted(SamplingParams(n=2, best_of=4, max_tokens=64), [3, 4])
    timer = RequestTimer(metrics, arrival=10.0)
    timer.tokens(10.05, 0.0)
    timer.tokens(10.06, 0.0)  # the second sequence's first token is no first token of the request
    timer.tokens(10.25, 10.05)
    timer.ended(FinishReason.LENGTH, 3)
    timer.ended(FinishReason.ABORT, 3)
    assert value("vllm:time_to_first_token_seconds_count") == 1
    assert value("vllm:time_to_first_token_seconds_bucket", le="0.06") == 1
    assert value("vllm:inter_token_latency_seconds_count") == value("vllm:time_per_output_token_seconds_count") == 1
    assert value("vllm:request_success_total", finished_reason="length") == 1
    assert value("vllm:request_success_total", finished_reason="abort") == 0
    assert value("vllm:request_params_n_count") == 2
    assert value("vllm:request_params_best_of_sum") == 8
    assert value("vllm:request_max_num_generation_tokens_sum") == 3


def test_throughput_averages_over_a_window_and_falls_to_zero():
    metrics, clock, value, _ = fresh()
    clock.now = 1000.0  # a long idle time does not thin the first tokens out
    for second in range(1, 31):
        clock.now = 1000.0 + second
        metrics.step(StepOutputs(stats=SchedulerStats(prompt_tokens=1000 * second, generation_tokens=100 * second)))
    assert value("vllm:avg_prompt_throughput_toks_per_s") == 1000
    assert value("vllm:avg_generation_throughput_toks_per_s") == 100
    clock.now += 5.0
    assert value("vllm:avg_generation_throughput_toks_per_s") == 50
    clock.now += 6.0
    assert value("vllm:avg_generation_throughput_toks_per_s") == 0


def test_waiting_requests_are_told_apart_by_what_they_wait_for():
    metrics, _, value, _ = fresh()
    metrics.step(StepOutputs(stats=SchedulerStats(num_waiting=5, num_deferred=2)))
    assert value("vllm:num_requests_waiting") == 5
    assert value("vllm:num_requests_waiting_by_reason", reason="capacity") == 3
    assert value("vllm:num_requests_waiting_by_reason", reason="deferred") == 2
