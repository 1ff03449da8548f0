"""Whether the disk has room for the cluster: said before minutes are spent, not by whatever fails first."""

import shutil

from e2e.cluster.commands import CommandError
from e2e.cluster.settings import Places

GIB = 1 << 30
# Build caches, base images, layers, and two nodes' stores, as measured; once they are there, what running pods write.
FIRST_TIME_GIB, LATER_GIB = 18, 4


def require_space(places: Places) -> None:
    """:raises CommandError: when there is too little"""
    places.root.mkdir(parents=True, exist_ok=True)
    wanted = LATER_GIB if places.images_file.exists() else FIRST_TIME_GIB
    free = shutil.disk_usage(places.root).free / GIB
    if free < wanted:
        where = f"{places.root} has {free:.0f} GiB free and the cluster needs {wanted}"
        raise CommandError(f"{where}: make room, or set OCTAVO_CACHE to a folder on a larger disk")
