"""Python's operators on variables: ``x + y``, ``2 * x``, ``x < y``, ``x[:, 0:2]``, ``x.astype("int64")``.

As in Fluid, a number beside a variable becomes one ``scale`` operator where the formula allows it, and
a filled tensor elsewhere. Results are named ``tmp_0``, ``tmp_1``, ...
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.errors import GraphError

if TYPE_CHECKING:
    from paddlelike.framework.graph.block import Block
    from paddlelike.framework.graph.variable import Variable

__all__ = ["Overloads"]


class Overloads:
    """Mixed into Variable: every method appends operators to the current block."""

    if TYPE_CHECKING:
        block: Block
        name: str
        shape: tuple[int, ...]
        dtype: VarType
        lod_level: int

    def astype(self, dtype: Any) -> Variable:
        """This variable converted to another element type (operator ``cast``)."""
        out = _temporary(self, convert_dtype(dtype))
        _block(self).append_op(
            type="cast",
            inputs={"X": [self]},
            outputs={"Out": [out]},
            attrs={"in_dtype": int(self.dtype), "out_dtype": int(out.dtype)},
        )
        return out

    def __neg__(self) -> Variable:
        return _scale(self, -1.0, 0.0)

    def __add__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_add", scaled=lambda x, v: (1.0, v))

    def __radd__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_add", scaled=lambda x, v: (1.0, v))

    def __sub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub", scaled=lambda x, v: (1.0, -v))

    def __rsub__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_sub", True, scaled=lambda x, v: (-1.0, v))

    def __mul__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mul", scaled=lambda x, v: (v, 0.0))

    def __rmul__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mul", scaled=lambda x, v: (v, 0.0))

    def __truediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div", scaled=lambda x, v: (1.0 / v, 0.0))

    def __rtruediv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_div", True)

    def __pow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow")

    def __rpow__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_pow", True)

    def __floordiv__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_floordiv")

    def __mod__(self, other: Any) -> Variable:
        return _binary(self, other, "elementwise_mod")

    def __eq__(self, other: object) -> Any:
        return _binary(self, other, "equal")

    def __ne__(self, other: object) -> Any:
        return _binary(self, other, "not_equal")

    def __lt__(self, other: Any) -> Variable:
        return _binary(self, other, "less_than")

    def __le__(self, other: Any) -> Variable:
        return _binary(self, other, "less_equal")

    def __gt__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_than")

    def __ge__(self, other: Any) -> Variable:
        return _binary(self, other, "greater_equal")

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise TypeError(f"variable {self.name!r} cannot be iterated over; use layers.unstack or layers.split")

    def __len__(self) -> int:
        raise TypeError(f"variable {self.name!r} has no length before it has a value; use its shape")

    def __bool__(self) -> bool:
        # Identity decides for containers; a value is known only when the program runs.
        return True

    def __getitem__(self, item: Any) -> Variable:
        from paddlelike.framework.graph.indexing import getitem  # only programs that slice need it

        return getitem(self, item)  # type: ignore[arg-type]


_FLOATS = (VarType.FP16, VarType.FP32, VarType.FP64)
_COMPARISONS = frozenset(["equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal"])


def _block(variable: Overloads) -> Block:
    """Where new operators go: the current block of the variable's program."""
    return variable.block.program.current_block()


def _temporary(like: Overloads, dtype: VarType) -> Variable:
    return _block(like).create_var(name=unique_name.generate("tmp"), dtype=dtype, lod_level=like.lod_level)


def _scale(variable: Overloads, scale: float, bias: float) -> Variable:
    out = _temporary(variable, variable.dtype)
    _block(variable).append_op(
        type="scale",
        inputs={"X": [variable]},
        outputs={"Out": [out]},
        attrs={"scale": scale, "bias": bias},
    )
    return out


def _binary(left: Overloads, right: Any, type: str, reverse: bool = False, scaled: Any = None) -> Variable:
    if isinstance(right, numbers.Number | np.generic):
        value = _number(left, right, type)
        if scaled is not None and (type != "elementwise_div" or left.dtype in _FLOATS):
            return _scale(left, *scaled(left, value))
        right = _filled(left, value, whole=reverse)
    elif not isinstance(right, Overloads):
        raise GraphError(
            f"{type}: variable {left.name!r} and a {right.__class__.__name__} do not go together",
            hint="use a variable or a number; layers.assign makes a variable of a numpy array",
        )
    if right.dtype != left.dtype:
        right = right.astype(left.dtype)
    axis = 0 if right.shape[:1] == (-1,) else -1
    if reverse:
        left, right = right, left
    out = _temporary(left, VarType.BOOL if type in _COMPARISONS else left.dtype)
    _block(left).append_op(
        type=type,
        inputs={"X": [left], "Y": [right]},
        outputs={"Out": [out]},
        attrs={"axis": axis},
    )
    return out


def _number(variable: Overloads, value: Any, type: str) -> float:
    number = float(value)
    if variable.dtype not in _FLOATS and not number.is_integer():
        raise GraphError(
            f"{type}: variable {variable.name!r} holds {variable.dtype.name}, {value} is no integer",
            hint='convert the variable first: x.astype("float32")',
        )
    return number


def _filled(like: Overloads, value: float, *, whole: bool) -> Variable:
    """A tensor of ``value`` and shape [1]; ``whole``: shaped as ``like``, its batch dim at run time."""
    out = _temporary(like, like.dtype)
    out.stop_gradient = True
    attrs = {"dtype": int(like.dtype), "value": value, "force_cpu": False}
    if whole and -1 in like.shape:
        batch = like.shape.index(-1)
        shape = [1 if dim == -1 and i != batch else dim for i, dim in enumerate(like.shape)]
        _block(like).append_op(
            type="fill_constant_batch_size_like",
            inputs={"Input": [like]},
            outputs={"Out": [out]},
            attrs={**attrs, "shape": shape, "input_dim_idx": batch, "output_dim_idx": batch},
        )
    else:
        shape = list(like.shape) if whole else [1]
        _block(like).append_op(type="fill_constant", outputs={"Out": [out]}, attrs={**attrs, "shape": shape})
    return out
