"""The operator's metrics keep their names: dashboards and alerts read them."""

from prometheus_client import CollectorRegistry

from octavo_operator.metrics import OperatorMetrics

NAMES = {
    "octavo_operator_reconcile_seconds",
    "octavo_operator_reconcile_errors",
    "octavo_operator_queue_depth",
    "octavo_operator_queue_oldest_seconds",
    "octavo_operator_event_age_seconds",
    "octavo_operator_leader",
    "octavo_operator_api_requests",
    "octavo_operator_watch_last_event_seconds",
    "octavo_operator_last_relist_seconds",
    "octavo_operator_objects",
    "octavo_operator_loop_lag_seconds",
}


def test_names_are_frozen_and_each_has_its_help() -> None:
    registry = CollectorRegistry()
    OperatorMetrics(registry)
    families = list(registry.collect())
    assert {family.name for family in families} == NAMES
    assert all(family.documentation.endswith(".") for family in families)


def test_requests_are_counted_by_verb_kind_and_code() -> None:
    registry = CollectorRegistry()
    OperatorMetrics(registry).count_request("patch", "Pod", 409)
    labels = {"verb": "patch", "kind": "Pod", "code": "409"}
    assert registry.get_sample_value("octavo_operator_api_requests_total", labels) == 1
