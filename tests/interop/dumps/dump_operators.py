"""Ask real Fluid 1.8.5 for the slots, attributes and gradients of its operators.

    python3.7 dump_operators.py OUT.json.gz [TYPE ...]

Runs under an interpreter that has paddlepaddle 1.8.5, one child process per question, because the
gradient makers of some operators abort the process. Writes {type: record}:

inputs, outputs   slot names in Paddle's order; "*" takes several variables, "?" may be absent
attrs             {name: [TYPE, default]}; "REQUIRED": must be given, "ABSENT": not filled in
grad              the gradient operators, made with every slot filled by variables <slot>_0 (and
                  <slot>_1 where it takes several); null where Paddle has none
grad_bare         the same with the optional input slots empty, where that differs
"""

import gzip
import json
import os
import re
import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
import paddle.fluid.proto.framework_pb2 as pb2
from paddle.fluid import core
from paddle.fluid.framework import OpProtoHolder

FIELDS = {
    "INT": "i", "FLOAT": "f", "STRING": "s", "INTS": "ints", "FLOATS": "floats",
    "STRINGS": "strings", "BOOLEAN": "b", "BOOLEANS": "bools", "BLOCK": "block_idx", "LONG": "l",
    "BLOCKS": "blocks_idx", "LONGS": "longs",
}  # fmt: skip
#: Values to try for an attribute that must be given, until the operator accepts one.
TRIALS = {
    "INT": [1, 2, 5], "FLOAT": [1.0], "STRING": ["x", "max", "avg"], "INTS": [[1, 1]],
    "FLOATS": [[1.0, 1.0], [1.0, 1.0, 1.0, 1.0]], "STRINGS": [["a"], ["elementwise_add", "relu"]],
    "BOOLEAN": [False], "BOOLEANS": [[False]], "LONG": [1], "LONGS": [[1, 1]],
}  # fmt: skip
#: What every operator has besides its own attributes.
COMMON = {"op_callstack", "op_device", "op_namescope", "op_role", "op_role_var"}


def main(out, types):
    types = types or sorted(OpProtoHolder.instance().op_proto_map)
    records = {name: record(name) for name in types}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print(len(records), "operators")


def record(name):
    result = in_child(lambda: declaration(name))
    result["grad"] = in_child(lambda: gradient(name, bare=False))
    if any(slot.endswith("?") for slot in result["inputs"]):
        bare = in_child(lambda: gradient(name, bare=True))
        if bare != result["grad"]:
            result["grad_bare"] = bare
    return result


def in_child(question):
    """The answer of a child process; None when it raised or was aborted."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            os.write(write, json.dumps(question()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return json.loads(answer) if answer else None


def declaration(name):
    proto, op, required = operator(name, bare=False)
    slots = {kind: [slot_text(slot) for slot in getattr(proto, kind)] for kind in ("inputs", "outputs")}
    given = attributes(op)
    attrs = {}
    for attr in proto.attrs:
        if attr.name not in COMMON:
            kind = pb2.AttrType.Name(attr.type)
            _, default = given.get(attr.name, (kind, "ABSENT"))
            attrs[attr.name] = [kind, "REQUIRED" if attr.name in required else default]
    return dict(slots, attrs=attrs)


def gradient(name, bare):
    _, op, _ = operator(name, bare)
    forward = attributes(op)
    grads, _ = core.get_grad_op_desc(op, set(), [])
    return [gradient_record(grad, forward) for grad in grads]


def gradient_record(grad, forward):
    message = pb2.OpDesc.FromString(grad.serialize_to_string())
    attrs = attributes(grad)
    return {
        "type": message.type,
        "inputs": {slot.parameter: list(slot.arguments) for slot in message.inputs},
        "outputs": {slot.parameter: list(slot.arguments) for slot in message.outputs},
        "attrs_kept": sorted(a for a in attrs if a not in COMMON and forward.get(a) == attrs[a]),
        "attrs_new": {
            a: v for a, v in attrs.items() if a not in COMMON and forward.get(a) != v
        },
        "inherits_op_namescope": "op_namescope" in attrs,
    }  # fmt: skip


def operator(name, bare):
    """An operator of that type with its slots filled, and the attributes that had to be given."""
    proto = OpProtoHolder.instance().get_op_proto(name)
    program = fluid.Program()
    block = program.desc.block(0)
    op = block.append_op()
    op.set_type(name)
    for slot in proto.inputs:
        op.set_input(slot.name, [] if bare and slot.dispensable else variables(block, slot))
    for slot in proto.outputs:
        op.set_output(slot.name, variables(block, slot))
    types = {attr.name: pb2.AttrType.Name(attr.type) for attr in proto.attrs}
    required, trials = [], iter(())
    while True:
        try:
            op.check_attrs()
        except Exception as error:
            attr = named_attribute(str(error))
            if attr is not None and attr not in required:
                required.append(attr)
                trials = iter(TRIALS.get(types[attr], [None]))
            value = next(trials)
            if types[required[-1]] == "BLOCK":
                op.set_block_attr(required[-1], program.desc.block(0))
            else:
                op._set_attr(required[-1], value)
        else:
            break
    operator.keep = program  # the description belongs to the program
    return proto, op, required


def variables(block, slot):
    names = [slot.name + "_0", slot.name + "_1"] if slot.duplicable else [slot.name + "_0"]
    for name in names:
        if not block.has_var(name.encode()):
            var = block.var(name.encode())
            var.set_type(core.VarDesc.VarType.LOD_TENSOR)
            var.set_dtype(core.VarDesc.VarType.FP32)
            var.set_shape([4, 4])
    return names


def named_attribute(message):
    found = re.search(r"Attribute \(?'?(\w+)", message)
    found = found or re.search(r"attribute '?(\w+)'? is required", message, re.IGNORECASE)
    return found.group(1) if found else None


def attributes(op):
    message = pb2.OpDesc.FromString(op.serialize_to_string())
    return {a.name: attribute(a) for a in message.attrs}


def attribute(attr):
    kind = pb2.AttrType.Name(attr.type)
    value = getattr(attr, FIELDS[kind])
    if kind == "FLOAT":
        value = float(str(np.float32(value)))
    elif kind == "FLOATS":
        value = [float(str(np.float32(x))) for x in value]
    elif kind.endswith("S"):
        value = list(value)
    return [kind, value]


def slot_text(slot):
    return slot.name + ("*" if slot.duplicable else "") + ("?" if slot.dispensable else "")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
