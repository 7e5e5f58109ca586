"""Ask real Fluid 1.8.5 what it makes of the programs in tests/optimizer/harness/cases.py.

    python3.7 dump_training.py OUT.json.gz

Runs under an interpreter that has paddlepaddle 1.8.5. Writes {case: record}:

main, startup   the programs' bytes (base64 of zlib), without `op_callstack`
persistables    {name: [values]} after the startup program and after the last step, flat
losses          of every step
error           what building or running it raised, where it did
"""

import gzip
import importlib.util
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import numpy as np
import paddle.fluid as fluid
from real_programs import encode_program


def load_cases():
    path = Path(__file__).resolve().parents[2] / "optimizer/harness/cases.py"
    spec = importlib.util.spec_from_file_location("cases", str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(out):
    cases = load_cases()
    records = {name: record(cases, case) for name, case in cases.CASES.items()}
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(records, sort_keys=True, separators=(",", ":")).encode())
    failed = {name: r["error"] for name, r in records.items() if "error" in r}
    print(len(records), "programs; failed:", json.dumps(failed, indent=1))


def record(cases, case):
    program, startup = fluid.Program(), fluid.Program()
    program.random_seed = startup.random_seed = cases.SEED
    fluid.framework._name_scope = fluid.framework.NameScope()
    result = {}
    try:
        with fluid.unique_name.guard(), fluid.program_guard(program, startup):
            loss = case(fluid)
        result["main"], result["startup"] = encode_program(program), encode_program(startup)
        names = [v.name for v in program.list_vars() if fluid.io.is_persistable(v)]
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(fluid.CPUPlace())
            exe.run(startup)
            before = values(names)
            losses = [exe.run(program, feed=fed(program, b), fetch_list=[loss]) for b in cases.feeds()]
            result["losses"] = [float(value[0][0]) for value in losses]
            result["persistables"] = {n: [before[n], after] for n, after in values(names).items()}
    except Exception as error:
        result["error"] = str(error).strip()[-300:]
    return result


def fed(program, batch):
    return {name: array for name, array in batch.items() if program.global_block().has_var(name)}


def values(names):
    scope = fluid.global_scope()
    return {n: np.array(scope.find_var(n).get_tensor()).astype(float).ravel().tolist() for n in names}


if __name__ == "__main__":
    main(sys.argv[1])
