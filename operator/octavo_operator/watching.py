"""`Watching`: kopf in a thread and an event loop of its own, started again when it ends.

kopf takes the process's signals, cancels every task that is younger than itself when it ends, and ends at the first watch
that fails for good; in a thread of its own none of that reaches the work. Events cross over one by one, in order.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import kopf
from kopf._core.engines import peering

from octavo_operator.handlers import Listener, Webhook, kopf_settings, register
from octavo_operator.kube_client import Raw

log = logging.getLogger(__name__)

RESTART_SECONDS = 2.0
END_SECONDS = 5.0

Watch = Callable[[Listener, threading.Event], Awaitable[None]]
"""Tells of events until the flag is set."""


class Watching:
    """Watches until cancelled."""

    def __init__(self, listener: Listener, recover: Callable[[], Awaitable[object]], watch: Watch) -> None:
        self._listener = listener
        self._recover = recover
        self._watch = watch

    async def run(self) -> None:
        """Watch; after an end that nobody asked for, watch again and list what was missed meanwhile."""
        while True:
            reason = await self._until_it_ends()
            log.error("watching ended (%s); it begins again", reason)
            await asyncio.sleep(RESTART_SECONDS)
            await self._recover()

    async def _until_it_ends(self) -> str:
        loop, stop = asyncio.get_running_loop(), threading.Event()
        ended: asyncio.Future[str] = loop.create_future()

        def work() -> None:
            reason = _watch_here(self._watch, _Crossing(loop, self._listener), stop)
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve, ended, reason)

        threading.Thread(target=work, name="watching", daemon=True).start()
        try:
            return await asyncio.shield(ended)
        finally:
            stop.set()
            await asyncio.wait({ended}, timeout=END_SECONDS)


class _Crossing:
    """Events on their way from the thread to the loop, which is woken once for all that come while it is busy."""

    def __init__(self, loop: asyncio.AbstractEventLoop, listener: Listener) -> None:
        self._loop = loop
        self._listener = listener
        self._events: deque[tuple[str | None, Raw]] = deque()
        self._is_woken = False

    def __call__(self, event: str | None, raw: Raw, /) -> None:
        """In the thread."""
        self._events.append((event, raw))  # before the look at the flag: the loop clears it before it takes events
        if not self._is_woken:
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        """In the loop. Each event is a call of its own: one that fails is reported and holds up no other."""
        self._is_woken = False
        while self._events:
            self._loop.call_soon(self._listener, *self._events.popleft())


def kopf_watch(namespaces: Sequence[str], webhook: Webhook | None = None, api_server: str = "") -> Watch:
    """kopf over the whole cluster, or over these namespaces; with its webhook, if there shall be one."""

    async def watch(listener: Listener, stop: threading.Event) -> None:
        registry = kopf.OperatorRegistry()
        register(registry, listener, webhook, api_server)
        await kopf.operator(
            registry=registry,
            settings=kopf_settings(webhook=webhook),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=tuple(namespaces),
            stop_flag=stop,
            identity=peering.Identity(
                "octavo"
            ),  # not used; its default asks for the name of the user, and an image's has none
        )

    return watch


def _watch_here(watch: Watch, listener: Listener, stop: threading.Event) -> str:
    """In the thread: why it ended."""

    async def until_stop() -> None:
        try:
            await watch(listener, stop)
        finally:
            stop.set()  # whoever waits for it in a thread of this loop's pool would keep the loop from closing

    try:
        asyncio.run(until_stop())
    except Exception as error:  # noqa: BLE001  # the thread's end is told to the loop that waits for it, whatever it is
        return f"{type(error).__name__}: {error}"
    return "without an error"


def _resolve(future: asyncio.Future[str], reason: str) -> None:
    if not future.done():
        future.set_result(reason)
