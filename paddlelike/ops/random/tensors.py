"""Random tensors, uniform and normal. With a seed they equal Paddle's bit for bit.

Seed 0 means no seed: the numbers come from the generator of the scope.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.core import Generator, VarType, numpy_dtype
from paddlelike.core.random import MersenneGenerator
from paddlelike.errors import ShapeError
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
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.operands import check_shape_attr, infer_batch_size_like, infer_sizes, read_numbers

SHAPE_INPUTS = ("ShapeTensor?", "ShapeTensorList*?")
_REALS = (VarType.FP32, VarType.FP64)


class UniformAttrs(Attrs):
    """Attributes of uniform_random."""

    shape: list[int] = Longs([])
    min: float = Float(-1.0)
    max: float = Float(1.0)
    seed: int = Int(0)
    dtype: int = Int(5)
    diag_num: int = Int(0)
    diag_step: int = Int(0)
    diag_val: float = Float(1.0)

    def draw(self, generator: Generator, sizes: Sequence[int]) -> Array:
        """Return numbers of these sizes, with the diagonal set."""
        out = generator.uniform(sizes, self.min, self.max, numpy_dtype(self.dtype))
        return _set_diagonal(out, self.diag_num, self.diag_step, self.diag_val)


class GaussianAttrs(Attrs):
    """Attributes of gaussian_random."""

    shape: list[int] = Longs([])
    mean: float = Float(0.0)
    std: float = Float(1.0)
    seed: int = Int(0)
    dtype: int = Int(5)

    def draw(self, generator: Generator, sizes: Sequence[int]) -> Array:
        """Return numbers of these sizes."""
        return generator.gaussian(sizes, self.mean, self.std, numpy_dtype(self.dtype))


class UniformLikeAttrs(UniformAttrs):
    """Attributes of uniform_random_batch_size_like."""

    shape: list[int] = Ints()
    input_dim_idx: int = Int(0)
    output_dim_idx: int = Int(0)


class GaussianLikeAttrs(GaussianAttrs):
    """Attributes of gaussian_random_batch_size_like."""

    shape: list[int] = Ints()
    input_dim_idx: int = Int(0)
    output_dim_idx: int = Int(0)


class _Drawn(OpDef):
    """Base class of operators that draw numbers of a shape from tensors or the attribute."""

    inputs = SHAPE_INPUTS
    fresh = True

    @classmethod
    def infer(cls, tensor: Spec | None, tensors: list[Spec], *, attrs: UniformAttrs | GaussianAttrs) -> Spec:
        sizes = infer_sizes(cls.type, attrs.shape, tensor, tensors)
        return Spec(sizes, check_dtype(cls.type, attrs.dtype, _REALS))

    @classmethod
    def forward(
        cls, ctx: Context, tensor: Array | None, tensors: list[Array], *, attrs: UniformAttrs | GaussianAttrs
    ) -> Array:
        sizes = check_shape_attr(cls.type, read_numbers(attrs.shape, tensor, tensors))
        is_own = attrs.seed != 0 and cls.type.endswith(LATER)
        return attrs.draw(MersenneGenerator(attrs.seed) if is_own else ctx.random(attrs.seed), sizes)


@register
class UniformRandom(_Drawn):
    """``Out`` uniform in [min, max).

    Then ``diag_num`` elements, from the first on and ``diag_step + 1`` apart, are set to ``diag_val``.
    """

    type = "uniform_random"
    fluid_order = "shape min max seed diag_num diag_step diag_val dtype"
    attrs = UniformAttrs.table()

    @classmethod
    def infer(cls, tensor: Spec | None, tensors: list[Spec], *, attrs: Any) -> Spec:
        check_order(cls.type, attrs.min, attrs.max)
        return super().infer(tensor, tensors, attrs=attrs)


@register
class UniformRandomLater(UniformRandom):
    """``uniform_random`` of Paddle 2.x and 3; with a seed, it draws Paddle's numbers."""

    type = "uniform_random" + LATER
    since = "2"


