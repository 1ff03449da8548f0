"""`kubectl octavo drain POD`: asks the operator to replace one pod without cutting a stream."""

from rich.console import Console
from rich.text import Text

from octavo_operator import names
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.layout import hanging, say
from octavo_operator.timestamp import format_time


async def drain(cluster: Cluster, pod: str, *, undo: bool, now: float, console: Console) -> int:
    """Only a request, kept as an annotation: the operator decides when, so that enough pods go on serving."""
    raw = await cluster.pod(pod)
    value = None if undo else format_time(now)
    await cluster.kube.merge_patch(
        "Pod", cluster.namespace, pod, {"metadata": {"annotations": {names.DRAIN_REQUESTED: value}}}
    )
    owner = raw["metadata"]["labels"].get(names.DEPLOYMENT, "")
    told = (
        f"Pod {pod} is no longer asked to drain."
        if undo
        else f"Pod {pod} will get no new requests, finish its streams and be replaced, as soon as {owner} can spare it. "
        f"Watch: kubectl octavo status {owner} --watch"
    )
    say(console, hanging(Text(), told, console.width))
    return 0
