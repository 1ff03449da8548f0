"""`python -m e2e.cluster up|start|images|helm|down|status`: the test cluster's commands (`make cluster`, `make cluster-down`)."""

import argparse
import sys
from collections.abc import Callable

from e2e.cluster import cluster
from e2e.cluster.binaries import build_helm
from e2e.cluster.commands import CommandError
from e2e.cluster.images import Images, build_images, deliver, read_images
from e2e.cluster.lock import exclusive
from e2e.cluster.processes import ProcessError
from e2e.cluster.progress import say
from e2e.cluster.settings import Places, read_places


def up(places: Places) -> int:
    """Start the cluster, build the images, give them to the nodes."""
    running = cluster.up(places)
    images = deliver(running)
    say(f"images: {images.runtime}, {images.operator}")
    sys.stdout.write(f"export KUBECONFIG={places.kubeconfig}\n")
    return 0


def start(places: Places) -> int:
    """Start the cluster without our images."""
    cluster.up(places)
    sys.stdout.write(f"export KUBECONFIG={places.kubeconfig}\n")
    return 0


def images(places: Places) -> int:
    """Build the images anew where their sources changed; running nodes get them."""
    running = cluster.describe(places)
    _print_images(deliver(running) if running.running() else build_images(places))
    return 0


def helm(places: Places) -> int:
    """Build helm, which some unit tests need too, and print its path."""
    sys.stdout.write(f"{build_helm(places)}\n")
    return 0


def down(places: Places) -> int:
    """Stop the cluster; binaries and images stay in the cache."""
    cluster.down(places)
    return 0


def status(places: Places) -> int:
    """What runs; 0 when all of it does."""
    described = cluster.describe(places)
    for daemon in described.daemons():
        sys.stdout.write(f"{daemon.name:<28}{daemon.pid() or 'stopped'}\n")
    if not described.running():
        return 1
    sys.stdout.write(f"export KUBECONFIG={places.kubeconfig}\n")
    if places.images_file.exists():
        _print_images(read_images(places))
    return 0


VERBS: dict[str, Callable[[Places], int]] = {
    "up": up,
    "start": start,
    "images": images,
    "helm": helm,
    "down": down,
    "status": status,
}


def main() -> int:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {verb.__doc__}" for name, verb in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="python -m e2e.cluster", description=verbs, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=VERBS)
    verb, places = VERBS[parser.parse_args().verb], read_places()
    try:
        if verb is status:
            return status(places)
        with exclusive(places):
            return verb(places)
    except (CommandError, ProcessError) as error:
        say(str(error))
        return 1


def _print_images(built: Images) -> None:
    sys.stdout.write(f"runtime image   {built.runtime}\noperator image  {built.operator}\n")


if __name__ == "__main__":
    sys.exit(main())
