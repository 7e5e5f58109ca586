"""Reads directories with real Paddle Fluid, one after the other, in one process; keeps to Python 3.7.

Each line of stdin is {"directory", "form", "shapes": {variable: shape}}; each line of the answer has the
"digest" of the values that were read (see tests/crash/networks.py), or the "error". Only what Paddle's own
functions say counts: nothing is looked at or repaired here.
"""

import json
import sys
import zlib

import numpy as np
import paddle.fluid as fluid


def digest(values):
    crc = 0
    for name in sorted(values):
        crc = zlib.crc32(np.ascontiguousarray(values[name]).tobytes(), crc)
    return crc


MADE = {}  # programs by their variables


def program_of(shapes):
    key = json.dumps(shapes, sort_keys=True)
    if key not in MADE:
        program = fluid.Program()
        for name, shape in shapes.items():
            program.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
        MADE[key] = program
    return MADE[key]


def read(exe, directory, form, shapes):
    if form == "everything":
        state = fluid.io.load_program_state(directory)
        state.pop("__manifest__", None)  # a variable file like the others, which names what was saved
        return state
    if form == "export":
        program, _, targets = fluid.io.load_inference_model(directory, exe)
        feed = {"x": np.ones([1, 520], "float32")}
        exe.run(program, feed=feed, fetch_list=targets)
        names = [v.name for v in program.list_vars() if fluid.io.is_persistable(v)]
        return values_of([name for name in names if name not in ("feed", "fetch")])
    program = program_of(shapes)
    if form == "pickles":
        state = fluid.io.load_program_state(directory + "/net")
        return {name: state[name] for name in shapes}
    fluid.io.load_persistables(exe, directory, program, "all" if form == "all" else None)
    return values_of(shapes)


def values_of(names):
    scope = fluid.global_scope()
    return {name: np.array(scope.find_var(name).get_tensor()) for name in names}


def main():
    exe = fluid.Executor(fluid.CPUPlace())
    for line in sys.stdin:
        job = json.loads(line)
        try:
            with fluid.scope_guard(fluid.Scope()):
                values = read(exe, job["directory"], job["form"], job["shapes"])
                answer = {"digest": digest(values)}
        except BaseException as error:
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[-300:]}"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
