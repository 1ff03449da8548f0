"""Every metric of the operator: object, name, help. One registry per process, made in `main.py`."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

RECONCILE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
AGE_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class OperatorMetrics:
    """The instruments; each is observed where the thing happens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.reconcile_seconds = Histogram(
            "octavo_operator_reconcile_seconds",
            "Seconds of one reconcile of one LLMDeployment.",
            buckets=RECONCILE_BUCKETS,
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "octavo_operator_reconcile_errors",
            "Reconciles that failed and are tried again, by class of error.",
            ["reason"],
            registry=registry,
        )
        self.queue_depth = Gauge(
            "octavo_operator_queue_depth", "LLMDeployments that wait for a worker.", registry=registry
        )
        self.queue_oldest_seconds = Gauge(
            "octavo_operator_queue_oldest_seconds",
            "Seconds that the oldest LLMDeployment in the queue has waited or been worked on.",
            registry=registry,
        )
        self.event_age = Histogram(
            "octavo_operator_event_age_seconds",
            "Seconds from an object's change, as the watch brought it, to the reconcile that it causes.",
            buckets=AGE_BUCKETS,
            registry=registry,
        )
        self.leader = Gauge("octavo_operator_leader", "1 while this replica does the work.", registry=registry)
        self.api_requests = Counter(
            "octavo_operator_api_requests",
            "Requests to the API server, watches left out. Code 0: no answer.",
            ["verb", "kind", "code"],
            registry=registry,
        )
        self.watch_last_event_seconds = Gauge(
            "octavo_operator_watch_last_event_seconds",
            "Seconds since the last event of any watch.",
            registry=registry,
        )
        self.last_relist_seconds = Gauge(
            "octavo_operator_last_relist_seconds",
            "Seconds since all watched objects were last listed.",
            registry=registry,
        )
        self.objects = Gauge("octavo_operator_objects", "Objects in the cache.", ["kind"], registry=registry)
        self.loop_lag_seconds = Gauge(
            "octavo_operator_loop_lag_seconds", "How late the event loop was at the last look.", registry=registry
        )

    def count_request(self, verb: str, kind: str, code: int) -> None:
        """One answer of the API server."""
        self.api_requests.labels(verb=verb, kind=kind, code=str(code)).inc()
