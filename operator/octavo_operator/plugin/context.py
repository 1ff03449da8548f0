"""What kubectl knows of its configuration and a plugin is not told: that there is one, and the namespace in it."""

import asyncio
import os
from pathlib import Path

import yaml

from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.settings import PluginSettings

FALLBACK = "default"


def check_kubeconfig(given: str | None, settings: PluginSettings) -> None:
    """Raises PluginError for a kubeconfig that is not there or cannot be read, naming it. `given`: of --kubeconfig."""
    named = given or settings.kubeconfig
    if not named and settings.kubernetes_service_host:
        return  # in a pod, which has its own way
    paths = [Path(path).expanduser() for path in (named or "~/.kube/config").split(os.pathsep) if path]
    present = [path for path in paths if path.exists()]
    if not present:
        files = " and ".join(map(str, paths))
        raise PluginError(
            f"There is no kubeconfig {files}; write --kubeconfig FILE, or set KUBECONFIG to one that is there."
        )
    for path in present:
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise PluginError(f"The kubeconfig {path} cannot be read: {error.strerror}.") from error
        except (yaml.YAMLError, UnicodeDecodeError):
            content = None
        if not isinstance(content, dict):
            raise PluginError(f"{path} is no kubeconfig; `kubectl config view` shows what kubectl reads.")


async def namespace_of(kubeconfig: str | None, context: str | None, kubectl: str = "kubectl") -> str:
    """From kubectl's own reading of its configuration, merged files included; `default` where there is no kubectl."""
    command = [kubectl, "config", "view", "--minify", "--output", "jsonpath={..namespace}"]
    command += [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    command += [f"--context={context}"] if context else []
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except OSError:
        return FALLBACK
    output, _ = await process.communicate()
    return output.decode().strip() or FALLBACK if process.returncode == 0 else FALLBACK
