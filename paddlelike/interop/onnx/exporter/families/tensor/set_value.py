"""set_value: overwrite a part of an array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.framework.opdef import registry
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.tensor.put import SetValueAttrs


@converts("set_value")
def _convert_set_value(step: Step) -> Value:
    """Write a value into a part of an array, by selecting elements of both."""
    step.refuse_inputs("StartsTensorList", "EndsTensorList", "StepsTensorList")
    attrs: SetValueAttrs = registry.find("set_value").make_forward_keywords(step.op.attrs, None)["attrs"]
    places = _find_places(step, attrs)
    if step.has("ValueTensor"):
        value, shape = step.input("ValueTensor"), list(step.shape("ValueTensor"))
    else:
        numbers = attrs.make_value()
        value, shape = step.constant(numbers, numbers.dtype), list(numbers.shape)
    value, shape = _align(step, value, shape, attrs)
    value = value.cast(step.dtype("Input"))
    mask = np.ones([1] * len(shape), bool)
    for axis, chosen in places.items():
        count = step.shape("Input")[axis]
        dims = [count if one == axis else 1 for one in range(len(shape))]
        mask = mask & np.isin(np.arange(count), chosen).reshape(dims)
        if shape[axis] != 1:
            sources = np.zeros(count, np.int64)
            sources[chosen] = np.arange(len(chosen))
            value = value.take(step.constant(sources, np.int64), axis)
    return step.constant(mask, np.bool_).where(value, step.input("Input"))


def _find_places(step: Step, attrs: SetValueAttrs) -> dict[int, list[int]]:
    """Return the written indexes of each axis that is only partly written."""
    shape, found = step.shape("Input"), {}
    for axis, start, end, stride in zip(attrs.axes, attrs.starts, attrs.ends, attrs.steps, strict=True):
        if shape[axis] < 0:
            step.refuse(f"Input has shape {shape}: dim {axis}, where a part is written, is not known")
        last = None if stride < 0 and end < -shape[axis] else end
        found[axis] = [*range(shape[axis])][start:last:stride]
        if axis in attrs.decrease_axes:
            found[axis] = [start % shape[axis]]
    return found


def _align(step: Step, value: Value, shape: Sequence[int], attrs: SetValueAttrs) -> tuple[Value, list[int]]:
    """Return the value with the dims of the array: dims that the index dropped are added, new dims are
    removed.
    """
    rank = step.rank("Input")
    kinds: list[int | None] = [*range(rank)]
    for axis in attrs.none_axes:
        kinds.insert(axis, None)
    kept = [kind for kind in kinds if kind is None or kind not in attrs.decrease_axes]
    missing = len(kept) - len(shape)
    if missing < 0:
        step.refuse(f"a value of shape {list(shape)} has more dims than the part that is written")
    value, dims = value.unsqueeze(*range(missing)), [1] * missing + list(shape)
    new = [place for place, kind in enumerate(kept) if kind is None]
    value = value.squeeze(*new)
    dims = [size for place, size in enumerate(dims) if place not in new]
    for axis in sorted(attrs.decrease_axes):
        value = value.unsqueeze(axis)
        dims.insert(axis, 1)
    return value, dims
