"""Ask real Fluid 1.8.5 for the values and gradients of tests/ops/math_cases.py.

    python3.7 dump_math.py OUT.json.gz

Runs under an interpreter that has paddlepaddle 1.8.5. Writes {case: record}:

out     {output slot: array}
shape   {output slot: dims when the program was built}
lod     {output slot: lod_level when X has one} or what building it with a LoD raised
grad    {input variable: array}, for weights() on the last output slot that is not a by-product

An array is [dtype, dims, base64 of its bytes].
"""

import base64
import gzip
import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.framework import OpProtoHolder


def load_cases():
    path = Path(__file__).parents[2] / "ops" / "math_cases.py"
    spec = importlib.util.spec_from_file_location("math_cases", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(out):
    cases = load_cases()
    records = {name: record(cases, name, *case) for name, case in sorted(cases.CASES.items())}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print(len(records), "cases")


def encoded(array):
    array = np.ascontiguousarray(array)
    return [array.dtype.name, list(np.shape(array)), base64.b64encode(array.tobytes()).decode()]


def build(type, inputs, attrs, lod_level=0):
    """A program of the one operator; its feeds and its output variables by slot."""
    block = fluid.default_main_program().global_block()
    feeds, variables = {}, {}
    for slot, given in inputs.items():
        variables[slot] = []
        for i, array in enumerate(given if isinstance(given, list) else [given]):
            name = f"{slot}_{i}"
            feeds[name] = array
            variables[slot].append(
                block.create_var(
                    name=name,
                    shape=array.shape,
                    dtype=array.dtype.name,
                    lod_level=lod_level,
                    stop_gradient=False,
                )
            )
    slots = [slot.name for slot in OpProtoHolder.instance().get_op_proto(type).outputs]
    outputs = {slot: block.create_var(name=slot + "_out", dtype="float32") for slot in slots}
    if attrs.get("out_dtype") == 6:
        outputs["Out"].desc.set_dtype(fluid.core.VarDesc.VarType.FP64)
    block.append_op(type=type, inputs=variables, outputs={s: [v] for s, v in outputs.items()}, attrs=attrs)
    return feeds, variables, outputs


def record(cases, name, type, inputs, attrs, wrt):
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(fluid.Program()), fluid.scope_guard(fluid.Scope()):
        _, _, outputs = build(type, inputs, attrs, lod_level=1)
        lod = {slot: variable.lod_level for slot, variable in outputs.items()}
    with fluid.program_guard(fluid.Program()), fluid.scope_guard(fluid.Scope()):
        feeds, variables, outputs = build(type, inputs, attrs)
        slots = sorted(outputs)
        values = exe.run(feed=feeds, fetch_list=[outputs[slot] for slot in slots])
        found = dict(zip(slots, values))  # noqa: B905  (Python 3.7)
        result = {
            "out": {slot: encoded(value) for slot, value in found.items()},
            "shape": {slot: list(outputs[slot].shape) for slot in slots},
            "lod": lod,
        }
        if wrt:
            out = outputs["Out"]
            weights = cases.weights(name, found["Out"])
            block = fluid.default_main_program().global_block()
            above = block.create_var(
                name="above", shape=out.shape, dtype=weights.dtype.name, stop_gradient=True
            )
            targets = [variable for slot in wrt for variable in variables[slot]]
            grads = fluid.gradients([out], targets, [above])
            values = exe.run(feed=dict(feeds, above=weights), fetch_list=grads)
            pairs = zip(targets, values)  # noqa: B905
            result["grad"] = {variable.name: encoded(value) for variable, value in pairs}
        return result


if __name__ == "__main__":
    main(sys.argv[1])
