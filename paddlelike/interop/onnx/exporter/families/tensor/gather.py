"""Operators that read, select and write by indexes in another tensor; and constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.framework.environment import PADDLE2_VERSION
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from paddlelike.core import DtypeLike


@converts("gather")
def _convert_gather(step: Step) -> Value:
    step.refuse_inputs("Axis")
    index = step.input("Index")
    index = index.reshape(-1) if step.rank("Index") == 2 else index
    return step.input().take(index, step.attr("axis", 0))


@converts("index_select")
def _convert_index_select(step: Step) -> Value:
    index = step.input("Index").reshape(-1)
    return step.input().take(index, step.attr("dim"))


@converts("gather_nd")
def _convert_gather_nd(step: Step) -> Value:
    index = step.input("Index").cast("int64")
    return step.add("GatherND", step.input(), index)


@converts("index_sample")
def _convert_index_sample(step: Step) -> Value:
    return step.add("GatherElements", step.input(), step.input("Index"), axis=1)


@converts("take_along_axis")
def _convert_take_along_axis(step: Step) -> Value:
    return step.add("GatherElements", step.input("Input"), step.input("Index"), axis=step.attr("Axis"))


@converts("scatter")
def _convert_scatter(step: Step) -> Value:
    """Scatter rows. Without ``overwrite`` the rows are first set to zero, then added to."""
    ids = step.input("Ids").reshape(-1, 1).cast("int64")
    x, updates = step.input(), step.input("Updates")
    if step.attr("overwrite"):
        return step.add("ScatterND", x, ids, updates)
    blank = step.add("ScatterND", x, ids, updates - updates)
    return _scatter_add(step, blank, ids, updates)


def _scatter_add(step: Step, x: Value, places: Value, updates: Value) -> Value:
    if step.graph.opset < 16:
        step.refuse("it adds, which needs opset 16")
    return step.add("ScatterND", x, places, updates, reduction="add")


@converts("scatter_nd_add")
def _convert_scatter_nd_add(step: Step) -> Value:
    places = step.input("Index").cast("int64")
    return _scatter_add(step, step.input(), places, step.input("Updates"))


@converts("masked_select")
def _convert_masked_select(step: Step) -> Value:
    return step.add("Compress", step.input(), step.input("Mask").reshape(-1))


@converts("repeat_interleave")
def _convert_repeat(step: Step) -> Value:
    step.refuse_inputs("RepeatsTensor")
    axis, times = step.attr("dim", 0), step.attr("Repeats", 1)
    size = step.input().dims(axis, axis + 1 or np.iinfo(np.int64).max).squeeze(0)
    end = size * step.constant(times, np.int64)
    places = end.range()
    places = places / times
    return step.input().take(places, axis)


@converts("eye")
def _convert_eye(step: Step) -> Value:
    rows, columns = step.attr("num_rows"), step.attr("num_columns")
    dtype = numpy_dtype(VarType(step.attr("dtype", VarType.FP32)))
    return step.constant(np.eye(rows, rows if columns < 0 else columns), dtype)


@converts("linspace")
def _convert_linspace(step: Step) -> Value:
    start, stop, count = (step.input(slot).reshape() for slot in ("Start", "Stop", "Num"))
    count = count.cast("int64")
    is_later = step.op.block.program.paddle_version >= PADDLE2_VERSION
    one, dtype = step.scalar(1), np.dtype(np.float64) if is_later else step.dtype("Start")
    places = step.add("Range", step.scalar(0), count, one).cast(dtype)
    gaps = (count - one).maximum(one).cast(dtype)
    if is_later:
        start, stop = start.cast(dtype), stop.cast(dtype)
    gap = (stop - start) / gaps
    out = start + places * gap
    if is_later:  # the second half is counted from the end
        rest = (gaps - places) * gap
        is_first = places + places < gaps
        out = is_first.where(out, stop - rest)
        out = out.cast(numpy_dtype(VarType(step.attr("dtype", VarType.FP32))))
    return out


@converts("where")
def _convert_where(step: Step) -> Value:
    return step.input("Condition").where(step.input(), step.input("Y"))


@converts("one_hot", "one_hot_v2")
def _convert_one_hot(step: Step) -> Value:
    """Convert one_hot; invalid ids give zeros, where ONNX's OneHot counts negative ids from the end."""
    step.refuse_inputs("depth_tensor")
    ids = step.input() if step.op.type == "one_hot" else step.input().unsqueeze(step.rank())
    classes = step.constant(np.arange(step.attr("depth")), step.dtype())
    return ids.equals(classes).cast(VarType(step.attr("dtype", VarType.FP32)))


def _find_value(step: Step) -> float:
    text = step.attr("str_value", "")
    return float(text) if text else step.attr("value", 0.0)


def _fill(step: Step, dims: Value, value: ArrayLike, dtype: DtypeLike) -> Value:
    return step.constant(value, numpy_dtype(dtype)).expand(dims)


