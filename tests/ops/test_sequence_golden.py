"""Operators on sequences give what real Fluid 1.8.5 gives: values, LoD, declared shapes, gradients."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.framework.opdef import OWN, Array, LoD, OpDef, Spec, grad_name, registry
from tests.helpers.golden_data import table
from tests.ops.contract import View, full_attrs, run
from tests.ops.sequence_cases import CASES, weights

GOLDEN = table("sequences")
#: Two float32 kernels that add in another order; a CTC loss adds up logarithms over all steps.
CLOSE = {"rtol": 2e-6, "atol": 2e-6}
CLOSE_CTC = {"rtol": 1e-5, "atol": 5e-6}
#: LoD of arrays in batch order says how they were ordered; here nothing needs to know.
INTERNAL = ("BatchGate", "BatchHidden")


def decode(record: list[Any]) -> Array:
    dtype, shape, data = record
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


class Replay:
    """A case with its variables named as in the recording."""

    def __init__(self, name: str) -> None:
        self.name, self.case = name, CASES[name]
        self.op: type[OpDef] = registry.find(self.case.type)
        self.values: dict[str, Any] = {}
        self.lods: dict[str, LoD] = {}
        self.inputs: dict[str, list[str]] = {slot.name: [] for slot in self.op.input_slots}
        for slot, items in self.case.inputs.items():
            for i, item in enumerate(items if isinstance(items, list) else [items]):
                self.inputs[slot].append(f"{slot}_{i}")
                array, lod = item if isinstance(item, tuple) else (item, [])
                self.values[f"{slot}_{i}"] = array
                if lod:
                    self.lods[f"{slot}_{i}"] = lod
        outputs = {
            s: [s + "_out"] if s in self.case.outputs else [] for s in (o.name for o in self.op.output_slots)
        }
        self.view = View(self.case.type, self.inputs, outputs, full_attrs(self.op, self.case.attrs))

    def run(self) -> None:
        with np.errstate(all="ignore"):  # as the executor does
            run(self.view, self.values, self.lods)

    def specs(self) -> dict[str, Spec]:
        """What the shape rule says of every output slot."""

        def spec(name: str) -> Spec:
            array, lod = self.values[name], self.lods.get(name, [])
            dims = (-1, *array.shape[1:]) if lod else array.shape
            return Spec(dims, convert_dtype(array.dtype), len(lod), VarType.LOD_TENSOR)

        args: list[Any] = []
        for slot in self.op.input_slots:
            specs = [spec(name) for name in self.inputs[slot.name]]
            args.append(specs if slot.several else specs[0] if specs else None)
        result = self.op.infer(*args, **self.op.make_infer_keywords(self.view.attrs))
        slots = [slot.name for slot in self.op.output_slots]
        found = zip(slots, (result,) if len(slots) == 1 else result, strict=True)
        return {slot: self.with_level(slot, spec) for slot, spec in found if spec is not None}

    def with_level(self, slot: str, spec: Spec) -> Spec:
        if spec.lod_level is not None:
            return spec
        source = self.op.lod if isinstance(self.op.lod, str) else (self.op.lod or {}).get(slot)
        return spec._replace(lod_level=len(self.lods.get(f"{source}_0", [])))

    def gradients(self) -> dict[str, Array]:
        for slot in self.case.outputs:
            out = self.values.get(slot + "_out")
            if out is not None:
                above = weights(self.name, slot, out) if slot in self.case.through else np.zeros_like(out)
                self.values[grad_name(slot + "_out")] = above
        for grad in self.op.make_grad(self.view):
            run(View(grad.type, grad.inputs, grad.outputs, grad.attrs), self.values, self.lods)
        names = [name for slot in self.case.wrt for name in self.inputs[slot]]
        return {name: self.values[grad_name(name)] for name in names}


def tolerance(name: str) -> dict[str, float]:
    return CLOSE_CTC if name.startswith("warpctc") else CLOSE


@pytest.mark.parametrize("name", CASES)
def test_values_and_lod(name: str) -> None:
    replay = Replay(name)
    replay.run()
    for slot, record in GOLDEN[name]["out"].items():
        if record is None or slot in replay.case.ignore:
            continue
        want, got = decode(record[0]), replay.values[slot + "_out"]
        assert (got.shape, got.dtype) == (want.shape, want.dtype), slot
        np.testing.assert_allclose(got, want, **tolerance(name), err_msg=slot)
        if slot not in INTERNAL:
            assert replay.lods.get(slot + "_out", []) == record[1], slot


@pytest.mark.parametrize("name", CASES)
def test_shapes_declared_when_the_program_is_built(name: str) -> None:
    built = GOLDEN[name]["built"]
    for slot, spec in Replay(name).specs().items():
        if slot not in CASES[name].outputs:
            continue
        shape, level, dtype = built[slot]
        if slot == "MaxIndex":  # the operator leaves the dtype alone; the layer declares that of X
            dtype = int(spec.dtype)
        assert (list(spec.shape), spec.lod_level, int(spec.dtype)) == (shape, level, dtype), slot


@pytest.mark.parametrize("name", [name for name, record in GOLDEN.items() if "grad" in record])
def test_gradients(name: str) -> None:
    replay = Replay(name)
    replay.run()
    got = replay.gradients()
    for variable, record in GOLDEN[name]["grad"].items():
        want = decode(record)
        assert (got[variable].shape, got[variable].dtype) == (want.shape, want.dtype), variable
        np.testing.assert_allclose(got[variable], want, **tolerance(name), err_msg=variable)


def levels_of_gradients() -> list[str]:
    """LoD levels of gradients; that of sequence_reverse, its own gradient, has the level of its input."""
    return [name for name, record in GOLDEN.items() if "levels" in record and name != "sequence_reverse"]


@pytest.mark.parametrize("name", levels_of_gradients())
def test_declared_levels_of_gradients(name: str) -> None:
    replay = Replay(name)
    gradient = replay.op.gradient
    for variable, level in GOLDEN[name]["levels"].items():
        own = gradient is not None and gradient.lod == OWN
        assert level == (len(replay.lods.get(variable, [])) if own else 0), variable
