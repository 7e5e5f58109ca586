"""Kernels of second gradients agree with differences of the gradient kernels, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.framework.opdef import grad_name, make_arguments, name_results, registry
from tests.ops.harness.contract import View, full_attrs

RNG = np.random.default_rng(4)
STEP = 1e-6


def real(*shape: int) -> Any:
    return RNG.uniform(0.3, 1.5, shape) * RNG.choice([-1, 1], shape)


X, Y, ROW = real(3, 4), real(3, 4), real(4)
PLANES = real(2, 3, 5)
MEAN = PLANES.mean(2)
INVERSE = 1 / np.sqrt(PLANES.var(2) + 1e-5)
POINTS = {
    "elementwise_add": {"Out@GRAD": real(3, 4), "X": X, "Y": ROW},
    "elementwise_sub": {"Out@GRAD": real(3, 4), "X": X, "Y": ROW},
    "elementwise_mul": {"Out@GRAD": real(3, 4), "X": X, "Y": ROW},
    "elementwise_div": {"Out@GRAD": real(3, 4), "X": X, "Y": ROW, "Out": real(3, 4)},
    "mul": {"X": X, "Y": real(4, 2), "Out@GRAD": real(3, 2)},
    "conv2d": {"Input": real(2, 4, 5, 5), "Filter": real(2, 2, 3, 3), "Output@GRAD": real(2, 2, 3, 3)},
    "conv3d": {"Input": real(1, 2, 3, 4, 3), "Filter": real(2, 2, 2, 2, 2), "Output@GRAD": real(1, 2, 2, 3, 2)},  # noqa: E501
    "relu": {"Out": Y, "Out@GRAD": real(3, 4)},
    "leaky_relu": {"Out": Y, "Out@GRAD": real(3, 4)},
    "elu": {"X": X, "Out@GRAD": real(3, 4)},
    "square": {"X": X, "Out@GRAD": real(3, 4)},
    "sqrt": {"Out": np.abs(Y), "Out@GRAD": real(3, 4)},
    "reshape2": {"XShape": np.zeros((0, 3, 4)), "Out@GRAD": real(12)},
    "reduce_sum": {"X": X, "Out@GRAD": real(4)},
    "reduce_mean": {"X": X, "Out@GRAD": real(4)},
    "expand": {"X": X, "Out@GRAD": real(6, 4)},
    "slice": {"Input": X, "Out@GRAD": real(2, 4)},
    "instance_norm": {
        "X": PLANES, "Scale": real(3), "Y@GRAD": real(2, 3, 5),
        "SavedMean": MEAN.reshape(-1), "SavedVariance": INVERSE.reshape(-1),
    },
}  # fmt: skip
ATTRS: dict[str, dict[str, Any]] = {
    "conv2d": {"groups": 2},
    "expand": {"expand_times": [2, 1]},
    "slice": {"axes": [0], "starts": [1], "ends": [3]},
}
#: Inputs that are constants of the point: second gradients by them do not exist.
FIXED = {"SavedMean", "SavedVariance", "XShape"}


class Context:
    """A context without LoD."""

    def __init__(self, op: View) -> None:
        self.op = op

    def lod(self, slot: str) -> list[list[int]]:
        return []

    def set_lod(self, slot: str, lod: list[list[int]]) -> None:
        assert lod == []


def run(
    type: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: Any, values: Any
) -> Any:
    """Run an operator on named values and return those that it gives."""
    op = registry.find(type)
    args = make_arguments(op.input_slots, inputs, values.get)
    context = [Context(View(type, inputs, outputs, attrs))] if op.context else []
    found = op.forward(*context, *args, **op.make_forward_keywords(attrs, outputs))
    return {name: value for _, name, value in name_results(op.output_slots, outputs, found)}


@pytest.mark.parametrize("type", POINTS)
def test_second_gradients_agree_with_differences(type: str) -> None:
    first = registry.find(f"{type}_grad")
    point = POINTS[type]
    attrs = full_attrs(registry.find(type), ATTRS.get(type, {}))
    inputs = {slot.name: [slot.name] if slot.name in point else [] for slot in first.input_slots}
    outputs = {
        slot.name: [f"out {slot.name}"]
        for slot in first.output_slots
        if "Bias" not in slot.name or type != "conv2d"
    }
    (second,) = first.make_grad(View(first.type, inputs, outputs, attrs))
    values = run(first.type, inputs, outputs, attrs, point)
    starts = {grad_name(name): real(*value.shape) for name, value in values.items() if value is not None}
    keyed = {
        slot: names
        for slot, names in second.inputs.items()
        if all(n in starts or n in point or n in values for n in names)
    }
    found = run(second.type, keyed, second.outputs, second.attrs, {**point, **values, **starts})
    assert found

    def total(at: dict[str, Any]) -> float:
        if type == "instance_norm":  # the statistics follow X
            planes = at["X"]
            at = at | {
                "SavedMean": planes.mean(2).reshape(-1),
                "SavedVariance": 1 / np.sqrt(planes.var(2) + 1e-5).reshape(-1),
            }
        results = run(first.type, inputs, outputs, attrs, at)
        return sum(float((starts[grad_name(n)] * v).sum()) for n, v in results.items() if v is not None)

    for name in point.keys() - FIXED:
        direction = real(*point[name].shape)
        ends = [total(point | {name: point[name] + sign * STEP * direction}) for sign in (1, -1)]
        wanted = (ends[0] - ends[1]) / (2 * STEP)
        got = found.get(grad_name(name))
        # central differences in float64: an error of about STEP^2, and 1e-16 / STEP
        np.testing.assert_allclose(
            0.0 if got is None else (got * direction).sum(), wanted, rtol=1e-6, atol=1e-7
        )


def test_every_second_gradient_is_checked() -> None:
    named = {n.removesuffix("_grad_grad") for n in registry.all_ops() if n.endswith("_grad_grad")}
    repeated = {"reduce_sum", "reduce_mean", "expand", "slice"}
    assert named | repeated == set(POINTS)
