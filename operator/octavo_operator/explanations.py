"""What each `Reason` means and what to do about it: the one table behind conditions, Events, `why` and the documentation.

A remedy is an imperative sentence that names the field or the command. Knows nothing of any particular LLMDeployment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from octavo_operator.reasons import Reason


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a reason means to a person."""

    stalled: bool  # will not heal without a person or a change of the spec
    meaning: str  # one sentence
    remedy: str  # one sentence, an imperative; empty where nothing need be done


def _fine(meaning: str) -> Explanation:
    return Explanation(stalled=False, meaning=meaning, remedy="")


def _heals(meaning: str, remedy: str) -> Explanation:
    return Explanation(stalled=False, meaning=meaning, remedy=remedy)


def _stalled(meaning: str, remedy: str) -> Explanation:
    return Explanation(stalled=True, meaning=meaning, remedy=remedy)


_WELL = {
    Reason.SERVING: _fine("The wanted replicas serve the current spec."),
    Reason.SUSPENDED: _fine("spec.suspend is true: no pods run, the number of replicas is remembered."),
    Reason.SCALED_TO_ZERO: _fine("No replicas are wanted, so none run."),
    Reason.MODEL_RESOLVED: _fine("The model's revision and files are known."),
    Reason.MODEL_CACHED: _fine("The weights lie complete on the shared volume."),
    Reason.MEMORY_FITS: _fine("Weights, KV cache and working memory fit on the device."),
    Reason.SCHEDULED: _fine("Every wanted pod has a node."),
    Reason.METRICS_FRESH: _fine("The autoscaler reads the pods' metrics."),
    Reason.UPGRADE_AVAILABLE: _fine("This operator would render the pods differently; nothing was restarted."),
}

_HEALS = {
    Reason.RESOLVING_MODEL: _fine("The model's revision and headers are being read; this takes seconds and no GPU."),
    Reason.DOWNLOADING: _fine("Weights are being fetched; status.model.download says how far it is."),
    Reason.IMAGE_PULLING: _fine("A node is pulling the image; the first pull on a node takes minutes."),
    Reason.WAITING_FOR_GPU: _heals(
        "No node has enough free GPUs for the pod.",
        "Free GPUs, add a GPU node, or lower spec.replicas or engine.tensorParallelSize.",
    ),
    Reason.WAITING_FOR_QUOTA: _heals(
        "The namespace's ResourceQuota leaves no room for the pod.",
        "Raise the quota or free some of it: kubectl describe resourcequota.",
    ),
    Reason.WAITING_FOR_NODE: _heals(
        "No node suits the pod: CPU, memory, taints, labels or affinity.",
        "Add a node, or change resources, pod.nodeSelector, pod.tolerations or resources.gpuProducts.",
    ),
    Reason.WAITING_FOR_VOLUME: _heals(
        "The pod's volume is not bound or not attached yet.",
        "Look at the claim's events if it lasts: kubectl describe pvc.",
    ),
    Reason.STARTING: _fine("The pod is being placed or made, or its server has not begun to load the model."),
    Reason.LOADING: _fine("Weights are being loaded onto the device; the message says how far it is."),
    Reason.WARMING_UP: _fine(
        "The engine runs its first steps, or the kubelet has yet to see it ready; this takes seconds."
    ),
    Reason.ROLLING_OUT: _fine(
        "A new revision replaces an older one, which serves until then; status.rollout says how."
    ),
    Reason.SCALING: _fine("Replicas are being added or removed."),
    Reason.DRAINING: _fine(
        "Pods that are no longer wanted finish their streams, for at most rollout.drain.timeoutSeconds."
    ),
    Reason.PAUSED: _heals("rollout.paused is true: the new revision waits.", "Set rollout.paused to false."),
    Reason.MODEL_RATE_LIMITED: _heals(
        "The model hub answers 429 (too many requests); Octavo waits as long as it says.",
        "Wait, or set model.credentials, cache.mode: SharedPVC or model.endpoint to ask the hub less often.",
    ),
    Reason.HUB_UNREACHABLE: _heals(
        "The model hub does not answer; Octavo tries again.",
        "Check the cluster's way out (proxy, DNS, NetworkPolicy), or let model.endpoint name a hub or mirror that it reaches.",
    ),
    Reason.METRICS_LOST: _heals(
        "The pods' metrics cannot be read; scaling.auto.onMetricsLost decides the number of replicas.",
        "Check that NetworkPolicies let the operator reach port 8000 of the pods.",
    ),
    Reason.FEATURE_UNAVAILABLE: _heals(
        "The spec asks for something that is not there; the rest is as it asks.",
        "Install or make what the message names, or change the field.",
    ),
    Reason.ENGINE_FAILED: _heals(
        "The engine ended by itself and is being restarted.", "Read its last log: kubectl logs --previous."
    ),
    Reason.EVICTED: _heals(
        "The node was short of memory and evicted the pod; another one is made.",
        "Raise resources.memory to what the pod really uses, so that it goes to a node with room.",
    ),
    Reason.NODE_LOST: _heals(
        "The pod's node is gone or shuts down; the pod is made again elsewhere.", "Look at the node: kubectl get nodes."
    ),
    Reason.RECONCILE_FAILED: _heals(
        "The operator met an error and tries again.", "Read the operator's log if it lasts."
    ),
}

