"""Values that are computed at run time, written like numpy: each expression appends an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from paddlelike.core import Array, DtypeLike, VarType, numpy_dtype
from paddlelike.interop.onnx.importer.graph import Given
from paddlelike.interop.onnx.importer.node import MOST, Node

Operand: TypeAlias = "Expression | Array | float"


class Expression:
    """A variable with the operators, slices and methods of an array."""

    def __init__(self, node: Node, name: str) -> None:
        self.node, self.name = node, name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape(self.name)

    @property
    def dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.node.graph.variable(self.name).dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def make(
        self, kind: str, x: Given | Mapping[str, Given], y: str | None = None, **attrs: Any
    ) -> Expression:
        """Append an operator, and return its result."""
        return Expression(self.node, self.node.emit(kind, x, y, **attrs))

    def lift(self, other: Operand) -> Expression:
        """Return a number or an array as a constant of the same element type."""
        if isinstance(other, Expression):
            return other
        return Expression(self.node, self.node.constant(np.atleast_1d(other), self.dtype))

    def _join(self, kind: str, x: Operand, y: Operand) -> Expression:
        """Append an operator with two values, and return its result; Fluid broadcasts the second over the
        first.
        """
        first, second = self.lift(x), self.lift(y)
        if len(first.shape) < len(second.shape) or (first.shape == (1,) and second.shape != (1,)):
            zeros = second.make("fill_zeros_like", second.name)
            first = zeros.make("elementwise_add", zeros.name, first.name, axis=-1)
        return first.make(kind, first.name, second.name, axis=-1)

    def __add__(self, other: Operand) -> Expression:
        return self._join("elementwise_add", self, other)

    def __sub__(self, other: Operand) -> Expression:
        return self._join("elementwise_sub", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return self._join("elementwise_sub", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return self._join("elementwise_mul", self, other)

    def __truediv__(self, other: Operand) -> Expression:
        return self._join("elementwise_div", self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Operand, **options: object) -> Any:
        """Compute numpy's functions, also with an array or number on the left."""
        if method != "__call__" or options or ufunc.__name__ not in _OPERATORS:
            return NotImplemented
        kind, *more = given if isinstance(given[0], Expression) else (self.lift(given[0]), *given[1:])
        return _OPERATORS[ufunc.__name__](kind, *more)

    def number(self, value: float, dtype: DtypeLike) -> Expression:
        """Return a constant with a given element type."""
        return Expression(self.node, self.node.constant([value], numpy_dtype(dtype)))

    def __neg__(self) -> Expression:
        return self * -1

    def __mod__(self, other: Operand) -> Expression:
        """Return the remainder with the sign of the divisor, unlike Fluid's."""
        rest = self._join("elementwise_mod", self, other)
        return self._join("elementwise_mod", rest + other, other)

    def __lt__(self, other: Any) -> Expression:
        return self._join("less_than", self, other).cast(self.dtype)

    def __ge__(self, other: Any) -> Expression:
        return self._join("greater_equal", self, other).cast(self.dtype)

    def __gt__(self, other: Any) -> Expression:
        return self._join("greater_than", self, other).cast(self.dtype)

    def __le__(self, other: Any) -> Expression:
        return self._join("less_equal", self, other).cast(self.dtype)

    def equals(self, other: Operand) -> Expression:
        """Return 1 where values are equal, else 0."""
        return self._join("equal", self, other).cast(self.dtype)

    def clip(self, low: Operand, high: Operand) -> Expression:
        """Return the values within limits."""
        return self._join("elementwise_min", self._join("elementwise_max", self, low), high)

    def cast(self, dtype: DtypeLike) -> Expression:
        """Return the values of another element type."""
        return Expression(self.node, self.node.cast(self.name, dtype))

    def __abs__(self) -> Expression:
        return self.make("abs", self.name)

    def __getitem__(self, index: int | slice) -> Expression:
        start, stop, _ = (slice(index, index + 1) if isinstance(index, int) else index).indices(len(self))
        part = Expression(self.node, self.node.slice(self.name, 0, start, stop or MOST))
        return part.reshape(*self.shape[1:]) if isinstance(index, int) else part

    @property
    def T(self) -> Expression:  # noqa: N802
        return self.make("transpose2", self.name, axis=[1, 0])

    def reshape(self, *dims: int) -> Expression:
        """Return the values in another shape."""
        return Expression(self.node, self.node.reshape(self.name, *dims))

    def sum(self) -> Expression:
        """Return the sum as one element."""
        return Expression(self.node, self.node.reduce("sum", self.name, *range(len(self.shape))))

    def take(self, places: Expression, axis: int) -> Expression:
        """Return the elements of a dim at the given positions."""
        dims = list(self.shape)
        dims[axis] = -1
        given = {"X": self.name, "Index": places.name}
        return self.make("index_select", given, dim=axis, shaped=dims)


_OPERATORS: Final[dict[str, Callable[..., Expression]]] = {
    "add": Expression.__add__,
    "ceil": lambda x: x.make("ceil", x.name),
    "divide": Expression.__truediv__,
    "floor": lambda x: x.make("floor", x.name),
    "maximum": lambda x, y: x._join("elementwise_max", x, y),
    "multiply": Expression.__mul__,
    "subtract": Expression.__sub__,
}


def read_input(node: Node, index: int, dtype: DtypeLike = VarType.INT64) -> Expression:
    """Return an input as an expression with one dim."""
    return Expression(node, node.cast(node.reshape(node.input(index), -1), dtype))


def read_size(node: Node, axis: int) -> Expression:
    """Return the size of a dim of the first input, int64."""
    dims = node.dims()
    if dims[axis] >= 0:
        return Expression(node, node.constant([dims[axis]], np.int64))
    return Expression(node, node.slice(node.dims_at_run(node.input()), 0, axis, axis + 1))


def count(start: Expression, end: Operand, step: Operand = 1) -> Expression:
    """Return the numbers from start up to the end, exclusive, by step."""
    bounds = {"Start": start.name, "End": start.lift(end).name, "Step": start.lift(step).name}
    return start.make("range", bounds, shaped=[-1])


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


def find_axes(node: Node, index: int, count: int) -> Sequence[int] | Expression:
    """Return the axes from an input, which may be missing or computed."""
    if not node.has(index):
        return range(count if count > 0 else node.rank())
    known = node.find_known(index)
    if known is None:
        return read_input(node, index)
    return [node.normalize(int(axis), node.rank()) for axis in known.reshape(-1)]
