#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (x86-64, Python 3.7): the gradient of layers.pad and pad_constant_like is wrong at
# ends of rows. 3 x 3 numbers padded to 15 x 8, the result weighed 0, 1, 2, ...: the gradient of the second row
# begins with 29 instead of 34, that of the third is 37, 38, 44 instead of 42, 43, 44. Eigen's evaluator of a
# padding of negative width reads 4 (float32: 8) neighbours at once across the ends of rows.
# Seen: paddlepaddle 1.8.5: 110 of 400 random shapes and widths; the same on every run; no error, no warning.
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

x = fluid.data("x", [3, 3], "float64")
x.stop_gradient = False
weights = fluid.data("w", [15, 8], "float64")
(slope,) = fluid.gradients([fluid.layers.pad(x, [3, 9, 2, 3])], [x], [weights])
w = np.arange(120.0).reshape(15, 8)
(got,) = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.zeros((3, 3)), "w": w}, fetch_list=[slope])
print("gradient", got.tolist())
print("true one", w[3:6, 2:5].tolist())
sys.exit(got.tolist() != [[26, 27, 28], [29, 35, 36], [37, 38, 44]])
EOF
"$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
