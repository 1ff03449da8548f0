"""Entry of `kubectl octavo`: reads the command line, connects, runs one verb. Errors are one sentence, exit code 2."""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from octavo_operator.kube import Kube
from octavo_operator.kube_client import ApiError
from octavo_operator.model.hub import HubSettings, is_endpoint
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.context import FALLBACK, check_kubeconfig, namespace_of
from octavo_operator.plugin.drain import drain
from octavo_operator.plugin.errors import PluginError, sentence_of
from octavo_operator.plugin.flags import parser
from octavo_operator.plugin.layout import standard_output
from octavo_operator.plugin.manifest import read_manifests
from octavo_operator.plugin.plan import DEFAULTS, Gpu, plan
from octavo_operator.plugin.settings import PluginSettings
from octavo_operator.plugin.status import status
from octavo_operator.plugin.top import top
from octavo_operator.plugin.why import why
from octavo_operator.status.redaction import redact


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends the process: 0 well, 1 not well, 2 could not be told, 130 interrupted."""
    try:
        code = asyncio.run(_run(parser().parse_args(arguments), standard_output()))
    except PluginError as error:
        code = _fail(str(error))
    except ApiError as error:
        code = _fail(sentence_of(error))
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _fail(sentence: str) -> int:
    Console(stderr=True, soft_wrap=True).print(redact(sentence), style="red", markup=False, highlight=False)
    return 2


async def _run(given: argparse.Namespace, console: Console) -> int:
    if given.verb == "plan":
        return await _plan(given, console)
    check_kubeconfig(given.kubeconfig, PluginSettings())
    namespace = given.namespace or await namespace_of(given.kubeconfig, given.context)
    kube = await Kube.connect(kubeconfig=given.kubeconfig, context=given.context)
    try:
        return await run_verb(given, Cluster(kube, namespace), console)
    finally:
        await kube.close()


async def run_verb(given: argparse.Namespace, cluster: Cluster, console: Console) -> int:
    """One of the verbs that need a cluster."""
    match given.verb:
        case "why":
            return await why(cluster, given.name, console)
        case "status":
            everywhere, watch = given.all_namespaces, given.watch
            return await status(cluster, given.name, everywhere=everywhere, watch=watch, console=console)
        case "top":
            return await top(cluster, given.name, interval=given.interval, console=console)
        case _:
            return await drain(cluster, given.pod, undo=given.undo, now=time.time(), console=console)


async def _plan(given: argparse.Namespace, console: Console) -> int:
    if given.gpu_memory is not None and given.gpu is None:
        raise PluginError("--gpu-memory needs --gpu: name the product too.")
    gpu = Gpu(given.gpu, given.gpu_memory) if given.gpu else None
    settings = PluginSettings()
    hub = _hub(given.endpoint, settings)
    token = _token(given.token_file) or settings.hf_token
    manifests = [each for path in given.filename for each in read_manifests(path, FALLBACK, DEFAULTS)]
    return await plan(manifests, hub, token=token, gpu=gpu, console=console)


def _hub(flag: str | None, settings: PluginSettings) -> HubSettings:
    """Of the flag, or else of the environment, or else the public one."""
    endpoint, source = (flag, "--endpoint") if flag is not None else (settings.hf_endpoint, "HF_ENDPOINT")
    if endpoint is None:
        return HubSettings()
    if not is_endpoint(endpoint):
        raise PluginError(
            f"{source} is no address of a hub; write https://HOST or http://HOST, without user and query."
        )
    return HubSettings(endpoint)


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip() or None
    except OSError as error:
        raise PluginError(f"--token-file {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise PluginError(f"--token-file {path} holds no token: it is not text.") from error


if __name__ == "__main__":
    main()
