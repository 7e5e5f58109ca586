"""What a worker runs of a program that ``CompiledProgram.with_data_parallel`` distributes (mode nccl2).

Fluid's compilation adds the gradients up without operators in the program; here the program that runs is a
copy that has them.
"""

from __future__ import annotations

from typing import Final

from paddlelike.core.scope import Scope
from paddlelike.distributed.collective.transpiler import add_up_gradients, scale_loss_gradient
from paddlelike.distributed.collective.workers import find_workers
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.executor.strategies import BuildStrategy
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program

__all__ = ["distribute_program"]

#: Options of BuildStrategy that change what is computed, and are not here: the value that is, and why.
_REFUSED: Final = {
    "reduce_strategy": (
        BuildStrategy.ReduceStrategy.AllReduce,
        "ReduceStrategy.Reduce shares the updates out among devices of one process",
        "AllReduce computes the same",
    ),
    "async_mode": (False, "async_mode is for parameter servers", "leave it False"),
}


def distribute_program(program: Program, strategy: BuildStrategy, scope: Scope) -> Program:
    """Return what this worker runs in a scope; at the first time all workers take the values of worker 0.

    Raises
    ------
    UnsupportedError
        The strategy asks for what is not here.
    RoleError
        This process is another worker than the strategy says, or in no job.
    GraphError
        The program has the operators of collectives already.
    """
    for name, (value, why, advice) in _REFUSED.items():
        if getattr(strategy, name) != value:
            raise UnsupportedError(
                f"build_strategy.{name} with {strategy.num_trainers} workers: {why}", hint=advice
            )
    average = strategy.gradient_scale_strategy == BuildStrategy.GradientScaleStrategy.CoeffNumDevice
    key = ("worker", strategy.num_trainers, average, strategy.sync_batch_norm)
    made: Program | None = program.plans.get(key)
    if made is None:
        made = _make_program(program, strategy, average=average)
        program.plans[key] = made
    workers = find_workers()
    workers.check(strategy.num_trainers, strategy.trainer_id)
    workers.share(scope, made)
    return made


def _make_program(program: Program, strategy: BuildStrategy, *, average: bool) -> Program:
    found: dict[str, None] = {}
    for op in program.global_block().ops:
        if op.type.startswith("c_allreduce"):
            raise GraphError(
                "the program adds its gradients up already, and with_data_parallel would do so again",
                hint="run the program itself; with_data_parallel is for config.mode = 'nccl2'",
            )
        if op.attrs.get("op_role", 0) & OpRole.Backward:
            found.update(dict.fromkeys((op.attrs.get("op_role_var") or [])[1::2]))
    made = program.clone()
    made.random_seed = program.random_seed
    if average:
        scale_loss_gradient(made.global_block(), strategy.num_trainers)
    add_up_gradients(made.global_block(), list(found))
    if strategy.sync_batch_norm:
        for block in made.blocks:
            for op in block.ops:
                if op.type in ("batch_norm", "batch_norm_grad"):
                    op.type = f"sync_{op.type}"
        made._note_change()
    return made
