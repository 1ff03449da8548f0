import msgspec

from octavo_operator.api import AutoScaling
from octavo_operator.autoscaling.auto_settings import AutoSettings, OnMetricsLost, StepSettings


def test_only_the_maximum_is_needed() -> None:
    settings = AutoSettings.of(AutoScaling(max_replicas=3))
    assert settings == AutoSettings(max_replicas=3)
    assert (settings.min_replicas, settings.waiting_requests, settings.kv_cache_usage) == (1, 5, 0.8)
    assert (settings.up, settings.down) == (StepSettings(0, 1, 60), StepSettings(300, 1, 60))
    assert settings.on_metrics_lost is OnMetricsLost.HOLD


def test_everything_can_be_said() -> None:
    auto = msgspec.convert(
        {
            "minReplicas": 2,
            "maxReplicas": 8,
            "targets": {"waitingRequests": 20, "kvCacheUsage": 0.6},
            "scaleUp": {"stabilizationSeconds": 5, "maxPods": 4, "periodSeconds": 15},
            "scaleDown": {"stabilizationSeconds": 0},
            "onMetricsLost": "ScaleToMax",
        },
        AutoScaling,
    )
    assert AutoSettings.of(auto, seats=64) == AutoSettings(
        max_replicas=8,
        min_replicas=2,
        waiting_requests=20,
        kv_cache_usage=0.6,
        up=StepSettings(5, 4, 15),
        down=StepSettings(0, 1, 60),
        on_metrics_lost=OnMetricsLost.SCALE_TO_MAX,
        seats=64,
    )
