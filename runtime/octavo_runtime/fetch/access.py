"""`HubAccess`: where the hub is, the token for it, and where its cache lies on this machine.

`huggingface_hub` reads the environment (HF_ENDPOINT, HF_TOKEN, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE), so that its users
find here what they know. Its downloader is not used: ours reports, resumes and can be stopped.
"""

from dataclasses import dataclass, field
from pathlib import Path

import huggingface_hub
from huggingface_hub import constants


@dataclass(frozen=True, slots=True)
class HubAccess:
    """Read once per start."""

    endpoint: str  # without a slash at the end
    cache_dir: Path
    token: str | None = field(default=None, repr=False)
    offline: bool = False


def hub_access() -> HubAccess:
    """As the environment has it."""
    return HubAccess(
        endpoint=constants.ENDPOINT,
        cache_dir=Path(constants.HF_HUB_CACHE),
        token=huggingface_hub.get_token(),
        offline=constants.HF_HUB_OFFLINE,
    )
