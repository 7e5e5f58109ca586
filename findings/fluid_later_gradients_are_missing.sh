#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): fluid.gradients with target_gradients finds no gradient of any input when
# another call of gradients came before it in the program: calc_gradient looks for operators that read one of the
# given gradients, but they still read target@GRAD, which is renamed afterwards. As the first call it works.
# Seen: the first call gives 12.0 for x * x at 2.0 times 3.0, the second an empty list.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON37:-python3.7}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==1.8.5 protobuf==3.20.3 numpy==1.21.6
cd "$folder"
cat > check.py <<'EOF'
import sys

import numpy as np
import paddle.fluid as fluid


def build(calls_before):
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [1])
        x.stop_gradient = False
        y = fluid.layers.elementwise_mul(x, x)
        direction = fluid.layers.fill_constant([1], "float32", 3.0)
        if calls_before:
            fluid.gradients([fluid.layers.scale(x, 2.0)], [x])
        found = fluid.gradients([y], [x], target_gradients=[direction])
    return main, found


main, found = build(calls_before=False)
(value,) = fluid.Executor(fluid.CPUPlace()).run(main, {"x": np.array([2], "float32")}, found)
_, later = build(calls_before=True)
print("first call:", value, "second call:", later)
sys.exit(0 if value[0] == 12 and not [one for one in later or [] if one is not None] else 1)
EOF
"$folder/venv/bin/python" check.py
