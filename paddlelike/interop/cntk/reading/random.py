"""Random numbers and samples, with CNTK's distributions but other numbers."""

from __future__ import annotations

from typing import Any

from paddlelike.core import VarType
from paddlelike.formats.cntk.dictionary import Shape
from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import Step, Value, reads
from paddlelike.layers.emit import emit_all


def _draw(step: Step, kind: str, shape: list[int], dtype: VarType, **attrs: Any) -> Variable:
    options = {"shape": shape, "dtype": int(dtype), "seed": 0, **attrs}
    if step.values and step.value().dynamic:
        options |= {"shape": [-1, *shape], "input_dim_idx": 0, "output_dim_idx": 0}
        inputs = {"Input": step.value().variable}
        return step.emit(f"{kind}_batch_size_like", inputs, options, dtype=dtype)
    return step.emit(kind, {}, options, dtype=dtype)


@reads("RandomDistribution")
def _read_distribution(step: Step) -> Value:
    kind, numbers = step.attr("randomDistributionType", str), step.attr("randomDistributionArgs", list)
    if step.values:
        like = step.value()
        shape, dtype = list(like.shape), like.variable.dtype
    else:
        shape = [int(one) for one in step.attr("newShape", Shape)]
        dtype = {1: VarType.FP32, 2: VarType.FP64}.get(step.attr("newDataType", int), VarType.FP32)
    known = {"uniform": 2, "normal": 2, "bernoulli": 1, "gumbel": 2}
    if known.get(kind) != len(numbers):
        step.refuse(f"it draws from {kind} with {len(numbers)} numbers")
    first, last = numbers[0], numbers[-1]
    if kind == "normal":
        out = _draw(step, "gaussian_random", shape, dtype, mean=float(first), std=float(last))
    elif kind == "uniform":
        out = _draw(step, "uniform_random", shape, dtype, min=float(first), max=float(last))
    elif kind == "bernoulli":
        out = _draw(step, "uniform_random", shape, dtype, min=0.0, max=1.0)
        limit = step.unary("fill_any_like", out, value=float(first), dtype=int(dtype))
        out = step.cast(step.binary("less_than", out, limit, dtype="bool"), dtype)
    else:
        out = step.scale(_draw_gumbel(step, shape, dtype), last, first)
    return Value(out, dynamic=False, sequence=False, rank=len(shape)) if not step.values else step.give(out)


def _draw_gumbel(step: Step, shape: list[int], dtype: VarType) -> Variable:
    uniform = _draw(step, "uniform_random", shape, dtype, min=1e-20, max=1.0)
    return step.scale(step.unary("log", step.scale(step.unary("log", uniform), -1)), -1)


def _find_weights(step: Step) -> Value:
    weights = step.value()
    if weights.dynamic or weights.rank != 1:
        step.refuse("its weights are not a single row")
    return weights


@reads("RandomSample")
def _read_sample(step: Step) -> Value:
    """Sample by the weights: take the index of the largest logarithm plus Gumbel noise (Gumbel, 1954)."""
    weights, count = _find_weights(step), int(step.attr("numSamples", int))
    total = weights.shape[0]
    again = step.attr("allowDuplicates", bool)
    if not again and count > total:
        step.refuse(f"it draws {count} of {total} without replacement")
    noise = _draw_gumbel(step, [count, total] if again else [total], weights.variable.dtype)
    scores = step.binary("elementwise_add", noise, step.unary("log", weights.variable))
    if again:
        chosen = step.emit("arg_max", {"X": scores}, {"axis": 1, "dtype": int(VarType.INT64)}, dtype="int64")
    else:
        chosen = _take_best(scores, count)
    attrs = {"depth": total, "dtype": int(VarType.FP32), "allow_out_of_range": False}
    out = step.cast(step.emit("one_hot_v2", {"X": chosen}, attrs, dtype="float32"), weights.variable.dtype)
    return weights._replace(variable=out, rank=2)


def _take_best(scores: Variable, count: int) -> Variable:
    outputs = {"Out": scores.dtype, "Indices": VarType.INT64}
    return emit_all("top_k", {"X": scores}, outputs, {"k": count})[1]


@reads("RandomSampleInclusionFrequency")
def _read_frequency(step: Step) -> Value:
    weights = _find_weights(step)
    if not step.attr("allowDuplicates", bool):
        step.refuse("it estimates inclusion frequencies of sampling without replacement")
    total = step.reduce("Sum", weights.variable, 0)
    shares = step.binary("elementwise_div", weights.variable, total)
    return weights._replace(variable=step.scale(shares, float(step.attr("numSamples", int))))
