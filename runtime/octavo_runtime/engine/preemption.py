"""`Preemptor`: takes a running group's blocks away, by recompute or by swap, and counts it.

RECOMPUTE frees everything; the tokens stay, so the group computes them again like a prompt. SWAP moves the computed
blocks to host memory and needs room there, or else it falls back to RECOMPUTE. Either way the group's tokens are the
same afterwards.
"""

import logging

from octavo_runtime.engine.block_manager import BlockManager
from octavo_runtime.engine.config import PreemptionMode
from octavo_runtime.engine.draft import StepDraft
from octavo_runtime.engine.sequence import GroupState, SequenceGroup

_WARN_EVERY = 50

logger = logging.getLogger(__name__)


class Preemptor:
    """Decides how a group is preempted and does the block side of it; the scheduler moves it between queues."""

    __slots__ = ("_blocks", "_mode", "num_preemptions")

    def __init__(self, mode: PreemptionMode, blocks: BlockManager) -> None:
        self._mode = mode
        self._blocks = blocks
        self.num_preemptions = 0

    def preempt(self, group: SequenceGroup, draft: StepDraft) -> GroupState:
        """Empty the group's device blocks; returns the queue that it now belongs to (WAITING or SWAPPED)."""
        self._blocks.undo(draft.drop(group))
        draft.preempted = True
        group.num_preemptions += 1
        self.num_preemptions += 1
        swap = self._wants_swap(group) and self._blocks.can_swap_out(group)
        self._warn(group, swap)
        if swap:
            draft.swap_out.extend(self._blocks.swap_out(group))
            return GroupState.SWAPPED
        for sequence in group.live:
            self._blocks.free(sequence)
        group.restart()
        return GroupState.WAITING

    def _wants_swap(self, group: SequenceGroup) -> bool:
        if self._mode is PreemptionMode.AUTO:
            return len(group.live) > 1
        return self._mode is PreemptionMode.SWAP

    def _warn(self, group: SequenceGroup, swap: bool) -> None:
        if self.num_preemptions % _WARN_EVERY != 1:
            return
        logger.warning(
            "Request %s was preempted by %s: the KV cache is full (%d blocks of %d tokens; preemption number %d). This "
            "costs time: give the cache more memory (--gpu-memory-utilization, --kv-cache-memory-bytes), let fewer "
            "sequences run at once (--max-num-seqs), or spread the model over more devices (--tensor-parallel-size).",
            group.request_id,
            "swap" if swap else "recompute",
            self._blocks.num_blocks,
            self._blocks.block_size,
            self.num_preemptions,
        )
