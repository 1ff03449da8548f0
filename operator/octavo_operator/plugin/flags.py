"""The command line of `kubectl octavo`."""

import argparse

from octavo_operator.plugin.errors import PluginError
from octavo_operator.quantity import QuantityError, parse_quantity


class Parser(argparse.ArgumentParser):
    """Mistakes are one sentence, as all errors of the plugin are."""

    def error(self, message: str) -> None:  # type: ignore[override]
        """Raises PluginError."""
        raise PluginError(f"{message[:1].upper()}{message[1:]}; see `kubectl octavo --help`.")


def parser() -> argparse.ArgumentParser:
    """All verbs."""
    top = Parser(prog="kubectl octavo", description="Look after models that Octavo serves.")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    why = _verb(verbs, "why", "say why a model does not serve, down to the root cause")
    why.add_argument("name", help="the LLMDeployment")
    status = _verb(verbs, "status", "list models and their state")
    status.add_argument("name", nargs="?", help="one LLMDeployment; all of the namespace without it")
    status.add_argument("-A", "--all-namespaces", action="store_true", help="of every namespace")
    status.add_argument("-w", "--watch", action="store_true", help="keep the table up to date until interrupted")
    top_verb = _verb(verbs, "top", "show how full each pod is: KV cache, queue, tokens a second")
    top_verb.add_argument("name", nargs="?", help="one LLMDeployment; all of the namespace without it")
    top_verb.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SECONDS", help="time between the two readings (2)"
    )
    drain = _verb(verbs, "drain", "have one pod replaced without cutting a stream")
    drain.add_argument("pod", help="the pod")
    drain.add_argument("--undo", action="store_true", help="take the request back")
    _plan(verbs.add_parser("plan", help="check and size a manifest before it is applied; needs no cluster"))
    return top


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, text: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=f"{text[:1].upper()}{text[1:]}.")
    verb.add_argument("-n", "--namespace", help="default: that of kubectl's context")
    verb.add_argument("--context", help="context of the kubeconfig")
    verb.add_argument("--kubeconfig", help="kubeconfig file")
    return verb


def _plan(verb: argparse.ArgumentParser) -> None:
    verb.description = (
        "Check a manifest as the API server would, resolve its model and plan its memory, without a cluster. Exit code: 0 it "
        "fits, 1 it (or one of several) would be refused, 2 it could not be told."
    )
    verb.add_argument(
        "-f",
        "--filename",
        required=True,
        action="append",
        metavar="FILE",
        help="manifest with LLMDeployments; - for standard input; may be given several times",
    )
    verb.add_argument("--gpu", metavar="PRODUCT", help="GPU to plan for, such as NVIDIA-H100-80GB-HBM3")
    verb.add_argument(
        "--gpu-memory", type=_bytes, metavar="SIZE", help="its memory, such as 80Gi, where the product is not known"
    )
    verb.add_argument("--token-file", metavar="FILE", help="file with a hub token (default: HF_TOKEN)")
    verb.add_argument("--endpoint", metavar="URL", help="hub to ask (default: HF_ENDPOINT, or the public hub)")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0.1 <= seconds <= 600:
        raise argparse.ArgumentTypeError("must be from 0.1 to 600 seconds")
    return seconds


def _bytes(text: str) -> int:
    try:
        return parse_quantity("memory", text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