_STALLED_MODEL = {
    Reason.SPEC_INVALID: _stalled("The spec cannot be carried out as written.", "Change the field that is named."),
    Reason.MODEL_NOT_FOUND: _stalled(
        "No model is where model.uri points, or the hub hides it from this token.",
        "Correct model.uri; for a private model of a hub set model.credentials to a token that may see it.",
    ),
    Reason.REVISION_NOT_FOUND: _stalled(
        "The model has no such branch, tag or commit.", "Set model.revision to one that exists, such as main."
    ),
    Reason.MODEL_ACCESS_DENIED: _stalled(
        "The hub refuses access to the model.",
        "Put a token that may read it into a Secret, name it in model.credentials, and accept the model's terms.",
    ),
    Reason.MODEL_CORRUPT: _stalled(
        "A file of the model is damaged or cut short.",
        "Upload it again, or set model.revision to a commit whose files are whole.",
    ),
    Reason.MODEL_UNSUPPORTED: _stalled(
        "The runtime cannot serve this architecture or format.", "Choose a model of an architecture that is named."
    ),
    Reason.DIGEST_MISMATCH: _stalled(
        "The files are not those that model.digest promises.",
        "Set model.digest to that of the revision you trust, or model.revision to the commit it was made from.",
    ),
    Reason.DOWNLOAD_FAILED: _stalled(
        "The downloader gave up.", "Read its log: kubectl logs of the pods labelled octavo.dev/component=downloader."
    ),
    Reason.WEIGHTS_TOO_LARGE: _stalled(
        "The weights do not fit into the device's memory.",
        "On the CPU raise resources.memory; on GPUs engine.tensorParallelSize, or choose a quantized model or a larger GPU.",
    ),
    Reason.KV_CACHE_TOO_SMALL: _stalled(
        "Beside the weights there is no room for the KV cache of one sequence.",
        "Lower engine.maxModelLen to the number in the message (or set it to auto), or give more memory.",
    ),
    Reason.CONTEXT_TOO_LARGE: _stalled(
        "engine.maxModelLen is longer than the model was made for.",
        "Lower engine.maxModelLen to the number in the message, or set it to auto.",
    ),
    Reason.QUANTIZATION_UNSUPPORTED: _stalled(
        "The checkpoint's format, the device or this runtime cannot do that quantization.",
        "Set engine.quantization to auto, or choose another checkpoint or GPU.",
    ),
    Reason.PARALLELISM_MISMATCH: _stalled(
        "The model's heads or layers cannot be divided by the parallel sizes.",
        "Set engine.tensorParallelSize or pipelineParallelSize to a number that the message lists.",
    ),
    Reason.PARALLELISM_UNSUPPORTED: _stalled(
        "This runtime image cannot split a model over devices.",
        "Set engine.tensorParallelSize and pipelineParallelSize to 1, or engine.image to one that can.",
    ),
    Reason.SETTINGS_REFUSED: _stalled(
        "The runtime refuses one of its settings.", "Change the field of engine (or engine.extraArgs) that is named."
    ),
}

