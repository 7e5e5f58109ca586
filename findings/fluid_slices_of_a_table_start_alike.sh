#!/usr/bin/env bash
# Paddle Fluid 1.8.5 cuts a parameter over two parameter servers and gives both slices the same seed.
# With startup.random_seed set, the two halves of the parameter then start with equal rows; in one process they differ.
# The random operator of each server's startup program keeps its own shape but not its own seed.
# Seen: paddlepaddle 1.8.5, Python 3.7: rows 0-1 on the first server equal rows 2-3 on the second, element by element.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON37:-python3.7}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==1.8.5 "protobuf==3.20.3"
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import numpy as np, paddle.fluid as fluid

def build():
    main, startup = fluid.Program(), fluid.Program()
    startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        y = fluid.layers.fc(x, 8192, param_attr="w", bias_attr=False)
        fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(y))
    return main, startup

def start(program, name):
    scope = fluid.core.Scope()
    with fluid.scope_guard(scope):
        fluid.Executor(fluid.CPUPlace()).run(program)
        return np.array(scope.find_var(name).get_tensor())

main, startup = build()
whole = start(startup, "w")
main, startup = build()
servers = ["127.0.0.1:6170", "127.0.0.1:6171"]
transpiler = fluid.DistributeTranspiler()
transpiler.transpile(0, program=main, pservers=",".join(servers), trainers=1, startup_program=startup)
first, second = (start(transpiler.get_pserver_programs(one)[1], "w.block%d" % i) for i, one in enumerate(servers))
print("on servers:", first.shape, second.shape, "equal:", np.array_equal(first, second))
print("in one process, halves equal:", np.array_equal(whole[:2], whole[2:]))
assert np.array_equal(first, second) and not np.array_equal(whole[:2], whole[2:])
PY
