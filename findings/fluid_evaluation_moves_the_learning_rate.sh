#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): Program.clone(for_test=True) before minimize, as its documentation asks, keeps
# the operators of a learning-rate schedule that was built before. Each batch of an evaluation counts as a step of
# training, so the rate decays faster the more one evaluates. A schedule built after the copy does not.
# Seen: exponential_decay, halved each step, with 3 evaluations after the first step: rates 1.0 and 0.0625, not 1.0 and 0.5.
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


def rates(schedule_first):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
        if schedule_first:
            rate = fluid.layers.exponential_decay(1.0, 1, 0.5)
        evaluation = main.clone(for_test=True)
        if not schedule_first:
            rate = fluid.layers.exponential_decay(1.0, 1, 0.5)
        fluid.optimizer.SGD(rate).minimize(loss)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        feed = {"x": np.ones((1, 2), "float32")}
        found = [exe.run(main, feed=feed, fetch_list=[rate])[0].item()]
        for _ in range(3):
            exe.run(evaluation, feed=feed, fetch_list=[loss.name])
        found.append(exe.run(main, feed=feed, fetch_list=[rate])[0].item())
    return found


first, later = rates(True), rates(False)
print("schedule before the copy: rates of step 1 and of step 2, after 3 evaluations:", first)
print("schedule after the copy:", later)
sys.exit(first != [1.0, 0.0625] or later != [1.0, 0.5])
PY
"$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
