"""Random values with Paddle's distributions but other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import VarType, dtype_row
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts


def _draw(step: Step, shape: list[int] | Value, *, normal: bool) -> Value:
    """Return random values in a shape, which is known or given by a value."""
    if step.attr("diag_num"):
        step.refuse("its diagonal has a value of its own")
    attrs: dict[str, Any] = {"dtype": dtype_row(VarType(step.attr("dtype"))).onnx}
    if step.attr("seed"):
        attrs["seed"] = float(step.attr("seed"))
    names = {"mean": "mean", "scale": "std"} if normal else {"low": "min", "high": "max"}
    attrs |= {name: float(step.attr(theirs)) for name, theirs in names.items()}
    kind = "RandomNormal" if normal else "RandomUniform"
    if isinstance(shape, list):
        return step.add(kind, shape=shape, **attrs)
    return step.add(f"{kind}Like", step.add("ConstantOfShape", shape), **attrs)


@converts("gaussian_random", "uniform_random")
def _convert_random(step: Step) -> Value:
    shape: list[int] | Value = list(step.attr("shape"))
    if step.has("ShapeTensor") or step.has("ShapeTensorList"):
        shape = step.numbers("shape", "ShapeTensor", "ShapeTensorList")
    return _draw(step, shape, normal=step.op.type == "gaussian_random")


@converts("gaussian_random_batch_size_like", "uniform_random_batch_size_like")
def _convert_random_like(step: Step) -> Value:
    theirs, ours = step.attr("input_dim_idx"), step.attr("output_dim_idx")
    dims = [step.ints(dim) for dim in step.attr("shape")]
    dims[ours] = step.input("Input").dims(theirs, theirs + 1)
    shape = step.concat(*dims)
    return _draw(step, shape, normal=step.op.type.startswith("gaussian"))


@converts("randint")
def _convert_randint(step: Step) -> Value:
    step.refuse_inputs("ShapeTensor", "ShapeTensorList")
    low, high = step.attr("low"), step.attr("high")
    attrs = {"seed": float(step.attr("seed"))} if step.attr("seed") else {}
    drawn = step.add(
        "RandomUniform", shape=list(step.attr("shape")), low=float(low), high=float(high), dtype=11, **attrs
    )
    return step.add("Floor", drawn).cast(VarType(step.attr("dtype")))


@converts("randperm")
def _convert_randperm(step: Step) -> Value:
    attrs = {"seed": float(step.attr("seed"))} if step.attr("seed") else {}
    drawn = step.add("RandomUniform", shape=[step.attr("n")], dtype=11, **attrs)
    _, order = step.add_several("TopK", drawn, step.ints(step.attr("n")), count=2)
    return order.cast(VarType(step.attr("dtype")))


@converts("sampling_id")
def _convert_sampling_id(step: Step) -> Value:
    """Sample one column per row with probability proportional to its value (multinomial)."""
    if (step.attr("min"), step.attr("max")) != (0.0, 1.0):
        step.refuse("min and max are not 0 and 1")
    attrs = {"seed": float(step.attr("seed"))} if step.attr("seed") else {}
    logarithms = step.add("Log", step.input().cast(np.float32))
    drawn = step.add("Multinomial", logarithms, dtype=dtype_row(VarType.INT64).onnx, **attrs)
    return drawn.reshape(-1)
