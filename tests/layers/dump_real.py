"""Ask the real Fluid 1.8.5 what it builds for every call of a module.

`python -m tests.layers.dump_real OUT.json.gz [MODULE]`; MODULE has a table CALLS
(by default tests.layers.calls).

To be run by a Python that has paddlepaddle 1.8.5. A record holds the
programs in canonical form (see tests/helpers/canonical.py), the result, and the variables in order; of a
refused call the kind of error.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.proto.framework_pb2 as pb2

FIELDS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings",
    "BOOLEAN": "b", "BOOLEANS": "bools", "BLOCK": "block_idx", "LONG": "l", "BLOCKS": "blocks_idx",
    "LONGS": "longs",
}  # fmt: skip
TYPES = {number: name for name, number in pb2.VarType.Type.items()}


def shortest(value):
    return float(str(np.float32(value)))


def attribute(attr):
    kind = pb2.AttrType.Name(attr.type)
    value = getattr(attr, FIELDS[kind])
    if kind == "FLOAT":
        value = shortest(value)
    elif kind == "FLOATS":
        value = [shortest(one) for one in value]
    elif kind.endswith("S"):
        value = list(value)
    return [kind, value]


def variable(var):
    kind = var.type
    record = {"type": TYPES[kind.type], "persistable": var.persistable}
    tensor = kind.selected_rows if kind.HasField("selected_rows") else None
    if kind.HasField("lod_tensor"):
        tensor, record["lod_level"] = kind.lod_tensor.tensor, kind.lod_tensor.lod_level
    if tensor is not None:
        record["dtype"], record["shape"] = TYPES[tensor.data_type], list(tensor.dims)
    if kind.HasField("reader"):
        record["reader"] = [
            [TYPES[t.tensor.data_type], list(t.tensor.dims), t.lod_level] for t in kind.reader.lod_tensor
        ]
    if var.need_check_feed:
        record["need_check_feed"] = True
    return record


def operator(op):
    return {
        "type": op.type,
        "inputs": {slot.parameter: list(slot.arguments) for slot in op.inputs},
        "outputs": {slot.parameter: list(slot.arguments) for slot in op.outputs},
        "attrs": {a.name: attribute(a) for a in op.attrs if a.name != "op_callstack"},
    }


def canonical(program):
    desc = pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
    return {
        "version": desc.version.version if desc.HasField("version") else None,
        "blocks": [
            {
                "idx": block.idx,
                "parent_idx": block.parent_idx,
                "forward_block_idx": block.forward_block_idx,
                "vars": {var.name: variable(var) for var in block.vars},
                "ops": [operator(op) for op in block.ops],
            }
            for block in desc.blocks
        ],
    }


def record(call):
    main, startup = fluid.Program(), fluid.Program()
    fluid.framework._name_scope = fluid.framework.NameScope()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.core.Scope()):
        try:
            out = call(fluid)
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            return {"error": kinds, "text": str(error)[-300:]}
        found = {} if out is None else {
            "out": out.name, "out_shape": list(out.shape), "out_dtype": TYPES[int(out.dtype)],
            "out_stop_gradient": bool(out.stop_gradient), "out_persistable": bool(out.persistable),
        }  # fmt: skip
        kinds = [
            [block.idx, var.name, "Parameter" if fluid.io.is_parameter(var) else "Variable",
             bool(var.persistable), bool(var.stop_gradient)]
            for block in main.blocks
            for var in block.vars.values()
        ]  # fmt: skip
        found.update(main=canonical(main), startup=canonical(startup), python_vars=kinds)
        return found


if __name__ == "__main__":
    module = sys.argv[2] if len(sys.argv) > 2 else "tests.layers.calls"
    CALLS = importlib.import_module(module).CALLS
    records = {name: record(call) for name, call in sorted(CALLS.items())}
    for name, found in records.items():
        if "error" in found:
            print(name, found["error"][0], found.pop("text")[-160:])
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
