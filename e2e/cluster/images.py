"""Our two images: built from the project's Dockerfiles, named by the hash of what they are made from, given to every node.

After a change of Octavo's code only the thin layer that holds it is built and imported again, in seconds: the layers below it
are taken from the last image that the whole Dockerfile made.
"""

import json
import subprocess
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, cast

from e2e.cluster.base_images import BaseImages, ensure_base_images
from e2e.cluster.buildah import Buildah
from e2e.cluster.cluster import Cluster
from e2e.cluster.commands import CommandError, run
from e2e.cluster.keyed import key_of
from e2e.cluster.node import PAUSE_IMAGE, NodeProcesses
from e2e.cluster.oci import Layout, folder_layer, thin_archive
from e2e.cluster.progress import say
from e2e.cluster.settings import IMAGE_DOMAIN, Places

NAMES_KEPT = 10  # of earlier images, on each node
CODE = "/opt/octavo-code"


@dataclass(frozen=True, slots=True)
class Images:
    """Full names, as a pod spec has them."""

    runtime: str
    operator: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """One image. Its Dockerfile has a stage `code`, whose folder CODE is the last layer of the whole image."""

    name: str
    dockerfile: str
    extra: str  # of pyproject.toml
    builders: tuple[str, ...]  # other files that the layers below the code are made with
    code: tuple[str, ...]  # what the code is made from
    stages: tuple[str, ...]  # those that are worth keeping for the next build
    arguments: tuple[tuple[str, str], ...] = ()

    def template(self, checkout: Path, bases: BaseImages) -> str:
        """Name of the image whose layers below the code are right: as they depend on nothing else, it is built seldom."""
        files = [checkout / path for path in (self.dockerfile, *self.builders)]
        project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
        requirements = repr(project["optional-dependencies"][self.extra])
        return f"{self.name}-template-{key_of([bases.run, bases.build, repr(self.arguments), requirements, *files])}"

    def tag(self, checkout: Path, bases: BaseImages) -> str:
        files = [checkout / path for path in (".dockerignore", "pyproject.toml", *self.code)]
        return key_of([self.template(checkout, bases), *files])


RUNTIME = Recipe(
    name="octavo-runtime",
    dockerfile="runtime/Dockerfile",
    extra="runtime",
    builders=("scripts/install_torch.py", "scripts/extra_requirements.py"),
    code=("runtime/octavo_runtime", "kernels", "operator/octavo_operator"),
    stages=("torch", "dependencies", "native", "code"),
    arguments=(("DEVICE", "cpu"),),
)
OPERATOR = Recipe(
    name="octavo-operator",
    dockerfile="operator/Dockerfile",
    extra="operator",
    builders=("scripts/extra_requirements.py",),
    code=("operator/octavo_operator",),
    stages=("dependencies", "code"),
)


def deliver(cluster: Cluster) -> Images:
    """Build both images where needed, and import them into every node that lacks them."""
    built = build_images(cluster.places)
    layout = _layout(cluster.places)
    for node in cluster.nodes:
        for name in (built.runtime, built.operator):
            import_image(node, layout, name)
    cluster.places.images_file.write_text(json.dumps(asdict(built)))
    _forget_on_nodes(cluster, _remember(cluster.places, built))
    return built


def read_images(places: Places) -> Images:
    """The images that the nodes were given last."""
    return Images(**json.loads(places.images_file.read_text()))


def build_images(places: Places) -> Images:
    buildah = Buildah(places)
    bases = ensure_base_images(places, buildah)
    operator, runtime = (_Build(places, buildah, bases, recipe).name() for recipe in (OPERATOR, RUNTIME))
    return Images(runtime=runtime, operator=operator)


