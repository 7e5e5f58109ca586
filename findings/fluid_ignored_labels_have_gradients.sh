#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): softmax_with_cross_entropy(ignore_index=i) costs 0 for labels i, but
# its gradient ignores nothing: for a label that is a class it is softmax - one_hot, as if it counted. So padding
# trains the classifier; cross_entropy of softmax has no such gradient, nor has later Paddle.
# Seen: logits 0 of 4 classes, label 1, ignore_index=1: loss 0, gradient 0.25 -0.75 0.25 0.25; on every run.
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

layers = fluid.layers
x, y = fluid.data("x", [1, 4]), fluid.data("y", [1, 1], "int64")
x.stop_gradient = False
joined = layers.softmax_with_cross_entropy(x, y, ignore_index=1)
apart = layers.cross_entropy(layers.softmax(x), y, ignore_index=1)
slopes = [fluid.gradients([loss], [x])[0] for loss in (joined, apart)]
feed = {"x": np.zeros((1, 4), "float32"), "y": np.ones((1, 1), "int64")}
got = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[joined, apart] + slopes)
for name, value in zip(("loss", "loss of two layers", "gradient", "gradient of two layers"), got):
    print(name, value.tolist())
sys.exit(bool(got[2].tolist() != [[0.25, -0.75, 0.25, 0.25]] or got[3].any() or got[0].any()))
EOF
"$folder/venv/bin/python" check.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
