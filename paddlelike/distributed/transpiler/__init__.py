"""``fluid.transpiler``: programs for trainers and parameter servers out of one training program."""

from paddlelike.distributed.transpiler.config import DistributeTranspilerConfig
from paddlelike.distributed.transpiler.dispatch import HashName, PSDispatcher, RoundRobin
from paddlelike.distributed.transpiler.transpiler import DistributeTranspiler
from paddlelike.framework.environment import memory_optimize, release_memory

__all__ = [
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "HashName",
    "PSDispatcher",
    "RoundRobin",
    "memory_optimize",
    "release_memory",
]
