"""Ask real Fluid 1.8.5 for what a module of cases compares (see tests/ops/harness/recorded.py).

    python3.7 -m tests.interop.dumps.dump_cases tests.ops.sequence_cases OUT.json.gz

Runs under an interpreter that has paddlepaddle 1.8.5. Writes {case: record}:

out     {variable: [array, offsets by level]}, null where the operator left it alone
built   {variable: [dims, lod_level, number of the dtype]} when the program was built
grad    {input variable: array}, for weights() on the outputs that the case names
levels  {input variable: lod_level of its gradient when the program was built}
leveled {variable: lod_level when the program was built with inputs that have a level}, where asked for

An input variable is called <slot>_<index>. An array is [dtype, dims, base64 of its bytes].
"""

import base64
import gzip
import importlib
import json
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid

from tests.ops.harness.recorded import add_level, name_outputs, weights


def encoded(array):
    array = np.ascontiguousarray(array)
    return [array.dtype.name, list(np.shape(array)), base64.b64encode(array.tobytes()).decode()]


def tensor(array, lod):
    made = fluid.LoDTensor()
    made.set(array, fluid.CPUPlace())
    if lod:
        made.set_lod(lod)
    return made


class Asked:
    """A program of one operator, and what it was fed; ``fixed``: it declares how many rows there are."""

    def __init__(self, case, fixed=False):
        self.program = fluid.Program()
        self.block = self.program.global_block()
        self.feed, self.inputs = {}, {}
        for slot, items in case.inputs.items():
            items = items if isinstance(items, list) else [items]
            shapes = [item[0].shape if fixed and isinstance(item, tuple) else None for item in items]
            self.inputs[slot] = [self.data(f"{slot}_{i}", item, shapes[i]) for i, item in enumerate(items)]
        self.slots, self.outputs = {}, {}
        for slot, dtypes in case.outputs.items():
            self.slots[slot] = name_outputs(slot, dtypes)
            dtypes = [dtypes] if isinstance(dtypes, str) else dtypes
            for name, dtype in zip(self.slots[slot], dtypes):  # noqa: B905  (Python 3.7)
                self.outputs[name] = self.block.create_var(name=name + "_out", dtype=dtype)
        self.block.append_op(
            type=case.type,
            inputs=self.inputs,
            outputs={slot: [self.outputs[name] for name in names] for slot, names in self.slots.items()},
            attrs=case.attrs,
        )

    def data(self, name, item, shape=None):
        array, lod = item if isinstance(item, tuple) else (item, [])
        self.feed[name] = tensor(array, lod)
        dims = [-1, *array.shape[1:]] if lod else list(array.shape)
        return self.block.create_var(
            name=name,
            shape=dims if shape is None else shape,
            dtype=array.dtype.name,
            lod_level=len(lod),
            stop_gradient=array.dtype.kind != "f",
        )

    def run(self, variables):
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            return exe.run(self.program, self.feed, list(variables), return_numpy=False)


def record(name, case, leveled):
    asked = Asked(case)
    slots = sorted(asked.outputs)
    built = {s: [list(v.shape), v.lod_level, int(v.dtype)] for s, v in asked.outputs.items()}
    found = dict(zip(slots, asked.run([asked.outputs[s] for s in slots])))  # noqa: B905  (Python 3.7)
    out = {s: [encoded(t), t.lod()] if t._is_initialized() else None for s, t in found.items()}
    result = {"out": out, "built": built}
    if leveled:
        result["leveled"] = {s: v.lod_level for s, v in Asked(add_level(case), fixed=True).outputs.items()}
    if case.wrt:
        above = []
        for slot in case.through:
            values = weights(name, slot, np.array(found[slot]))
            item = (values, found[slot].lod())
            above.append(asked.data("above_" + slot, item, asked.outputs[slot].shape))
        targets = [variable for slot in case.wrt for variable in asked.inputs[slot]]
        grads = fluid.gradients([asked.outputs[slot] for slot in case.through], targets, above)
        pairs = list(zip(targets, grads))  # noqa: B905
        result["grad"] = {v.name: encoded(g) for v, g in zip(targets, asked.run(grads))}  # noqa: B905
        result["levels"] = {v.name: g.lod_level for v, g in pairs}
    return result


def main(module, out):
    cases = importlib.import_module(module)
    records = {}
    for name, case in sorted(cases.CASES.items()):
        try:
            records[name] = record(name, case, getattr(cases, "LEVELED", False))
        except Exception as error:  # the author of the case decides what becomes of it
            print("REFUSED", name, str(error).partition("Error Message Summary:")[2][-400:])
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print(len(records), "cases")


if __name__ == "__main__":
    main(*sys.argv[1:])
