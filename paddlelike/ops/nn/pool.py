"""Pools: maxima and means of windows, with or without the index of the maximum."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attr, Bool, Gradient, Ints, OpDef, Spec, String, register
from paddlelike.ops.kernels import pooling
from paddlelike.ops.kernels.pooling import Axis
from paddlelike.ops.kernels.windows import channels_first, in_format, is_channels_last, windows_of

__all__ = ["MaxPool2dWithIndex", "MaxPool3dWithIndex", "Pool2d", "Pool3d"]


def _attrs(rank: int) -> dict[str, Attr]:
    return {
        "ksize": Ints(),
        "strides": Ints([1] * rank),
        "paddings": Ints([0] * rank),
        "global_pooling": Bool(False),
        "adaptive": Bool(False),
    }


_POOL = {
    "pooling_type": String(),
    "exclusive": Bool(True),
    "ceil_mode": Bool(False),
    "padding_algorithm": String("EXPLICIT"),
    "use_cudnn": Bool(False),
    "use_mkldnn": Bool(False),
}


def _counts(
    op: str,
    spatial: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    algorithm: str,
    *,
    global_pooling: bool,
    adaptive: bool,
    ceil: bool,
) -> tuple[tuple[int, ...], list[Axis]]:
    """How many windows there are along each dim; and the windows, where all dims are known."""
    known = min(spatial) >= 0
    if adaptive and not global_pooling:
        return tuple(ksize), pooling.adaptive(spatial, ksize) if known else []
    if global_pooling:
        kernel = [max(n, 1) for n in spatial]
        windows = windows_of(op, spatial, kernel, [1] * len(kernel), [], algorithm="VALID")
    else:
        windows = windows_of(op, spatial, ksize, strides, paddings, algorithm=algorithm)
    counts = windows.counts(spatial, ceil=ceil)
    if any(n == 0 or n < -1 for n in counts):
        raise ShapeError(
            f"{op}: spatial dims {tuple(spatial)} with paddings {windows.pads} are smaller than "
            f"one window of {windows.kernel}"
        )
    return counts, pooling.regular(windows, spatial, counts) if known else []


class _Pool(OpDef):
    """What the pools in two and three dims share."""

    lod = "X"
    gradient = Gradient("X", "Out", "Out@GRAD")

    @classmethod
    def infer(
        cls,
        x: Spec,
        *,
        ksize: list[int],
        strides: list[int],
        paddings: list[int],
        global_pooling: bool,
        adaptive: bool,
        pooling_type: str,
        ceil_mode: bool,
        padding_algorithm: str,
        data_format: str,
    ) -> Spec:
        rank = len(cls.attrs["strides"].default)
        if len(x.shape) != rank + 2:
            raise ShapeError(f"{cls.type}: X has shape {x.shape}; it needs {rank + 2} dims")
        if pooling_type not in ("max", "avg"):
            raise ShapeError(f"{cls.type}: pooling_type is {pooling_type!r}; it can be 'max' or 'avg'")
        last = is_channels_last(data_format)
        spatial = x.shape[1:-1] if last else x.shape[2:]
        counts, _ = _counts(
            cls.type,
            spatial,
            ksize,
            strides,
            paddings,
            padding_algorithm,
            global_pooling=global_pooling,
            adaptive=adaptive,
            ceil=ceil_mode,
        )
        shape = (x.shape[0], *counts, x.shape[-1]) if last else (*x.shape[:2], *counts)
        return Spec(shape, x.dtype)

    @classmethod
    def forward(
        cls,
        x: Array,
        *,
        ksize: list[int],
        strides: list[int],
        paddings: list[int],
        global_pooling: bool,
        adaptive: bool,
        pooling_type: str,
        exclusive: bool,
        ceil_mode: bool,
        padding_algorithm: str,
        data_format: str,
    ) -> Array:
        x = channels_first(x, data_format)
        _, axes = _counts(
            cls.type,
            x.shape[2:],
            ksize,
            strides,
            paddings,
            padding_algorithm,
            global_pooling=global_pooling,
            adaptive=adaptive,
            ceil=ceil_mode,
        )
        if pooling_type == "max":
            out = pooling.maximum(x, axes)
        else:
            out = pooling.average(x, axes, exclusive=exclusive or adaptive)
        return in_format(out, data_format)

    @classmethod
    def backward(
        cls,
        x: Array,
        out: Array,
        d_out: Array,
        *,
        ksize: list[int],
        strides: list[int],
        paddings: list[int],
        global_pooling: bool,
        adaptive: bool,
        pooling_type: str,
        exclusive: bool,
        ceil_mode: bool,
        padding_algorithm: str,
        data_format: str,
    ) -> Array:
        x, out, d_out = (channels_first(array, data_format) for array in (x, out, d_out))
        _, axes = _counts(
            cls.type,
            x.shape[2:],
            ksize,
            strides,
            paddings,
            padding_algorithm,
            global_pooling=global_pooling,
            adaptive=adaptive,
            ceil=ceil_mode,
        )
        if pooling_type == "max":
            dx = pooling.maximum_dx(x, out, d_out, axes)
        else:
            dx = pooling.average_dx(d_out, axes, exclusive=exclusive or adaptive)
        return in_format(dx, data_format)


@register
class Pool2d(_Pool):
    """The maximum or the mean of every window of ``(N, C, H, W)``, or with NHWC ``(N, H, W, C)``.

    The mean leaves padding out (``exclusive``). The gradient of a maximum goes to the first one.
    """

    type = "pool2d"
    attrs = _attrs(2) | _POOL
    attrs |= {"data_format": String("NCHW"), "is_test": Bool(False), "use_quantizer": Bool(False)}


@register
class Pool3d(_Pool):
    """``pool2d`` with a third spatial dim."""

    type = "pool3d"
    attrs = _attrs(3) | _POOL | {"data_format": String("NCDHW")}


class _MaxPoolWithIndex(OpDef):
    """What the pools with index in two and three dims share."""

    outputs = ("Out", "Mask")
    gradient = Gradient("X", "Mask", "Out@GRAD")

    @classmethod
    def _axes(cls, spatial: Sequence[int], **attrs: list[int] | bool) -> tuple[tuple[int, ...], list[Axis]]:
        return _counts(cls.type, spatial, algorithm="EXPLICIT", ceil=False, **attrs)  # type: ignore[arg-type]

    @classmethod
    def infer(
        cls,
        x: Spec,
        *,
        ksize: list[int],
        strides: list[int],
        paddings: list[int],
        global_pooling: bool,
        adaptive: bool,
    ) -> tuple[Spec, Spec]:
        rank = len(cls.attrs["strides"].default)
        if len(x.shape) != rank + 2:
            raise ShapeError(f"{cls.type}: X has shape {x.shape}; it needs {rank + 2} dims")
        counts, _ = cls._axes(
            x.shape[2:],
            ksize=ksize,
            strides=strides,
            paddings=paddings,
            global_pooling=global_pooling,
            adaptive=adaptive,
        )
        shape = (*x.shape[:2], *counts)
        return Spec(shape, x.dtype), Spec(shape, x.dtype)  # as Paddle declares it: Mask holds int32

    @classmethod
    def forward(
        cls,
        x: Array,
        *,
        ksize: list[int],
        strides: list[int],
        paddings: list[int],
        global_pooling: bool,
        adaptive: bool,
    ) -> tuple[Array, Array]:
        _, axes = cls._axes(
            x.shape[2:],
            ksize=ksize,
            strides=strides,
            paddings=paddings,
            global_pooling=global_pooling,
            adaptive=adaptive,
        )
        out = pooling.maximum(x, axes)
        return out, pooling.first_maxima(x, out, axes)

    @staticmethod
    def backward(x: Array, mask: Array, d_out: Array) -> Array:
        return pooling.scatter(mask, d_out, x.shape)


@register
class MaxPool2dWithIndex(_MaxPoolWithIndex):
    """``Out``: the maximum of every window; ``Mask``: its index ``h * W + w`` (the first one's)."""

    type = "max_pool2d_with_index"
    attrs = _attrs(2)


@register
class MaxPool3dWithIndex(_MaxPoolWithIndex):
    """``max_pool2d_with_index`` with a third spatial dim."""

    type = "max_pool3d_with_index"
    attrs = _attrs(3)
