"""From `spec.model` to a `ResolvedModel`: which commit, which files, how large, which architecture. Once per rollout.

Reads the hub's listing, config.json and the headers of the weights; downloads no weights. Everything that would end in
a failing pod (no such revision, no access, a damaged file, an architecture nobody serves) is a ModelProblem here.
"""

import hashlib
from collections.abc import Mapping
from functools import partial

import msgspec

from octavo_operator.api import Model
from octavo_operator.model.bounded import map_bounded
from octavo_operator.model.files import manifest_digest, wanted
from octavo_operator.model.http_get import Span
from octavo_operator.model.hub import Hub, HubFile, Revision
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import ModelFile, ResolvedModel
from octavo_operator.model.uri import ClaimUri, FileUri, HubUri, UrlUri, model_name, parse_uri
from octavo_operator.model.weight_facts import ReadFile, gguf_facts, safetensors_facts
from octavo_operator.reasons import Reason

_DIGESTS_AT_ONCE = 4  # small files that are read at the same time for the digest


async def resolve(model: Model, token: str | None, hub: Hub) -> ResolvedModel:
    """Raises ModelProblem. `token`: what the Secret of `spec.model.credentials` holds."""
    uri = parse_uri(model.uri)
    match uri:
        case HubUri():
            resolved = await _resolve_repository(model, uri, token, hub)
        case UrlUri(url):
            resolved = await _resolve_url(url, token, hub)
        case ClaimUri():
            resolved = ResolvedModel(kind="pvc", name=model_name(uri))
        case FileUri():
            resolved = ResolvedModel(kind="file", name=model_name(uri))
    return msgspec.structs.replace(resolved, trust_remote_code=bool(model.trust_remote_code))


async def _resolve_repository(model: Model, uri: HubUri, token: str | None, hub: Hub) -> ResolvedModel:
    place = hub.place(uri.repository, model.endpoint, token)
    revision = await hub.revision(place, model.revision)
    files = _chosen(model, uri, revision)
    read: ReadFile = partial(hub.read, place, revision.commit)
    gguf = _gguf_file(uri, files)
    if gguf is None:
        weights = await safetensors_facts(uri.repository, {path: file.size for path, file in files.items()}, read)
    else:
        weights = await gguf_facts(f"{uri.repository}: {gguf}", gguf, files[gguf].size, read)
    resolved = ResolvedModel(
        kind="hf",
        name=model_name(uri),
        commit=revision.commit,
        files=tuple(ModelFile(file.path, file.size, file.sha256) for file in files.values()),
        weights=weights,
    )
    return resolved if model.digest is None else await _with_digest(resolved, model.digest, read)


async def _resolve_url(url: str, token: str | None, hub: Hub) -> ResolvedModel:
    size = (await hub.read_url(url, token, Span(0, 1))).total
    if size is None:
        raise ModelProblem(
            Reason.HUB_UNREACHABLE,
            f"{url} does not say how large it is; serve it with Content-Length or Content-Range.",
        )

    async def read(path: str, span: Span | None = None) -> bytes:
        return (await hub.read_url(path, token, span or Span(0, size))).body

    weights = await gguf_facts(url, url, size, read)
    return ResolvedModel(kind="https", name=url, files=(ModelFile(url.rpartition("/")[2], size),), weights=weights)


def _chosen(model: Model, uri: HubUri, revision: Revision) -> dict[str, HubFile]:
    """The files to fetch, by path."""
    by_path = {file.path: file for file in revision.files}
    if uri.file:
        if uri.file not in by_path:
            raise _missing(uri, revision, f"no file {uri.file}", _some_gguf(by_path))
        return {uri.file: by_path[uri.file]}
    paths = wanted(by_path, model.files.allow, model.files.ignore)
    if not paths:
        raise _missing(uri, revision, "no file that spec.model.files lets through", "allow more or ignore less there")
    return {path: by_path[path] for path in paths}


def _gguf_file(uri: HubUri, files: Mapping[str, HubFile]) -> str | None:
    """The GGUF file to serve; None when the weights are safetensors."""
    if any(path.endswith(".safetensors") for path in files):
        return None
    found = [path for path in files if path.endswith(".gguf")]
    if len(found) > 1:
        raise ModelProblem(
            Reason.MODEL_UNSUPPORTED,
            f"{uri.repository} has {len(found)} GGUF files among those chosen; name one in spec.model.uri, such as "
            f"hf://{uri.repository}/{found[0]}.",
        )
    return found[0] if found else None


async def _with_digest(resolved: ResolvedModel, expected: str, read: ReadFile) -> ResolvedModel:
    """With the sha256 of every file and the digest over them. Raises ModelProblem(DIGEST_MISMATCH)."""

    async def hashed(file: ModelFile) -> ModelFile:
        if file.sha256 is not None:
            return file
        content = await read(file.path)  # of small files the hub knows only git's hash
        return ModelFile(file.path, file.size, hashlib.sha256(content).hexdigest())

    files = tuple(await map_bounded(_DIGESTS_AT_ONCE, hashed, resolved.files))
    digest = manifest_digest((file.path, file.sha256 or "") for file in files)
    if digest != expected:
        raise ModelProblem(
            Reason.DIGEST_MISMATCH,
            f"The files of {resolved.name} at {resolved.commit} have the digest {digest}, not that of spec.model.digest; "
            "choose the revision that it was made for, or write this one if the change is meant.",
        )
    return msgspec.structs.replace(resolved, files=files, digest=digest)


def _missing(uri: HubUri, revision: Revision, what: str, remedy: str) -> ModelProblem:
    return ModelProblem(Reason.MODEL_NOT_FOUND, f"{uri.repository} has {what} at {revision.commit[:12]}; {remedy}.")


def _some_gguf(paths: Mapping[str, HubFile]) -> str:
    found = sorted(path for path in paths if path.endswith(".gguf"))
    return f"it has {', '.join(found[:5])}" if found else "it has no GGUF file at all; write hf://ORG/NAME"