_STALLED_POD = {
    Reason.REFERENCE_MISSING: _stalled(
        "A Secret, ConfigMap, claim or ServiceAccount that the spec names is not there, or lacks the key.",
        "Create what is named in the same namespace (of a Secret or ConfigMap also the key), or correct the name in the spec.",
    ),
    Reason.STORAGE_CLASS_MISSING: _stalled(
        "The claim's StorageClass does not exist.",
        "Let the claim name one that exists: kubectl get storageclass.",
    ),
    Reason.VOLUME_MULTI_ATTACH: _stalled(
        "Several pods want a volume that only one node may mount.",
        "Use a claim with ReadWriteMany or ReadOnlyMany, or set spec.replicas to 1 and rollout.strategy to InPlace.",
    ),
    Reason.DISK_FULL: _stalled(
        "The disk or volume that the weights go to is full.",
        "Enlarge the claim (Octavo's own by cache.sharedPVC.size), free the node's disk, or fetch fewer files by model.files.",
    ),
    Reason.IMAGE_PULL_FAILED: _stalled(
        "The image cannot be pulled.",
        "Correct engine.image, or give the node access to its registry (imagePullSecrets by pod.patch).",
    ),
    Reason.CONTAINER_REFUSED: _stalled(
        "The node refuses to make the container.", "Undo what pod.patch or engine.image changed, as the message says."
    ),
    Reason.POD_SECURITY_DENIED: _stalled(
        "The namespace's Pod Security level forbids the pod.",
        "Take out of pod.patch what the message lists, or relabel the namespace.",
    ),
    Reason.NAME_TAKEN: _stalled(
        "An object of a name that the model needs belongs to somebody else, and is left alone.",
        "Delete or rename that object, or give the LLMDeployment another name.",
    ),
    Reason.ADMISSION_DENIED: _stalled(
        "An admission rule of the cluster refuses the pod.", "Do what the rule's message asks, by spec.pod if need be."
    ),
    Reason.DEVICE_UNAVAILABLE: _stalled(
        "The runtime finds no usable device of the kind asked for.",
        "Set engine.device to cpu, or use an image and a node with working GPU drivers.",
    ),
    Reason.DEVICE_MEMORY_BUSY: _stalled(
        "Another process holds the device's memory.",
        "End what else runs on that GPU, or lower engine.gpuMemoryUtilization.",
    ),
    Reason.OUT_OF_MEMORY: _stalled(
        "The container used more memory than it may.",
        "Raise resources.memory, or lower engine.maxNumSeqs, engine.maxModelLen or engine.gpuMemoryUtilization.",
    ),
    Reason.STARTUP_DEADLINE_EXCEEDED: _stalled(
        "The pod was not ready within its start-up budget.",
        "Raise startup.timeoutSeconds, or make loading faster: cache.mode: SharedPVC.",
    ),
    Reason.PROGRESS_DEADLINE_EXCEEDED: _stalled(
        "The rollout made no progress within its deadline.",
        "Mend what keeps its pods from becoming ready, or raise rollout.progressDeadlineSeconds.",
    ),
    Reason.CRASH_LOOP: _stalled("The container ends again and again.", "Read its last log: kubectl logs --previous."),
    Reason.ENGINE_STALLED: _stalled(
        "The engine had work and made no step for liveness.engineStallSeconds; it is restarted.",
        "Read the stacks in kubectl logs --previous; look at the GPU if it happens on one node only.",
    ),
    Reason.ROLLOUT_BLOCKED_NO_CAPACITY: _stalled(
        "The rollout needs room that does not exist, and may not take a pod away first.",
        "Set rollout.maxUnavailable to 1 (or strategy to Auto), or free capacity for one more pod.",
    ),
    Reason.IMPOSSIBLE_REQUEST: _stalled(
        "No node could hold the pod, even if it were empty.",
        "Lower what one pod asks (resources, and on GPUs engine.tensorParallelSize), or add a larger node.",
    ),
}

EXPLANATIONS: Mapping[Reason, Explanation] = MappingProxyType({**_WELL, **_HEALS, **_STALLED_MODEL, **_STALLED_POD})
