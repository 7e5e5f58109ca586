"""Random choices: integers, permutations, columns by probability, parts of images, seeds; distributions.

With a seed, Fluid's operators choose exactly as Paddle does. Seed 0 means the generator of the scope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paddlelike.core import Generator, VarType, numpy_dtype
from paddlelike.core.random import shuffle_range
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Int,
    Ints,
    Longs,
    OpDef,
    Spec,
    register,
)
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import check_shape_attr, infer_sizes, one_element, read_numbers
from paddlelike.ops.random.tensors import SHAPE_INPUTS, check_dtype, check_order

_WHOLES = (VarType.INT32, VarType.INT64)


class RandintAttrs(Attrs):
    """Attributes of randint."""

    shape: list[int] = Longs([])
    low: int = Int()
    high: int = Int()
    dtype: int = Int(3)
    seed: int = Int(0)


@register
class Randint(OpDef):
    """``Out``: integers in [low, high)."""

    type = "randint"
    inputs = SHAPE_INPUTS
    attrs = RandintAttrs.table()

    @staticmethod
    def infer(tensor: Spec | None, tensors: list[Spec], *, attrs: RandintAttrs) -> Spec:
        check_order("randint", attrs.low, attrs.high, names=("low", "high"))
        return Spec(
            infer_sizes("randint", attrs.shape, tensor, tensors), check_dtype("randint", attrs.dtype, _WHOLES)
        )

    @staticmethod
    def forward(ctx: Context, tensor: Array | None, tensors: list[Array], *, attrs: RandintAttrs) -> Array:
        sizes = check_shape_attr("randint", read_numbers(attrs.shape, tensor, tensors))
        whole = ctx.random(attrs.seed).integers(attrs.low, attrs.high, sizes)
        return whole.astype(numpy_dtype(attrs.dtype), copy=False)


@register
class Randperm(OpDef):
    """``Out``: 0 .. n-1 in random order."""

    type = "randperm"
    inputs = ()
    attrs = {"n": Int(), "dtype": Int(3), "seed": Int(0)}

    @staticmethod
    def infer(*, n: int, dtype: int) -> Spec:
        if n < 1:
            raise ShapeError(f"randperm: n is {n}, expected 1 or more")
        return Spec((n,), check_dtype("randperm", dtype, _WHOLES))

    @staticmethod
    def forward(ctx: Context, *, n: int, dtype: int, seed: int) -> Array:
        return shuffle_range(n, seed or _draw_seed(ctx)).astype(numpy_dtype(dtype), copy=False)


@register
class Seed(OpDef):
    """``Out``: ``seed``, or a new number in every run if it is 0; int32 of shape [1]."""

    type = "seed"
    inputs = ()
    attrs = {"seed": Int(0)}

    infer = one_element(VarType.INT32)

    @staticmethod
    def forward(ctx: Context, *, seed: int) -> Array:
        return np.array([seed or _draw_seed(ctx)], np.int32)


@register
class SamplingId(OpDef):
    """``Out[i]``: a column drawn with the probabilities X[i], of shape (N, C).

    A number u in [min, max) is drawn per row. The result is the first column at which the cumulative sum of
    the row exceeds u, or else the last column.
    """

    type = "sampling_id"
    attrs = {"min": Float(0.0), "max": Float(1.0), "seed": Int(0)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, min: float, max: float) -> Spec:
        check_order("sampling_id", min, max)
        if len(x.shape) != 2:
            raise ShapeError(f"sampling_id: X has shape {x.shape}, expected two dims (N, C)")
        return Spec(x.shape[:1], VarType.INT64)

    @staticmethod
    def forward(ctx: Context, x: Array, *, min: float, max: float, seed: int) -> Array:
        u = ctx.random(seed).uniform((len(x), 1), min, max, x.dtype)
        # Taken off one by one, each difference rounded, as Paddle does.
        left = np.subtract.accumulate(np.concatenate([u, x], axis=1), axis=1)[:, 1:]
        left[:, -1:] = -1
        return (left < 0).argmax(axis=1)


@register
class RandomCrop(OpDef):
    """``Out``: a random part of every instance of X; ``shape`` gives its size along the last dims.

    SeedOut is the seed of the next run; while Seed has no value, ``startup_seed`` is used.
    """

    type = "random_crop"
    until = "1"
    traceable = False
    inputs = ("X", "Seed")
    outputs = ("Out", "SeedOut")
    attrs = {"shape": Ints(), "startup_seed": Int(0)}

    @staticmethod
    def infer(x: Spec, seed: Spec, *, shape: Sequence[int]) -> tuple[Spec, None]:
        rank = len(x.shape) - len(shape)
        if rank < 1 or any(0 <= dim < size for dim, size in zip(x.shape[rank:], shape, strict=True)):
            raise ShapeError(
                f"random_crop: cannot cut {list(shape)} out of X of shape {x.shape}",
                hint="shape gives the last dims of X without the first, none larger than X's",
            )
        return Spec((*x.shape[:rank], *shape), x.dtype), None

    @staticmethod
    def forward(
        x: Array, seed: Array | None, *, shape: Sequence[int], startup_seed: int
    ) -> tuple[Array, Array]:
        first = startup_seed if seed is None else int(seed.reshape(-1)[0])
        generator = Generator(first % 2**64 % (2**31 - 1))  # read as an unsigned 64-bit number
        rank = x.ndim - len(shape)
        spans = [dim - size + 1 for dim, size in zip(x.shape[rank:], shape, strict=True)]
        out = np.empty((math.prod(x.shape[:rank]), *shape), x.dtype)
        for part, whole in zip(out, x.reshape(-1, *x.shape[rank:]), strict=True):
            starts = [generator.draw_below(span) for span in spans]
            part[...] = whole[tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))]
        generator.skip(1)
        return out.reshape(*x.shape[:rank], *shape), np.array([generator.state], np.int64)


# Distributions of Paddle 2.x and 3: the values are not Paddle's own


@register_kernel("bernoulli", "X -> Out", traceable=False, ends_gradients=True)
def _draw_bernoulli(ctx: Context, x: Array) -> Array:
    """Draws of 1 with the probability X, else 0."""
    return (ctx.random(0).uniform(x.shape) < x).astype(x.dtype)


@register_kernel("exponential", "X -> Out", {"lambda": Float(1.0)}, traceable=False, ends_gradients=True)
def _draw_exponential(ctx: Context, x: Array, **attrs: float) -> Array:
    """Exponentially distributed numbers of rate ``lambda``, of X's shape."""
    return np.asarray(_make_source(ctx).exponential(1 / attrs["lambda"], x.shape), x.dtype)


