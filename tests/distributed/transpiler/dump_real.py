"""Ask real Fluid 1.8.5 what it makes of cases (plain values, see networks.py).

    python3.7 dump_real.py CASES.json OUT.json

Runs under an interpreter that has paddlepaddle 1.8.5. Writes {case: record}; a record is {"error": text}, or
{"programs": {role: [main, startup]}, "overview": rows}, programs as base64 of zlib of bytes without
`op_callstack`.
"""

import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import paddle.fluid as fluid

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "interop/dumps"))
from real_programs import encode_program

TRANSPILER = sys.modules["paddle.fluid.transpiler.distribute_transpiler"]
TYPES = TRANSPILER.LOOKUP_TABLE_TYPE


def load_networks():
    path = Path(__file__).parent / "networks.py"
    spec = importlib.util.spec_from_file_location("networks", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(cases, out):
    networks = load_networks()
    given = json.loads(Path(cases).read_text())
    records = {name: in_child(lambda case=case: record(networks, case)) for name, case in given.items()}
    Path(out).write_text(json.dumps(records))


def in_child(question):
    """The answer of a child process: what fails leaves the real system changed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer = question()
        except Exception as error:
            answer = {"error": "%s: %s" % (type(error).__name__, str(error)[-300:])}
        with os.fdopen(write, "wb") as file:
            file.write(json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return json.loads(answer)


def record(networks, case):
    # 1.8.5 compares the type of an operator with a list where it looks for tables sharded by id
    sharded = case.get("args", {}).get("is_distributed")
    TRANSPILER.LOOKUP_TABLE_TYPE = "lookup_table" if sharded else TYPES
    made = networks.programs(fluid, case, fresh)
    return {
        "programs": {role: [encode_program(one) for one in pair] for role, pair in made.items()},
        "overview": networks.overview(fluid, case, fresh),
    }


def fresh():
    fluid.framework._name_scope = fluid.framework.NameScope()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
