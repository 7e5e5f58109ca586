"""Comparison and logic: compare, logical, isfinite, allclose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Bool, Float, Int, OpDef, Spec, register
from paddlelike.ops.kernels.broadcasting import align, broadcast_shape
from paddlelike.ops.operands import can_be_equal, check_same_dtype

Relation = Callable[[Array, Array], Array]


def _equal(x: Array, y: Array) -> Array:
    """Compare real numbers as equal when they differ by less than 1e-8, as Paddle does."""
    near = x.dtype.kind == "f" and follows_fluid("equal_tolerance")
    return np.abs(x - y) < 1e-8 if near else np.equal(x, y)


def _not_equal(x: Array, y: Array) -> Array:
    return np.logical_not(_equal(x, y))


_COMPARE: Final[list[tuple[str, str, Relation]]] = [
    ("equal", "X = Y", _equal),
    ("not_equal", "X != Y", _not_equal),
    ("less_than", "X < Y", np.less),
    ("less_equal", "X <= Y", np.less_equal),
    ("greater_than", "X > Y", np.greater),
    ("greater_equal", "X >= Y", np.greater_equal),
]
_LOGICAL: Final[list[tuple[str, str, Relation]]] = [
    ("logical_and", "X and Y", np.logical_and),
    ("logical_or", "X or Y", np.logical_or),
    ("logical_xor", "either X or Y", np.logical_xor),
]
_CHECKS: Final[list[tuple[str, str, Callable[[Any], Any]]]] = [
    ("isfinite", "whether all elements of X are finite", lambda x: np.isfinite(x).all()),
    ("isinf", "whether some element of X is infinite", lambda x: np.isinf(x).any()),
    ("isnan", "whether some element of X is not a number", lambda x: np.isnan(x).any()),
]


def _make_comparison(name: str, formula: str, relation: Relation) -> type[OpDef]:
    def infer(x: Spec, y: Spec, *, axis: int) -> Spec:
        if broadcast_shape(name, x.shape, y.shape, axis) != x.shape and -1 not in (*x.shape, *y.shape):
            raise ShapeError(
                f"{name}: X has shape {x.shape}, Y {y.shape}; Y is broadcast over X, not X over Y",
                hint="exchange X and Y, and the relation with its opposite",
            )
        return Spec(x.shape, VarType.BOOL)

    def forward(x: Array, y: Array, *, axis: int) -> Array:
        check_same_dtype(name, x, [y])
        return relation(*align(x, y, axis))

    attrs = {"axis": Int(-1), "force_cpu": Bool(False)}
    return _infer_relation(name, formula, {"attrs": attrs, "infer": infer, "forward": forward})


def _make_connective(name: str, formula: str, relation: Relation) -> type[OpDef]:
    def infer(x: Spec, y: Spec) -> Spec:
        same = len(x.shape) == len(y.shape) and all(map(can_be_equal, x.shape, y.shape))
        if not same:
            raise ShapeError(f"{name}: X has shape {x.shape}, Y {y.shape}; they must be equal")
        return Spec(x.shape, VarType.BOOL)

    def forward(x: Array, y: Array) -> Array:
        return relation(x, y)

    return _infer_relation(name, formula, {"infer": infer, "forward": forward})


def _infer_relation(name: str, formula: str, body: dict[str, Any]) -> type[OpDef]:
    functions = {k: staticmethod(v) if callable(v) else v for k, v in body.items()}
    more = {"type": name, "inputs": ("X", "Y"), "lod": "X", "by_row": True, "__module__": __name__}
    more["__doc__"] = f"``Out``: whether ``{formula}``, element by element."
    return type(name.title().replace("_", ""), (OpDef,), more | functions)


def _make_test(name: str, meaning: str, ask: Callable[[Any], Any]) -> type[OpDef]:
    def infer(x: Spec) -> Spec:
        return Spec((1,), VarType.BOOL, kind=VarType.LOD_TENSOR)

    def forward(x: Array | SelectedRows) -> Array:
        return ask(x.held_array if isinstance(x, SelectedRows) else x).reshape(1)

    body = {"infer": staticmethod(infer), "forward": staticmethod(forward)}
    more = {"type": name, "__module__": __name__, "__doc__": f"``Out``, (1,): {meaning}."}
    if name == "isfinite":
        more["until"] = "1"
    return type(name.title(), (OpDef,), more | body)


for _row in _COMPARE:
    register(_make_comparison(*_row))
for _row in _LOGICAL:
    register(_make_connective(*_row))
for _question in _CHECKS:
    register(_make_test(*_question))


@register
class LogicalNot(OpDef):
    """``Out``: whether X is false, element by element."""

    type = "logical_not"
    by_row = True
    lod = "X"

    @staticmethod
    def infer(x: Spec) -> Spec:
        return Spec(x.shape, VarType.BOOL)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.logical_not(x)


@register
class EqualReduce(OpDef):
    """``Out``, (1,): whether all elements of X and Y, broadcast over X, are equal."""

    type = "equal_reduce"
    until = "1"
    inputs = ("X", "Y")
    attrs = {"axis": Int(-1)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, y: Spec, *, axis: int) -> Spec:
        broadcast_shape("equal_reduce", x.shape, y.shape, axis)
        return Spec((1,), VarType.BOOL)

    @staticmethod
    def forward(x: Array, y: Array, *, axis: int) -> Array:
        return _equal(*align(x, y, axis)).all().reshape(1)


@register
class Allclose(OpDef):
    """``Out``, (1,): whether ``|Input - Other| <= atol + rtol |Other|`` everywhere.

    As in Fluid, an infinity is not close to itself. NaN is close to NaN with ``equal_nan``.
    """

    type = "allclose"
    inputs = ("Input", "Other")
    attrs = {"rtol": Float(1e-5), "atol": Float(1e-8), "equal_nan": Bool(False)}

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        same = len(x.shape) == len(y.shape) and all(map(can_be_equal, x.shape, y.shape))
        if not same:
            raise ShapeError(f"allclose: Input has shape {x.shape}, Other {y.shape}; they must be equal")
        return Spec((1,), VarType.BOOL)

    @staticmethod
    def forward(x: Array, y: Array, *, rtol: float, atol: float, equal_nan: bool) -> Array:
        with np.errstate(invalid="ignore"):
            near = np.abs(x - y) <= atol + rtol * np.abs(y)
        return (near | (np.isnan(x) & np.isnan(y)) if equal_nan else near).all().reshape(1)