def import_image(node: NodeProcesses, layout: Layout, name: str) -> None:
    """Give an image of the layout to a node, without the layers that it has."""
    if name in node.ctr("images", "list", "--quiet").split():
        return
    say(f"importing {name} into {node.node.name}")
    present = set(node.ctr("content", "list", "--quiet").split())
    command = ["ctr", "--namespace=k8s.io", f"--address={node.socket}", "images", "import", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as importer:
        try:
            stream = cast("IO[bytes]", importer.stdin)
            thin_archive(layout, _tag_of(name), name, present, stream)
            stream.close()
        except BrokenPipeError:
            pass  # its own words, below, say why it stopped reading
        said = cast("IO[bytes]", importer.stdout).read().decode(errors="replace")
    if importer.returncode:
        raise CommandError(f"{' '.join(command)}: exit code {importer.returncode}\n{said}")


@dataclass(frozen=True, slots=True)
class _Build:
    """One recipe on its way to an image in the layout."""

    places: Places
    buildah: Buildah
    bases: BaseImages
    recipe: Recipe

    @property
    def layout(self) -> Layout:
        return _layout(self.places)

    def name(self) -> str:
        """The image's full name; it lies in the layout under the last part of it."""
        checkout, recipe = self.places.checkout, self.recipe
        name = f"{IMAGE_DOMAIN}/{recipe.name}:{recipe.tag(checkout, self.bases)}"
        template = recipe.template(checkout, self.bases)
        if self.layout.has(_tag_of(name)) and self.layout.has(template):
            return name
        say(f"building {name}")
        if not self.layout.has(template):
            self._make_template(template)
        stage = f"localhost/{recipe.name}-code:latest"
        self._run_dockerfile(stage, "code")
        with self.buildah.mounted(stage) as files:
            layer = folder_layer(files / CODE.strip("/"), CODE)
        self.layout.derive(template, _tag_of(name), layer)
        others = [tag for tag in self.layout.tags() if not tag.startswith(f"{recipe.name}-")]
        self.layout.keep([*others, template, _tag_of(name)])
        self.buildah.prune()
        return name

    def _make_template(self, template: str) -> None:
        """The whole Dockerfile, once: minutes, when torch must be installed."""
        whole = f"localhost/{self.recipe.name}:latest"
        self._run_dockerfile(whole, "")
        for stage in self.recipe.stages:
            self._run_dockerfile(f"localhost/{self.recipe.name}-{stage}:latest", stage)
        pushed = self.places.root / "pushed"
        run(["rm", "-rf", pushed])
        self.buildah.push(whole, pushed)
        self.layout.adopt(pushed, template)
        run(["rm", "-rf", pushed])

    def _run_dockerfile(self, image: str, stage: str) -> None:
        checkout = self.places.checkout
        arguments = {"BASE": self.bases.run, "BUILD_BASE": self.bases.build, **dict(self.recipe.arguments)}
        self.buildah.build(checkout / self.recipe.dockerfile, checkout, image, arguments, stage)


def _remember(places: Places, built: Images) -> list[str]:
    """The names that were delivered last, these included: pods of older revisions may still ask for them."""
    path = places.root / "images-delivered.json"
    before = json.loads(path.read_text()) if path.exists() else []
    names = list(dict.fromkeys([*before, built.operator, built.runtime]))
    names = [name for name in names if name not in (built.operator, built.runtime)][-NAMES_KEPT:]
    names += [built.operator, built.runtime]
    path.write_text(json.dumps(names))
    return names


def _forget_on_nodes(cluster: Cluster, kept: list[str]) -> None:
    """Older images of ours go, with the second names (by hash) that the kubelet's side of containerd gives to each."""
    for node in cluster.nodes:
        digests = {
            words[0]: words[2] for line in node.ctr("images", "list").splitlines()[1:] if (words := line.split())
        }
        ours = {name for name in digests if name.startswith(f"{IMAGE_DOMAIN}/octavo-")}
        wanted = {digest for name, digest in digests.items() if name in kept or name == PAUSE_IMAGE}
        for name in digests:
            if (name in ours and name not in kept) or (name.startswith("sha256:") and digests[name] not in wanted):
                node.ctr("images", "remove", name)


def _layout(places: Places) -> Layout:
    return Layout(places.root / "layout")


def _tag_of(name: str) -> str:
    """Name in the layout: the last part of the full name, in one word."""
    return name.rpartition("/")[2].replace(":", "-")
