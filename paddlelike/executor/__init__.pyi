"""The names of ``fluid.executor``, and where each is defined."""

from paddlelike.core import global_scope, scope_guard
from paddlelike.executor.compiled import CompiledProgram, ParallelExecutor
from paddlelike.executor.datasets import FetchHandler
from paddlelike.executor.exchange.fetches import _fetch_var as _fetch_var
from paddlelike.executor.exchange.fetches import as_numpy
from paddlelike.executor.exchange.targets import _as_lodtensor as _as_lodtensor
from paddlelike.executor.exchange.targets import has_feed_operators, has_fetch_operators
from paddlelike.executor.run import Executor
from paddlelike.executor.strategies import BuildStrategy, ExecutionStrategy

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "FetchHandler",
    "ParallelExecutor",
    "as_numpy",
    "global_scope",
    "has_feed_operators",
    "has_fetch_operators",
    "scope_guard",
]