@converts("fill_constant")
def _convert_fill_constant(step: Step) -> Value:
    step.refuse_inputs("ValueTensor")
    dtype = VarType(step.attr("dtype", VarType.FP32))
    if step.has("ShapeTensor") or step.has("ShapeTensorList"):
        dims = step.numbers("shape", "ShapeTensor", "ShapeTensorList")
        return _fill(step, dims, _find_value(step), dtype)
    value = np.full(step.attr("shape"), _find_value(step)).astype(numpy_dtype(dtype))
    return step.constant(value, value.dtype)


@converts("fill_constant_batch_size_like")
def _convert_fill_like_batch(step: Step) -> Value:
    if step.variable("Input").lod_level:
        step.refuse("the number of sequences is the batch size")
    shape, at, source = step.attr("shape"), step.attr("output_dim_idx", 0), step.attr("input_dim_idx", 0)
    parts = [step.ints(*shape[:at])] if at else []
    parts.append(step.input("Input").dims(source, source + 1))
    parts += [step.ints(*shape[at + 1 :])] if shape[at + 1 :] else []
    dims = step.concat(*parts)
    return _fill(step, dims, _find_value(step), VarType(step.attr("dtype", VarType.FP32)))


@converts("fill_any_like", "fill_zeros_like")
def _convert_fill_like(step: Step) -> Value:
    given = step.attr("dtype", -1) if step.op.type == "fill_any_like" else -1
    dtype = VarType(given) if given >= 0 else step.variable("X").dtype
    return _fill(step, step.input().dims(), _find_value(step), dtype)


@converts("assign_value")
def _convert_assign_value(step: Step) -> Value:
    dtype = numpy_dtype(VarType(step.attr("dtype")))
    names = ("bool_values", "fp32_values", "int32_values", "int64_values")
    values = next((step.attr(name) for name in names if step.attr(name)), None)
    if values is None:
        step.refuse("it holds no values")
    return step.constant(np.array(values, dtype).reshape(step.attr("shape")), dtype)


@converts("range")
def _convert_range(step: Step) -> Value:
    bounds = [step.input(slot).reshape() for slot in ("Start", "End", "Step")]
    return step.add("Range", *bounds)


@converts("put_along_axis")
def _convert_put_along_axis(step: Step) -> Value:
    kinds = {"assign": "none", "add": "add", "mul": "mul", "multiply": "mul"}
    kind = kinds.get(step.attr("Reduce"))
    if kind is None or (kind != "none" and step.graph.opset < 16):
        step.refuse(f"Reduce is {step.attr('Reduce')!r}; add and mul need opset 16")
    index = step.input("Index")
    value = step.input("Value").expand(index.dims())
    attrs = {} if kind == "none" else {"reduction": kind}
    x = step.input("Input")
    return step.add("ScatterElements", x, index, value, axis=step.attr("Axis"), **attrs)


@converts("index_add")
def _convert_index_add(step: Step) -> Value:
    """Add slices, with the indexed dim moved to the front."""
    order = list(range(step.rank()))
    order.insert(0, order.pop(step.attr("axis") % step.rank()))
    x, value = (step.input(slot).transpose(order) for slot in ("X", "AddValue"))
    index = step.input("Index").reshape(-1, 1).cast("int64")
    out = _scatter_add(step, x, index, value)
    return out.transpose(np.argsort(order).tolist())


@converts("index_put")
def _convert_index_put(step: Step) -> Value:
    indices = [step.op.block._var_recursive(name) for name in step.op.input("indices")]
    if any(one.dtype == VarType.BOOL for one in indices):
        step.refuse("an index is a mask")
    several = [one.cast("int64") for one in step.inputs("indices")]
    shape = several[0]
    for other in several[1:]:
        shape = shape + other
    dims = shape.dims()
    rank = max(len(one.shape) for one in indices)
    whole = [one.expand(dims).unsqueeze(rank) for one in several]
    places = step.concat(*whole, axis=-1)
    rest = step.input("x").dims(len(several), step.rank("x"))
    value = step.input("value").expand(step.concat(dims, rest))
    x = step.input("x")
    if step.attr("accumulate"):
        return _scatter_add(step, x, places, value)
    return step.add("ScatterND", x, places, value)


@converts("logspace")
def _convert_logspace(step: Step) -> Value:
    start, stop, base = (step.input(slot).reshape().cast("float64") for slot in ("Start", "Stop", "Base"))
    count, one = step.input("Num").reshape().cast("int64"), step.scalar(1)
    places = step.add("Range", step.scalar(0), count, one).cast("float64")
    gaps = (count - one).maximum(one).cast("float64")
    gap = (stop - start) / gaps
    exponents = start + places * gap
    return step.add("Pow", base, exponents).cast(VarType(step.attr("dtype")))
