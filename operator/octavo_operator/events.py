"""`EventRecorder`: Kubernetes Events about LLMDeployments. Given a reason and a sentence; posts each once in ten minutes.

An Event is a courtesy to whoever runs `kubectl describe`: one that cannot be posted is logged and forgotten.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from octavo_operator.api import GROUP, KIND, VERSION, LLMDeployment
from octavo_operator.kube_client import ApiError, KubeClient, Raw
from octavo_operator.names import MANAGER
from octavo_operator.timestamp import format_time

log = logging.getLogger(__name__)

SILENT_SECONDS = 600.0
LONGEST_MESSAGE = 1024  # the API server refuses more
FEWEST_KEPT = (
    1024  # posted ones; beyond it, those that are no longer silenced are dropped when their number has doubled
)


class EventRecorder:
    """Posts as one operator replica."""

    def __init__(self, kube: KubeClient, identity: str, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._identity = identity
        self._clock = clock
        self._posted: dict[tuple[str, str, str], float] = {}
        self._most = FEWEST_KEPT

    async def record(self, deployment: LLMDeployment, reason: str, message: str, *, warning: bool) -> None:
        """Post it, unless the same was posted just now."""
        now, same = self._clock(), (deployment.uid, reason, message)
        if now - self._posted.get(same, float("-inf")) < SILENT_SECONDS:
            return
        if len(self._posted) >= self._most:
            self._posted = {what: at for what, at in self._posted.items() if now - at < SILENT_SECONDS}
            self._most = max(FEWEST_KEPT, 2 * len(self._posted))
        self._posted[same] = now
        try:
            await self._kube.create_event(self._event(deployment, reason, message, warning=warning))
        except ApiError as error:
            log.warning("an Event could not be posted: %s", error, extra={"fields": {"reason": reason}})

    def _event(self, deployment: LLMDeployment, reason: str, message: str, *, warning: bool) -> Raw:
        now = self._clock()
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "namespace": deployment.namespace,
                "name": f"{deployment.name}.{uuid4().hex[:16]}",
            },
            "involvedObject": {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": KIND,
                "namespace": deployment.namespace,
                "name": deployment.name,
                "uid": deployment.uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "action": reason,
            "message": message[:LONGEST_MESSAGE],
            "eventTime": datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "firstTimestamp": format_time(now),
            "lastTimestamp": format_time(now),
            "count": 1,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self._identity[:128],
        }
