"""`AutoSettings`: `spec.scaling.auto` with every default filled in."""

from dataclasses import dataclass
from enum import StrEnum

from octavo_operator.api import AutoScaling, ScalingStep

WAITING_REQUESTS = 5
KV_CACHE_USAGE = 0.8


class OnMetricsLost(StrEnum):
    """What the number does while nothing is known."""

    HOLD = "Hold"
    SCALE_TO_MAX = "ScaleToMax"


@dataclass(frozen=True, slots=True)
class StepSettings:
    """How fast the number may move in one direction."""

    stabilization_seconds: float
    max_pods: int = 1
    period_seconds: float = 60

    @classmethod
    def of(cls, step: ScalingStep, stabilization_seconds: float) -> "StepSettings":
        """Of the spec; the window's default differs by direction."""
        given = step.stabilization_seconds
        return cls(
            stabilization_seconds=stabilization_seconds if given is None else given,
            max_pods=step.max_pods or 1,
            period_seconds=step.period_seconds or 60,
        )


@dataclass(frozen=True, slots=True)
class AutoSettings:
    """Bounds, targets per replica, steps."""

    max_replicas: int
    min_replicas: int = 1
    waiting_requests: float = WAITING_REQUESTS
    kv_cache_usage: float = KV_CACHE_USAGE
    up: StepSettings = StepSettings(0)
    down: StepSettings = StepSettings(300)
    on_metrics_lost: OnMetricsLost = OnMetricsLost.HOLD
    seats: int | None = None  # maxNumSeqs: requests that a replica can run; guards scale-down

    @classmethod
    def of(cls, auto: AutoScaling, seats: int | None = None) -> "AutoSettings":
        """Of the spec."""
        least = 1 if auto.min_replicas is None else auto.min_replicas
        return cls(
            max_replicas=max(least, auto.max_replicas),
            min_replicas=least,
            waiting_requests=auto.targets.waiting_requests or WAITING_REQUESTS,
            kv_cache_usage=auto.targets.kv_cache_usage or KV_CACHE_USAGE,
            up=StepSettings.of(auto.scale_up, 0),
            down=StepSettings.of(auto.scale_down, 300),
            on_metrics_lost=OnMetricsLost(auto.on_metrics_lost or OnMetricsLost.HOLD),
            seats=seats,
        )
