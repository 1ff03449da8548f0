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


def keys_secret(
    deployment: LLMDeployment, admin_key_hash: str, api_key_hashes: Mapping[str, str], kept_api_keys: str = ""
) -> dict[str, Any]:
    """`api_key_hashes`: "<secret>/<key>" -> "sha256:<hex>". Every line says behind the hash where its key is from.

    `kept_api_keys`: the file as the Secret has it (base64), for pods that were made while the spec asked for keys.
    """
    data = {ADMIN_KEYS_FILE: _encoded([f"{admin_key_hash} operator"])}
    if deployment.spec.access.api_keys:
        lines = [f"{digest} {source}" for source, digest in sorted(api_key_hashes.items())]
        data[API_KEYS_FILE] = _encoded(lines or [NO_KEY])
    elif kept_api_keys:
        data[API_KEYS_FILE] = kept_api_keys
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": names.child_metadata(deployment, names.keys_secret(deployment.name)),
        "type": "Opaque",
        "data": data,
    }


def _encoded(lines: list[str]) -> str:
    return base64.b64encode("".join(f"{line}\n" for line in lines).encode()).decode()
