"""Ask real Fluid 1.8.5 which variables are sequences when the layers of the zoo are fed sequences.

    python3.7 dump_lods.py OUT.json.gz

Every builder of tests/zoo/layers.py runs with an input `x` of LoD level 1, differentiable data, and
the gradient of its mean. Writes {layer: {variable: level}} with the levels that are not 0, null where
the layer refuses such an input.
"""

import gzip
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
sys.path.insert(0, str(Path(__file__).parents[3]))

import paddle.fluid as fluid
import paddle.fluid.proto.framework_pb2 as pb2

sys.modules["paddlelike"] = fluid  # the zoo builds with whatever `fluid` there is

from tests.zoo import layers
from tests.zoo.sequences import build


def main(out):
    table = {}
    for name in layers.LAYERS:
        program, startup = fluid.Program(), fluid.Program()
        scope = fluid.scope_guard(fluid.Scope())
        with fluid.unique_name.guard(), fluid.program_guard(program, startup), scope:
            try:
                build(fluid, name)
                table[name] = levels(pb2.ProgramDesc.FromString(program.desc.serialize_to_string()))
            except Exception:
                table[name] = None
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(table, sort_keys=True, separators=(",", ":")).encode())
    print(len(table), "layers; refused:", [name for name, entry in table.items() if entry is None])


def levels(program):
    found = {}
    for block in program.blocks:
        for var in block.vars:
            kind = var.type
            level = kind.lod_tensor.lod_level or kind.tensor_array.lod_level
            if level:
                found[var.name] = level
    return found


if __name__ == "__main__":
    main(sys.argv[1])
