"""Pools: maxima and means of windows, with or without the index of the maximum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid, warn_quirk
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Gradient,
    Ints,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.kernels.nn.image import pool as pool_kernels
from paddlelike.ops.kernels.nn.image.layouts import as_layout_of
from paddlelike.ops.kernels.nn.image.pool import Axis
from paddlelike.ops.kernels.nn.image.windows import (
    has_windows,
    is_channels_last,
    make_windows,
    to_channels_first,
    to_format,
)
from paddlelike.ops.later import register_kernel


class WindowAttrs(Attrs):
    """Attributes of every pool; the defaults fit two spatial dims."""

    ksize: list[int] = Ints()
    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0])
    global_pooling: bool = Bool(False)
    adaptive: bool = Bool(False)

    def count_windows(
        self, op: str, spatial: Sequence[int], *, algorithm: str = "EXPLICIT", ceil: bool = False
    ) -> tuple[tuple[int, ...], list[Axis]]:
        """Return the number of windows along each dim, and the windows if all dims are known.

        Raises ShapeError when the data are smaller than one window.
        """
        known = min(spatial) >= 0
        if self.adaptive:
            sizes = spatial if self.global_pooling else self.ksize
            return tuple(sizes), pool_kernels.make_adaptive(spatial, sizes) if known else []
        if self.global_pooling:
            kernel = [max(n, 1) for n in spatial]
            windows = make_windows(op, spatial, kernel, [1] * len(kernel), [], algorithm="VALID")
        else:
            windows = make_windows(op, spatial, self.ksize, self.strides, self.paddings, algorithm=algorithm)
        counts = windows.counts(spatial, ceil=ceil)
        if not has_windows(spatial, counts):
            raise ShapeError(
                f"{op}: spatial dims {tuple(spatial)} with paddings {windows.pads} are smaller than "
                f"one window of {windows.kernel}",
                hint="add padding, take a smaller window, or global_pooling=True for one over everything",
            )
        return counts, pool_kernels.make_regular(windows, spatial, counts) if known else []


class PoolAttrs(WindowAttrs):
    """Attributes of the pools of maxima and means."""

    pooling_type: str = String()
    exclusive: bool = Bool(True)
    ceil_mode: bool = Bool(False)
    padding_algorithm: str = String("EXPLICIT")
    data_format: str = String("NCHW")

    def arrange(self, op: str, spatial: Sequence[int]) -> tuple[tuple[int, ...], list[Axis]]:
        """Return the number of windows along each dim; and the windows, where all dims are known."""
        if self.has_regular_maxima and follows_fluid("adaptive_maxima"):
            kernel = [max(n, 1) for n in spatial] if self.global_pooling else self.ksize
            windows = make_windows(op, spatial, kernel, self.strides, [], algorithm="VALID")
            counts = windows.kernel
            return counts, pool_kernels.make_regular(windows, spatial, counts) if min(spatial) >= 0 else []
        return self.count_windows(op, spatial, algorithm=self.padding_algorithm, ceil=self.ceil_mode)

    @property
    def has_regular_maxima(self) -> bool:
        """Whether Fluid uses regular windows although the pool is adaptive: see ``adaptive_maxima``."""
        return self.pooling_type == "max" and self.adaptive


_THREE_DIMS = {"strides": Ints([1, 1, 1]), "paddings": Ints([0, 0, 0])}
_BACKENDS = {"use_cudnn": Bool(False), "use_mkldnn": Bool(False)}


class _Pool(OpDef):
    """A pool in two or three dims."""

    any_order = True
    lod = "X"
    gradient = Gradient("X", "Out", "Out@GRAD")
    keeps_dtype = True

    @classmethod
    def infer(cls, x: Spec, *, attrs: PoolAttrs) -> Spec:
        _check_rank(cls, x)
        if attrs.pooling_type not in ("max", "avg"):
            raise ShapeError(f"{cls.type}: pooling_type is {attrs.pooling_type!r}; it can be 'max' or 'avg'")
        if attrs.has_regular_maxima:
            warn_quirk("adaptive_maxima")
        last = is_channels_last(attrs.data_format)
        counts, _ = attrs.arrange(cls.type, x.shape[1:-1] if last else x.shape[2:])
        shape = (x.shape[0], *counts, x.shape[-1]) if last else (*x.shape[:2], *counts)
        return Spec(shape, x.dtype)

    @classmethod
    def forward(cls, x: Array, *, attrs: PoolAttrs) -> Array:
        x = to_channels_first(x, attrs.data_format)
        _, axes = attrs.arrange(cls.type, x.shape[2:])
        if attrs.pooling_type == "max":
            out = pool_kernels.maximum(x, axes)
        else:
            out = pool_kernels.average(x, axes, exclusive=attrs.exclusive or attrs.adaptive)
        return to_format(out, attrs.data_format)

    @classmethod
    def backward(cls, x: Array, out: Array, d_out: Array, *, attrs: PoolAttrs) -> Array:
        x, out, d_out = (to_channels_first(array, attrs.data_format) for array in (x, out, d_out))
        _, axes = attrs.arrange(cls.type, x.shape[2:])
        if attrs.pooling_type == "max":
            dx = pool_kernels.maximum_dx(x, out, d_out, axes)
        else:
            dx = pool_kernels.average_dx(
                as_layout_of(x, d_out), axes, exclusive=attrs.exclusive or attrs.adaptive
            )
        return to_format(dx, attrs.data_format)


def _check_rank(cls: type[OpDef], x: Spec) -> None:
    """Raise ShapeError unless X has two dims more than the attributes describe."""
    dims = len(cls.attrs["strides"].default) + 2
    if len(x.shape) != dims:
        raise ShapeError(f"{cls.type}: X has shape {x.shape}; it needs {dims} dims")


@register
class Pool2d(_Pool):
    """The maximum or the mean of every window of ``(N, C, H, W)``, or with NHWC ``(N, H, W, C)``.

    With ``exclusive`` the mean leaves padding out. The gradient goes to the first maximum of a window.
    """

    type = "pool2d"
    by_row = True
    fluid_order = (
        "pooling_type ksize global_pooling strides paddings exclusive adaptive use_cudnn ceil_mode "
        "use_mkldnn use_quantizer data_format is_test padding_algorithm"
    )
    attrs = PoolAttrs.table(is_test=Bool(False), use_quantizer=Bool(False), **_BACKENDS)


@register
class Pool3d(_Pool):
    """``pool2d`` with a third spatial dim."""

    type = "pool3d"
    by_row = True
    fluid_order = (
        "pooling_type ksize global_pooling strides paddings exclusive adaptive use_cudnn ceil_mode "
        "use_mkldnn data_format padding_algorithm"
    )
    attrs = PoolAttrs.table(data_format=String("NCDHW"), **_THREE_DIMS, **_BACKENDS)


class _LaterPool(_Pool):
    """Pooling of Paddle 2. A window that extends beyond the padding counts the elements up to its end."""

    since = "2"

    @classmethod
    def forward(cls, x: Array, *, attrs: PoolAttrs) -> Array:
        out = super().forward(x, attrs=attrs)
        return out if (factor := find_factor(cls.type, x, attrs)) is None else out * factor

    @classmethod
    def backward(cls, x: Array, out: Array, d_out: Array, *, attrs: PoolAttrs) -> Array:
        factor = find_factor(cls.type, x, attrs)
        return super().backward(x, out, d_out if factor is None else d_out * factor, attrs=attrs)


def find_factor(op: str, x: Array, attrs: PoolAttrs) -> Array | None:
    """Return the size of each window divided by its counted elements; None if all elements count.

    Paddle 2 counts as much padding after the last element as there is before the first one.
    """
    whole = attrs.exclusive or attrs.adaptive or attrs.global_pooling
    if whole or attrs.pooling_type != "avg":
        return None
    last = is_channels_last(attrs.data_format)
    spatial = x.shape[1:-1] if last else x.shape[2:]
    pads = make_windows(
        op, spatial, attrs.ksize, attrs.strides, attrs.paddings, algorithm=attrs.padding_algorithm
    ).pads
    if not attrs.ceil_mode and all(high <= low for low, high in pads):
        return None
    _, axes = attrs.arrange(op, spatial)
    factor = np.ones(1, x.dtype)
    for axis, (low, _) in zip(axes, pads, strict=True):
        counted = [min(end, axis.size + 2 * low) - start for start, end in axis.spans]
        factor = np.multiply.outer(factor, axis.kernel / np.array(counted, x.dtype))
    return factor[..., None] if last else factor[None]


@register
class LaterPool2d(_LaterPool, Pool2d):
    """``pool2d`` of Paddle 2."""

    type = "pool2d" + LATER


@register
class LaterPool3d(_LaterPool, Pool3d):
    """``pool3d`` of Paddle 2."""

    type = "pool3d" + LATER


for _later in (LaterPool2d, LaterPool3d):
    _name = _later.type.removesuffix(LATER) + "_grad"
    register_kernel(_name, "X Out Out@GRAD -> X@GRAD", _later.attrs, changed=True, traceable=False)(
        _later.backward
    )


class FractionalAttrs(Attrs):
    """Attributes of a pool whose windows begin at fractional steps."""

    output_size: list[int] = Ints([1, 1])
    kernel_size: list[int] = Ints([0, 0])
    random_u: float = Float(0.0)
    return_mask: bool = Bool(True)


@register
class FractionalMaxPool2d(OpDef):
    """The maximum of each window and its index. ``random_u`` determines where windows begin (0: at
    random).
    """

    type = "fractional_max_pool2d"
    since = "3"
    inputs = ("x",)
    outputs = ("out", "mask")
    attrs = FractionalAttrs.table()

    @staticmethod
    def forward(ctx: Context, x: Array, *, attrs: FractionalAttrs) -> tuple[Array, Array]:
        u = attrs.random_u or float(ctx.random(0).uniform([1], 0.0, 1.0, np.dtype(np.float32))[0])
        sizes = zip(x.shape[2:], attrs.output_size, attrs.kernel_size, strict=True)
        axes = [Axis(size, (0, 0), _list_fractions(size, count, kernel, u)) for size, count, kernel in sizes]
        out = pool_kernels.maximum(x, axes)
        return out, pool_kernels.first_maxima(x, out, axes)


@register
class FractionalMaxPool3d(FractionalMaxPool2d):
    """``fractional_max_pool2d`` with a third spatial dim."""

    type = "fractional_max_pool3d"


def _list_fractions(size: int, count: int, kernel: int, u: float) -> list[tuple[int, int]]:
    """Return the windows along a dim, in Paddle's float32. With kernel 0, each ends where the next begins."""
    one = np.float32
    alpha = one(size - kernel) / one(count - (kernel > 0))
    first = one(u)
    if kernel <= 0:
        base = size // count
        first *= min(one(base + 2) / alpha - one(1), one(size + 1 - base) / alpha - one(count - 1))
    starts = [int((one(i) + first) * alpha) - int(first * alpha) for i in range(count + 1)]
    ends = [start + kernel for start in starts] if kernel > 0 else starts[1:]
    return [(start, min(end, size)) for start, end in zip(starts[:count], ends, strict=False)]


