"""One command at a time: two that build or start the same things would spoil each other's work."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.cluster.progress import say
from e2e.cluster.settings import Places


@contextmanager
def exclusive(places: Places) -> Iterator[None]:
    """Waits until no other command of this machine's cluster runs."""
    places.root.mkdir(parents=True, exist_ok=True)
    with (places.root / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another command to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