@register_kernel("poisson", "X -> Out", traceable=False)
def _draw_poisson(ctx: Context, x: Array) -> Array:
    """Counts of Poisson distributions whose means are X."""
    return np.asarray(_make_source(ctx).poisson(x), x.dtype)


@register_kernel("binomial", "count prob -> out", traceable=False, ends_gradients=True, since="3")
def _draw_binomial(ctx: Context, count: Array, prob: Array) -> Array:
    """The number of successes in ``count`` trials that succeed with the probability ``prob``."""
    return np.asarray(_make_source(ctx).binomial(count.astype(np.int64), prob), np.int64)


@register_kernel("standard_gamma", "x -> out", traceable=False, ends_gradients=True, since="3")
def _draw_gamma(ctx: Context, x: Array) -> Array:
    """Numbers of gamma distributions of the shapes X and scale 1."""
    return np.asarray(_make_source(ctx).standard_gamma(x), x.dtype)


@register_kernel("dirichlet", "Alpha -> Out", traceable=False, ends_gradients=True)
def _draw_dirichlet(ctx: Context, alpha: Array) -> Array:
    """Points of Dirichlet distributions: gamma numbers over their sum along the last dim."""
    drawn = _make_source(ctx).standard_gamma(alpha)
    return (drawn / drawn.sum(-1, keepdims=True)).astype(alpha.dtype)


@register_kernel(
    "multinomial",
    "X -> Out",
    {"num_samples": Int(1), "replacement": Bool(False)},
    traceable=False,
    ends_gradients=True,
)
def _draw_columns(ctx: Context, x: Array, *, num_samples: int, replacement: bool) -> Array:
    """Columns of each row, drawn with probabilities proportional to X.

    Without replacement, each column draws an exponential time of rate X, and the shortest times win.
    """
    source = _make_source(ctx)
    possible = np.count_nonzero(x > 0, axis=-1).min(initial=x.shape[-1])
    if possible < (1 if replacement else num_samples):
        raise EnforceNotMet(
            f"multinomial: a row of X has {possible} columns of probabilities above 0, "
            f"fewer than num_samples {num_samples}"
        )
    if replacement:
        ends = x.cumsum(-1, dtype=np.float64)
        drawn = source.uniform(size=(*x.shape[:-1], num_samples)) * ends[..., -1:]
        return (ends[..., None, :] <= drawn[..., None]).sum(-1)
    with np.errstate(divide="ignore"):
        times = source.exponential(size=x.shape) / x
    return np.argsort(times, axis=-1)[..., :num_samples]


@register_kernel(
    "class_center_sample",
    "Label -> RemappedLabel SampledLocalClassCenter",
    {"num_classes": Int(), "num_samples": Int()},
    traceable=False,
)
def _sample_classes(ctx: Context, label: Array, *, num_classes: int, num_samples: int) -> tuple[Array, Array]:
    """The classes of the labels and random others, at least ``num_samples``; and the labels' indexes."""
    present = np.unique(label)
    others = _make_source(ctx).permutation(np.setdiff1d(np.arange(num_classes), present))
    kept = np.concatenate([present, others[: max(num_samples - len(present), 0)]])
    kept = np.sort(kept).astype(label.dtype)
    return np.searchsorted(kept, label).astype(label.dtype), kept


def _make_source(ctx: Context) -> np.random.Generator:
    """Return a source of numpy's distributions, seeded by the scope's generator."""
    return np.random.default_rng(ctx.random(0).draw_bits(4))


def _draw_seed(ctx: Context) -> int:
    """Return a seed other than 0 from the generator of the scope."""
    return int(ctx.random(0).integers(1, 2**31 - 1, (1,))[0])
