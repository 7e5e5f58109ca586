"""Pooling of sequences to one row each.

Shapes are written (T, D): T rows of all sequences together.

Parameters
----------
input
    Sequences of rows: (T, D) with LoD.
pool_type
    ``"average"``, ``"sum"``, ``"sqrt"``, ``"max"``, ``"last"`` or ``"first"``.
pad_value
    The number of a sequence without rows.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["sequence_first_step", "sequence_last_step", "sequence_pool"]


_POOLS = ("average", "sum", "sqrt", "max", "last", "first")


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """Return one row per sequence: its average, sum, sqrt (sum / root of the length), max, last or first row.

    Operator ``sequence_pool``. With several levels of LoD the innermost sequences are pooled. A sequence
    without rows gives ``pad_value``. ``is_test`` is recorded in the operator. Raises TypeError unless
    ``input`` is a variable of a supported dtype and GraphError for another ``pool_type``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], lod_level=1)
    >>> totals = fluid.layers.sequence_pool(x, "sum")
    >>> rows = fluid.create_lod_tensor(np.array([[1], [2], [3]], "float32"), [[2, 1]], fluid.CPUPlace())
    >>> fluid.Executor().run(feed={"x": rows}, fetch_list=[totals])
    [array([[3.],
           [3.]], dtype=float32)]
    """
    check_variable("sequence_pool", "input", input, WIDE_FLOATS)
    check_choice("sequence_pool", "pool_type", pool_type.lower(), _POOLS)
    outputs = {"Out": input.dtype, "MaxIndex": input.dtype}
    attrs = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value}
    out, index = emit_all("sequence_pool", {"X": input}, outputs, attrs)
    index.stop_gradient = pool_type == "max"  # as in Fluid, which compares case-sensitively here
    return out


def sequence_first_step(input: Variable) -> Variable:
    """Return the first row of each sequence (operator ``sequence_pool``).

    ``input`` holds sequences of rows; the result has a row for each.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4], "float32", lod_level=1)
    >>> fluid.layers.sequence_first_step(x).shape
    (-1, 4)
    """
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    """Return the last row of each sequence of ``input`` (operator ``sequence_pool``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], lod_level=1)
    >>> last = fluid.layers.sequence_last_step(x)
    >>> rows = fluid.create_lod_tensor(np.array([[1], [2], [3]], "float32"), [[2, 1]], fluid.CPUPlace())
    >>> fluid.Executor().run(feed={"x": rows}, fetch_list=[last])
    [array([[2.],
           [3.]], dtype=float32)]
    """
    return sequence_pool(input, "last")
