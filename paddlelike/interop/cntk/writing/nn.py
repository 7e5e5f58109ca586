"""Embeddings, images and normalization as functions of CNTK."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from paddlelike.formats.cntk.dictionary import Shape, SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, writes
from paddlelike.interop.cntk.writing.tensor import gather_rows, pad
from paddlelike.ops.kernels.nn.image.windows import Windows, is_channels_last, make_windows


@writes("lookup_table", "lookup_table_v2")
def _write_embedding(step: Step) -> Ref:
    ids, table = step.ref("Ids"), step.ref("W")
    static = ids.shape[:-1] if step.op.type == "lookup_table" else ids.shape
    wide = ids if ids.rank else ids.reshape([1])
    out = gather_rows(step, wide, table).reshape([*static, table.shape[1]])
    padding = step.attr("padding_idx", -1)
    if padding != -1:
        row = padding % table.shape[0]
        others = ids.reshape([*static, 1]).binary("NotEqual", ids.number(row))
        out = out * others
    return out


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
        step.refuse(f"its image has {image.rank} dims or no batch axis")


@writes("conv2d", "conv3d", "depthwise_conv2d")
def _write_convolution(step: Step) -> Ref:
    image, kernel = step.ref("Input"), step.ref("Filter")
    _check_image(step, image)
    if any(step.attr(name, None) for name in _FUSED):
        step.refuse("another operator is fused into it")
    windows = _windows(step, image.shape[1:], kernel.shape[2:])
    counts = windows.counts(image.shape[1:])
    lows, highs = zip(*windows.pads, strict=True)
    if any((*lows, *highs)):  # CNTK refuses automatic padding if the windows leave a rest
        image = pad(step, image, [0, *lows], [0, *highs], 0.0)
    attributes = _describe(kernel, windows.strides, windows.dilations, int(step.attr("groups")))
    out = step.graph.add("Convolution", [kernel, image], attributes, shape=[kernel.shape[0], *counts])
    if step.has("Bias"):
        bias = step.ref("Bias")
        out = out + bias.reshape([kernel.shape[0]] + [1] * len(counts))
    return out


def _describe(
    kernel: Ref,
    strides: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    *,
    transposed: Shape | None = None,
) -> dict[str, Any]:
    """Return the attributes of a convolution; the first number of each is for the channels."""
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
def _write_transposed(step: Step) -> Ref:
    image, kernel = step.ref("Input"), step.ref("Filter")
    _check_image(step, image)
    windows = _windows(step, image.shape[1:], kernel.shape[2:])
    if step.attr("groups") != 1 or set(windows.dilations) != {1} or step.attr("output_size", None):
        step.refuse("it has groups, dilations, or a given size of the output")
    sizes = [
        (size - 1) * stride + extent
        for size, stride, extent in zip(image.shape[1:], windows.strides, kernel.shape[2:], strict=True)
    ]
    attributes = _describe(kernel, windows.strides, windows.dilations, 1, transposed=Shape((0,)))
    out = step.graph.add("Convolution", [kernel, image], attributes, shape=[kernel.shape[1], *sizes])
    for dim, ((low, high), size) in enumerate(zip(windows.pads, sizes, strict=True)):
        out = out.slice(dim + 1, low, size - high)
    return out


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
def _write_pixel_shuffle(step: Step) -> Ref:
    x, by = step.ref(), int(step.attr("upscale_factor"))
    channels, height, width = x.shape
    count = channels // (by * by)
    wide = x.reshape([count, by, by, height, width]).transpose([0, 3, 1, 4, 2])
    return wide.reshape([count, height * by, width * by])


@writes("shuffle_channel")
def _write_shuffle_channel(step: Step) -> Ref:
    x, groups = step.ref(), int(step.attr("group"))
    wide = x.reshape([groups, x.shape[0] // groups, *x.shape[1:]])
    turned = wide.transpose([1, 0, *range(2, wide.rank)])
    return turned.reshape(x.shape)


@writes("softmax", "log_softmax")
def _write_softmax(step: Step) -> Ref:
    x = step.ref()
    dim = step.static_dim(step.attr("axis", -1), x)
    if x.rank == 1 and step.op.type == "softmax":
        return x.unary("Softmax")
    moved = x - x.reduce("LogSum", [dim])
    return moved.unary("Exp") if step.op.type == "softmax" else moved


@writes("dropout")
def _write_dropout(step: Step) -> Ref:
    """Write dropout. CNTK scales elements in training, Fluid's older mode scales them in prediction."""
    x, rate = step.ref(), float(step.attr("dropout_prob"))
    out = x
    if rate < 1:
        out = x.unary("Dropout", dropoutRate=rate, rngSeed=SizeT(0), rngOffset=SizeT(0))
    if step.attr("dropout_implementation") != "upscale_in_train":
        out = out.scale(1 - rate)
    return x.unary("NoOp") if out is x else out


