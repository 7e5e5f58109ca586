"""Norms and distances: l1_norm, squared_l2_norm, norm, p_norm, dist, squared_l2_distance, cos_sim."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    REQUIRED,
    Array,
    Attrs,
    Bool,
    Float,
    Gradient,
    Int,
    OpDef,
    Spec,
    register,
    spares_first,
)
from paddlelike.ops.extremes import sign
from paddlelike.ops.kernels.broadcasting import broadcast_shape, sum_to
from paddlelike.ops.later import keep_attrs, register_kernel
from paddlelike.ops.operands import can_be_equal, count_elements, normalize_axis, one_element


@register
class SquaredL2Norm(OpDef):
    """``Out``, of shape (1,), is the sum of the squares of X."""

    type = "squared_l2_norm"
    gradient = Gradient("X", "Out@GRAD")

    infer = one_element()

    @staticmethod
    def forward(x: Array) -> Array:
        flat = x.reshape(-1)
        return np.dot(flat, flat).reshape(1)

    @staticmethod
    def backward(x: Array, d_out: Array) -> Array:
        return x * (2 * d_out.reshape(()))


@register
class L1Norm(OpDef):
    """``Out``, of shape (1,), is the sum of the absolute values of X."""

    type = "l1_norm"
    gradient = Gradient("X", "Out@GRAD")

    infer = one_element()

    @staticmethod
    def forward(x: Array) -> Array:
        return np.add.reduce(np.abs(x).reshape(-1), keepdims=True)

    @staticmethod
    def backward(x: Array, d_out: Array) -> Array:
        return sign(x) * d_out.reshape(())


@register
class Norm(OpDef):
    """``Out = X / Norm`` with ``Norm = sqrt(sum(X^2) + epsilon)`` along ``axis``, which stays as 1 in
    Norm.
    """

    type = "norm"
    by_row = spares_first("axis")
    outputs = ("Norm", "Out")
    attrs = {"axis": Int(REQUIRED), "epsilon": Float(1e-10)}
    gradient = Gradient("X", "Norm", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, axis: int) -> tuple[Spec, Spec]:
        kept = list(x.shape)
        kept[normalize_axis("norm", axis, len(kept))] = 1
        return Spec(tuple(kept), x.dtype), Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, axis: int, epsilon: float) -> tuple[Array, Array]:
        norm = np.add.reduce(x * x, axis=axis, keepdims=True)
        norm += epsilon
        np.sqrt(norm, out=norm)
        return norm, x / norm

    @staticmethod
    def backward(x: Array, norm: Array, d_out: Array, *, axis: int) -> Array:
        out = x / norm
        return (d_out - out * np.add.reduce(d_out * out, axis=axis, keepdims=True)) / norm


class PNormAttrs(Attrs):
    """Attributes of p_norm."""

    porder: float = Float(2.0)
    axis: int = Int(-1)
    epsilon: float = Float(1e-12)
    keepdim: bool = Bool(False)


@register
class PNorm(OpDef):
    """``Out = sum(|X|^porder)^(1 / porder)`` along ``axis``; epsilon keeps the gradient finite at 0."""

    type = "p_norm"
    attrs = PNormAttrs.table()
    gradient = Gradient("X", "Out", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, attrs: PNormAttrs) -> Spec:
        axis = normalize_axis("p_norm", attrs.axis, len(x.shape))
        if not 0 < attrs.porder < math.inf:
            raise ShapeError(f"p_norm: porder is {attrs.porder}, expected a number above 0, not infinite")
        kept = (1,) if attrs.keepdim else ()
        return Spec(x.shape[:axis] + kept + x.shape[axis + 1 :] or (1,), x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: PNormAttrs) -> Array:
        powers: Array = x * x if attrs.porder == 2 else np.abs(x) ** attrs.porder
        total = powers.sum(axis=attrs.axis, keepdims=attrs.keepdim or x.ndim == 1)
        return np.sqrt(total) if attrs.porder == 2 else total ** (1 / attrs.porder)

    @staticmethod
    def backward(x: Array, out: Array, d_out: Array, *, attrs: PNormAttrs) -> Array:
        kept = list(x.shape)
        kept[attrs.axis] = 1
        return _find_norm_slope(x, out.reshape(kept), attrs) * d_out.reshape(kept)


def _find_norm_slope(x: Array, out: Array, attrs: PNormAttrs) -> Array:
    """Return the derivative of a norm by X; ``out`` has the dims of X."""
    slope = x if attrs.porder == 2 else np.sign(x) * np.abs(x) ** (attrs.porder - 1)
    return slope / (out ** (attrs.porder - 1) + attrs.epsilon)


@register
class Dist(OpDef):
    """``Out``, of shape (1,), is the p-norm of ``X - Y``, broadcast as in numpy.

    p = 0 counts the elements that are not 0; p = inf and -inf take the greatest and the least absolute value.
    """

    type = "dist"
    inputs = ("X", "Y")
    attrs = {"p": Float(2.0)}
    gradient = Gradient("X", "Y", "Out", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        broadcast_shape("dist", x.shape, y.shape, -1)
        return Spec((1,), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array, *, p: float) -> Array:
        return np.linalg.norm((x - y).reshape(-1), p).reshape(1).astype(x.dtype, copy=False)

    @staticmethod
    def backward(x: Array, y: Array, out: Array, d_out: Array, *, p: float) -> tuple[Array, Array]:
        difference = x - y
        if p == 0:
            slope = np.zeros_like(difference)
        elif math.isinf(p):
            slope = np.sign(difference) * (np.abs(difference) == out)
        else:
            slope = np.sign(difference) * np.abs(difference / _not_0(out)) ** (p - 1)
        slope *= d_out.reshape(())
        return sum_to(x.shape, slope, -1), sum_to(y.shape, -slope, -1)


def _not_0(x: Array) -> Array:
    """Return X with 0 replaced by 1."""
    return np.where(x == 0, np.ones_like(x), x)


def _flatten_rows(x: Array) -> Array:
    """Return a matrix with the rows of ``x``."""
    return x.reshape(len(x), math.prod(x.shape[1:]))


@register
class SquaredL2Distance(OpDef):
    """``Out[n] = sum((X[n] - Y[n])^2)``, (N, 1); the first dim of Y may be 1.

    ``sub_result`` is ``X - Y`` as a matrix ``(N, D)``.
    """

    type = "squared_l2_distance"
    until = "1"
    by_row = True
    inputs = ("X", "Y")
    outputs = ("sub_result", "Out")
    lod = {"Out": "X"}
    gradient = Gradient("sub_result", "X", "Y", "Out@GRAD", outputs=("X@GRAD", "Y@GRAD"))

    @staticmethod
    def infer(x: Spec, y: Spec) -> tuple[Spec, Spec]:
        columns = count_elements(x.shape[1:]), count_elements(y.shape[1:])
        fits = (
            len(x.shape) == len(y.shape) > 1
            and can_be_equal(*columns)
            and (y.shape[0] == 1 or can_be_equal(x.shape[0], y.shape[0]))
        )
        if not fits:
            raise ShapeError(
                f"squared_l2_distance: X has shape {x.shape}, Y {y.shape}; expected equal shapes of "
                "2 dims or more, the first dim of Y may be 1"
            )
        return Spec((x.shape[0], columns[0]), x.dtype, 0), Spec((x.shape[0], 1), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> tuple[Array, Array]:
        difference = _flatten_rows(x) - _flatten_rows(y)
        return difference, np.add.reduce(difference * difference, axis=1, keepdims=True)

    @staticmethod
    def backward(sub_result: Array, x: Array, y: Array, d_out: Array) -> tuple[Array, Array]:
        d_x = sub_result * (2 * d_out)
        d_y = sum_to((len(y), d_x.shape[1]), d_x, -1)
        return d_x.reshape(x.shape), np.negative(d_y).reshape(y.shape)


@register
class CosSim(OpDef):
    """``Out[n] = X[n] Y[n] / (XNorm[n] YNorm[n])``, (N, 1); the first dim of Y may be 1.

    Squared norms below 1e-8 count as 1e-8, so that a row of zeros has the similarity 0.
    """

    type = "cos_sim"
    until = "1"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Y")
    outputs = ("Out", "XNorm", "YNorm")
    attrs = {"@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Bool(True)}
    lod = {"Out": "X"}
    gradient = Gradient("X", "Y", "Out", "XNorm", "YNorm", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, y: Spec) -> tuple[Spec, Spec, Spec]:
        fits = (
            len(x.shape) == len(y.shape) > 1
            and all(map(can_be_equal, x.shape[1:], y.shape[1:]))
            and (y.shape[0] == 1 or can_be_equal(x.shape[0], y.shape[0]))
        )
        if not fits:
            raise ShapeError(
                f"cos_sim: X has shape {x.shape}, Y {y.shape}; expected equal shapes of 2 dims or "
                "more, the first dim of Y may be 1"
            )
        norm = Spec((x.shape[0], 1), x.dtype)
        return norm, norm._replace(lod_level=NO_LOD), Spec((y.shape[0], 1), x.dtype, NO_LOD)

    @staticmethod
    def forward(x: Array, y: Array) -> tuple[Array, Array, Array]:
        a, b = _flatten_rows(x), _flatten_rows(y)
        x_norm, y_norm = _row_norms(a), _row_norms(b)
        out = np.add.reduce(a * b, axis=1, keepdims=True)
        out /= x_norm * y_norm
        return out, x_norm, y_norm

    @staticmethod
    def backward(
        x: Array, y: Array, out: Array, x_norm: Array, y_norm: Array, d_out: Array
    ) -> tuple[Array, Array]:
        a, b = _flatten_rows(x) / x_norm, _flatten_rows(y) / y_norm
        d_x = (b - out * a) * (d_out / x_norm)
        d_y = sum_to(b.shape, (a - out * b) * (d_out / y_norm), -1)
        return d_x.reshape(x.shape), d_y.reshape(y.shape)


def _row_norms(x: Array) -> Array:
    squares = np.add.reduce(x * x, axis=1, keepdims=True)
    return np.sqrt(np.fmax(squares, 1e-8, out=squares), out=squares)  # as in Fluid, 1e-8 replaces NaN


class NormAttrs(PNormAttrs):
    """Attributes of the later p_norm."""

    asvector: bool = Bool(False)


@register_kernel("p_norm", "X -> Out", NormAttrs.table(), changed=True, make_grad=classmethod(keep_attrs))
def _p_norm(x: Array, *, attrs: NormAttrs) -> Array:
    """The p-norm along an axis; with ``asvector``, of all elements."""
    axis = 0 if attrs.asvector else attrs.axis
    rows = x.reshape(-1) if attrs.asvector else x
    out = np.asarray(np.linalg.norm(rows, attrs.porder, axis), x.dtype)
    if not attrs.keepdim:
        return out
    return out.reshape((1,) * x.ndim) if attrs.asvector else np.expand_dims(out, axis)


@register_kernel("p_norm_grad", "X Out Out@GRAD -> X@GRAD", NormAttrs.table(), changed=True)
def _p_norm_grad(x: Array, out: Array, d_out: Array, *, attrs: NormAttrs) -> Array:
    """The gradient of ``p_norm``: of an infinite one at the elements that it takes, of p = 0 it is 0."""
    kept = [1 if attrs.asvector or axis == attrs.axis % x.ndim else dim for axis, dim in enumerate(x.shape)]
    out, d_out = out.reshape(kept), d_out.reshape(kept)
    if attrs.porder and math.isfinite(attrs.porder):
        return _find_norm_slope(x, out, attrs) * d_out
    return np.sign(x) * (np.abs(x) == out) * d_out * x.dtype.type(attrs.porder != 0)
