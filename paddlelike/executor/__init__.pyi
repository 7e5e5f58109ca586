"""The names of ``fluid.executor``, and where each is defined."""

from paddlelike.core import global_scope as global_scope, scope_guard as scope_guard
from paddlelike.executor.compiled import (
    CompiledProgram as CompiledProgram,
    ParallelExecutor as ParallelExecutor,
)
from paddlelike.executor.datasets import FetchHandler as FetchHandler
from paddlelike.executor.exchange.fetches import _fetch_var as _fetch_var, as_numpy as as_numpy
from paddlelike.executor.exchange.targets import (
    _as_lodtensor as _as_lodtensor,
    has_feed_operators as has_feed_operators,
    has_fetch_operators as has_fetch_operators,
)
from paddlelike.executor.run import Executor as Executor
from paddlelike.executor.strategies import (
    BuildStrategy as BuildStrategy,
    ExecutionStrategy as ExecutionStrategy,
)