class _BatchSizeLike(OpDef):
    """Base class of operators that draw numbers with one dim taken from Input."""

    inputs = ("Input",)
    fresh = True

    @classmethod
    def infer(cls, x: Spec, *, attrs: UniformLikeAttrs | GaussianLikeAttrs) -> Spec:
        sizes = infer_batch_size_like(
            cls.type, x.shape, attrs.shape, attrs.input_dim_idx, attrs.output_dim_idx
        )
        return Spec(sizes, check_dtype(cls.type, attrs.dtype, _REALS))

    @classmethod
    def forward(cls, ctx: Context, x: Array, *, attrs: UniformLikeAttrs | GaussianLikeAttrs) -> Array:
        sizes = infer_batch_size_like(
            cls.type, x.shape, attrs.shape, attrs.input_dim_idx, attrs.output_dim_idx
        )
        return attrs.draw(ctx.random(attrs.seed), check_shape_attr(cls.type, sizes))


@register
class UniformRandomBatchSizeLike(_BatchSizeLike):
    """``uniform_random`` with one dim taken from Input."""

    type = "uniform_random_batch_size_like"
    fluid_order = "shape input_dim_idx output_dim_idx min max seed diag_num diag_step diag_val dtype"
    attrs = UniformLikeAttrs.table()


@register
class GaussianRandom(_Drawn):
    """``Out`` normally distributed around ``mean`` with standard deviation ``std``."""

    type = "gaussian_random"
    attrs = GaussianAttrs.table(use_mkldnn=Bool(False))

    @classmethod
    def infer(cls, tensor: Spec | None, tensors: list[Spec], *, attrs: Any) -> Spec:
        spec = super().infer(tensor, tensors, attrs=attrs)
        known = check_shape_attr(cls.type, attrs.shape, unknown=True)  # it goes before the tensors
        return spec._replace(shape=known or spec.shape)


@register
class GaussianRandomLater(GaussianRandom):
    """``gaussian_random`` of Paddle 2.x and 3; with a seed, it draws Paddle's numbers."""

    type = "gaussian_random" + LATER
    since = "2"


@register
class GaussianRandomBatchSizeLike(_BatchSizeLike):
    """``gaussian_random`` with one dim taken from Input."""

    type = "gaussian_random_batch_size_like"
    until = "1"
    fluid_order = "shape input_dim_idx output_dim_idx mean std seed dtype"
    attrs = GaussianLikeAttrs.table()


@register
class TruncatedGaussianRandom(OpDef):
    """``gaussian_random`` cut off at two standard deviations from the mean."""

    type = "truncated_gaussian_random"
    inputs = ()
    attrs = GaussianAttrs.table(shape=Ints())
    fresh = True

    @staticmethod
    def infer(*, attrs: GaussianAttrs) -> Spec:
        sizes = infer_sizes("truncated_gaussian_random", attrs.shape, None, ())
        return Spec(sizes, check_dtype("truncated_gaussian_random", attrs.dtype, _REALS[:1]))

    @staticmethod
    def forward(ctx: Context, *, attrs: GaussianAttrs) -> Array:
        sizes = check_shape_attr("truncated_gaussian_random", attrs.shape)
        return ctx.random(attrs.seed).truncated_gaussian(sizes, attrs.mean, attrs.std)


def check_dtype(op: str, dtype: int, allowed: tuple[VarType, ...]) -> VarType:
    """Return ``dtype``; raise ShapeError when it is not allowed."""
    if dtype not in allowed:
        raise ShapeError(f"{op}: dtype is {VarType(dtype)}, expected {' or '.join(map(str, allowed))}")
    return VarType(dtype)


def check_order(op: str, low: float, high: float, names: tuple[str, str] = ("min", "max")) -> None:
    """Raise ShapeError unless ``low`` is below ``high``."""
    if not low < high:
        raise ShapeError(f"{op}: {names[0]} is {low}, {names[1]} is {high}, an empty range")


def _set_diagonal(out: Array, count: int, step: int, value: Any) -> Array:
    if count > 0:
        last = (count - 1) * (step + 1)
        if last >= out.size:
            raise ShapeError(
                f"uniform_random: diag_num {count} and diag_step {step} reach element {last}, but "
                f"shape {out.shape} has {out.size} elements"
            )
        out.reshape(-1)[: last + 1 : step + 1] = value
    return out
