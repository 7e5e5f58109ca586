"""The program that one worker runs of ``CompiledProgram.with_data_parallel`` (mode nccl2).

Fluid's compilation adds up gradients without operators in the program. Here a copy of the program with such
operators runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from paddlelike.core import Scope, global_scope
from paddlelike.distributed.collective.sharding import Sharding, plan_sharding
from paddlelike.distributed.collective.transpiler import add_up_gradients, is_transpiled, scale_loss_gradient
from paddlelike.distributed.collective.workers import find_workers
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.executor.copies import find_gradients
from paddlelike.executor.strategies import BuildStrategy
from paddlelike.framework import Program, Variable
from paddlelike.io.partition import LoadShare, SaveShare, WholePartition
from paddlelike.io.rules.rule import Skip
from paddlelike.storage.options import SaveOptions

if TYPE_CHECKING:
    from paddlelike.executor.run import Executor

#: Options of BuildStrategy that change results and are not supported: the supported value, and the reason.
_REFUSED: Final = {"async_mode": (False, "async_mode is for parameter servers", "leave it False")}


@contextmanager
def distribute_program(program: Program, strategy: BuildStrategy, scope: Scope) -> Iterator[Program]:
    """Return the program that this worker runs in a scope.

    At the first call all workers take worker 0's values.

    Raises
    ------
    UnsupportedError
        The strategy sets an unsupported option.
    RoleError
        This process is another worker than the strategy says, or is not in a job.
    GraphError
        The program already has operators of collectives.
    """
    for name, (value, why, advice) in _REFUSED.items():
        if getattr(strategy, name) != value:
            raise UnsupportedError(
                f"build_strategy.{name} with {strategy.num_trainers} workers: {why}", hint=advice
            )
    average = strategy.gradient_scale_strategy == BuildStrategy.GradientScaleStrategy.CoeffNumDevice
    is_shared = strategy.reduce_strategy == BuildStrategy.ReduceStrategy.Reduce
    key = ("worker", strategy.num_trainers, average, strategy.sync_batch_norm, is_shared)
    made: Program | None = program.plans.get(key)
    if made is None:
        if is_shared:
            share_out(program, strategy.num_trainers)
        made = _make_program(program, strategy, average=average, is_shared=is_shared)
        program.plans[key] = made
    workers = find_workers()
    workers.check(strategy.num_trainers, strategy.trainer_id)
    workers.share(scope, program, made)
    if not is_shared:
        yield made
        return
    with workers.count_step(scope, program._sharding):
        yield made


def share_out(program: Program, workers: int) -> None:
    """Decide which worker holds which part of the optimizer's state, as saves and loads need to know."""
    if program._sharding is None:
        program._sharding = plan_sharding(program, workers, find_gradients(program))


def complete_state(program: Program, names: Sequence[str]) -> None:
    """Fetch the state that other workers hold into the scope, until the next step (a hook).

    Raises FaultError for a lost worker.
    """
    find_workers().fetch_state(global_scope(), program._sharding, names)


class SharedState(WholePartition):
    """How to save and load a program whose optimizer state is divided among the workers."""

    def plan_save(
        self, executor: Executor, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> SaveShare:
        """Return all variables; other workers' variables are fetched. Raises FaultError for a lost worker."""
        complete_state(self._program, [variable.name for variable in chosen])
        return super().plan_save(executor, chosen, where, part, options)

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        """Return all variables except the state of other workers."""
        workers, sharding = find_workers(), self._program._sharding
        names = {variable.name for variable in chosen}
        others = sorted(names.intersection(workers.find_others(global_scope(), sharding)))
        if not others:
            return LoadShare(chosen)
        skip = Skip("re:" + "|".join(map(re.escape, others)))
        note = f"{len(others)} variables of optimizer state are read by the workers that hold them"
        done = partial(workers.count_load, global_scope(), sharding)
        return LoadShare(chosen, rules=(skip,), notes=(note,), done=done)


def _make_program(program: Program, strategy: BuildStrategy, *, average: bool, is_shared: bool) -> Program:
    if is_transpiled(program):
        raise GraphError(
            "the program adds its gradients up already, and with_data_parallel would do so again",
            hint="run the program itself; with_data_parallel is for config.mode = 'nccl2'",
        )
    gradients = find_gradients(program)
    made = program.clone()
    made.random_seed = program.random_seed
    if average:
        scale_loss_gradient(made.global_block(), strategy.num_trainers)
    sharding: Sharding | None = program._sharding if is_shared else None
    if sharding is not None and sharding.owners:
        sharding.remove_updates(made.global_block(), strategy.trainer_id)
        gradients = [name for name in gradients if name not in set(sharding.gradients)]
    add_up_gradients(made.global_block(), gradients, sharding)
    if strategy.sync_batch_norm:
        for block in made.blocks:
            for op in block.ops:
                if op.type in ("batch_norm", "batch_norm_grad"):
                    op.type = f"sync_{op.type}"
        made._note_change()
    return made
