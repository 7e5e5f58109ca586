"""Products of matrices: mul, matmul."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Attrs,
    Bool,
    Float,
    Floats,
    Gradient,
    Int,
    Ints,
    Kernel,
    OpDef,
    Shapes,
    Spec,
    register,
)
from paddlelike.ops.kernels.linalg import SHORT, multiply
from paddlelike.ops.operands import MKLDNN, can_be_equal, check_same_dtype, count_elements

Shape = tuple[int, ...]
Wanted = tuple[bool, bool]
Pair = tuple[Array | None, Array | None]

_LARGE: Final = 1 << 16  # elements of a gradient in which columns of zeros are looked for
_PROBES: Final = 64  # rows that are looked at first


@register
class Mul(OpDef):
    """``Out = X Y`` of X and Y taken as matrices.

    The first ``x_num_col_dims`` dims of X are the rows of its matrix, the others the columns; Y likewise.
    Out has the dims of X's rows and of Y's columns.
    """

    type = "mul"
    keeps_dtype = True
    by_row = True
    inputs = ("X", "Y")
    attrs = {
        **MKLDNN,
        "x_num_col_dims": Int(1),
        "y_num_col_dims": Int(1),
        "scale_x": Float(1.0),
        "scale_y": Floats([1.0]),
        "scale_out": Float(1.0),
        "force_fp32_output": Bool(False),
    }
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD", lod_in_run=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec, *, x_num_col_dims: int, y_num_col_dims: int) -> Spec:
        for slot, spec, cut in (("X", x, x_num_col_dims), ("Y", y, y_num_col_dims)):
            if not 0 < cut < len(spec.shape):
                raise ShapeError(
                    f"mul: {slot.lower()}_num_col_dims is {cut} and {slot} has shape {spec.shape}; "
                    f"it must be 1 to {len(spec.shape) - 1}",
                    hint="reshape it to a matrix first" if len(spec.shape) < 2 else None,
                )
        columns, rows = count_elements(x.shape[x_num_col_dims:]), count_elements(y.shape[:y_num_col_dims])
        if not can_be_equal(columns, rows):
            raise ShapeError(
                f"mul: X has {columns} columns, Y has {rows} rows; they must be equal (shapes {x.shape} and "
                f"{y.shape}, x_num_col_dims {x_num_col_dims}, y_num_col_dims {y_num_col_dims})"
            )
        return Spec(x.shape[:x_num_col_dims] + y.shape[y_num_col_dims:], x.dtype)

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return math.prod(shapes["Out"]) * math.prod(shapes["Y"][: attrs["y_num_col_dims"]])

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        plain = all(v is not None and len(v.shape) == 2 and v.type == VarType.LOD_TENSOR for v in variables)
        plain = plain and len({v.dtype for v in variables}) == 1
        return _multiply_matrices if plain and set(keywords.values()) == {1} else None

    @classmethod
    def specialize_grad(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        if any(v is None or len(v.shape) != 2 for v in variables[:2]):
            return None
        return _make_back(keywords)

    @staticmethod
    def forward(x: Array, y: Array, *, x_num_col_dims: int, y_num_col_dims: int) -> Array:
        check_same_dtype("mul", x, [y])
        if x.ndim == y.ndim == 2:
            return multiply(x, y)
        out = multiply(_flatten(x, x_num_col_dims), _flatten(y, y_num_col_dims))
        return out.reshape(x.shape[:x_num_col_dims] + y.shape[y_num_col_dims:])

    @staticmethod
    def backward(
        x: Array, y: Array, d_out: Array, *, x_num_col_dims: int, y_num_col_dims: int, wanted: Wanted
    ) -> Pair:
        a, b = _flatten(x, x_num_col_dims), _flatten(y, y_num_col_dims)
        d_a, d_b = _multiply_matrices_back(a, b, d_out.reshape(a.shape[0], b.shape[1]), wanted)
        return None if d_a is None else d_a.reshape(x.shape), None if d_b is None else d_b.reshape(y.shape)


def _multiply_matrices(x: Array, y: Array) -> Array:
    if not x.ndim == y.ndim == 2:
        return Mul.forward(x, y, x_num_col_dims=1, y_num_col_dims=1)
    return x.dot(y) if x.size * y.shape[1] < SHORT else multiply(x, y)


def _make_back(keywords: Mapping[str, Any]) -> Kernel:
    """Return a kernel for the gradients of two matrices, with fewer checks."""
    wanted = wanted_x, wanted_y = keywords["wanted"]

    def run(x: Array, y: Array, d_out: Array) -> Pair:
        shape = d_out.shape
        if not x.ndim == y.ndim == 2 or shape != (len(x), y.shape[1]):
            pair: Pair = Mul.backward(x, y, d_out, **keywords)
            return pair
        if d_out.size * x.shape[1] >= SHORT:
            return _multiply_matrices_back(x, y, d_out, wanted)
        return d_out.dot(y.T) if wanted_x else None, x.T.dot(d_out) if wanted_y else None

    return run


def _multiply_matrices_back(x: Array, y: Array, d_out: Array, wanted: Wanted) -> Pair:
    """Return the gradients of two matrices from the gradient of their product, whose leading zero
    columns are skipped.

    Three of the four gates of Fluid's LSTM get no gradient (see :mod:`paddlelike.ops.recurrent.lstm`).
    """
    zeros = _count_zero_columns(d_out) if d_out.size >= _LARGE else 0
    if not zeros:
        return multiply(d_out, y.T) if wanted[0] else None, multiply(x.T, d_out) if wanted[1] else None
    rest, d_y = d_out[:, zeros:], None
    if wanted[1]:
        d_y = np.zeros((x.shape[1], d_out.shape[1]), np.result_type(x, d_out))
        d_y[:, zeros:] = multiply(x.T, rest)
    return multiply(rest, y[:, zeros:].T) if wanted[0] else None, d_y


def _count_zero_columns(matrix: Array) -> int:
    """Return the number of leading zero columns, or 0 if skipping them does not pay."""
    if matrix[0, 0] != 0:
        return 0
    count = int(matrix[:: 1 + len(matrix) // _PROBES].any(axis=0).argmax())
    if count < matrix.shape[1] // 4 or matrix[:, :count].any():
        return 0
    return count


def _flatten(x: Array, cut: int) -> Array:
    """Return X as a matrix whose rows are its first ``cut`` dims."""
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:cut]), math.prod(x.shape[cut:]))


class MatmulAttrs(Attrs):
    """Attributes of matmul."""

    transpose_X: bool = Bool(False)  # noqa: N815  (Paddle's names)
    transpose_Y: bool = Bool(False)  # noqa: N815
    alpha: float = Float(1.0)
    head_number: int = Int(1)


@register
class Matmul(OpDef):
    """``Out = alpha X Y`` of matrices, or of stacks of matrices with equal dims in front.

    A single matrix on one side multiplies every matrix of the other. X with one dim is a row, Y with one dim
    a column; Out lacks that dim. ``transpose_X`` and ``transpose_Y`` act first.
    """

    type = "matmul"
    inputs = ("X", "Y")
    fluid_order = (
        "transpose_X transpose_Y alpha use_mkldnn fused_reshape_Out fused_transpose_Out use_quantizer "
        "Scale_x Scale_y Scale_out force_fp32_output head_number"
    )
    attrs = MatmulAttrs.table(
        Scale_x=Float(1.0),
        Scale_y=Float(1.0),
        Scale_out=Float(1.0),
        use_quantizer=Bool(False),
        force_fp32_output=Bool(False),
        fused_reshape_Out=Ints([]),
        fused_transpose_Out=Ints([]),
        **MKLDNN,
    )
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, y: Spec, *, attrs: MatmulAttrs) -> Spec:
        if attrs.head_number > 1:
            raise UnsupportedError(f"matmul: head_number is {attrs.head_number}, only 1 is known here")
        return Spec(find_matmul_shape(x.shape, y.shape, attrs.transpose_X, attrs.transpose_Y), x.dtype)

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return (
            math.prod(shapes["Out"])
            * shapes["X"][-2 if attrs["transpose_X"] and len(shapes["X"]) > 1 else -1]
        )

    @staticmethod
    def forward(x: Array, y: Array, *, attrs: MatmulAttrs) -> Array:
        check_same_dtype("matmul", x, [y])
        a, b = _matrices(x, y)
        out = _multiply(_transpose(a, attrs.transpose_X), _transpose(b, attrs.transpose_Y))
        if attrs.alpha != 1:
            out *= attrs.alpha
        if x.ndim == 1 or y.ndim == 1 or x.ndim < a.ndim:
            out = out.reshape(find_matmul_shape(x.shape, y.shape, attrs.transpose_X, attrs.transpose_Y))
        return out

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array, *, attrs: MatmulAttrs, wanted: Wanted) -> Pair:
        a, b = _matrices(x, y)
        left, right = _transpose(a, attrs.transpose_X), _transpose(b, attrs.transpose_Y)
        stack = a.shape[:-2] if a.ndim >= b.ndim else b.shape[:-2]
        d = d_out.reshape(*stack, left.shape[-2], right.shape[-1])
        d_x = d_y = None
        if wanted[0]:
            pair = (right, _transpose(d)) if attrs.transpose_X else (d, _transpose(right))
            d_x = _gradient(*pair, like=x, alpha=attrs.alpha)
        if wanted[1]:
            pair = (_transpose(d), left) if attrs.transpose_Y else (_transpose(left), d)
            d_y = _gradient(*pair, like=y, alpha=attrs.alpha)
        return d_x, d_y


def find_matmul_shape(x: Shape, y: Shape, transpose_x: bool, transpose_y: bool) -> Shape:
    """Return the shape of Out. Raises ShapeError when X and Y do not fit."""
    a, b = x if len(x) > 1 else (1, *x), y if len(y) > 1 else (*y, 1)
    rows, inner = (a[-1], a[-2]) if transpose_x else (a[-2], a[-1])
    inner_y, columns = (b[-1], b[-2]) if transpose_y else (b[-2], b[-1])
    stacks_fit = len(a) == 2 or len(b) == 2 or can_be_equal(count_elements(a[:-2]), count_elements(b[:-2]))
    if not stacks_fit or not can_be_equal(inner, inner_y):
        what = (
            f"X has {inner} columns and Y {inner_y} rows, they must be equal"
            if stacks_fit
            else f"X is a stack of {a[:-2]} matrices, Y one of {b[:-2]}; the stacks must be equal, "
            "or one side a single matrix"
        )
        raise ShapeError(
            f"matmul: X has shape {x}{' (transposed)' * transpose_x}, "
            f"Y {y}{' (transposed)' * transpose_y}: {what}"
        )
    shape = (*(a if len(a) > 2 else b)[:-2], rows, columns)
    if len(x) == 1 and rows == 1:
        shape = (*shape[:-2], columns)
    if len(y) == 1 and columns == 1:
        shape = shape[:-1]
    return shape or (1,)


def _matrices(x: Array, y: Array) -> tuple[Array, Array]:
    """Return X and Y as matrices, or as stacks with the same leading dims."""
    a = x if x.ndim > 1 else x.reshape(1, -1)
    b = y if y.ndim > 1 else y.reshape(-1, 1)
    if a.ndim > 2 and b.ndim > 2 and a.ndim != b.ndim:  # the same matrices in other dims
        b = b.reshape(*a.shape[:-2], *b.shape[-2:])
    return a, b


def _transpose(matrices: Array, turn: bool = True) -> Array:
    return matrices.swapaxes(-1, -2) if turn else matrices


def _multiply(a: Array, b: Array) -> Array:
    """Return ``a b``. A stack times a single matrix is one product for BLAS instead of many."""
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous:
        return multiply(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    return multiply(a, b)


def _gradient(a: Array, b: Array, *, like: Array, alpha: float) -> Array:
    """Return ``alpha a b``, summed over the stack if ``like`` is a single matrix."""
    if like.ndim > 2 or max(a.ndim, b.ndim) == 2:
        out = _multiply(a, b)
    else:  # sum over the stack of a[s] b[s]: the stack becomes part of the inner dim
        a, b = np.broadcast_arrays(a, b) if a.ndim != b.ndim else (a, b)
        inner = a.shape[-1] * math.prod(a.shape[:-2])
        rows = np.moveaxis(a, -2, -1).reshape(inner, a.shape[-2])
        out = multiply(rows.T, b.reshape(inner, b.shape[-1]))
    if alpha != 1:
        out *= alpha
    return out.reshape(like.shape)
