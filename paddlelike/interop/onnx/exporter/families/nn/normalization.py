"""Normalization, dropout and embeddings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.interop.onnx.exporter.families.nn.image import to_channels_first, to_format
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts


@converts("softmax", "log_softmax")
def _convert_softmax(step: Step) -> Value:
    """Convert a softmax; before version 13 its axis must be the last one."""
    kind = "Softmax" if step.op.type == "softmax" else "LogSoftmax"
    rank = step.rank()
    axis = step.attr("axis", -1) % max(rank, 1)
    if step.graph.opset >= 13 or axis >= rank - 1:
        return step.add(kind, step.input(), axis=axis)
    order = [*(i for i in range(rank) if i != axis), axis]
    out = step.add(kind, step.input().transpose(order), axis=rank - 1)
    return out.transpose([order.index(i) for i in range(rank)])


@converts("affine_channel")
def _convert_affine_channel(step: Step) -> Value:
    dims = (1,) * (step.rank() - 2 if step.attr("data_layout") == "NCHW" else 0)
    out = step.input() * step.input("Scale").reshape(-1, *dims)
    return out + step.input("Bias").reshape(-1, *dims)


@converts("batch_norm")
def _convert_batch_norm(step: Step) -> Value:
    test = step.attr("is_test") and not step.attr("trainable_statistics")
    if not (test or step.attr("use_global_stats")):
        step.refuse("it is in training mode; export program.clone(for_test=True)")
    layout, rank = step.attr("data_layout"), step.rank()
    x = to_channels_first(step.input(), layout, rank)
    parts = [step.input(slot) for slot in ("Scale", "Bias", "Mean", "Variance")]
    out = step.add("BatchNormalization", x, *parts, epsilon=float(step.attr("epsilon")))
    return to_format(out, layout, rank)


def _standardize(step: Step, x: Value, axes: Sequence[int]) -> Value:
    """Return ``(x - mean) / sqrt(var + epsilon)`` over some dims."""
    moved = x - x.reduce("ReduceMean", *axes, keep=True)
    variance = (moved * moved).reduce("ReduceMean", *axes, keep=True)
    deviation = step.add("Sqrt", variance + step.like(step.attr("epsilon")))
    return moved / deviation


@converts("layer_norm")
def _convert_layer_norm(step: Step) -> Value:
    """Convert a layer normalization, which ONNX has since opset 17; it requires a scale."""
    axis, rank, shape = step.attr("begin_norm_axis"), step.rank(), step.shape()
    parts = {slot: step.input(slot) for slot in ("Scale", "Bias") if step.has(slot)}
    if parts and axis < rank - 1:
        if -1 in shape[axis:]:
            step.refuse(f"it normalizes over dims {shape[axis:]}, which are not all known")
        parts = {slot: value.reshape(*shape[axis:]) for slot, value in parts.items()}
    if step.graph.opset >= 17 and "Scale" in parts:
        options = {"axis": axis, "epsilon": float(step.attr("epsilon"))}
        out = step.add("LayerNormalization", step.input(), *parts.values(), **options)
    else:
        out = _standardize(step, step.input(), range(axis, rank))
        for kind, slot in (("Mul", "Scale"), ("Add", "Bias")):
            out = step.add(kind, out, parts[slot]) if slot in parts else out
    return out


@converts("group_norm")
def _convert_group_norm(step: Step) -> Value:
    layout, rank = step.attr("data_layout"), step.rank()
    x = to_channels_first(step.input(), layout, rank)
    out = _standardize(step, x.reshape(0, step.attr("groups"), -1), [2])
    out = out.reshape(x.dims())
    for kind, slot in (("Mul", "Scale"), ("Add", "Bias")):
        if step.has(slot):
            out = step.add(kind, out, step.input(slot).reshape(-1, *(1,) * (rank - 2)))
    return to_format(out, layout, rank)


@converts("instance_norm")
def _convert_instance_norm(step: Step) -> Value:
    if step.rank() < 3 or not (step.has("Scale") and step.has("Bias")):
        step.refuse(f"X has {step.rank()} dims, or there is no Scale or Bias")
    parts = [step.input(), step.input("Scale"), step.input("Bias")]
    return step.add("InstanceNormalization", *parts, epsilon=float(step.attr("epsilon")))


@converts("lrn")
def _convert_lrn(step: Step) -> Value:
    """Convert an LRN; ONNX divides alpha by the size of the window."""
    size, layout, rank = step.attr("n"), step.attr("data_format"), step.rank()
    options = {"alpha": step.attr("alpha") * size, "beta": step.attr("beta"), "bias": step.attr("k")}
    x = to_channels_first(step.input(), layout, rank)
    out = step.add("LRN", x, size=size, **{name: float(value) for name, value in options.items()})
    return to_format(out, layout, rank)


@converts("data_norm")
def _convert_data_norm(step: Step) -> Value:
    if step.attr("slot_dim", -1) > 0 or step.attr("enable_scale_and_shift"):
        step.refuse("slot_dim or enable_scale_and_shift is set")
    size, total, square = (step.input(slot) for slot in ("BatchSize", "BatchSum", "BatchSquareSum"))
    moved = step.input() - total / size
    return moved * step.add("Sqrt", size / square)


@converts("dropout")
def _convert_dropout(step: Step) -> Value:
    if not step.attr("is_test"):
        step.refuse("it is in training mode; export program.clone(for_test=True)")
    out = step.input()
    if step.attr("dropout_implementation") != "upscale_in_train":
        kept = np.float32(1) - np.float32(step.attr("dropout_prob"))
        out = out * step.like(kept)
    return out


_NO_PADDING = -1


@converts("lookup_table", "lookup_table_v2")
def _convert_lookup(step: Step) -> Value:
    ids, rank, padding = step.input("Ids"), step.rank("Ids"), step.attr("padding_idx")
    if step.op.type == "lookup_table":
        ids = ids.squeeze(rank - 1)
    if padding == _NO_PADDING:
        return step.input("W").take(ids)
    padded = ids.equals(step.like(padding, "Ids"))
    rows = padded.where(0.0, ids)  # the padding id may be outside of the table
    out = step.input("W").take(rows)
    mask = padded.unsqueeze(-1)
    return mask.where(0.0, out)
