"""spectral_norm: a weight divided by its largest singular value."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.operands import can_be_equal, normalize_axis


@register
class SpectralNorm(OpDef):
    """``Out = Weight / (u^T W v)``, with ``W`` the weight as a matrix whose rows run along ``dim``.

    ``power_iters`` steps of the power iteration compute ``u`` and ``v`` from U and V, which do not change.
    The gradient treats ``u`` and ``v`` as constants. Paddle 1.8's gradient is right only where the gradient
    of Out is 1: see ``fluid.quirks()``. Miyato et al., 2018.
    """

    type = "spectral_norm"
    inputs = ("Weight", "U", "V")
    lod = "Weight"
    attrs = {"dim": Int(0), "power_iters": Int(1), "eps": Float(1e-12)}
    gradient = Gradient("Weight", "U", "V", "Out@GRAD", outputs=("Weight@GRAD",))

    @staticmethod
    def infer(weight: Spec, u: Spec, v: Spec, *, dim: int) -> Spec:
        normalize_axis("spectral_norm", dim, len(weight.shape), name="dim")
        rows = weight.shape[dim]
        columns = -1 if min(weight.shape) < 0 else math.prod(weight.shape) // (rows or 1)
        if not all(len(s.shape) == 1 and can_be_equal(s.shape[0], n) for s, n in ((u, rows), (v, columns))):
            raise ShapeError(
                f"spectral_norm: U has shape {u.shape} and V {v.shape}; Weight of shape {weight.shape} "
                f"along dim {dim} needs ({rows},) and ({columns},)"
            )
        return Spec(weight.shape, weight.dtype)

    @staticmethod
    def forward(weight: Array, u: Array, v: Array, *, dim: int, power_iters: int, eps: float) -> Array:
        matrix = _matrix(weight, dim)
        u, v = _iterate(matrix, u, v, power_iters, eps)
        return weight / (u @ matrix @ v)

    @staticmethod
    def backward(
        weight: Array, u: Array, v: Array, d_out: Array, *, dim: int, power_iters: int, eps: float
    ) -> Array:
        matrix = _matrix(weight, dim)
        u, v = _iterate(matrix, u, v, power_iters, eps)
        sigma = u @ matrix @ v
        moved = np.moveaxis(weight, dim, 0)
        along = np.moveaxis(np.outer(u, v).reshape(moved.shape), 0, dim)
        if follows_fluid("spectral_norm_gradient"):
            return d_out * (1 - weight.sum() / sigma * along) / sigma
        d_sigma = (d_out * weight).sum() / sigma
        return (d_out - d_sigma * along) / sigma


def _matrix(weight: Array, dim: int) -> Array:
    return np.moveaxis(weight, dim, 0).reshape(weight.shape[dim], -1)


def _iterate(matrix: Array, u: Array, v: Array, steps: int, eps: float) -> tuple[Array, Array]:
    for _ in range(steps):
        v = u @ matrix
        v /= np.sqrt(v @ v) + eps
        u = matrix @ v
        u /= np.sqrt(u @ u) + eps
    return u, v
