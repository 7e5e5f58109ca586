"""Running programs: plans, the Executor, compiled and parallel programs."""

from paddlelike.core.scope import global_scope, scope_guard
from paddlelike.executor.compiled import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    ParallelExecutor,
)
from paddlelike.executor.run import Executor

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "ParallelExecutor",
    "global_scope",
    "scope_guard",
]
