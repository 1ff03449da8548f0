"""`Kube`: the API server, through the official client's asyncio side. The only import of `kubernetes`.

Paths come from `kinds.py`, so nothing is discovered and nothing is written to disk. Every call has a timeout, every
refusal becomes a typed error of `kube_client.py`, and what a write returned is told to a witness (the cache).
"""

import base64
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from octavo_operator.kinds import KINDS, Kind
from octavo_operator.kube_client import (
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    ObjectList,
    Raw,
    Unavailable,
    Witness,
    error_of,
    name_of,
)
from octavo_operator.names import MANAGER

PAGE = 500  # objects of one answer: a larger one would hold the event loop while it is decoded
CONNECTIONS = 32
CONNECT_SECONDS = 5.0
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Query = Sequence[tuple[str, str]]


class Kube:
    """A `KubeClient` over HTTPS. Made by `connect`, ended by `close`."""

    def __init__(
        self,
        client: ApiClient,
        *,
        timeout_seconds: float,
        witness: Witness | None = None,
        on_request: Callable[[str, str, int], None] = lambda _verb, _kind, _status: None,
    ) -> None:
        self._client = client
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds))
        self._witness = witness
        self._on_request = on_request
        self._may_write: Callable[[], bool] = lambda: True

    @classmethod
    async def connect(
        cls,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        timeout_seconds: float = 15.0,
        witness: Witness | None = None,
        on_request: Callable[[str, str, int], None] = lambda _verb, _kind, _status: None,
    ) -> "Kube":
        """With the pod's service account, or else with a kubeconfig (given, $KUBECONFIG, ~/.kube/config)."""
        configuration = Configuration()
        try:
            if kubeconfig or context:
                raise config.ConfigException
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            try:
                await config.load_kube_config(kubeconfig, context, configuration)
            except (config.ConfigException, OSError) as error:
                raise Unavailable(0, f"no way to a cluster: {error}") from error
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.client_session_kwargs = {"trust_env": False}
        configuration.proxy = configuration.proxy or _proxy_to(configuration.host)
        return cls(ApiClient(configuration), timeout_seconds=timeout_seconds, witness=witness, on_request=on_request)

    def fenced(self, may_write: Callable[[], bool]) -> "Kube":
        """The same connections, for one who may write only while `may_write()`: what is on its way by then still arrives."""
        fenced = copy.copy(self)
        fenced._may_write = may_write
        return fenced

    async def close(self) -> None:
        """End all connections."""
        await self._client.close()

    async def get(self, kind: str, namespace: str | None, name: str) -> Raw:
        """One object."""
        return await self._object("get", KINDS[kind], namespace, name)

    async def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> ObjectList:
        """All pages. The items carry kind and apiVersion, as single objects do."""
        of, items, token, version = KINDS[kind], [], "", ""
        while True:
            query = {"limit": str(PAGE), "labelSelector": labels, "fieldSelector": fields, "continue": token}
            page = await self._send(
                "list", of, of.path(namespace), query=[(name, value) for name, value in query.items() if value]
            )
            items += [{"apiVersion": of.api_version, "kind": of.name, **item} for item in page.get("items") or ()]
            version, token = page["metadata"].get("resourceVersion", ""), page["metadata"].get("continue", "")
            if not token:
                return ObjectList(tuple(items), version)

    async def apply(self, manifest: Mapping[str, Any]) -> Raw:
        """Server-side apply."""
        return await self._write("patch", manifest, content_type=APPLY_PATCH, query=_FORCE)

    async def create(self, manifest: Mapping[str, Any]) -> Raw:
        """POST."""
        return await self._write("create", manifest)

    async def replace(self, manifest: Mapping[str, Any]) -> Raw:
        """PUT."""
        return await self._write("update", manifest)

    async def merge_patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Raw:
        """JSON merge patch."""
        try:
            patched = await self._object(
                "patch", KINDS[kind], namespace, name, body=body, content_type=MERGE_PATCH, query=_OURS
            )
        except Invalid as error:
            raise _uid_conflict(error) from error
        return self._seen(patched)

    async def patch_status(self, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Raw:
        """JSON patch of the status subresource. The uid is tested in it: the server would overlook it anywhere else."""
        kind = KINDS["LLMDeployment"]
        subject = name_of({"kind": kind.name, "metadata": {"namespace": namespace, "name": name}})
        body = [
            {"op": "test", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        path = kind.path(namespace, name, "status")
        try:
            patched = await self._send("patch", kind, path, subject, body=body, content_type=JSON_PATCH, query=_OURS)
        except Invalid as error:
            raise _uid_conflict(error) from error
        return self._seen(patched)

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """DELETE with its preconditions."""
        options: Raw = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            answer = await self._object("delete", KINDS[kind], namespace, name, body=options)
        except NotFound:
            answer = {}
        if answer.get("kind") == kind:  # still there, with a deletionTimestamp
            self._seen(answer)
        elif self._witness:
            self._witness.forget(kind, namespace, name)

    async def read_secret(self, namespace: str, name: str) -> dict[str, bytes]:
        """Decoded values."""
        raw = await self.get("Secret", namespace, name)
        return {key: base64.b64decode(value) for key, value in (raw.get("data") or {}).items()}

    async def create_event(self, event: Mapping[str, Any]) -> None:
        """POST to the event's namespace."""
        await self._send("create", KINDS["Event"], KINDS["Event"].path(event["metadata"]["namespace"]), body=event)

    async def serves(self, kind: str) -> bool:
        """Asks the kind's group for its resources."""
        of = KINDS[kind]
        try:
            found = await self._send("get", of, of.base)
        except NotFound:
            return False
        return any(resource["name"] == of.plural for resource in found.get("resources", ()))

    async def pod_page(self, namespace: str, pod: str, port: int, path: str) -> str:
        """What a pod answers to GET `path`, through the API server: for people outside the cluster."""
        pods = KINDS["Pod"]
        url = pods.path(namespace, f"{pod}:{port}", f"proxy/{path.lstrip('/')}")
        return (await self._bytes("get", pods, url, f"Pod {namespace}/{pod}")).decode()

    async def _object(self, verb: str, kind: Kind, namespace: str | None, name: str, **request: Any) -> Raw:
        subject = name_of({"kind": kind.name, "metadata": {"namespace": namespace, "name": name}})
        return await self._send(verb, kind, kind.path(namespace, name), subject, **request)

    async def _write(self, verb: str, manifest: Mapping[str, Any], **request: Any) -> Raw:
        kind, metadata = KINDS[manifest["kind"]], manifest["metadata"]
        name = "" if verb == "create" else metadata["name"]
        path = kind.path(metadata.get("namespace"), name)
        return self._seen(await self._send(verb, kind, path, name_of(manifest), body=manifest, **request))

    def _seen(self, raw: Raw) -> Raw:
        if self._witness:
            self._witness.see(raw)
        return raw

    async def _send(self, verb: str, kind: Kind, path: str, subject: str = "", **request: Any) -> Raw:
        answer: Raw = msgspec.json.decode(await self._bytes(verb, kind, path, subject, **request))
        return answer

    async def _bytes(
        self,
        verb: str,
        kind: Kind,
        path: str,
        subject: str = "",
        *,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        content_type: str | None = None,
        query: Query = (),
    ) -> bytes:
        if _METHODS[verb] != "GET" and not self._may_write():
            raise Unavailable(0, "not sent: the Lease is no longer ours", subject)
        status = 0
        try:
            headers = await self._headers(content_type)
            response = await self._client.rest_client.request(
                _METHODS[verb],
                f"{self._client.configuration.host}{path}{'?' if query else ''}{urlencode(query)}",
                headers=headers,
                body=body,
                _request_timeout=self._timeout,
            )
            status = response.status
            content: bytes = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(
                0, f"no answer from the API server ({str(error) or type(error).__name__})", subject
            ) from error
        finally:
            self._on_request(verb, kind.name, status)
        if not 200 <= status <= 299:
            raise error_of(
                status, _words(content, response.reason), subject or kind.plural, _retry_after(response.headers)
            )
        return content

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        """With the token as it is now: the client reads a service account's anew before it runs out."""
        headers = {"Accept": "application/json", "Content-Type": content_type or "application/json"}
        headers["User-Agent"] = MANAGER
        token = await self._client.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return headers | ({"Authorization": token} if token else {})


_METHODS = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_OURS: Query = (("fieldManager", MANAGER),)
_FORCE: Query = (*_OURS, ("force", "true"))


def _uid_conflict(error: Invalid) -> ApiError:
    """The server calls another uid invalid, or says no more than that a test failed; it is another object of that name."""
    if "metadata.uid" in error.message or "error in our request" in error.message:
        return Conflict(409, error.message)
    return error


def _words(content: bytes, reason: str | None) -> str:
    """The message of the Status object that the server sent; its reason phrase when it sent none."""
    try:
        return str(msgspec.json.decode(content)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return str(reason or "no reason given")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    return float(text) if text.isdigit() else None


def _proxy_to(host: str) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say, asked once: aiohttp would ask a thread for it, and for ~/.netrc, at every request."""
    url = urlsplit(host)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
