"""The cases of the operator tests as programs for CNTK: their inputs with samples, or without."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import LoDTensor, SelectedRows
from paddlelike.framework.opdef import registry
from paddlelike.interop.cntk.writing.writers import load_writers
from tests.helpers.single_operators import FOR_TRAINING, narrow
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case, _expected, full_attrs

Arrays = dict[str, Any]

#: Slots whose first dim is the samples.
_SAMPLES = {"X", "Input", "Ids", "Logits", "Label", "Labels", "Predicted", "Condition"}


def _list_values(case: Case) -> list[Any]:
    values = case.inputs.values()
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


WRITTEN = [
    case
    for case in CASES
    if case.type in load_writers() and not any(isinstance(one, SelectedRows) for one in _list_values(case))
]


def _has_samples(case: Case, slot: str, array: np.ndarray) -> bool:
    first = np.asarray(next(iter(_list_values(case))))
    if slot == "X" and case.type == "gather":
        return False
    if slot in ("Y", "Index"):
        return array.ndim == first.ndim and array.shape[:1] == first.shape[:1] and "mul" not in case.type[:4]
    return slot in _SAMPLES and array.ndim > 0


def build(case: Case, *, samples: bool) -> tuple[fluid.Program, Arrays, list[str]]:
    """Return a program of one operator, what it is fed, and the outputs that the case has a value for."""
    op = registry.find(case.type)
    program, feed = fluid.Program(), {}
    block = program.global_block()
    inputs: dict[str, list[Any]] = {}
    for slot in op.input_slots:
        given = case.inputs.get(slot.name)
        items = [] if given is None else given if isinstance(given, list) else [given]
        for index, item in enumerate(items):
            lod = item.lod() if isinstance(item, LoDTensor) else []
            array = narrow(item.array if isinstance(item, LoDTensor) else item)
            name = f"{slot.name}_{index}"
            first = [-1] if lod or (samples and _has_samples(case, slot.name, array)) else []
            shape = [*first, *array.shape[len(first) :]]
            variable = block.create_var(
                name=name, shape=shape, dtype=array.dtype, is_data=True, lod_level=len(lod)
            )
            variable.stop_gradient = True
            inputs.setdefault(slot.name, []).append(variable)
            feed[name] = LoDTensor(array, lod) if lod else array
    expected = _expected(case)
    outputs, wanted = {}, []
    for slot in op.output_slots:
        count = len(expected[slot.name]) if slot.several else 1
        made = [block.create_var(name=f"{slot.name}_out_{i}", dtype="float32") for i in range(count)]
        outputs[slot.name] = made
        if slot.name in expected and slot.name not in FOR_TRAINING:
            wanted += [one.name for one in made]
    attrs = full_attrs(op, case.attrs)
    if "is_test" in op.attrs:
        attrs |= {"is_test": True} | ({"trainable_statistics": False} if case.type == "batch_norm" else {})
    block.append_op(type=case.type, inputs=inputs, outputs=outputs, attrs=attrs)
    return program, feed, wanted
