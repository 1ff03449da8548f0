"""Container images as files: a folder in the OCI image layout, and archives of it as `ctr images import` reads them.

`single_binary` makes a whole image of one static program; `thin_archive` packs an image of a layout without the layers that
the receiver has already; `Layout.derive` gives an image another last layer.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
TAG_ANNOTATION = "org.opencontainers.image.ref.name"
NAME_ANNOTATION = "io.containerd.image.name"
LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


@dataclass(frozen=True, slots=True)
class Layout:
    """A folder in the OCI image layout, as buildah writes it."""

    folder: Path

    def blob(self, digest: str) -> Path:
        algorithm, _, value = digest.partition(":")
        return self.folder / "blobs" / algorithm / value

    def index(self) -> dict[str, Any]:
        path = self.folder / "index.json"
        return dict(json.loads(path.read_text())) if path.exists() else {"schemaVersion": 2, "manifests": []}

    def find(self, tag: str) -> dict[str, Any] | None:
        """The manifest's descriptor in the index."""
        for descriptor in self.index()["manifests"]:
            if descriptor["annotations"][TAG_ANNOTATION] == tag:
                return dict(descriptor)
        return None

    def has(self, tag: str) -> bool:
        """Whether the image is there with every blob."""
        descriptor = self.find(tag)
        return descriptor is not None and all(self.blob(digest).exists() for digest in self._digests(descriptor))

    def manifest(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        return dict(json.loads(self.blob(descriptor["digest"]).read_text()))

    def adopt(self, pushed: Path, tag: str) -> None:
        """Take over an image that was pushed into a folder of its own (`dir:`), which is then empty."""
        self._prepare()
        manifest = (pushed / "manifest.json").read_bytes()
        for path in pushed.iterdir():
            if len(path.name) == 64:  # a blob, named by its hash
                path.replace(self.blob(f"sha256:{path.name}"))
        self._name(self._add(manifest), len(manifest), tag)

    def derive(self, template: str, tag: str, layer: bytes) -> None:
        """The image `template` with another last layer, as `tag`."""
        descriptor = self.find(template)
        if descriptor is None:
            raise LookupError(f"no image {template} in {self.folder}")
        manifest = self.manifest(descriptor)
        config = json.loads(self.blob(manifest["config"]["digest"]).read_text())
        config["rootfs"]["diff_ids"][-1] = self._add(layer)
        encoded = json.dumps(config).encode()
        self._add(encoded)
        manifest["config"] = _descriptor(CONFIG_TYPE, encoded)
        manifest["layers"][-1] = _descriptor(LAYER_TYPE, layer)
        finished = json.dumps(manifest).encode()
        self._name(self._add(finished), len(finished), tag)

    def tags(self) -> list[str]:
        return [entry["annotations"][TAG_ANNOTATION] for entry in self.index()["manifests"]]

    def keep(self, tags: Collection[str]) -> None:
        """Forget all other images, and the blobs that only they had."""
        index = self.index()
        index["manifests"] = [entry for entry in index["manifests"] if entry["annotations"][TAG_ANNOTATION] in tags]
        (self.folder / "index.json").write_text(json.dumps(index))
        wanted = {digest for entry in index["manifests"] for digest in self._digests(entry)}
        for path in (self.folder / "blobs" / "sha256").glob("*"):
            if f"sha256:{path.name}" not in wanted:
                path.unlink()

    def _prepare(self) -> None:
        (self.folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
        (self.folder / "oci-layout").write_bytes(LAYOUT)

    def _add(self, blob: bytes) -> str:
        digest = _digest(blob)
        self.blob(digest).write_bytes(blob)
        return digest

    def _name(self, digest: str, size: int, tag: str) -> None:
        """Into the index; an image of the same name is replaced."""
        entry = {"mediaType": MANIFEST_TYPE, "digest": digest, "size": size, "annotations": {TAG_ANNOTATION: tag}}
        index = self.index()
        others = [each for each in index["manifests"] if each["annotations"][TAG_ANNOTATION] != tag]
        index["manifests"] = [*others, entry]
        (self.folder / "index.json").write_text(json.dumps(index))

    def _digests(self, descriptor: Mapping[str, Any]) -> Iterator[str]:
        yield descriptor["digest"]
        if not self.blob(descriptor["digest"]).exists():
            return
        manifest = self.manifest(descriptor)
        yield manifest["config"]["digest"]
        yield from (layer["digest"] for layer in manifest["layers"])


def thin_archive(layout: Layout, tag: str, name: str, present: Collection[str], stream: IO[bytes]) -> None:
    """Write the image `tag` under the name `name`, leaving out blobs whose digest the receiver has."""
    descriptor = layout.find(tag)
    if descriptor is None:
        raise LookupError(f"no image {tag} in {layout.folder}")
    manifest = layout.manifest(descriptor)
    entry = {"mediaType": MANIFEST_TYPE, "digest": descriptor["digest"], "size": descriptor["size"]}
    with tarfile.open(fileobj=stream, mode="w|") as archive:
        _add(archive, "oci-layout", LAYOUT)
        _add(archive, "index.json", _index(entry, name))
        for digest in (descriptor["digest"], manifest["config"]["digest"]):
            _add(archive, _blob_name(digest), layout.blob(digest).read_bytes())
        for layer in manifest["layers"]:
            if layer["digest"] not in present:
                archive.add(layout.blob(layer["digest"]), _blob_name(layer["digest"]))


def single_binary(name: str, program: Path) -> bytes:
    """An archive with one image: `program` is all that it has, and what it runs."""
    layer = _layer(program)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": [f"/{program.name}"], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(CONFIG_TYPE, config),
            "layers": [_descriptor(LAYER_TYPE, layer)],
        }
    ).encode()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        _add(archive, "oci-layout", LAYOUT)
        _add(archive, "index.json", _index(_descriptor(MANIFEST_TYPE, manifest), name))
        for blob in (layer, config, manifest):
            _add(archive, _blob_name(_digest(blob)), blob)
    return stream.getvalue()


def folder_layer(folder: Path, place: str) -> bytes:
    """A layer with the files of `folder` below `place`. Times stay: compiled Python is judged by those of its source."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.add(folder, place.strip("/"), filter=_owned_by_root)
    return stream.getvalue()


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry


def _layer(program: Path) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        _add(archive, program.name, program.read_bytes(), mode=0o755)
    return stream.getvalue()


def _index(descriptor: Mapping[str, Any], name: str) -> bytes:
    entry = {**descriptor, "annotations": {NAME_ANNOTATION: name}}
    return json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _blob_name(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(content))
