#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): Momentum and RMSProp on embedding(is_sparse=True) find the rows of a gradient
# by binary search, as if they were sorted; without a repeated id they are in the order of the batch. So which rows
# train depends on the order of the ids. SGD, Adam and Adagrad train all of them, and so do both with is_sparse=False.
# Seen: one step from 0, rate 1.0, gradient 1 for each of the ids 3 1 2 0: rows 0 and 3 stay 0; sorted ids: all move.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON37:-python3.7}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==1.8.5 protobuf==3.20.3 numpy==1.21.6
cd "$folder"
cat > check.py <<'PY'
import sys

import numpy as np
import paddle.fluid as fluid


def moved(order, optimizer, sparse):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        ids = fluid.data("ids", [4], "int64")
        zeros = fluid.ParamAttr("table", initializer=fluid.initializer.Constant(0.0))
        rows = fluid.embedding(ids, [4, 1], is_sparse=sparse, param_attr=zeros)
        optimizer.minimize(fluid.layers.reduce_sum(rows))
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        (table,) = exe.run(main, feed={"ids": np.array(order, "int64")}, fetch_list=["table"])
    return table.ravel().tolist()


def momentum():
    return fluid.optimizer.Momentum(1.0, 0.0)


def rmsprop():
    return fluid.optimizer.RMSProp(1.0)


mixed, in_order = [3, 1, 2, 0], [0, 1, 2, 3]
lost = [moved(mixed, make(), True) for make in (momentum, rmsprop)]
whole = [moved(in_order, make(), True) for make in (momentum, rmsprop)]
whole += [moved(mixed, make(), False) for make in (momentum, rmsprop)]
whole += [moved(mixed, make(1.0), True) for make in (fluid.optimizer.SGD, fluid.optimizer.Adam, fluid.optimizer.Adagrad)]
print("ids 3 1 2 0, Momentum and RMSProp:", lost)
print("sorted ids, dense gradients, SGD, Adam, Adagrad:", whole)
sys.exit(any([value != 0 for value in row] != [False, True, True, False] for row in lost) or any(0 in row for row in whole))
PY
"$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
