"""``fluid.transpiler``: makes the programs of trainers and parameter servers from a training program."""

from paddlelike.distributed.transpiler.config import DistributeTranspilerConfig
from paddlelike.distributed.transpiler.slicing import (
    HashName,
    PSDispatcher,
    RoundRobin,
    slice_variable as slice_variable,
)
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
