"""Ask real Fluid 1.8.5 in which order it writes the variables of programs whose bytes vary (encoded.VARYING).

    python3.7 dump_variables.py OUT.json.gz

Writes {layer: {main, startup, with_backward: [[name, fields], ...] by block}}; fields says which of
lod_level (l), persistable (p) and need_check_feed (n) the VarDesc has.
"""

import gzip
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import paddle.fluid as fluid
import paddle.fluid.proto.framework_pb2 as pb2

sys.modules["paddlelike"] = fluid
sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.zoo.encoded import VARYING
from tests.zoo.layers import LAYERS


def list_variables(program):
    desc = pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
    return [[[var.name, describe(var)] for var in block.vars] for block in desc.blocks]


def describe(var):
    part = var.type.tensor_array if var.type.type == pb2.VarType.LOD_TENSOR_ARRAY else var.type.lod_tensor
    found = "l" if part.HasField("lod_level") else ""
    return found + "".join(name[0] for name in ("persistable", "need_check_feed") if var.HasField(name))


def record(build):
    main, startup = fluid.Program(), fluid.Program()
    result = {}
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(fluid.core.Scope()):
        try:
            out = build()
            result["main"], result["startup"] = list_variables(main), list_variables(startup)
            fluid.backward.append_backward(fluid.layers.mean(out))
            result["with_backward"] = list_variables(main)
        except Exception:
            pass
    return result


def main(out):
    records = {name: record(build) for name, build in LAYERS.items() if name in VARYING}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print(len(records), sum("main" in r for r in records.values()))


if __name__ == "__main__":
    main(sys.argv[1])
