"""Run an operator at a recorded point (see tests/ops/harness/recorded.py)."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework.opdef import NO_LOD, Array, LoD, OpDef, Spec, grad_name, registry
from tests.ops.harness.contract import View, full_attrs, run
from tests.ops.harness.recorded import Case, name_outputs, weights

__all__ = ["Replay", "compare", "decode"]


def decode(record: list[Any]) -> Array:
    """Return a recorded array."""
    dtype, shape, data = record
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape)


def compare(got: Array, record: list[Any], close: tuple[float, float], name: str) -> None:
    """Assert the shape and the dtype of a recorded array, and its numbers within (rtol, atol)."""
    want = decode(record)
    assert (got.shape, got.dtype) == (want.shape, want.dtype), name
    with np.errstate(invalid="ignore"):  # inf - inf, while it compares
        np.testing.assert_allclose(got, want, *close, err_msg=name)


class Replay:
    """A case with its variables named as in the recording."""

    def __init__(self, name: str, case: Case) -> None:
        self.name, self.case = name, case
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
            s: [n + "_out" for n in name_outputs(s, self.case.outputs[s])] if s in self.case.outputs else []
            for s in (o.name for o in self.op.output_slots)
        }
        self.view = View(self.case.type, self.inputs, outputs, full_attrs(self.op, self.case.attrs))

    def run(self) -> None:
        self._run(self.view)

    def _run(self, view: View) -> None:
        with np.errstate(all="ignore"):  # as the executor does
            run(view, self.values, self.lods)

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
        named: list[tuple[str, Spec | None]] = []
        for slot, spec_or_list in found:
            if spec_or_list is None:
                continue
            many = spec_or_list if isinstance(spec_or_list, list) else [spec_or_list]
            keys = name_outputs(slot, self.case.outputs.get(slot, ""))
            named += zip(keys, many, strict=True)
        return {key: self.with_level(key, spec) for key, spec in named if spec is not None}

    def out(self, key: str) -> tuple[Any, LoD]:
        """The value of an output and its LoD."""
        return self.values.get(key + "_out"), self.lods.get(key + "_out", [])

    def with_level(self, slot: str, spec: Spec) -> Spec:
        if spec.lod_level == NO_LOD:
            return spec._replace(lod_level=0)
        if spec.lod_level is not None:
            return spec
        source = self.op.lod if isinstance(self.op.lod, str) else (self.op.lod or {}).get(slot)
        return spec._replace(lod_level=len(self.lods.get(f"{source}_0", [])))

    def gradients(self) -> dict[str, Array]:
        """Return the gradients of the inputs; ``weights`` gives those that come from above."""
        for slot in self.case.outputs:
            out = self.values.get(slot + "_out")
            if out is not None:
                above = weights(self.name, slot, out) if slot in self.case.through else np.zeros_like(out)
                self.values[grad_name(slot + "_out")] = above
        for grad in self.op.make_grad(self.view):
            self._run(View(grad.type, grad.inputs, grad.outputs, grad.attrs))
        names = [name for slot in self.case.wrt for name in self.inputs[slot]]
        return {name: self.values[grad_name(name)] for name in names}
