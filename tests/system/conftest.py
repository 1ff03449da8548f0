"""Servers for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from served import Served, start


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts a server of the test's own; all end with the test."""
    started: list[Served] = []

    def start_one(*flags: str) -> Served:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        served = start(folder, *flags)
        started.append(served)
        return served

    yield start_one
    for served in started:
        served.process.kill()
        served.process.wait()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all tests that leave it as it was."""
    served = start(tmp_path_factory.mktemp("server"))
    yield served
    assert served.terminate() == 0, served.log.read_text()[-4000:]
