"""``fluid.contrib.memory_usage``: an estimate of the memory of a program's variables."""

from __future__ import annotations

import math

from paddlelike.core import VarType, numpy_dtype
from paddlelike.framework import Program

__all__ = ["memory_usage"]


def memory_usage(program: Program, batch_size: int) -> tuple[float, float, str]:
    """Return the lowest and the highest estimate of the memory of all results of block 0, and the unit.

    It counts every result once and adds 5% and 10%. A run takes less, because results are dropped after
    their last reader.

    Parameters
    ----------
    program
        The program to read.
    batch_size
        Stands in for dims of -1.

    Returns
    -------
    tuple
        Two numbers and "B", "KB" or "MB".

    Raises
    ------
    TypeError
        ``program`` is not a program.
    ValueError
        ``batch_size`` is not positive, or a variable has two dims of -1.

    See Also
    --------
    fluid.contrib.op_freq_statistic, fluid.contrib.model_stat.summary

    >>> import paddlelike as fluid
    >>> memory_usage(fluid.Program(), batch_size=8)
    (0.0, 0.0, 'B')
    """
    if not isinstance(program, Program):
        raise TypeError(f"memory_usage takes a program, got {program!r}")
    if batch_size <= 0:
        raise ValueError(f"memory_usage: batch_size must be positive, got {batch_size}")
    block = program.global_block()
    names = dict.fromkeys(name for op in block.ops for name in op.output_arg_names if name in block.vars)
    total = 0.0
    for name in names:
        variable = block.vars[name]
        if variable.type != VarType.LOD_TENSOR:
            continue
        if sum(dim < 0 for dim in variable.shape) > 1:
            raise ValueError(f"memory_usage: {name!r} has shape {list(variable.shape)}, more than one -1")
        count = math.prod(-dim * batch_size if dim < 0 else dim for dim in variable.shape)
        total += count * numpy_dtype(variable.dtype).itemsize
    unit = "B"
    for larger in ("KB", "MB"):
        if total > 1024:
            total, unit = total / 1024, larger
    return total * 1.05, total * 1.1, unit
