"""Random tensors, uniform and normal; with a seed they are Paddle's own, bit for bit.

Seed 0 means no seed: the numbers come from the generator of the scope, which moves on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Bool, Context, Float, Int, Ints, Longs, OpDef, Spec, register
from paddlelike.ops.operands import numbers
from paddlelike.ops.sizes import batch_size_like, sizes_of, wanted_sizes

__all__ = [
    "SHAPE_INPUTS",
    "GaussianRandom",
    "GaussianRandomBatchSizeLike",
    "TruncatedGaussianRandom",
    "UniformRandom",
    "UniformRandomBatchSizeLike",
    "check_order",
    "checked_dtype",
]

SHAPE_INPUTS = ("ShapeTensor?", "ShapeTensorList*?")
_REALS = (VarType.FP32, VarType.FP64)

_UNIFORM = {
    "min": Float(-1.0),
    "max": Float(1.0),
    "seed": Int(0),
    "dtype": Int(5),
    "diag_num": Int(0),
    "diag_step": Int(0),
    "diag_val": Float(1.0),
}
_GAUSSIAN = {"mean": Float(0.0), "std": Float(1.0), "seed": Int(0), "dtype": Int(5)}
_LIKE = {"shape": Ints(), "input_dim_idx": Int(0), "output_dim_idx": Int(0)}


@register
class UniformRandom(OpDef):
    """``Out`` uniform in [min, max).

    Then ``diag_num`` elements from the first on, ``diag_step + 1`` apart, are set to ``diag_val``.
    """

    type = "uniform_random"
    inputs = SHAPE_INPUTS
    attrs = _UNIFORM | {"shape": Longs([])}
    context = True
    fresh = True

    @staticmethod
    def infer(
        tensor: Spec | None,
        tensors: list[Spec],
        *,
        shape: Sequence[int],
        dtype: int,
        min: float,
        max: float,
    ) -> Spec:
        check_order("uniform_random", min, max)
        return Spec(
            wanted_sizes("uniform_random", shape, tensor, tensors),
            checked_dtype("uniform_random", dtype, _REALS),
        )

    @staticmethod
    def forward(
        ctx: Context,
        tensor: Array | None,
        tensors: list[Array],
        *,
        shape: Sequence[int],
        min: float,
        max: float,
        seed: int,
        dtype: int,
        diag_num: int,
        diag_step: int,
        diag_val: float,
    ) -> Array:
        sizes = sizes_of("uniform_random", numbers(shape, tensor, tensors))
        out = ctx.random(seed).uniform(sizes, min, max, numpy_dtype(dtype))
        return _with_diagonal(out, diag_num, diag_step, diag_val)


@register
class UniformRandomBatchSizeLike(OpDef):
    """``uniform_random`` with one dim taken from Input."""

    type = "uniform_random_batch_size_like"
    inputs = ("Input",)
    attrs = _UNIFORM | _LIKE
    context = True
    fresh = True

    @staticmethod
    def infer(x: Spec, *, shape: Sequence[int], input_dim_idx: int, output_dim_idx: int, dtype: int) -> Spec:
        name = "uniform_random_batch_size_like"
        sizes = batch_size_like(name, x.shape, shape, input_dim_idx, output_dim_idx)
        return Spec(sizes, checked_dtype(name, dtype, _REALS))

    @staticmethod
    def forward(
        ctx: Context,
        x: Array,
        *,
        shape: Sequence[int],
        input_dim_idx: int,
        output_dim_idx: int,
        min: float,
        max: float,
        seed: int,
        dtype: int,
        diag_num: int,
        diag_step: int,
        diag_val: float,
    ) -> Array:
        name = "uniform_random_batch_size_like"
        sizes = batch_size_like(name, x.shape, shape, input_dim_idx, output_dim_idx)
        out = ctx.random(seed).uniform(sizes_of(name, sizes), min, max, numpy_dtype(dtype))
        return _with_diagonal(out, diag_num, diag_step, diag_val)


@register
class GaussianRandom(OpDef):
    """``Out`` normally distributed around ``mean`` with standard deviation ``std``."""

    type = "gaussian_random"
    inputs = SHAPE_INPUTS
    attrs = _GAUSSIAN | {"shape": Longs([]), "use_mkldnn": Bool(False)}
    context = True
    fresh = True

    @staticmethod
    def infer(tensor: Spec | None, tensors: list[Spec], *, shape: Sequence[int], dtype: int) -> Spec:
        known = sizes_of("gaussian_random", shape, unknown=True)  # here it goes before the tensors
        return Spec(
            known or wanted_sizes("gaussian_random", shape, tensor, tensors),
            checked_dtype("gaussian_random", dtype, _REALS),
        )

    @staticmethod
    def forward(
        ctx: Context,
        tensor: Array | None,
        tensors: list[Array],
        *,
        shape: Sequence[int],
        mean: float,
        std: float,
        seed: int,
        dtype: int,
    ) -> Array:
        sizes = sizes_of("gaussian_random", numbers(shape, tensor, tensors))
        return ctx.random(seed).gaussian(sizes, mean, std, numpy_dtype(dtype))


@register
class GaussianRandomBatchSizeLike(OpDef):
    """``gaussian_random`` with one dim taken from Input."""

    type = "gaussian_random_batch_size_like"
    inputs = ("Input",)
    attrs = _GAUSSIAN | _LIKE
    context = True
    fresh = True

    @staticmethod
    def infer(x: Spec, *, shape: Sequence[int], input_dim_idx: int, output_dim_idx: int, dtype: int) -> Spec:
        name = "gaussian_random_batch_size_like"
        sizes = batch_size_like(name, x.shape, shape, input_dim_idx, output_dim_idx)
        return Spec(sizes, checked_dtype(name, dtype, _REALS))

    @staticmethod
    def forward(
        ctx: Context,
        x: Array,
        *,
        shape: Sequence[int],
        input_dim_idx: int,
        output_dim_idx: int,
        mean: float,
        std: float,
        seed: int,
        dtype: int,
    ) -> Array:
        name = "gaussian_random_batch_size_like"
        sizes = batch_size_like(name, x.shape, shape, input_dim_idx, output_dim_idx)
        return ctx.random(seed).gaussian(sizes_of(name, sizes), mean, std, numpy_dtype(dtype))


@register
class TruncatedGaussianRandom(OpDef):
    """``gaussian_random`` cut off at two standard deviations from the mean."""

    type = "truncated_gaussian_random"
    inputs = ()
    attrs = _GAUSSIAN | {"shape": Ints()}
    context = True
    fresh = True

    @staticmethod
    def infer(*, shape: Sequence[int], dtype: int) -> Spec:
        sizes = wanted_sizes("truncated_gaussian_random", shape, None, ())
        return Spec(sizes, checked_dtype("truncated_gaussian_random", dtype, _REALS[:1]))

    @staticmethod
    def forward(ctx: Context, *, shape: Sequence[int], mean: float, std: float, seed: int) -> Array:
        sizes = sizes_of("truncated_gaussian_random", shape)
        return ctx.random(seed).truncated_gaussian(sizes, mean, std)


def checked_dtype(op: str, dtype: int, allowed: tuple[VarType, ...]) -> VarType:
    """``dtype`` if it is allowed. Raises ShapeError."""
    if dtype not in allowed:
        raise ShapeError(f"{op}: dtype is {VarType(dtype)}, expected {' or '.join(map(str, allowed))}")
    return VarType(dtype)


def check_order(op: str, low: float, high: float, names: tuple[str, str] = ("min", "max")) -> None:
    if not low < high:
        raise ShapeError(f"{op}: {names[0]} is {low}, {names[1]} is {high}: nothing lies between")


def _with_diagonal(out: Array, count: int, step: int, value: Any) -> Array:
    if count > 0:
        last = (count - 1) * (step + 1)
        if last >= out.size:
            raise ShapeError(
                f"uniform_random: diag_num {count} and diag_step {step} reach element {last}, but "
                f"shape {out.shape} has {out.size} elements"
            )
        out.reshape(-1)[: last + 1 : step + 1] = value
    return out
