"""Values that are computed at run time, written like numpy: each expression appends an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np

from paddlelike.core import Array, DtypeLike, VarType, convert_dtype, numpy_dtype
from paddlelike.framework import Variable
from paddlelike.interop.arithmetic import Arithmetic
from paddlelike.interop.onnx.importer.graph import Given, Graph

Operand: TypeAlias = "Expression | Array | float"

#: Stands for "to the end" in attributes of int32.
MOST: Final = np.iinfo(np.int32).max


class Expression(Arithmetic["Array | float"]):
    """A variable, and the operators, slices and methods of an array; comparisons give 1 or 0."""

    KINDS = MappingProxyType(
        {
            "add": "elementwise_add",
            "subtract": "elementwise_sub",
            "multiply": "elementwise_mul",
            "divide": "elementwise_div",
            "remainder": "elementwise_mod",
            "less": "less_than",
            "less_equal": "less_equal",
            "greater": "greater_than",
            "greater_equal": "greater_equal",
            "equal": "equal",
            "minimum": "elementwise_min",
            "maximum": "elementwise_max",
        }
    )

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __str__(self) -> str:
        return self.name

    @property
    def variable(self) -> Variable:
        """The variable as the current block sees it."""
        return self.graph.variable(self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.variable.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.variable.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def make(self, kind: str, y: Given = None, **attrs: Any) -> Expression:
        """Return the result of an operator of this value and of another one."""
        given = {"X": self} if y is None else {"X": self, "Y": y}
        return Expression(self.graph, self.graph.emit(kind, given, attrs)[0])

    def lift(self, other: Operand) -> Expression:
        """Return a number or an array as a constant of the same element type."""
        if isinstance(other, Expression):
            return other
        return Expression(self.graph, self.graph.constant(np.atleast_1d(np.asarray(other, self.dtype))))

    def _join(self, kind: str, x: Operand, y: Operand) -> Expression:
        """Append an operator with two values, and return its result; Fluid broadcasts the second over the
        first.
        """
        first, second = self.lift(x), self.lift(y)
        if (len(first.shape) < len(second.shape) and kind not in _EXCHANGED) or (
            first.shape == (1,) and second.shape != (1,)
        ):
            first = second.zeros().make("elementwise_add", first, axis=-1)
        out = first.make(self.KINDS[kind], second, axis=-1)
        return out.cast(self.dtype) if kind in _COMPARED else out

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Operand, **options: object) -> Any:
        """Compute numpy's functions, also with an array or number on the left."""
        if method != "__call__" or options or ufunc.__name__ not in _OPERATORS:
            return NotImplemented
        kind, *more = given if isinstance(given[0], Expression) else (self.lift(given[0]), *given[1:])
        return _OPERATORS[ufunc.__name__](kind, *more)

    def number(self, value: float, dtype: DtypeLike) -> Expression:
        """Return a constant with a given element type."""
        return Expression(self.graph, self.graph.constant(np.asarray([value], numpy_dtype(dtype))))

    def __neg__(self) -> Expression:
        return self * -1

    def __mod__(self, other: Operand) -> Expression:
        """Return the remainder with the sign of the divisor, unlike Fluid's."""
        rest = self._join("remainder", self, other)
        return self._join("remainder", rest + other, other)

    def clip(self, low: Operand, high: Operand) -> Expression:
        """Return the values within limits."""
        return self.maximum(low).minimum(high)

    def cast(self, dtype: DtypeLike) -> Expression:
        """Return the value as elements of another type."""
        source, target = self.variable.dtype, convert_dtype(dtype)
        if source == target:
            return self
        return self.make("cast", in_dtype=int(source), out_dtype=int(target))

    def __abs__(self) -> Expression:
        return self.make("abs")

    def __getitem__(self, index: int | slice) -> Expression:
        start, stop, _ = (slice(index, index + 1) if isinstance(index, int) else index).indices(len(self))
        part = self.slice(0, start, stop or MOST)
        return part.reshape(*self.shape[1:]) if isinstance(index, int) else part

    @property
    def T(self) -> Expression:  # noqa: N802
        return self.transpose([1, 0])

    def reshape(self, *dims: int) -> Expression:
        """Return the value in another shape; 0 copies a dim, -1 takes what is left."""
        return self.make("reshape2", shape=list(dims))

    def unsqueeze(self, *axes: int) -> Expression:
        """Return the value with dims of 1 at ``axes`` of the result."""
        return self.make("unsqueeze2", axes=sorted(axes)) if axes else self

    def squeeze(self, *axes: int) -> Expression:
        """Return the value without the dims of 1 at ``axes``."""
        return self.make("squeeze2", axes=sorted(axes)) if axes else self

    def transpose(self, perm: Sequence[int]) -> Expression:
        """Return the value with its dims in another order."""
        return self if list(perm) == sorted(perm) else self.make("transpose2", axis=list(perm))

    def scale(self, scale: float = 1.0, bias: float = 0.0) -> Expression:
        """Return ``scale x + bias``."""
        if (scale, bias) == (1, 0):
            return self
        return self.make("scale", scale=float(scale), bias=float(bias))

    def reduce(self, kind: str, *axes: int, keep: bool = True) -> Expression:
        """Return ``reduce_<kind>`` over some dims; over all dims the result has one dim of 1, as in
        Fluid.
        """
        whole = len(axes) == len(self.shape)
        return self.make(f"reduce_{kind}", dim=list(axes), keep_dim=keep, reduce_all=whole)

    def sum(self) -> Expression:
        """Return the sum as one element."""
        return self.reduce("sum", *range(len(self.shape)))

    def dims_at_run(self) -> Expression:
        """Return the dims of the value at run time, int64."""
        return Expression(self.graph, self.graph.emit("shape", {"Input": self})[0]).cast(VarType.INT64)

    def slice(self, axis: int, start: int, end: int) -> Expression:
        """Return a part of one dim."""
        attrs = {"axes": [axis], "starts": [start], "ends": [min(end, MOST)]}
        return Expression(self.graph, self.graph.emit("slice", {"Input": self}, attrs)[0])

    def zeros(self) -> Expression:
        """Return zeros of the same shape and element type."""
        return self.make("fill_zeros_like")

    def gather(self, rows: Expression) -> Expression:
        """Return some rows."""
        return Expression(self.graph, self.graph.emit("gather", {"X": self, "Index": rows})[0])

    def where(self, x: Expression, y: Expression) -> Expression:
        """Return ``x`` where this is True, else ``y``."""
        given = {"Condition": self, "X": x, "Y": y}
        return Expression(self.graph, self.graph.emit("where", given)[0])

    def take(self, places: Expression, axis: int) -> Expression:
        """Return the elements of a dim at the given positions."""
        dims = list(self.shape)
        dims[axis] = -1
        found = self.graph.emit("index_select", {"X": self, "Index": places}, {"dim": axis}, shaped=dims)
        return Expression(self.graph, found[0])


