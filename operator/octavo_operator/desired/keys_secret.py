"""The Secret `<name>-keys`: hashes of the API keys that clients may use and of the operator's own admin key.

No key is in it, only `sha256:<hex>` lines: whoever reads it can call nothing.
"""

import base64
from collections.abc import Mapping
from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.arguments import ADMIN_KEYS_FILE, API_KEYS_FILE

NO_KEY = f"sha256:{'0' * 64} no-Secret-matches-spec.access.apiKeys"
"""Nobody knows a key with this hash. It keeps the door shut while no Secret matches, where an empty file would say
nothing."""


def keys_secret(deployment: LLMDeployment, admin_key_hash: str, api_key_hashes: Mapping[str, str]) -> dict[str, Any]:
    """`api_key_hashes`: "<secret>/<key>" -> "sha256:<hex>". Every line says behind the hash where its key is from."""
    lines = [f"{digest} {source}" for source, digest in sorted(api_key_hashes.items())] or [NO_KEY]
    files = {ADMIN_KEYS_FILE: [f"{admin_key_hash} operator"]}
    if deployment.spec.access.api_keys:
        files[API_KEYS_FILE] = lines
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names.child_metadata(deployment, names.keys_secret(deployment.name)),
        "type": "Opaque",
        "data": {name: _encoded(content) for name, content in files.items()},
    }


def _encoded(lines: list[str]) -> str:
    return base64.b64encode("".join(f"{line}\n" for line in lines).encode()).decode()
