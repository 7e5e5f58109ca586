"""Elementwise arithmetic of two tensors: add, sub, mul, div, max, min, pow, mod."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import SelectedRows
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import GRAD, OWN, Array, Gradient, Int, Kernel, OpDef, Spec, String, register
from paddlelike.ops.elementwise.overwriting import make_binary
from paddlelike.ops.extremes import take_greater, take_less
from paddlelike.ops.kernels.broadcasting import align, apply, broadcast_shape, sum_rows, sum_to
from paddlelike.ops.operands import MKLDNN, check_same_dtype


def map_row_values(x: SelectedRows, function: Callable[[Array], Array]) -> SelectedRows:
    """Return SelectedRows with the same rows and with ``function`` applied to their values."""
    assert x.held_array is not None
    return SelectedRows(x.row_array, x.height(), function(x.held_array))


Function = Callable[..., Array]


class _Row(NamedTuple):
    """One operator as a row of the table. ``d_x`` and ``d_y`` are the factors of d_out in the gradients,
    before sums over broadcast dims; they take d_out, X, Y and whatever else the gradient operator ``reads``.
    """

    type: str
    formula: str
    value: Function
    d_x: Function | None = None
    d_y: Function | None = None
    reads: tuple[str, ...] = ()
    views: bool = False  # the gradient of X or Y may be d_out itself
    turns: bool = False  # see TURNED


def _quotient(x: Array, y: Array) -> Array:
    return np.divide(x, y) if x.dtype.kind == "f" else _floor_quotient(x, y)


def _floor_quotient(x: Array, y: Array) -> Array:
    """Divide integers as in C: the quotient is truncated towards zero."""
    return (x - np.fmod(x, y)) // y


def _remainder(x: Array, y: Array) -> Array:
    """Return the remainder: for integers with the sign of X, as in C; for floats with the sign of Y."""
    rest = np.fmod(x, y)
    return np.fmod(y + rest, y) if x.dtype.kind == "f" else rest


def power(x: Array, y: Array | float) -> Array:
    """Return ``X ^ Y``; integers are computed in float64."""
    return np.power(x, y) if x.dtype.kind == "f" else np.power(x * 1.0, y).astype(x.dtype)


_ROWS: Final = [
    _Row("elementwise_add", "X + Y", np.add, lambda d, x, y: d, lambda d, x, y: d, views=True),
    _Row("elementwise_sub", "X - Y", np.subtract, lambda d, x, y: d, lambda d, x, y: -d, views=True),
    _Row("elementwise_mul", "X * Y", np.multiply, lambda d, x, y: d * y, lambda d, x, y: d * x),
    _Row(
        "elementwise_div",
        "X / Y",
        _quotient,
        lambda d, x, y, out: d / y,
        lambda d, x, y, out: -d * out / y,
        reads=("Out",),
    ),
    _Row(
        "elementwise_max",
        "max(X, Y)",
        take_greater,
        lambda d, x, y: d * (x > y),
        lambda d, x, y: d * (x <= y),
    ),
    _Row(
        "elementwise_min", "min(X, Y)", take_less, lambda d, x, y: d * (x < y), lambda d, x, y: d * (x >= y)
    ),
    _Row(
        "elementwise_pow",
        "X ^ Y",
        power,
        lambda d, x, y: d * y * power(x, y - 1),
        lambda d, x, y: d * np.log(x) * power(x, y),
        turns=True,
    ),
    _Row("elementwise_mod", "the remainder of X / Y", _remainder, turns=True),
    _Row("elementwise_floordiv", "X / Y without its fraction", _floor_quotient, turns=True),
]


#: Operators that Fluid computes of (Y, X) where X has fewer dims; their gradients are those of (X, Y).
TURNED: Final = frozenset(row.type for row in _ROWS if row.turns)


class _Elementwise(OpDef):
    """Arithmetic of two tensors."""

    inputs = ("X", "Y")
    attrs = {"axis": Int(-1), **MKLDNN, "x_data_format": String(""), "y_data_format": String("")}
    any_order = True
    by_row = True
    lod = "X"


def _make_bias_gradient(row: _Row, general: Kernel, keywords: Mapping[str, Any]) -> Kernel:
    """Return a kernel of the gradients of X ``(N, C)`` and of a bias Y ``(C,)``, with fewer checks."""
    wanted_x, wanted_y = keywords["wanted"]
    slope = row.d_y

    def run(d_out: Array, x: Array, y: Array) -> tuple[Array | None, Array | None]:
        shape = x.shape
        if len(shape) != 2 or d_out.shape != shape or y.shape != shape[1:]:
            pair: tuple[Array | None, Array | None] = general(d_out, x, y, **keywords)
            return pair
        d_y = sum_rows(slope(d_out, x, y)) if wanted_y else None  # type: ignore[misc]
        return (d_out if wanted_x else None), d_y

    return run


def _make_operator(row: _Row) -> type[OpDef]:
    """Return the operator of a row."""

    def infer(x: Spec, y: Spec, *, axis: int) -> Spec:
        return Spec(broadcast_shape(row.type, x.shape, y.shape, axis), x.dtype, kind=x.kind)

    def forward(x: Array, y: Array, *, axis: int) -> Array:
        check_same_dtype(row.type, x, [y])
        if row.turns and x.ndim < y.ndim and follows_fluid("elementwise_order"):
            return apply(lambda a, b: row.value(b, a), x, y, axis)
        return apply(row.value, x, y, axis)

    def rows(x: Array | SelectedRows, y: Array, *, axis: int) -> Array | SelectedRows:
        if isinstance(x, SelectedRows):  # a sparse gradient times one number, as clipping does
            return map_row_values(x, lambda values: values * y)
        return forward(x, y, axis=axis)

    def backward(
        d_out: Array, x: Array, y: Array, *more: Array, axis: int, wanted: tuple[bool, bool]
    ) -> tuple[Array | None, Array | None]:
        assert row.d_x is not None
        assert row.d_y is not None
        a, b = align(x, y, axis)
        d_x = sum_to(x.shape, row.d_x(d_out, a, b, *more), axis) if wanted[0] else None
        d_y = sum_to(y.shape, row.d_y(d_out, a, b, *more), axis) if wanted[1] else None
        return d_x, d_y

    def specialize(keywords: Mapping[str, Any], variables: Sequence[Any]) -> Function | None:
        x, y = variables
        if x is None or y is None or x.dtype != y.dtype or GRAD in x.name:  # a gradient may be sparse
            return None
        at_the_end = keywords["axis"] in (-1, len(x.shape) - len(y.shape)) and len(x.shape) >= len(y.shape)
        if not at_the_end or not isinstance(row.value, np.ufunc):
            return None
        if x.shape != y.shape and len(x.shape) > 2:  # for which ``apply`` has a faster way
            return None
        value, axis = row.value, keywords["axis"]
        if axis == -1:
            return value

        def compute(x: Array, y: Array) -> Array:
            """Compute with the axis of the actual dims, as a flat array may be fed for a variable with more
            dims.
            """
            return value(x, y) if x.ndim - y.ndim == axis else forward(x, y, axis=axis)

        return compute

    def specialize_grad(keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        x, y = variables[1:3]
        if x is not None and y is not None and row.views and len(x.shape) == 2 and len(y.shape) == 1:
            return None if keywords["axis"] == 0 else _make_bias_gradient(row, backward, keywords)
        alike = x is not None and y is not None and x.shape == y.shape and x.type == y.type
        if not alike:
            return None
        wanted_x, wanted_y = keywords["wanted"]

        def run(d_out: Array, x: Array, y: Array, *more: Array) -> tuple[Array | None, Array | None]:
            if not d_out.shape == x.shape == y.shape:
                return backward(d_out, x, y, *more, **keywords)
            d_x = row.d_x(d_out, x, y, *more) if wanted_x else None  # type: ignore[misc]
            d_y = row.d_y(d_out, x, y, *more) if wanted_y else None  # type: ignore[misc]
            return d_x, d_y

        return run

    takes_rows = row.value is np.multiply
    body: dict[str, Any] = {
        "__doc__": f"``Out = {row.formula}``.",
        "__module__": __name__,
        "type": row.type,
        "infer": staticmethod(infer),
        "forward": staticmethod(rows if takes_rows else forward),
        "keeps_rows": takes_rows,
        "keeps_dtype": row.d_x is not None,
        "specialize": staticmethod(specialize),
        "make_overwriting_kernel": staticmethod(lambda keywords: make_binary(row.value, keywords["axis"])),
    }
    if row.d_x is not None:
        grads = ("X@GRAD", "Y@GRAD")
        linear = ("X", "Y") if row.views else ()
        body["gradient"] = Gradient(
            "Out@GRAD", "X", "Y", *row.reads, outputs=grads, lod=OWN, views=row.views, shapes_of=linear
        )
        body["backward"] = staticmethod(backward)
        body["specialize_grad"] = staticmethod(specialize_grad)
    return type(row.type.removeprefix("elementwise_").title(), (_Elementwise,), body)


for _row in _ROWS:
    register(_make_operator(_row))