#: Operators whose operands Fluid exchanges where the first one has fewer dims.
_EXCHANGED: Final = ("add", "maximum", "minimum", "multiply")
_COMPARED: Final = ("less", "less_equal", "greater", "greater_equal", "equal")
_OPERATORS: Final[dict[str, Callable[..., Expression]]] = {
    "add": Expression.__add__,
    "ceil": lambda x: x.make("ceil"),
    "divide": Expression.__truediv__,
    "floor": lambda x: x.make("floor"),
    "maximum": Expression.maximum,
    "multiply": Expression.__mul__,
    "subtract": Expression.__sub__,
}


def count(start: Expression, end: Operand, step: Operand = 1) -> Expression:
    """Return the numbers from start up to the end, exclusive, by step."""
    bounds = {"Start": start, "End": start.lift(end), "Step": start.lift(step)}
    return Expression(start.graph, start.graph.emit("range", bounds, shaped=[-1])[0])


def spread(given: Expression, axes: Sequence[int] | Expression, rank: int, default: int) -> list[Expression]:
    """Return one number per dim: the given one, or the default."""
    if not isinstance(axes, Expression):
        rest = given.lift(default)
        where = {axis: place for place, axis in enumerate(axes)}
        return [given[where[axis] : where[axis] + 1] if axis in where else rest for axis in range(rank)]
    axes = axes + (axes < 0) * rank
    found = []
    for axis in range(rank):
        own = axes.equals(axis)
        found.append((given * own).sum() + (1 - own.sum()) * default)
    return found
