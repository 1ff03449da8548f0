"""`PluginSettings`: what `kubectl octavo` takes from the environment, under the names that kubectl and hub tools use."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class PluginSettings(BaseSettings):
    """A flag wins over these. Empty counts as not set."""

    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True)

    kubeconfig: str | None = None
    """Files, separated as in PATH."""
    kubernetes_service_host: str | None = None
    """Set in every pod."""
    hf_endpoint: str | None = None
    """Address of the hub or of a mirror."""
    hf_token: str | None = Field(default=None, repr=False)
    """For models that need one."""
