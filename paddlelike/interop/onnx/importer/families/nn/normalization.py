"""Normalisation, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node, reads


@reads("Softmax", "LogSoftmax")
def _read_softmax(node: Node) -> Expression:
    """Compute a softmax along one dim; before version 13 over all dims from ``axis`` on."""
    x, rank = node.input(), node.rank()
    axis = node.axis(-1 if node.opset >= 13 else 1)
    if node.opset >= 13 or axis == rank - 1:
        out = node.emit("softmax", x, axis=axis)
    else:
        dims = node.dims()
        rows = x.reshape(*(0 for _ in dims[:axis]), -1)
        out = node.emit("softmax", rows, axis=-1)
        if dims[axis:].count(-1) > 1:
            node.refuse(f"it normalizes over dims {dims[axis:]}, and more than one of them is unknown")
        out = out.reshape(*(0 for _ in dims[:axis]), *dims[axis:])
    if node.type == "LogSoftmax":  # log of softmax itself is -inf where that is too small
        axes = [axis] if node.opset >= 13 else list(range(axis, rank))
        most = x.reduce("max", *axes)
        moved = x - most
        total = node.emit("exp", moved).reduce("sum", *axes)
        out = moved - node.emit("log", total)
    return out


@reads("BatchNormalization")
def _read_batch_norm(node: Node) -> Expression:
    if node.attr("training_mode", 0) or any(node.wants(index) for index in range(1, 5)):
        node.refuse("it is in training mode")
    parts = {
        name: node.variable(index) for index, name in enumerate(("X", "Scale", "Bias", "Mean", "Variance"))
    }
    options = {
        "is_test": True,
        "epsilon": float(node.attr("epsilon", 1e-5)),
        "momentum": float(node.attr("momentum", 0.9)),
    }
    block = node.graph.program.current_block()
    out, *saved = (
        block.create_var(name=node.graph.take_name("batch_norm.out"), dtype=node.dtype()) for _ in range(3)
    )
    block.append_op(
        type="batch_norm",
        inputs=parts,
        outputs={
            "Y": out,
            "MeanOut": parts["Mean"],
            "VarianceOut": parts["Variance"],
            "SavedMean": saved[0],
            "SavedVariance": saved[1],
        },
        attrs=options,
    )
    for index in (3, 4):  # statistics, which no optimizer changes
        variable = node.variable(index)
        variable.stop_gradient = True
        if hasattr(variable, "trainable"):
            variable.trainable = False
    return Expression(node.graph, out.name)


def _scale(node: Node, x: Expression, dims: Sequence[int]) -> Expression:
    """Return ``x * scale + bias``, with scale and bias reshaped to ``dims``."""
    for index, kind in ((1, "elementwise_mul"), (2, "elementwise_add")):
        if node.has(index):
            x = node.emit(kind, x, node.input(index).reshape(*dims))
    return x


@reads("InstanceNormalization")
def _read_instance_norm(node: Node) -> Expression:
    parts = {"X": node.input(), "Scale": node.input(1), "Bias": node.input(2)}
    epsilon = float(node.attr("epsilon", 1e-5))
    if node.rank() == 3:
        parts["X"] = node.input().unsqueeze(2)
        return node.emit("instance_norm", parts, epsilon=epsilon).squeeze(2)
    return node.emit("instance_norm", parts, epsilon=epsilon)


@reads("LayerNormalization")
def _read_layer_norm(node: Node) -> None:
    axis, dims = node.axis(-1), node.dims()
    options = {"epsilon": float(node.attr("epsilon", 1e-5)), "begin_norm_axis": axis}
    wanted = node.wants(1) or node.wants(2)
    if (
        axis
        and not wanted
        and all(math.prod(node.dims(i)) == math.prod(dims[axis:]) for i in (1, 2) if node.has(i))
    ):
        parts = {"X": node.input(), "Scale": node.input(1).reshape(-1)}
        if node.has(2):
            parts["Bias"] = node.input(2).reshape(-1)
        node.give(node.emit("layer_norm", parts, slot="Y", **options))
        return
    axes = range(axis, len(dims))
    out = _standardize(node, node.input(), axes, options["epsilon"])
    if wanted:
        mean, deviation = _find_moments(node, node.input(), axes, options["epsilon"])
        node.give(mean, 1)
        node.give(node.emit("reciprocal", deviation), 2)
    for index, kind in ((1, "elementwise_mul"), (2, "elementwise_add")):
        out = node.emit(kind, out, node.input(index)) if node.has(index) else out
    node.give(out)


def _standardize(node: Node, x: Expression, axes: Sequence[int], epsilon: float) -> Expression:
    mean, deviation = _find_moments(node, x, axes, epsilon)
    return (x - mean) / deviation


def _find_moments(
    node: Node, x: Expression, axes: Sequence[int], epsilon: float
) -> tuple[Expression, Expression]:
    """Return the mean and the deviation over some dims, which stay as 1."""
    mean = x.reduce("mean", *axes)
    variance = node.emit("square", x - mean).reduce("mean", *axes)
    return mean, node.emit("sqrt", variance.scale(bias=epsilon))


@reads("GroupNormalization")
def _read_group_norm(node: Node) -> Expression:
    """Normalize groups. There is a scale per channel since version 21, before that one per group."""
    groups, dims = node.attr("num_groups"), node.dims()
    rows = node.input().reshape(0, groups, -1)
    out = _standardize(node, rows, [2], float(node.attr("epsilon", 1e-5)))
    if node.opset < 21:
        out = _scale(node, out, (-1, 1))
    if dims[2:].count(-1) > 1:
        out = node.emit(
            "reshape2", {"X": out, "Shape": node.emit("shape", {"Input": node.input()})}, shape=list(dims)
        )
    else:
        out = out.reshape(0, *dims[1:])
    return out if node.opset < 21 else _scale(node, out, (-1, *(1,) * (len(dims) - 2)))


@reads("LpNormalization")
def _read_lp_normalization(node: Node) -> Expression:
    axis, order = node.axis(-1), node.attr("p", 2)
    size = node.emit("abs" if order == 1 else "square", node.input())
    size = size.reduce("sum", axis)
    size = size if order == 1 else node.emit("sqrt", size)
    least = node.like(np.finfo(node.dtype()).tiny)  # a row of zeros stays one
    return node.input() / size.maximum(least)


@reads("LRN")
def _read_lrn(node: Node) -> Expression:
    """Convert an LRN; ONNX divides alpha by the size of the window."""
    size = node.attr("size")
    options = {
        "alpha": node.attr("alpha", 1e-4) / size,
        "beta": node.attr("beta", 0.75),
        "k": node.attr("bias", 1.0),
    }
    if node.rank() != 4:
        node.refuse(f"X has {node.rank()} dims")
    return node.emit("lrn", node.input(), n=size, **{name: float(value) for name, value in options.items()})


@reads("RMSNormalization")
def _read_rms(node: Node) -> Expression:
    """Divide by the root mean square over the dims from ``axis`` on."""
    axis = node.axis(-1)
    x = node.input().cast(np.float32) if node.attr("stash_type", 1) == 1 else node.input()
    mean = node.emit("square", x).reduce("mean", *range(axis, node.rank()))
    root = node.emit("sqrt", mean.scale(1.0, float(node.attr("epsilon", 1e-05))))
    normal = (x / root).cast(node.dtype())
    return normal * node.input(1)
