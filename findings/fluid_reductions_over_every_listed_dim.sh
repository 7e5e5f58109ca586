#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): reduce_sum, reduce_mean, reduce_max, ... whose dim lists every dim, such as
# reduce_sum(x, dim=[0, 1]) of a matrix, compute nothing: the result is what its memory held. dim=None is right.
# FLAGS_init_allocated_mem=1 fills what is allocated, so that the same number comes on every run.
# Seen: of ones (3, 4) with dim=[0, 1]: -1.485e29, that flag's filling, instead of 12.0; dim=None: 12.0.
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

x = fluid.data("x", [3, 4])
sums = [fluid.layers.reduce_sum(x, dim=dim) for dim in (None, [0, 1], [0], [1])]
got = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones((3, 4), "float32")}, fetch_list=sums)
for dim, value in zip((None, [0, 1], [0], [1]), got):
    print("dim", dim, "of ones (3, 4):", value.tolist())
whole, listed, columns, rows = got
sys.exit(bool(whole[0] != 12 or listed[0] == 12 or (columns != 3).any() or (rows != 4).any()))
EOF
FLAGS_init_allocated_mem=1 "$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
