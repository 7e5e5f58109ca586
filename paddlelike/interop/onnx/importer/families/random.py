"""Random numbers of the same distribution as in other runtimes, but not the same numbers."""

from __future__ import annotations

from typing import Any

from paddlelike.core import VarType, convert_dtype
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads


def _draw(node: Node, kind: str, like: Expression | None, **attrs: Any) -> Expression:
    from onnx import helper

    asked = node.attr("dtype")
    if asked is not None:
        dtype = convert_dtype(helper.tensor_dtype_to_np_dtype(asked))
    else:
        dtype = VarType.FP32 if like is None else like.variable.dtype
    if dtype not in (VarType.FP32, VarType.FP64):
        dtype = VarType.FP32
    options = {"seed": 0, "dtype": int(dtype), **attrs}
    if like is None:
        return node.emit(kind, {}, shape=list(node.attr("shape")), **options)
    shape = list(like.shape)
    if -1 in shape[1:]:
        return node.emit(kind, {"ShapeTensor": like.dims_at_run()}, shape=shape, shaped=shape, **options)
    given = {"Input": like}
    return node.emit(
        f"{kind}_batch_size_like", given, shape=[-1, *shape[1:]], input_dim_idx=0, output_dim_idx=0, **options
    )


@reads("RandomUniform", "RandomUniformLike")
def _read_uniform(node: Node) -> Expression:
    like = node.input() if node.type.endswith("Like") else None
    low, high = float(node.attr("low", 0.0)), float(node.attr("high", 1.0))
    return _draw(node, "uniform_random", like, min=low, max=high)


@reads("RandomNormal", "RandomNormalLike")
def _read_normal(node: Node) -> Expression:
    like = node.input() if node.type.endswith("Like") else None
    mean, deviation = float(node.attr("mean", 0.0)), float(node.attr("scale", 1.0))
    return _draw(node, "gaussian_random", like, mean=mean, std=deviation)


@reads("Bernoulli")
def _read_bernoulli(node: Node) -> Expression:
    """Draw 1 with the probability in the input, else 0."""
    uniform = _draw(node, "uniform_random", node.input(), min=0.0, max=1.0).cast(node.dtype())
    return compare(node, "less_than", uniform, node.input()).cast(node.dtype())
