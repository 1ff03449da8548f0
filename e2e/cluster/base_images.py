"""The images that ours are built upon, made from Debian's packages because no registry is reachable from a test machine.

Two root folders by debootstrap: one to run in, and one to build in, which also has a compiler. A public build uses the
defaults of the Dockerfiles instead.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.buildah import Buildah
from e2e.cluster.commands import run
from e2e.cluster.keyed import key_of
from e2e.cluster.progress import say
from e2e.cluster.settings import Places

SUITE = "bookworm"
RUN_PACKAGES = ("python3", "python3-venv", "ca-certificates")
BUILD_PACKAGES = (*RUN_PACKAGES, "g++", "binutils")
APT_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))


@dataclass(frozen=True, slots=True)
class BaseImages:
    """Names in buildah's store."""

    run: str
    build: str


def ensure_base_images(places: Places, buildah: Buildah) -> BaseImages:
    return BaseImages(
        run=_ensure(places, buildah, "base", RUN_PACKAGES),
        build=_ensure(places, buildah, "build-base", BUILD_PACKAGES),
    )


def debian_mirror() -> str:
    """Where this machine gets its own packages from."""
    for path in APT_SOURCES:
        if path.exists() and (
            found := re.search(r"^(?:URIs:|deb)\s+(?:\[.*\]\s+)?(\S+)", path.read_text(), re.MULTILINE)
        ):
            return found.group(1)
    raise LookupError(f"no Debian mirror in {' or '.join(map(str, APT_SOURCES))}")


def _ensure(places: Places, buildah: Buildah, name: str, packages: tuple[str, ...]) -> str:
    image = f"localhost/octavo-{name}:{key_of([SUITE, *packages])}"
    if buildah.has(image):
        return image
    say(f"making the base image {name} with debootstrap (a minute or two, once)")
    folder = places.root / "debootstrap" / name
    downloads = places.root / "debootstrap" / "packages"
    downloads.mkdir(parents=True, exist_ok=True)
    run(["rm", "-rf", "--one-file-system", folder])
    options = ["--variant=minbase", f"--cache-dir={downloads}", f"--include={','.join(packages)}"]
    run(["debootstrap", *options, SUITE, folder, debian_mirror()])
    for leftovers in (
        "var/cache/apt/archives",
        "var/lib/apt/lists",
        "usr/share/doc",
        "usr/share/locale",
        "usr/share/man",
    ):
        run(["rm", "-rf", "--one-file-system", folder / leftovers])
    buildah.commit_folder(folder, image)
    run(["rm", "-rf", "--one-file-system", folder])
    return image