class _MaxPoolWithIndex(OpDef):
    """A pool of maxima over two or three dims that also returns their indexes."""

    outputs = ("Out", "Mask")
    gradient = Gradient("X", "Mask", "Out@GRAD")

    @classmethod
    def infer(cls, x: Spec, *, attrs: WindowAttrs) -> tuple[Spec, Spec]:
        _check_rank(cls, x)
        counts, _ = attrs.count_windows(cls.type, x.shape[2:])
        shape = (*x.shape[:2], *counts)
        return Spec(shape, x.dtype), Spec(shape, x.dtype)  # as Paddle declares it: Mask holds int32

    @classmethod
    def forward(cls, x: Array, *, attrs: WindowAttrs) -> tuple[Array, Array]:
        _, axes = attrs.count_windows(cls.type, x.shape[2:])
        out = pool_kernels.maximum(x, axes)
        least = np.finfo(x.dtype).min  # the start value of Paddle's comparisons, which are false for NaN
        if not (out > least).all():
            x = np.fmax(x, least)
            out = pool_kernels.maximum(x, axes)
        return out, pool_kernels.first_maxima(x, out, axes)

    @staticmethod
    def backward(x: Array, mask: Array, d_out: Array) -> Array:
        return pool_kernels.scatter(mask, d_out, x.shape)


@register
class MaxPool2dWithIndex(_MaxPoolWithIndex):
    """``Out``: the maximum of every window; ``Mask``: its index ``h * W + w`` (the first one's)."""

    type = "max_pool2d_with_index"
    fluid_order = "ksize global_pooling adaptive strides paddings"
    attrs = WindowAttrs.table()


@register
class MaxPool3dWithIndex(_MaxPoolWithIndex):
    """``max_pool2d_with_index`` with a third spatial dim."""

    type = "max_pool3d_with_index"
    fluid_order = "ksize global_pooling adaptive strides paddings"
    attrs = WindowAttrs.table(**_THREE_DIMS)
