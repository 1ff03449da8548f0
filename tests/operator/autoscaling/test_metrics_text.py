import pytest

from octavo_operator.autoscaling.metrics_text import Sample, parse

PAGE = """\
# HELP vllm:num_requests_waiting Number of requests waiting.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="a \\"b\\""} 3.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 7.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_cache_usage_perc{model_name="m"} 0.75
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.1",model_name="m"} 5.0
"""


def test_the_three_gauges_are_read_and_the_rest_is_not() -> None:
    assert parse(PAGE) == Sample(waiting=3, running=7, kv_usage=0.25)


def test_the_old_name_of_cache_usage_is_read_where_the_new_one_is_missing() -> None:
    assert parse('vllm:gpu_cache_usage_perc{model_name="m"} 0.75\n') == Sample(kv_usage=0.75)


def test_an_absent_series_is_none_and_not_zero() -> None:
    assert parse("") == Sample(None, None, None)
    assert parse("# TYPE vllm:num_requests_waiting gauge\n").waiting is None


def test_openmetrics_is_read_too() -> None:
    page = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 4 1700000000.123\n# EOF\n"
    assert parse(page).waiting == 4


def test_several_engines_of_one_pod_are_one_load() -> None:
    page = "".join(
        f'vllm:num_requests_waiting{{engine="{engine}"}} {waiting}\nvllm:kv_cache_usage_perc{{engine="{engine}"}} {usage}\n'
        for engine, waiting, usage in ((0, 2, 0.4), (1, 3, 0.6))
    )
    assert parse(page) == Sample(waiting=5, kv_usage=0.5)


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
def test_a_value_that_is_no_number_is_no_value(value: str) -> None:
    assert parse(f"vllm:kv_cache_usage_perc {value}\n").kv_usage is None


def test_names_that_only_begin_alike_are_others() -> None:
    assert parse('vllm:num_requests_waiting_by_reason{reason="kv"} 9\n').waiting is None


def test_a_broken_line_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"."):
        parse("vllm:num_requests_waiting{model_name= 3\n")
