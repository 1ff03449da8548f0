"""`LLMEngine`: the synchronous core. `step` schedules, runs the model and commits; requests and aborts come between.

Given its sizes, an `Executor` that runs plans and a clock; knows no process, no HTTP and no torch. What one request
causes ends that request with an ERROR event; an exception of the executor leaves `step`, because then the device is
in doubt.
"""

from collections.abc import Callable

from octavo_runtime.engine.admission import check_request, check_size, cut_default_length, make_group
from octavo_runtime.engine.block_manager import BlockManager
from octavo_runtime.engine.commit import Committer
from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.messages import AddRequest, FinishReason, RequestFinished, SchedulerStats, StepOutputs
from octavo_runtime.engine.plan import Executor
from octavo_runtime.engine.scheduler import Scheduler


class LLMEngine:
    """Requests in, tokens out, one step at a time. Not thread-safe."""

    def __init__(
        self,
        scheduler_config: SchedulerConfig,
        cache_config: CacheConfig,
        executor: Executor,
        clock: Callable[[], float],
    ) -> None:
        self.blocks = BlockManager(cache_config, scheduler_config.watermark)
        self.scheduler = Scheduler(scheduler_config, self.blocks)
        self._config = scheduler_config
        self._executor = executor
        self._clock = clock
        self._committer = Committer(self.scheduler, self.blocks)
        self._num_arrived = 0

    def add_request(self, request: AddRequest) -> None:
        """Queue a request. One that can never run ends with an ERROR event in the next step's outputs.

        Raises ValueError for a request id that is in use: two streams could not be told apart.
        """
        if request.request_id in self._committer.groups:
            raise ValueError(f"request id {request.request_id!r} is in use")
        problem = check_request(request, self._config)
        if problem is None:
            self._num_arrived += 1
            sequence_id = self._committer.next_sequence_id()
            group = make_group(request, self._config, sequence_id, self._num_arrived, self._clock())
            cut_default_length(group, self.blocks)
            problem = check_size(group, self.blocks)
        if problem is None:
            self._committer.groups[request.request_id] = group
            self.scheduler.add(group)
        else:
            self._committer.finished.append(
                RequestFinished(
                    request_id=request.request_id,
                    reason=FinishReason.ERROR,
                    error=problem,
                    num_prompt_tokens=len(request.prompt_token_ids),
                )
            )

    def abort_request(self, request_id: str, index: int | None = None) -> None:
        """Give up a request, or one sequence whose reader has had enough (a stop string). Its blocks are free now.

        The request ends with ABORT, or with STOP when its last sequence is given up by index. Unknown ids and
        indexes, and indexes of beams (delivered at the end only), are ignored.
        """
        group = self._committer.groups.get(request_id)
        if group is None:
            return
        if index is None:
            self._committer.end_group(group, FinishReason.ABORT)
        elif group.beams is None and not group.never_sampled:
            for sequence in group.live:
                if sequence.index == index:
                    self._committer.end_sequence(group, sequence, FinishReason.STOP)
                    break

    def abort_all(self) -> None:
        """Give up every request; the next step reports their ends and computes nothing."""
        for request_id in list(self._committer.groups):
            self.abort_request(request_id)

    def reset_prefix_cache(self) -> None:
        """Forget every cached prefix that no running sequence uses."""
        self.blocks.reset_prefix_cache()

    def has_unfinished_requests(self) -> bool:
        """Whether `step` has something to do or to report."""
        return bool(self._committer.groups) or bool(self._committer.finished)

    def step(self) -> StepOutputs:
        """Run one step and return all that it gave, together with the ends of requests since the last one."""
        started = self._clock()
        step = self.scheduler.schedule(started)
        plan = step.plan
        if plan.rows or plan.swap_out or plan.swap_in:
            result = self._executor.execute(plan)
            self.blocks.end_step()
            self._committer.commit(step, result, self._clock())
        return self._take_outputs(plan.num_tokens, started)

    def _take_outputs(self, num_tokens: int, started: float) -> StepOutputs:
        committer = self._committer
        outputs = StepOutputs(
            sequences=committer.sequences,
            prompts=committer.prompts,
            finished=committer.finished,
            stats=self._stats(num_tokens, self._clock() - started),
        )
        committer.sequences, committer.prompts, committer.finished = [], [], []
        return outputs

    def _stats(self, num_tokens: int, seconds: float) -> SchedulerStats:
        blocks, scheduler = self.blocks, self.scheduler
        num_free, num_host = blocks.num_free_blocks, blocks.num_host_blocks
        return SchedulerStats(
            num_running=len(scheduler.running),
            num_waiting=len(scheduler.waiting),
            num_deferred=scheduler.num_deferred,
            num_swapped=len(scheduler.swapped),
            kv_cache_usage=1 - num_free / blocks.num_blocks if blocks.num_blocks else 0.0,
            host_cache_usage=1 - blocks.num_free_host_blocks / num_host if num_host else 0.0,
            num_free_blocks=num_free,
            prefix_cache_queries=blocks.num_queried_tokens,
            prefix_cache_hits=blocks.num_hit_tokens,
            num_preemptions=scheduler.num_preemptions,
            prompt_tokens=self._committer.num_prompt_tokens,
            generation_tokens=self._committer.num_generation_tokens,
            iteration_tokens=num_tokens,
            step_seconds=seconds,
        )
