"""Keys for the runtimes' `/drain`: one per LLMDeployment, derived from the operator's own secret.

Pods get only a key's SHA-256 (in the Secret `<name>-keys`), so no pod can speak for another. Nothing is stored per
resource: the same secret gives the same keys after a restart.
"""

import base64
import contextlib
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from octavo_operator.api import LLMDeployment
from octavo_operator.kube_client import Conflict, KubeClient, NotFound

_DATA_KEY = "seed"
_SEED_BYTES = 32


@dataclass(frozen=True, slots=True)
class AdminKeys:
    """Derives the keys."""

    seed: bytes = field(repr=False)

    def key(self, deployment: LLMDeployment) -> str:
        """The key that `/drain` of the deployment's pods takes, 64 hex digits."""
        identity = f"{deployment.namespace}/{deployment.name}/{deployment.uid}"
        return hmac.new(self.seed, identity.encode(), hashlib.sha256).hexdigest()

    def hash(self, deployment: LLMDeployment) -> str:
        """What its pods are told of the key: `sha256:<64 hex>`."""
        return "sha256:" + hashlib.sha256(self.key(deployment).encode()).hexdigest()


async def load_admin_keys(kube: KubeClient, namespace: str, name: str) -> AdminKeys:
    """From the Secret `name` in the operator's namespace; an empty one (as the chart makes it) is filled, a missing one made.

    Called by the leader only, so nobody else fills it at the same time.
    """
    try:
        found = await kube.read_secret(namespace, name)
    except NotFound:
        found = {}
        empty = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": namespace, "name": name},
            "type": "Opaque",
        }
        with contextlib.suppress(Conflict):
            await kube.create(empty)
    if not found.get(_DATA_KEY):
        seed = base64.b64encode(secrets.token_bytes(_SEED_BYTES)).decode()
        await kube.merge_patch("Secret", namespace, name, {"data": {_DATA_KEY: seed}})
        found = await kube.read_secret(namespace, name)
    return AdminKeys(found[_DATA_KEY])
