"""shuffle_batch: the rows of a batch in random order."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework.opdef import OWN, Array, Context, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.engines import shuffle


@register
class ShuffleBatch(OpDef):
    """``Out[ShuffleIdx[i]]``: row i of X; all dims of X except the last count as rows.

    Seed determines the order; while Seed has no value, ``startup_seed`` does. SeedOut, int64 of shape [1], is
    the seed of the next run; it is usually the same variable as Seed.
    """

    type = "shuffle_batch"
    inputs = ("X", "Seed")
    outputs = ("Out", "ShuffleIdx", "SeedOut")
    attrs = {"startup_seed": Int(0)}
    lod = {"Out": "X", "SeedOut": "Seed"}
    gradient = Gradient("ShuffleIdx", "Out@GRAD", outputs=("X@GRAD",), lod=OWN, lod_in_run="")

    @staticmethod
    def infer(x: Spec, seed: Spec) -> tuple[Spec, Spec, Spec]:
        declared = seed.shape or (0,)  # as Fluid declares it
        return Spec(x.shape, x.dtype), Spec((-1,), VarType.INT64), Spec(declared, VarType.INT64)

    @staticmethod
    def forward(
        ctx: Context, x: Array, seed: Array | None, *, startup_seed: int
    ) -> tuple[Array, Array, Array]:
        first = startup_seed if seed is None else int(seed.flat[0])
        order, following = shuffle(math.prod(x.shape[:-1]), first)
        out = np.empty_like(x)
        out.reshape(len(order), -1)[order] = x.reshape(len(order), -1)
        return out, order, np.array([following], np.int64)

    @staticmethod
    def backward(ctx: Context, order: Array, d_out: Array, *, startup_seed: int) -> Array:
        return d_out.reshape(len(order), -1)[order].reshape(d_out.shape)
