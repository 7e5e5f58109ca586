"""Mathematical operators give what real Fluid 1.8.5 gives: values, shapes, LoD, gradients, in float32."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.opdef import Array, OpDef, Spec, grad_name, registry
from tests.helpers.golden_data import table
from tests.ops.harness.contract import View, full_attrs, run
from tests.ops.math_cases import CASES, weights

GOLDEN = table("math")
#: Two float32 kernels that add in another order; sums of many terms cancel.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}


def decode(record: list[Any]) -> Array:
    dtype, shape, data = record
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


class Replay:
    """A case with its variables named as in the recording."""

    def __init__(self, name: str) -> None:
        type, given, attrs, self.wrt = CASES[name]
        self.op: type[OpDef] = registry.find(type)
        self.values: dict[str, Any] = {}
        self.inputs: dict[str, list[str]] = {}
        for slot in self.op.input_slots:
            many = given.get(slot.name, [])
            many = many if isinstance(many, list) else [many]
            self.inputs[slot.name] = [f"{slot.name}_{i}" for i in range(len(many))]
            self.values |= zip(self.inputs[slot.name], many, strict=True)
        outputs = {slot.name: [f"{slot.name}_out"] for slot in self.op.output_slots}
        self.view = View(type, self.inputs, outputs, full_attrs(self.op, attrs))

    def forward(self) -> dict[str, Array]:
        self._run(self.view)
        return {slot.name: self.values[f"{slot.name}_out"] for slot in self.op.output_slots}

    def _run(self, view: View) -> None:
        with np.errstate(all="ignore"):  # as the executor does
            run(view, self.values, {})

    def specs(self, lod_level: int) -> dict[str, Spec]:
        """What the shape rule says of every output slot, when all inputs have that LoD level."""
        kind = VarType.LOD_TENSOR
        args: list[Any] = []
        for slot in self.op.input_slots:
            values = [self.values[name] for name in self.inputs[slot.name]]
            specs = [Spec(v.shape, convert_dtype(v.dtype), lod_level, kind) for v in values]
            args.append(specs if slot.several else specs[0] if specs else None)
        result = self.op.infer(*args, **self.op.make_infer_keywords(self.view.attrs))
        slots = [slot.name for slot in self.op.output_slots]
        return dict(zip(slots, (result,) if len(slots) == 1 else result, strict=True))

    def lod_level(self, slot: str, spec: Spec) -> int:
        shares = self.op.lod if isinstance(self.op.lod, str) else (self.op.lod or {}).get(slot)
        return max(spec.lod_level, 0) if spec.lod_level is not None else int(shares is not None)

    def gradients(self, above: Array) -> dict[str, Array]:
        for slot in self.op.output_slots:
            name = f"{slot.name}_out"
            self.values[grad_name(name)] = np.zeros_like(self.values[name])
        self.values[grad_name("Out_out")] = above
        for grad in self.op.make_grad(self.view):
            self._run(View(grad.type, grad.inputs, grad.outputs, grad.attrs))
        names = [name for slot in self.wrt for name in self.inputs[slot]]
        return {name: self.values[grad_name(name)] for name in names}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    got = Replay(name).forward()
    for slot, record in GOLDEN[name]["out"].items():
        want = decode(record)
        assert (got[slot].shape, got[slot].dtype) == (want.shape, want.dtype), slot
        with np.errstate(invalid="ignore"):  # inf - inf, while it compares
            np.testing.assert_allclose(got[slot], want, **CLOSE, err_msg=slot)


@pytest.mark.parametrize("name", CASES)
def test_shapes_and_lod_when_the_program_is_built(name: str) -> None:
    replay = Replay(name)
    got = {slot: list(spec.shape) for slot, spec in replay.specs(lod_level=0).items()}
    assert got == GOLDEN[name]["shape"]
    levels = {slot: replay.lod_level(slot, spec) for slot, spec in replay.specs(lod_level=1).items()}
    assert levels == GOLDEN[name]["lod"]


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_gradients(name: str) -> None:
    replay = Replay(name)
    out = replay.forward()["Out"]
    got = replay.gradients(weights(name, out))
    for variable, record in GOLDEN[name]["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_allclose(got[variable], want, **CLOSE, err_msg=variable)
