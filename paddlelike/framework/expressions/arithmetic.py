"""Python's operators on variables: ``x + y``, ``2 * x``, ``x < y``, ``x.astype("int64")``.

As in Fluid, a number beside a variable becomes a ``scale`` operator if the formula allows it, otherwise a
filled tensor. Results are named ``tmp_0``, ``tmp_1``, ...
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.variable import Variable

_FLOATS: Final = (VarType.FP16, VarType.FP32, VarType.FP64)
_COMPARISONS: Final = frozenset(
    ["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"]
)
#: (scale, bias) of the ``scale`` operator that combines a variable with a number; by type and ``reverse``.
_SCALES: Final[dict[tuple[str, bool], Callable[[float], tuple[float, float]]]] = {
    ("elementwise_add", False): lambda value: (1.0, value),
    ("elementwise_sub", False): lambda value: (1.0, -value),
    ("elementwise_sub", True): lambda value: (-1.0, value),
    ("elementwise_mul", False): lambda value: (value, 0.0),
    ("elementwise_div", False): lambda value: (1.0 / value, 0.0),
}


def cast(variable: Variable, dtype: Any) -> Variable:
    """Append an operator ``cast`` to another element type. Return its output."""
    out = _create_temporary(variable, convert_dtype(dtype))
    _current_block(variable).append_op(
        type="cast",
        inputs={"X": [variable]},
        outputs={"Out": [out]},
        attrs={"in_dtype": int(variable.dtype), "out_dtype": int(out.dtype)},
    )
    return out


def negate(variable: Variable) -> Variable:
    """Append a ``scale`` by -1. Return its output."""
    return _scale(variable, -1.0, 0.0)


def combine(left: Variable, right: Any, type: str, *, reverse: bool = False) -> Variable:  # noqa: A002
    """Append the operator ``type`` of ``left`` and a variable or a number. Return its output.

    ``reverse`` swaps the operands. Raises GraphError when ``right`` is neither a variable nor a number, and
    for a fraction beside a variable of integers.
    """
    if isinstance(right, numbers.Number | np.generic):
        value = _to_float(left, right, type)
        scale = _SCALES.get((type, reverse))
        if scale is not None and (type != "elementwise_div" or left.dtype in _FLOATS):
            return _scale(left, *scale(value))
        right = _fill(left, value, whole=reverse)
    elif not isinstance(right, Variable):
        raise GraphError(
            f"{type}: cannot combine variable {left.name!r} with a {right.__class__.__name__}",
            hint="use a variable or a number; layers.assign makes a variable of a numpy array",
        )
    if right.dtype != left.dtype:
        right = right.astype(left.dtype)
    axis = 0 if right.shape[:1] == (-1,) else -1
    if reverse:
        left, right = right, left
    out = _create_temporary(left, VarType.BOOL if type in _COMPARISONS else left.dtype)
    _current_block(left).append_op(
        type=type, inputs={"X": [left], "Y": [right]}, outputs={"Out": [out]}, attrs={"axis": axis}
    )
    return out


def _current_block(variable: Variable) -> Block:
    """Return the block for new operators: the current block of the variable's program."""
    return variable.block.program.current_block()


def _create_temporary(like: Variable, dtype: VarType) -> Variable:
    name = unique_name.generate("tmp")
    return _current_block(like).create_var(name=name, dtype=dtype)


def _scale(variable: Variable, scale: float, bias: float) -> Variable:
    out = _create_temporary(variable, variable.dtype)
    _current_block(variable).append_op(
        type="scale", inputs={"X": [variable]}, outputs={"Out": [out]}, attrs={"scale": scale, "bias": bias}
    )
    return out


def _to_float(variable: Variable, value: Any, type: str) -> float:  # noqa: A002
    result = float(value)
    if variable.dtype not in _FLOATS and not result.is_integer():
        raise GraphError(
            f"{type}: variable {variable.name!r} holds {variable.dtype.name}, but {value} is not an integer",
            hint='convert the variable first: x.astype("float32")',
        )
    return result


def _fill(like: Variable, value: float, *, whole: bool) -> Variable:
    """Append a tensor filled with ``value``, of shape [1] or, with ``whole``, of the shape of ``like``."""
    out = _create_temporary(like, like.dtype)
    out.stop_gradient = True
    block = _current_block(like)
    dtype = int(like.dtype)
    if whole and -1 in like.shape:
        batch = like.shape.index(-1)  # its size is known only when the program runs
        shape = [1 if dim == -1 and i != batch else dim for i, dim in enumerate(like.shape)]
        block.append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [like]},
            outputs={"Out": [out]},
            attrs={
                "shape": shape,
                "dtype": None if like.dtype == VarType.FP32 else dtype,
                "value": value,
                "input_dim_idx": batch,
                "output_dim_idx": batch,
            },
        )
    else:
        shape = list(like.shape) if whole else [1]
        attrs = {"shape": shape, "dtype": dtype, "value": value, "force_cpu": False}
        block.append_op(type="fill_constant", outputs={"Out": [out]}, attrs=attrs)
    return out
