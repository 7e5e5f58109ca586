"""Run one operator, or a model, here and in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import paddlelike as fluid
from paddlelike.core import convert_dtype
from paddlelike.framework.opdef import registry
from tests.helpers.single_operators import FOR_TRAINING, narrow
from tests.ops.harness.contract import Case, _expected, full_attrs

Arrays = dict[str, Any]
#: Operators whose outputs over their inputs a model for prediction leaves as they are.
OVER_STATISTICS = ("batch_norm", "data_norm", "inplace_abn", "sync_batch_norm")


def build(case: Case) -> tuple[fluid.Program, Arrays, list[str]]:
    """Return a program of one operator, what it is fed, and the outputs that the case has a value for.

    What an operator writes over its input, as an update does, is an output of its own.
    """
    op = registry.find(case.type)
    program, feed = fluid.Program(), {}
    block = program.global_block()
    inputs: dict[str, list[Any]] = {}
    for slot in op.input_slots:
        given = case.inputs.get(slot.name)
        items = [] if given is None else given if isinstance(given, list) else [given]
        for index, item in enumerate(items):
            array = narrow(item)
            name = f"{slot.name}_{index}"
            variable = block.create_var(name=name, shape=array.shape, dtype=array.dtype, is_data=True)
            variable.stop_gradient = True
            inputs.setdefault(slot.name, []).append(variable)
            feed[name] = array
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
            if attrs.get(name) == int(convert_dtype("float64")):
                attrs[name] = int(convert_dtype("float32"))
    block.append_op(type=case.type, inputs=inputs, outputs=outputs, attrs=attrs)
    return program, feed, wanted


def run_here(program: fluid.Program, feed: Arrays, fetches: list[str]) -> list[Any]:
    with fluid.scope_guard(fluid.Scope()):
        tensors = fluid.Executor().run(program, feed=feed, fetch_list=fetches, return_numpy=False)
    return [np.array(tensor) for tensor in tensors]


def run_onnx(file: Path, feed: Arrays) -> list[Any]:
    """Check a file, and return the outputs that onnxruntime computes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")
    onnx.checker.check_model(str(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    given = {port.name: feed[port.name] for port in session.get_inputs()}
    return list(session.run(None, given))