@writes("batch_norm")
def _write_batch_norm(step: Step) -> Ref:
    test = step.attr("is_test") and not step.attr("trainable_statistics")
    if not (test or step.attr("use_global_stats")):
        step.refuse("it is in training mode; export program.clone(for_test=True)")
    x = step.ref()
    if step.attr("data_layout", "NCHW") != "NCHW" or x.rank not in (1, 3) or not x.dynamic:
        step.refuse(f"its input has {x.rank} dims, or its channels last")
    parts = [step.ref(slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    count = x.number(1)
    attributes = {
        "blendTimeConstant": 0.0,
        "disableRegularization": False,
        "epsilon": float(step.attr("epsilon")),
        "normalizationTimeConstant": _find_constant(step),
        "spatial": x.rank > 1,
        "useCuDNNEngine": False,
    }
    return step.graph.add("BatchNormalization", [x, *parts, count], attributes, shape=x.shape)


def _find_constant(step: Step) -> float:
    """Return the time constant in samples that gives running averages the same decay per minibatch."""
    momentum, batch = float(step.attr("momentum")), step.graph.batch
    if batch is None or not 0 < momentum < 1:
        return 5000.0  # CNTK's own default: it is not used in prediction
    return -batch / math.log(momentum)


def standardize(x: Ref, dims: Sequence[int], epsilon: float) -> Ref:
    """Return ``(x - mean) / sqrt(var + epsilon)`` over some static dims."""
    moved = x - x.reduce("Mean", dims)
    variance = (moved * moved).reduce("Mean", dims)
    return moved / variance.scale(1, epsilon).unary("Sqrt")


@writes("layer_norm")
def _write_layer_norm(step: Step) -> Ref:
    x = step.ref()
    start = step.static_dim(step.attr("begin_norm_axis"), x)
    out = standardize(x, range(start, x.rank), float(step.attr("epsilon")))
    for kind, slot in (("ElementTimes", "Scale"), ("Plus", "Bias")):
        if step.has(slot):
            out = out.binary(kind, step.ref(slot).reshape(x.shape[start:]))
    return out


def _scale_channels(step: Step, x: Ref) -> Ref:
    """Return an image times the scale of each channel, plus its bias."""
    for kind, slot in (("ElementTimes", "Scale"), ("Plus", "Bias")):
        if step.has(slot):
            x = x.binary(kind, step.ref(slot).reshape([x.shape[0]] + [1] * (x.rank - 1)))
    return x


def _check_channels(step: Step, x: Ref) -> None:
    layout = step.attr("data_layout", "NCHW")
    if layout not in ("NCHW", "AnyLayout") or not x.dynamic or x.rank < 2:
        step.refuse(f"its input has {x.rank} dims, or its channels last")


@writes("affine_channel")
def _write_affine(step: Step) -> Ref:
    x = step.ref()
    _check_channels(step, x)
    return _scale_channels(step, x)


@writes("instance_norm", "group_norm")
def _write_group_norm(step: Step) -> Ref:
    x = step.ref()
    _check_channels(step, x)
    groups = int(step.attr("groups", 0) or x.shape[0])
    if x.shape[0] % groups:
        step.refuse(f"{x.shape[0]} channels are not {groups} groups of one size")
    flat = x.reshape([groups, math.prod(x.shape) // groups])
    out = standardize(flat, [1], float(step.attr("epsilon"))).reshape(x.shape)
    return _scale_channels(step, out)
