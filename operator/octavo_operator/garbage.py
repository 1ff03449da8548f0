"""Keeps what the cache holds out of Python's garbage collections: a full one over a thousand resources takes 150 ms.

Everything stands still meanwhile, and full collections come unasked. What is alive after one is set aside, so that later
ones look only at what came since; each round looks at everything once, so nothing is lost for good.
"""

import asyncio
import gc

FIRST_SECONDS = 30.0  # by then everything has been listed


async def keep_setting_aside(seconds: float) -> None:
    """Until cancelled, once in so many seconds."""
    await asyncio.sleep(FIRST_SECONDS)
    while True:
        set_aside()
        await asyncio.sleep(seconds)


def set_aside() -> None:
    """One full collection, so that those to come need not be."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
