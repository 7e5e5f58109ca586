#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): deformable_conv with im2col_step=2 or more gives other results than with 1:
# those of im2col_step images lie filter by filter in a result that is read image by image. The default is 64, for
# which the number of images must be a multiple of 64.
# Seen: of images 1.0 2.0 and 3.0 4.0, filters 1 and 10: image 1 has 1.0 2.0 3.0 4.0, not 1.0 2.0 10.0 20.0.
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

x, offset = fluid.data("x", [2, 1, 1, 2]), fluid.data("offset", [2, 2, 1, 2])
filters = fluid.initializer.NumpyArrayInitializer(np.array([1, 10], "float32").reshape(2, 1, 1, 1))
outs = [
    fluid.layers.deformable_conv(
        x, offset, None, 2, 1, im2col_step=step, modulated=False, bias_attr=False,
        param_attr=fluid.ParamAttr(initializer=filters),
    )
    for step in (1, 2)
]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
feed = {"x": np.arange(1, 5, dtype="float32").reshape(2, 1, 1, 2), "offset": np.zeros((2, 2, 1, 2), "float32")}
got = exe.run(feed=feed, fetch_list=outs)
for step, value in zip((1, 2), got):
    print("im2col_step", step, value.reshape(2, 4).tolist())
one, two = (value.ravel().tolist() for value in got)
sys.exit(one != [1, 2, 10, 20, 3, 4, 30, 40] or two != [1, 2, 3, 4, 10, 20, 30, 40])
EOF
"$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
