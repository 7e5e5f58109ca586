"""Ask real Fluid 1.8.5 what it makes of the programs in second_order_cases.py or recompute_cases.py.

    python3.7 dump_programs.py second_order_cases OUT.json.gz

Writes {case: {main, startup: programs (base64 of zlib), losses: of every step}}.
"""

import gzip
import importlib
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import paddle.fluid as fluid

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop/dumps"))
from real_programs import encode_program


def main(module, out):
    sys.path.insert(0, str(Path(__file__).parent))
    cases = importlib.import_module(module)
    records = {name: record(cases, case) for name, case in cases.CASES.items()}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    print({name: r["losses"] for name, r in records.items()})


def record(cases, case):
    program, startup = fluid.Program(), fluid.Program()
    program.random_seed = startup.random_seed = cases.SEED
    fluid.framework._name_scope = fluid.framework.NameScope()
    with fluid.unique_name.guard(), fluid.program_guard(program, startup), fluid.scope_guard(fluid.Scope()):
        loss = case(fluid)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        losses = []
        for step in range(cases.STEPS):
            feed = {n: a for n, a in cases.feeds(step).items() if program.global_block().has_var(n)}
            losses.append(float(exe.run(program, feed=feed, fetch_list=[loss])[0][0]))
    return {"main": encode_program(program), "startup": encode_program(startup), "losses": losses}


if __name__ == "__main__":
    main(*sys.argv[1:])
