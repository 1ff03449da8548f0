"""`OperatorSettings`: everything that can be chosen when the operator starts. The only reader of the environment.

Each field is the variable OCTAVO_OPERATOR_<FIELD>; lists are separated by commas. The chart sets them from its values.
"""

import json
import os
import socket
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from octavo_operator.quantity import parse_quantity

Names = Annotated[tuple[str, ...], NoDecode]
Seconds = Annotated[float, Field(gt=0, le=86400)]
Port = Annotated[int, Field(ge=0, le=65535)]

PREFIX = "OCTAVO_OPERATOR_"


class SettingsError(Exception):
    """A variable that cannot be; the message names it."""


def installed_version() -> str:
    """Of this distribution."""
    try:
        return version("octavo")
    except PackageNotFoundError:
        return "0"


def default_identity() -> str:
    """Outside a pod: this process on this machine."""
    return os.environ.get("POD_NAME") or f"{socket.gethostname()}-{os.getpid()}"


def own_api_server() -> str:
    """Address of the API server as the kubelet tells it to every pod: needs no DNS. Empty outside a cluster."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}" if host else ""


class OperatorSettings(BaseSettings):
    """Frozen; a component gets the values that it needs."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    # where
    namespaces: Names = ()
    """Watch these only; empty: the whole cluster."""
    namespace: str = Field(default_factory=lambda: os.environ.get("POD_NAMESPACE", "octavo-system"))
    """The operator's own: its Lease and its Secret are there."""
    identity: str = Field(default_factory=default_identity)
    """Differs between replicas."""
    api_server: str = Field(default_factory=own_api_server)
    """For a pod; outside a cluster the kubeconfig says it."""

    # one writer
    leader_election: bool = True
    lease_name: str = "octavo-operator"
    lease_seconds: Seconds = 15.0
    renew_seconds: Seconds = 10.0
    retry_seconds: Seconds = 2.0

    # work
    workers: int = Field(default=8, ge=1, le=256)
    requeue_seconds: Seconds = 300.0
    """Every resource is looked at this often, changed or not."""
    relist_seconds: Seconds = 300.0
    """Every watched kind is listed this often: a lost event costs no longer."""
    request_seconds: Seconds = 15.0
    """The longest that one call of the API server may take."""
    drain_seconds: Seconds = 5.0
    """At the end, how long reconciles that run may take to finish."""

    # to the outside
    probe_host: str = ""
    """Empty: all addresses."""
    probe_port: Port = 8080
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "text"] = "json"
    webhook: bool = False
    webhook_port: Port = 9443
    webhook_cert_dir: str = "/etc/octavo/webhook"

    # what pods are made of
    runtime_image: str = Field(default_factory=lambda: f"octavo-runtime:{installed_version()}")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: Names = ()
    admin_secret_name: str = "octavo-operator-admin"  # a Secret's name
    """In the operator's namespace; the seed of every admin key; made when it is not there."""
    hub_endpoint: str = ""
    """A mirror of the hub for every resource that names none; empty: the hub itself."""
    gpu_resource: str = "nvidia.com/gpu"
    runtime_pod_cpu: str = "1"
    """What a replica without GPU asks for when its spec does not say."""
    runtime_pod_memory: str = "2Gi"
    """The same, beside its weights."""
    fs_group: int | None = 65532
    """Group of mounted claims; "none" where the platform chooses it."""

    @field_validator("namespaces", "image_pull_secrets", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if value.startswith("["):  # the chart writes JSON
            return json.loads(value)
        return tuple(filter(None, map(str.strip, value.split(","))))

    @field_validator("runtime_pod_cpu", "runtime_pod_memory")
    @classmethod
    def _is_quantity(cls, value: str, info: ValidationInfo) -> str:
        parse_quantity("cpu" if info.field_name == "runtime_pod_cpu" else "memory", value)
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("fs_group", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return None if value in ("", "none") else value


def load_settings() -> OperatorSettings:
    """From the process's environment. Raises SettingsError, one sentence that names the variable."""
    try:
        return OperatorSettings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        variable = PREFIX + "_".join(str(part) for part in first["loc"][:1]).upper()
        raise SettingsError(f"{variable}: {first['msg']}, not {first['input']!r}.") from error
