# ruff: noqa: N803  (Alpha is Paddle's)
"""Products that are linear in both operands: bmm, addmm, dot, kron, cross, fsp, bilinear_tensor_product."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import OWN, Array, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.broadcasting import sum_to
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.operands import MKLDNN, can_be_equal, normalize_axis

Wanted = tuple[bool, bool]
Pair = tuple[Array | None, Array | None]


@register
class Bmm(OpDef):
    """``Out[b] = X[b] Y[b]`` of stacks ``(B, N, K)`` and ``(B, K, M)``."""

    type = "bmm"
    inputs = ("X", "Y")
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD", copies_attrs=False)

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        fits = len(x.shape) == len(y.shape) == 3 and all(
            can_be_equal(*dims) for dims in ((x.shape[0], y.shape[0]), (x.shape[2], y.shape[1]))
        )
        if not fits:
            raise ShapeError(f"bmm: X has shape {x.shape}, Y {y.shape}; expected (B, N, K) and (B, K, M)")
        return Spec((*x.shape[:2], y.shape[2]), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        return multiply(x, y)

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array, *, wanted: Wanted) -> Pair:
        d_x = multiply(d_out, y.swapaxes(1, 2)) if wanted[0] else None
        d_y = multiply(x.swapaxes(1, 2), d_out) if wanted[1] else None
        return d_x, d_y


@register
class Addmm(OpDef):
    """``Out = Beta Input + Alpha X Y``; dims of 1 of the matrix Input are broadcast."""

    type = "addmm"
    inputs = ("Input", "X", "Y")
    attrs = {**MKLDNN, "Alpha": Float(1.0), "Beta": Float(1.0)}
    lod = {"Out": "Input"}
    gradient = Gradient("Input", "X", "Y", "Out@GRAD", lod_in_run=OWN)

    @staticmethod
    def infer(term: Spec, x: Spec, y: Spec) -> Spec:
        fits = len(term.shape) == len(x.shape) == len(y.shape) == 2 and (
            can_be_equal(x.shape[1], y.shape[0])
            and (term.shape[0] == 1 or can_be_equal(term.shape[0], x.shape[0]))
            and (term.shape[1] == 1 or can_be_equal(term.shape[1], y.shape[1]))
        )
        if not fits:
            raise ShapeError(
                f"addmm: Input has shape {term.shape}, X {x.shape}, Y {y.shape}; expected (N, M), "
                "(N, K) and (K, M), dims of Input may be 1"
            )
        return Spec((x.shape[0], y.shape[1]), x.dtype)

    @staticmethod
    def forward(term: Array, x: Array, y: Array, *, Alpha: float, Beta: float) -> Array:
        out = x @ y
        out *= Alpha
        out += Beta * term
        return out

    @staticmethod
    def backward(
        term: Array, x: Array, y: Array, d_out: Array, *, Alpha: float, Beta: float
    ) -> tuple[Array, Array, Array]:
        d_product = d_out * Alpha
        return sum_to(term.shape, d_out * Beta, -1), d_product @ y.T, x.T @ d_product


@register
class Dot(OpDef):
    """``Out = sum(X * Y)`` along the last dim, kept as 1, of vectors or of the rows of matrices."""

    type = "dot"
    inputs = ("X", "Y")
    gradient = Gradient("X", "Y", "Out@GRAD", lod_in_run=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        same = len(x.shape) == len(y.shape) and all(map(can_be_equal, x.shape, y.shape))
        if not same or len(x.shape) not in (1, 2):
            raise ShapeError(
                f"dot: X has shape {x.shape}, Y {y.shape}; expected two equal shapes of 1 or 2 dims"
            )
        return Spec((*x.shape[:-1], 1), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        return np.matmul(x[..., None, :], y[..., :, None])[..., 0]

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array, *, wanted: Wanted) -> Pair:
        d_out = d_out.reshape(*x.shape[:-1], 1)  # without the last dim in Paddle 2
        return d_out * y if wanted[0] else None, d_out * x if wanted[1] else None


@register
class Kron(OpDef):
    """The Kronecker product: every element of X times the whole of Y; dim k has length ``X_k Y_k``."""

    type = "kron"
    inputs = ("X", "Y")
    gradient = Gradient("X", "Y", "Out@GRAD", lod_in_run="")

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        rank = max(len(x.shape), len(y.shape))
        pairs = zip(_extend_dims(x.shape, rank), _extend_dims(y.shape, rank), strict=True)
        return Spec(tuple(a * b if a >= 0 and b >= 0 else -1 for a, b in pairs), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        return np.kron(x, y)

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array) -> tuple[Array, Array]:
        rank = d_out.ndim
        a, b = _extend_dims(x.shape, rank), _extend_dims(y.shape, rank)
        pairs = [dim for pair in zip(a, b, strict=True) for dim in pair]
        order = [*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)]
        each = d_out.reshape(pairs).transpose(order).reshape(x.size, y.size)
        return (each @ y.reshape(-1)).reshape(x.shape), (x.reshape(-1) @ each).reshape(y.shape)


def _extend_dims(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


_FIRST_OF_3 = 9  # Paddle's mark for: the first dim of length 3


@register
class Cross(OpDef):
    """``Out = X x Y`` of vectors of length 3 along ``dim`` (default 9: the first dim of length 3)."""

    type = "cross"
    inputs = ("X", "Y")
    attrs = {"dim": Int(_FIRST_OF_3)}
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD", lod_in_run="")

    @staticmethod
    def infer(x: Spec, y: Spec, *, dim: int) -> Spec:
        same = len(x.shape) == len(y.shape) and all(map(can_be_equal, x.shape, y.shape))
        if not same:
            raise ShapeError(f"cross: X has shape {x.shape}, Y {y.shape}; they must be equal")
        axis = _vectors(x.shape, dim) if -1 not in x.shape or dim != _FIRST_OF_3 else None
        if axis is not None and x.shape[axis] not in (3, -1):
            raise ShapeError(f"cross: dim {dim} of X {x.shape} is {x.shape[axis]}, expected 3")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, y: Array, *, dim: int) -> Array:
        return np.cross(x, y, axis=_vectors(x.shape, dim))

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array, *, dim: int) -> tuple[Array, Array]:
        axis = _vectors(x.shape, dim)
        return np.cross(y, d_out, axis=axis), np.cross(d_out, x, axis=axis)


def _vectors(shape: tuple[int, ...], dim: int) -> int:
    if dim != _FIRST_OF_3:
        return normalize_axis("cross", dim, len(shape), name="dim")
    if 3 not in shape:
        raise ShapeError(f"cross: no dim of X {shape} is 3", hint="put x, y, z into the last dim")
    return shape.index(3)


@register
class Fsp(OpDef):
    """``Out[n] = X[n] Y[n]^T / (H W)`` with X ``(N, C, H, W)``, Y ``(N, D, H, W)`` as ``(C, H W)``.

    Yim et al., A Gift from Knowledge Distillation, 2017.
    """

    type = "fsp"
    inputs = ("X", "Y")
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD", lod_in_run="")

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        fits = len(x.shape) == len(y.shape) == 4 and all(
            can_be_equal(x.shape[i], y.shape[i]) for i in (0, 2, 3)
        )
        if not fits:
            raise ShapeError(
                f"fsp: X has shape {x.shape}, Y {y.shape}; expected (N, C, H, W) and (N, D, H, W)"
            )
        return Spec((x.shape[0], x.shape[1], y.shape[1]), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        a, b = _pixels(x), _pixels(y)
        out = a @ b.swapaxes(1, 2)
        out /= a.shape[2]
        return out

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array) -> tuple[Array, Array]:
        a, b = _pixels(x), _pixels(y)
        d = d_out / a.shape[2]
        return (d @ b).reshape(x.shape), (d.swapaxes(1, 2) @ a).reshape(y.shape)


def _pixels(x: Array) -> Array:
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


@register
class BilinearTensorProduct(OpDef):
    """``Out[n, k] = X[n]^T Weight[k] Y[n] + Bias[0, k]``; Weight is ``(K, I, J)``."""

    type = "bilinear_tensor_product"
    by_row = True
    inputs = ("X", "Y", "Weight", "Bias?")
    lod = "X"
    gradient = Gradient("X", "Y", "Weight", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, y: Spec, weight: Spec, bias: Spec | None) -> Spec:
        fits = (
            len(x.shape) == len(y.shape) == 2
            and len(weight.shape) == 3
            and can_be_equal(x.shape[0], y.shape[0])
            and can_be_equal(x.shape[1], weight.shape[1])
            and can_be_equal(y.shape[1], weight.shape[2])
            and (bias is None or bias.shape == (1, weight.shape[0]))
        )
        if not fits:
            raise ShapeError(
                f"bilinear_tensor_product: X has shape {x.shape}, Y {y.shape}, Weight "
                f"{weight.shape}, Bias {None if bias is None else bias.shape}; "
                "expected (N, I), (N, J), (K, I, J) and (1, K)"
            )
        return Spec((x.shape[0], weight.shape[0]), x.dtype)

    @staticmethod
    def forward(x: Array, y: Array, weight: Array, bias: Array | None) -> Array:
        out = np.matmul(np.tensordot(x, weight, (1, 1)), y[:, :, None])[..., 0]
        if bias is not None:
            out += bias
        return out

    @staticmethod
    def backward(x: Array, y: Array, weight: Array, d_out: Array) -> tuple[Array, Array, Array, Array]:
        by_x = d_out[:, :, None] * x[:, None, :]  # (N, K, I)
        by_y = d_out[:, :, None] * y[:, None, :]  # (N, K, J)
        return (
            np.tensordot(by_y, weight, ((1, 2), (0, 2))),
            np.tensordot(by_x, weight, ((1, 2), (0, 1))),
            np.tensordot(by_x, y, (0, 0)),
            np.add.reduce(d_out, axis=0, keepdims=True),
        )
