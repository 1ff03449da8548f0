"""Image layouts and archives: what is written, what is left out, what is forgotten."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster.oci import Layout, folder_layer, single_binary, thin_archive


def digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {entry.name: stream.read() for entry in opened if (stream := opened.extractfile(entry))}


def push(folder: Path, *layers: bytes) -> Path:
    """A folder as `buildah push dir:` leaves it."""
    folder.mkdir()
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}).encode()
    manifest = {
        "config": {"digest": digest(config), "size": len(config)},
        "layers": [{"digest": digest(layer), "size": len(layer)} for layer in layers],
    }
    for blob in (config, *layers):
        (folder / digest(blob).removeprefix("sha256:")).write_bytes(blob)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    return folder


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """With one image, `template`, of two layers."""
    made = Layout(tmp_path / "layout")
    made.adopt(push(tmp_path / "pushed", b"torch", b"old code"), "template")
    return made


def layers(layout: Layout, tag: str) -> list[bytes]:
    descriptor = layout.find(tag)
    assert descriptor is not None
    return [layout.blob(layer["digest"]).read_bytes() for layer in layout.manifest(descriptor)["layers"]]


def test_a_pushed_image_is_taken_over_whole(layout: Layout, tmp_path: Path) -> None:
    assert layout.has("template")
    assert layers(layout, "template") == [b"torch", b"old code"]
    assert {path.name for path in (tmp_path / "pushed").iterdir()} == {"manifest.json", "version"}


def test_an_image_with_another_last_layer_shares_the_others(layout: Layout) -> None:
    layout.derive("template", "new", b"new code")
    assert layers(layout, "new") == [b"torch", b"new code"]
    assert layers(layout, "template") == [b"torch", b"old code"]
    descriptor = layout.find("new")
    assert descriptor is not None
    manifest = layout.manifest(descriptor)
    config: dict[str, Any] = json.loads(layout.blob(manifest["config"]["digest"]).read_text())
    assert config["rootfs"]["diff_ids"] == [digest(b"torch"), digest(b"new code")]


def test_what_is_not_kept_is_forgotten_with_the_blobs_that_only_it_had(layout: Layout) -> None:
    layout.derive("template", "new", b"new code")
    layout.keep(["new"])
    assert layout.tags() == ["new"]
    assert layout.has("new")
    assert not layout.blob(digest(b"old code")).exists()


def test_an_image_that_lacks_a_blob_is_not_there(layout: Layout) -> None:
    layout.blob(digest(b"torch")).unlink()
    assert not layout.has("template")
    assert not layout.has("unknown")


def test_an_archive_leaves_out_what_the_receiver_has(layout: Layout) -> None:
    stream = io.BytesIO()
    thin_archive(layout, "template", "octavo.local/runtime:1", {digest(b"torch")}, stream)
    packed = members(stream.getvalue())
    assert f"blobs/sha256/{digest(b'old code')[7:]}" in packed
    assert f"blobs/sha256/{digest(b'torch')[7:]}" not in packed
    (entry,) = json.loads(packed["index.json"])["manifests"]
    assert entry["annotations"] == {"io.containerd.image.name": "octavo.local/runtime:1"}


def test_the_archive_of_one_program_names_every_blob_by_its_hash(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    packed = members(single_binary("octavo.local/pause:1", program))
    for name, blob in packed.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/{digest(blob).replace(':', '/')}"
    assert json.loads(packed["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_files_of_a_layer_belong_to_root_and_keep_their_times(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.py").write_text("1")
    with tarfile.open(fileobj=io.BytesIO(folder_layer(folder, "/opt/octavo-code"))) as archive:
        entry = archive.getmember("opt/octavo-code/a.py")
    assert (entry.uid, entry.gid) == (0, 0)
    assert entry.mtime == int((folder / "a.py").stat().st_mtime)
