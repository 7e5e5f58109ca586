"""Convolutions, pools and normalization of CNTK."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from paddlelike.formats.cntk.dictionary import Shape
from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import Step, Value, reads
from paddlelike.layers.emit import emit_all

_LARGEST: Final = 1 << 20  # pixels along a dim


def _fill(numbers: Sequence[Any], count: int) -> list[Any]:
    """Return one number per dim; the last number of CNTK's list is repeated for further dims."""
    found = list(numbers)
    return [found[0]] * (count - len(found)) + found if found else [0] * count


def _check_sizes(step: Step, *sizes: int) -> None:
    """Raise an error for impossible windows and paddings, before windows are counted."""
    if max(sizes, default=0) > _LARGEST:
        step.refuse(f"its windows or paddings have the size {max(sizes)}")


def _pad(step: Step, spatial: Sequence[int], extent: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return the padding before and after each spatial dim.

    Automatic padding centers the windows: both ends share the remainder.
    """
    count = len(spatial)
    automatic = _fill(step.attr("autoPadding", list)[::-1], count)[-count:]
    lows, highs = (_fill(step.attr(name, Shape), count)[-count:] for name in ("lowerPad", "upperPad"))
    _check_sizes(step, *spatial, *extent, *strides, *lows, *highs)
    pads: list[int] = []
    for dim, (size, window, stride) in enumerate(zip(spatial, extent, strides, strict=True)):
        low, high = int(lows[dim]), int(highs[dim])
        if automatic[dim]:
            if size < 0:
                step.refuse("it pads images whose size is not known")
            reach = (size - 1) // stride * stride
            low = (window - 1) // 2 - (size - 1 - reach) // 2
            high = reach + window - size - low
        pads += [low, high]
    return pads


def _cut(step: Step, image: Value, pads: list[int]) -> tuple[Variable, list[int]]:
    """Return the image without leading rows and columns that no window covers, and nonnegative paddings."""
    gaps = [-low if low < 0 else 0 for low in pads[::2]]
    if not any(gaps):
        return image.variable, [max(pad, 0) for pad in pads]
    axes = [dim for dim, gap in enumerate(gaps) if gap]
    attrs = {
        "axes": [dim + 2 for dim in axes],
        "starts": [gaps[dim] for dim in axes],
        "ends": [2**31 - 1] * len(axes),
        "decrease_axis": [],
    }
    return step.emit("slice", {"Input": image.variable}, attrs), [max(pad, 0) for pad in pads]


@reads("Convolution")
def _read_convolution(step: Step) -> Value:
    kernel, image = step.value(), step.value(1)
    if kernel.rank == image.rank and not kernel.dynamic:  # a single map, without a dim
        kernel = kernel._replace(
            variable=step.reshape_all(kernel.variable, [1, *kernel.shape]), rank=kernel.rank + 1
        )
    count = kernel.rank - 2
    if count not in (1, 2, 3) or image.rank != count + 1 or step.attr("sequential", bool, False):
        step.refuse(f"its kernel has {kernel.rank} dims, its image {image.rank}")
    if kernel.dynamic or not image.dynamic:
        step.refuse("its kernel has samples, or its image has none")
    spatial = image.shape[1:]
    strides, dilations = _dims(step, "strides", count), _dims(step, "dilation", count)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilations, strict=True)]
    groups = int(step.attr("groups", int, 1)) or 1
    options: dict[str, Any] = {"strides": strides, "dilations": dilations, "groups": groups}
    if step.attr("transpose", bool, False):
        return _transpose(step, kernel, image, extent, options)
    x, pads = _cut(step, image, _pad(step, spatial, extent, strides))
    if count > 1:
        inputs = {"Input": x, "Filter": kernel.variable}
        options |= _describe(count, pads)
        return step.give(step.emit(f"conv{count}d", inputs, options, slot="Output"), image)
    flat = {"Input": _flatten(step, x), "Filter": _flatten(step, kernel.variable)}
    options |= {name: [1, *options[name]] for name in ("strides", "dilations")} | _describe(2, [0, 0, *pads])
    out = step.emit("conv2d", flat, options, slot="Output")
    return step.give(_line_up(step, out), image)


def _flatten(step: Step, x: Variable) -> Variable:
    """Return one-dimensional signals as images of one row."""
    return step.reshape_all(x, [*x.shape[:2], 1, x.shape[2]])


def _line_up(step: Step, x: Variable) -> Variable:
    """Return images of one row as one-dimensional signals."""
    return step.reshape_all(x, [*x.shape[:2], x.shape[3]])


def _describe(count: int, pads: list[int]) -> dict[str, Any]:
    layout = "NCDHW" if count == 3 else "NCHW"
    return {"paddings": pads, "padding_algorithm": "EXPLICIT", "data_format": layout}


def _dims(step: Step, name: str, count: int) -> list[int]:
    return [int(one) or 1 for one in _fill(step.attr(name, Shape, Shape((1,))), count)[-count:]]


def _transpose(
    step: Step, kernel: Value, image: Value, extent: Sequence[int], options: dict[str, Any]
) -> Value:
    """Transposed convolution: the output has the size of the convolution's input."""
    count = len(extent)
    if options["groups"] != 1:
        step.refuse("it is a transposed convolution with groups")
    wanted = step.attr("outputShape", Shape, Shape((0,)))
    automatic = _fill(step.attr("autoPadding", list)[::-1], count)[-count:]
    lows, highs = (_fill(step.attr(name, Shape), count)[-count:] for name in ("lowerPad", "upperPad"))
    _check_sizes(step, *image.shape[1:], *extent, *options["strides"], *lows, *highs, *wanted)
    pads: list[int] = []
    for dim, (size, window, stride) in enumerate(
        zip(image.shape[1:], extent, options["strides"], strict=True)
    ):
        low, high = int(lows[dim]), int(highs[dim])
        if automatic[dim]:
            said = len(wanted) == count + 1 and all(wanted)
            out = wanted[1 + dim] if said else (size - 1) * stride + 1
            low = (window - 1) // 2 - (out - 1 - (size - 1) * stride) // 2
            high = (size - 1) * stride + window - out - low
            if low < 0 or high < 0:
                step.refuse(f"its windows of {window}, by steps of {stride}, do not cover its output")
        pads += [low, high]
    inputs = {"Input": image.variable, "Filter": kernel.variable}
    if count == 1:
        inputs = {slot: _flatten(step, variable) for slot, variable in inputs.items()}
        options |= {name: [1, *options[name]] for name in ("strides", "dilations")}
        pads = [0, 0, *pads]
    options |= _describe(max(count, 2), pads)
    out = step.emit(f"conv{max(count, 2)}d_transpose", inputs, options, slot="Output")
    return step.give(_line_up(step, out) if count == 1 else out, image)


@reads("Pooling")
def _read_pooling(step: Step) -> Value:
    image = step.value()
    count = image.rank - 1
    window = [int(one) for one in step.attr("poolingWindowShape", Shape)]
    if count not in (1, 2, 3) or not image.dynamic:
        step.refuse(f"its image has {image.rank} dims")
    if max(window, default=0) >= 2**31:  # a mark: the whole image
        return step.give(_pool(step, image, list(image.shape[1:]), [1] * count, [0] * 2 * count))
    if len(window) > count:
        if window[:-count] != [1] * (len(window) - count):
            step.refuse("it pools over channels")
        window = window[-count:]
    window = _fill(window, count)
    strides = _dims(step, "strides", count)
    pads = _pad(step, image.shape[1:], window, strides)
    return step.give(_pool(step, image, window, strides, pads))


def _pool(step: Step, image: Value, window: list[int], strides: list[int], pads: list[int]) -> Variable:
    count = len(window)
    x, pads = _cut(step, image, pads)
    if count == 1:
        x, window, strides, pads = _flatten(step, x), [1, *window], [1, *strides], [0, 0, *pads]
    attrs = {
        "pooling_type": "avg" if step.attr("poolingType", int) == 1 else "max",
        "ksize": window,
        "strides": strides,
        "ceil_mode": bool(step.attr("ceilOutDim", bool, False)),
        "exclusive": not step.attr("includePad", bool, False),
        **_describe(len(window), pads),
    }
    out = step.emit(f"pool{len(window)}d", {"X": x}, attrs)
    return _line_up(step, out) if count == 1 else out


@reads("ROIPooling")
def _read_roi_pooling(step: Step) -> Value:
    """Pool regions, given as rows of each sample; every image has the same number of regions."""
    image, regions = step.value(), step.value(1)
    if image.rank != 3 or regions.rank != 2 or not (image.dynamic and regions.dynamic):
        step.refuse("its image does not have 3 dims and samples, or its regions are not rows of samples")
    if step.attr("poolingType", int) != 0:
        step.refuse("it pools by averaging")
    count, (height, width) = regions.shape[0], step.attr("roiOutputShape", Shape)
    inputs = {
        "X": image.variable,
        "ROIs": step.reshape_all(regions.variable, [-1, 4]),
        "RoisLod": step.add_up(step.fill_rows(image, count)),
    }
    options: dict[str, Any] = {"pooled_height": int(height), "pooled_width": int(width)}
    options |= {"spatial_scale": float(step.attr("spatialScale", float))}
    out, _ = emit_all("roi_pool", inputs, {"Out": image.variable.dtype, "Argmax": "int32"}, options)
    return image._replace(variable=step.reshape_all(out, [-1, count, image.shape[0], height, width]), rank=4)


@reads("Unpooling")
def _read_unpooling(step: Step) -> Value:
    """Put the first input where the second has the maximum of each window, and zeros elsewhere."""
    pooled, image = step.value(), step.value(1)
    window = [int(one) for one in step.attr("unpoolingWindowShape", Shape)]
    strides, sizes = _dims(step, "strides", 2), list(image.shape[1:])
    fits = [
        size == window[dim] + strides[dim] * ((size - window[dim]) // strides[dim])
        for dim, size in enumerate(sizes)
    ]
    if (
        len(window) != 2
        or image.rank != 3
        or step.attr("poolingType", int) != 0
        or not all(fits)
        or window != strides
    ):
        step.refuse("its windows are not side by side in an image of two dims, or it is not a maximum")
    if any(_pad(step, sizes, window, strides)):
        step.refuse("it pads")
    attrs = {
        "ksize": window,
        "strides": strides,
        "paddings": [0, 0],
        "global_pooling": False,
        "adaptive": False,
    }
    outputs = {"Out": image.variable.dtype, "Mask": "int32"}
    _, places = emit_all("max_pool2d_with_index", {"X": image.variable}, outputs, attrs)
    options = {"ksize": window, "strides": strides, "paddings": [0, 0], "unpooling_type": "max"}
    return step.give(step.emit("unpool", {"X": pooled.variable, "Indices": places}, options), image)


@reads("Softmax", "LogSoftmax")
def _read_softmax(step: Step) -> Value:
    """Compute the softmax over the whole sample; CNTK saves one along an axis as simpler operations."""
    value = step.value()
    flat = step.reshape(value, [-1]) if value.rank != 1 else value.variable
    if step.kind == "Softmax":
        out = step.unary("softmax", flat, axis=int(value.dynamic))
    else:
        out = step.binary("elementwise_sub", flat, step.log_sum(flat, [int(value.dynamic)]))
    return step.give(step.reshape(value._replace(variable=out, rank=1), value.shape))


@reads("Dropout")
def _read_dropout(step: Step) -> Value:
    """Drop elements in training and scale the others; do nothing in prediction."""
    value = step.value()
    attrs = {
        "dropout_prob": step.attr("dropoutRate", float),
        "dropout_implementation": "upscale_in_train",
        "is_test": not step.training,
        "fix_seed": False,
        "seed": 0,
    }
    dtype = value.variable.dtype
    out, _ = emit_all("dropout", {"X": value.variable}, {"Out": dtype, "Mask": "uint8"}, attrs)
    return step.give(out)


@reads("BatchNormalization")
def _read_batch_norm(step: Step) -> Value:
    """Normalize with the running mean and variance; in training with the minibatch's mean and variance.

    CNTK's running averages decay by samples, Fluid's by minibatches; both agree if all minibatches have
    one size.
    """
    value = step.value()
    scale, bias, mean, variance = (step.value(index) for index in range(1, 5))
    if not value.dynamic or value.rank not in (1, 3):
        step.refuse(f"its input has {value.rank} dims")
    if not step.attr("spatial", bool) and value.rank > 1:
        step.refuse("it normalizes each pixel by itself")
    dtype, count = value.variable.dtype, value.shape[0]
    attrs = {"epsilon": step.attr("epsilon", float), "data_layout": "NCHW"}
    inputs = {
        slot: step.reshape(one, [count])
        for slot, one in (("Scale", scale), ("Bias", bias), ("Mean", mean), ("Variance", variance))
    }
    names = ("Y", "SavedMean", "SavedVariance")
    outputs = {slot: step.create(f"{step.node.uid}.{slot}", dtype) for slot in names}
    if step.batch is None:
        attrs |= {"is_test": True, "use_global_stats": True}
    else:
        attrs |= {"is_test": False, "momentum": _find_momentum(step, step.batch)}
        if inputs["Mean"] is not mean.variable or inputs["Variance"] is not variance.variable:
            step.refuse("its running averages have more than one dim, which cannot be trained here")
    outputs |= {"MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"]}
    block = value.variable.block
    block.append_op(type="batch_norm", inputs={"X": value.variable, **inputs}, outputs=outputs, attrs=attrs)
    return step.give(outputs["Y"])


def _find_momentum(step: Step, batch: float) -> float:
    """Return the momentum of the running averages, for one minibatch."""
    constant = step.attr("normalizationTimeConstant", float)
    if constant < 0 or step.attr("blendTimeConstant", float, 0.0) != 0:
        step.refuse("its running averages are over all samples, which cannot be trained here")
    return math.exp(-batch / constant) if constant else 0.0
