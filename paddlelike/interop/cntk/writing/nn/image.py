"""Convolutions and pools; CNTK's images are ``(channels, height, width)``, as Fluid's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from paddlelike.formats.cntk.dictionary import Shape, SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step
from paddlelike.interop.cntk.writing.tensor.reshape import pad
from paddlelike.interop.cntk.writing.writers import writes
from paddlelike.ops.kernels.nn.image.windows import Windows, is_channels_last, make_windows

_FUSED: Final = ("fuse_relu", "fuse_activation", "fuse_brelu", "fuse_residual_connection")


def _windows(step: Step, spatial: Sequence[int], kernel: Sequence[int]) -> Windows:
    return make_windows(
        step.op.type,
        spatial,
        kernel,
        step.attr("strides"),
        step.attr("paddings"),
        step.attr("dilations", None) or [1] * len(kernel),
        step.attr("padding_algorithm", "EXPLICIT"),
    )


def _check_image(step: Step, image: Ref) -> None:
    if is_channels_last(step.attr("data_format", "NCHW")):
        step.refuse("its channels are the last dim")
    if not image.dynamic or image.rank not in (3, 4):
        step.refuse(f"its image has {image.rank} dims, or no samples")


@writes("conv2d", "conv3d", "depthwise_conv2d")
def _write_convolution(step: Step) -> None:
    image, kernel = step.ref("Input"), step.ref("Filter")
    _check_image(step, image)
    if any(step.attr(name, None) for name in _FUSED):
        step.refuse("another operator is fused into it")
    windows = _windows(step, image.shape[1:], kernel.shape[2:])
    counts = windows.counts(image.shape[1:])
    lows, highs = zip(*windows.pads, strict=True)
    if any((*lows, *highs)):  # CNTK refuses paddings of its own that leave a rest
        image = pad(step, image, [0, *lows], [0, *highs], 0.0)
    attributes = _describe(kernel, windows.strides, windows.dilations, int(step.attr("groups")))
    out = step.graph.add("Convolution", [kernel, image], attributes, shape=[kernel.shape[0], *counts])
    if step.has("Bias"):
        bias = step.ref("Bias")
        out = step.binary("Plus", out, step.reshape(bias, [kernel.shape[0]] + [1] * len(counts)))
    step.give("Output", out)


def _describe(
    kernel: Ref,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    *,
    transposed: Shape | None = None,
) -> dict[str, Any]:
    """Return the attributes of a convolution; the first number of each is that of the channels."""
    count = kernel.rank - 1
    return {
        "autoPadding": [False] * count,
        "sequential": False,
        "sharing": [True] * count,
        "lowerPad": Shape([0] * count),
        "upperPad": Shape([0] * count),
        "strides": Shape((kernel.shape[1] if transposed is None else 1, *strides)),
        "dilation": Shape((1, *dilations)),
        "kernelShape": Shape(kernel.shape[1:]),
        "outputShape": Shape((0,)) if transposed is None else transposed,
        "maxTempMemSizeInSamples": SizeT(0),
        "transpose": transposed is not None,
        "groups": SizeT(groups),
    }


@writes("conv2d_transpose")
def _write_transposed(step: Step) -> None:
    image, kernel = step.ref("Input"), step.ref("Filter")
    _check_image(step, image)
    windows = _windows(step, image.shape[1:], kernel.shape[2:])
    if step.attr("groups") != 1 or set(windows.dilations) != {1} or step.attr("output_size", None):
        step.refuse("groups, dilations, or a given size of the output")
    sizes = [
        (size - 1) * stride + extent
        for size, stride, extent in zip(image.shape[1:], windows.strides, kernel.shape[2:], strict=True)
    ]
    attributes = _describe(kernel, windows.strides, windows.dilations, 1, transposed=Shape((0,)))
    out = step.graph.add("Convolution", [kernel, image], attributes, shape=[kernel.shape[1], *sizes])
    for dim, ((low, high), size) in enumerate(zip(windows.pads, sizes, strict=True)):
        out = step.slice(out, dim + 1, low, size - high)
    step.give("Output", out)


@writes("pool2d", "pool3d")
def _write_pool(step: Step) -> None:
    image = step.ref()
    _check_image(step, image)
    spatial, kind = image.shape[1:], step.attr("pooling_type")
    ksize = list(step.attr("ksize"))
    if step.attr("global_pooling") or (step.attr("adaptive") and set(ksize) == {1}):
        _add_pool(step, image, kind, spatial, [1] * len(spatial), [(0, 0)] * len(spatial), [1] * len(spatial))
        return
    if step.attr("adaptive"):
        step.refuse(f"it is adaptive, with {ksize} windows")
    windows = _windows(step, spatial, ksize)
    counts = step.out().shape[2:]
    needed = [
        (count - 1) * stride + window
        for count, stride, window in zip(counts, windows.strides, ksize, strict=True)
    ]
    pads = list(windows.pads)
    if step.attr("ceil_mode"):  # the last windows reach over the end
        pads = [
            (low, max(high, reach - size - low))
            for (low, high), reach, size in zip(pads, needed, spatial, strict=True)
        ]
    _add_pool(step, image, kind, ksize, windows.strides, pads, counts)


def _add_pool(
    step: Step,
    image: Ref,
    kind: str,
    window: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    counts: Sequence[int],
) -> None:
    lows, highs = zip(*pads, strict=True)
    attributes = {
        "poolingType": SizeT(0 if kind == "max" else 1),
        "poolingWindowShape": Shape(window),
        "strides": Shape(strides),
        "autoPadding": [False],
        "lowerPad": Shape(lows),
        "upperPad": Shape(highs),
        "ceilOutDim": False,
        "includePad": not step.attr("exclusive", True),
    }
    step.give("Out", step.graph.add("Pooling", [image], attributes, shape=[image.shape[0], *counts]))


@writes("pixel_shuffle")
def _write_pixel_shuffle(step: Step) -> None:
    x, by = step.ref(), int(step.attr("upscale_factor"))
    channels, height, width = x.shape
    count = channels // (by * by)
    wide = step.transpose(step.reshape(x, [count, by, by, height, width]), [0, 3, 1, 4, 2])
    step.give("Out", step.reshape(wide, [count, height * by, width * by]))


@writes("shuffle_channel")
def _write_shuffle_channel(step: Step) -> None:
    x, groups = step.ref(), int(step.attr("group"))
    wide = step.reshape(x, [groups, x.shape[0] // groups, *x.shape[1:]])
    turned = step.transpose(wide, [1, 0, *range(2, wide.rank)])
    step.give("Out", step.reshape(turned, x.shape))
