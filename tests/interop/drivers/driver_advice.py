"""Follow the advice of `diagnose` with the system that this interpreter has.

    python driver_advice.py JOB.json

for paddlepaddle 1.8.5, 2.6.2 and 3.3.1; our own side calls `follow` directly. A job is {"calls": [[name,
call, network or null, width of a model's input], ...], "out": path}; the files are below the current folder.
Writes per name what the call gave: [shape, sum] of each array by its path, the outputs of a model for inputs
of 0.5, or the values of a network's variables; {"error": text} where the call failed.

Keeps to what Python 3.7 understands.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.helpers.networks import network


def follow(call, net, width, modules):
    """Return the summary of what a call gives; `modules` are fluid, or paddle and static."""
    static = modules.get("fluid") or modules["static"]
    scope = static.Scope()
    with static.scope_guard(scope):
        exe = static.Executor()
        names = dict(modules, exe=exe)
        if re.search(r"\bprogram\b", call):
            names["program"] = build(static, net, exe)
        if "(state_dict" in call:
            modules["paddle"].disable_static()
            names["state_dict"] = {k: modules["paddle"].zeros(shape) for k, shape in net.items()}
        try:
            value = eval(call, names)
        finally:
            if "state_dict" in names:
                modules["paddle"].enable_static()
        if "load_inference_model" in call:
            program, feeds, fetches = value
            feed = {one: np.full([2, width], 0.5, "float32") for one in feeds}
            value = exe.run(program, feed=feed, fetch_list=fetches)
        elif "program" in names:
            found = [one.name for one in names["program"].list_vars() if one.persistable]
            tensors = {one: scope.find_var(one) for one in found if one not in ("feed", "fetch")}
            value = {one: np.array(var.get_tensor()) for one, var in tensors.items()}
        elif "state_dict" in names:
            value = names["state_dict"]
    found = {}
    summarize(value, "", found)
    return found


def build(static, net, exe):
    """Build and initialize a network for training, or decode a program."""
    if callable(net):
        return net()
    if isinstance(net, dict):
        program = static.Program()
        for name, shape in net.items():
            program.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
        return program
    if net.endswith("model"):
        return static.Program.parse_from_string(Path(net).read_bytes())
    main, startup = static.Program(), static.Program()
    with static.unique_name.guard(), static.program_guard(main, startup):
        made = network(net)
        made.optimizer(static).minimize(made.build(static).loss)
    exe.run(startup)
    return main


def summarize(value, path, found):
    if isinstance(value, (list, tuple)) and not all(isinstance(one, (int, float)) for one in value):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key in set(value) - {"__manifest__"}:  # which Paddle takes for one more variable
            summarize(value[key], "%s/%s" % (path, key) if path else str(key), found)
    elif hasattr(value, "shape") or hasattr(value, "numpy"):
        array = np.array(value)
        array = array.real + array.imag if array.dtype.kind == "c" else array
        found[path] = [list(array.shape), float("%.5g" % array.astype("float64").sum())]


def main(job):
    try:
        import paddle
        from paddle import static

        paddle.enable_static()
        modules = {"paddle": paddle, "static": static}
    except ImportError:
        from paddle import fluid

        modules = {"fluid": fluid}
    results = {}
    for name, call, net, width in job["calls"]:
        try:
            results[name] = follow(call, net, width, modules)
        except BaseException as error:
            results[name] = {"error": "%s: %s" % (type(error).__name__, str(error)[-300:])}
    Path(job["out"]).write_text(json.dumps(results))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
