"""buildah with a store of our own below the cache: images from Dockerfiles without a daemon and without a registry."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import run, succeeds
from e2e.cluster.settings import Places, pip_options

CERTIFICATES = Path("/etc/ssl/certs")


@dataclass(frozen=True, slots=True)
class Buildah:
    """One store."""

    places: Places

    def has(self, image: str) -> bool:
        return succeeds([*self._command("inspect", "--type=image"), image])

    def commit_folder(self, folder: Path, image: str) -> None:
        """An image with the folder's files as its only layer."""
        container = run(self._command("from", "scratch")).strip()
        try:
            run([*self._command("copy", "--quiet"), container, folder, "/"])
            run([*self._command("commit", "--quiet", "--disable-compression"), container, image])
        finally:
            run([*self._command("rm"), container])

    def build(self, dockerfile: Path, context: Path, image: str, arguments: Mapping[str, str], stage: str = "") -> None:
        """Build a Dockerfile, to its end or to one stage; steps whose inputs are unchanged come from the store."""
        pip_conf = self.places.root / "pip.conf"
        lines = ["[global]", *(f"{name} = {value}" for name, value in sorted(pip_options().items()))]
        pip_conf.write_text("\n".join(lines) + "\n")
        # Mounted, not copied: how this machine reaches its package index is no part of an image.
        mounts = {pip_conf: "/etc/pip.conf:ro", CERTIFICATES: f"{CERTIFICATES}:ro"}
        options = ["--isolation=chroot", "--network=host", "--layers", "--format=oci", "--pull-never"]
        options += [f"--volume={source}:{target}" for source, target in mounts.items()]
        options += [f"--build-arg={name}={value}" for name, value in arguments.items()]
        options += [f"--target={stage}"] if stage else []
        # The steps, with what each printed, are in the log while they run.
        options.append(f"--logfile={self.places.root / f'{dockerfile.parent.name}-image.log'}")
        run([*self._command("build"), *options, f"--file={dockerfile}", f"--tag={image}", context])

    def push(self, image: str, folder: Path) -> None:
        """Write an image's parts into a new folder, each under its hash. Compressing them would take longer than all else."""
        run([*self._command("push", "--quiet", "--disable-compression"), image, f"dir:{folder}"])

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """The image's files, for as long as the block lasts."""
        container = run([*self._command("from", "--pull-never"), image]).strip()
        try:
            yield Path(run([*self._command("mount"), container]).strip())
        finally:
            run([*self._command("rm"), container])

    def prune(self) -> None:
        """Forget the layers of earlier builds: those that no named image is made of."""
        run(self._command("rmi", "--prune", "--force"))

    def _command(self, *words: str) -> list[str | Path]:
        root = self.places.root / "buildah"
        store = [f"--root={root / 'store'}", f"--runroot={root / 'run'}", "--storage-driver=overlay"]
        return ["buildah", *store, *words]
