"""The operators of the contract's cases as programs that another system can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import paddlelike as fluid
from paddlelike.core import LoDTensor
from paddlelike.framework.opdef import registry
from tests.ops.harness.contract import Case, _expected, full_attrs

__all__ = ["FOR_TRAINING", "OVER_STATISTICS", "Arrays", "build", "narrow"]

Arrays = dict[str, Any]
#: Operators whose outputs over their inputs a model for prediction leaves as they are.
OVER_STATISTICS: Final = ("batch_norm", "data_norm", "inplace_abn", "sync_batch_norm")

#: Outputs for gradients and for training, which a model for prediction does not have.
FOR_TRAINING: Final = {
    "BatchSize", "Mask", "Mean", "MeanOut", "Means", "MidOut", "SavedMean", "SavedVariance", "Scales",
    "Variance", "VarianceOut", "XShape",
}  # fmt: skip


def narrow(value: Any) -> Any:
    """Return an array with real numbers as float32, which other systems compute with."""
    array = np.array(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def build(
    case: Case,
    has_samples: Callable[[str, Any], bool] = lambda slot, array: False,
    *,
    with_lod: bool = True,
) -> tuple[fluid.Program, Arrays, list[str]]:
    """Return a program of one operator, what it is fed, and the outputs that the case has a value for.

    What an operator writes over its input, as an update does, is an output of its own. ``has_samples`` says
    whether the first dim of a slot's array is only known at run time. Without ``with_lod`` inputs are arrays.
    """
    op = registry.find(case.type)
    program, feed = fluid.Program(), {}
    block = program.global_block()
    inputs: dict[str, list[Any]] = {}
    for slot in op.input_slots:
        given = case.inputs.get(slot.name)
        items = [] if given is None else given if isinstance(given, list) else [given]
        for index, item in enumerate(items):
            lod = item.lod() if with_lod and isinstance(item, LoDTensor) else []
            array = narrow(item.array if isinstance(item, LoDTensor) else item)
            name = f"{slot.name}_{index}"
            first = [-1] if lod or has_samples(slot.name, array) else []
            variable = block.create_var(
                name=name,
                shape=[*first, *array.shape[len(first) :]],
                dtype=array.dtype,
                is_data=True,
                lod_level=len(lod),
            )
            variable.stop_gradient = True
            inputs.setdefault(slot.name, []).append(variable)
            feed[name] = LoDTensor(array, lod) if lod else array
    expected = _expected(case)
    outputs, wanted = {}, []
    for slot in op.output_slots:
        if op.inplace.get(slot.name) in inputs:
            given = inputs[op.inplace[slot.name]]
            if case.type in OVER_STATISTICS:
                outputs[slot.name] = given
                continue
            outputs[slot.name] = [
                block.create_var(name=f"{one.name}_new", shape=one.shape, dtype=one.dtype) for one in given
            ]
            wanted += [f"{one.name}_new" for one in given]
            continue
        count = len(expected[slot.name]) if slot.several else 1
        made = [block.create_var(name=f"{slot.name}_out_{i}", dtype="float32") for i in range(count)]
        outputs[slot.name] = made
        if slot.name in expected and slot.name not in FOR_TRAINING:
            wanted += [one.name for one in made]
    attrs = full_attrs(op, case.attrs)
    if "is_test" in op.attrs:
        attrs |= {"is_test": True} | ({"trainable_statistics": False} if case.type == "batch_norm" else {})
    if "dtype" in case.attrs or "out_dtype" in case.attrs:
        for name in ("dtype", "in_dtype", "out_dtype"):
            if attrs.get(name) == int(fluid.core.VarType.FP64):
                attrs[name] = int(fluid.core.VarType.FP32)
    block.append_op(type=case.type, inputs=inputs, outputs=outputs, attrs=attrs)
    return program, feed, wanted
