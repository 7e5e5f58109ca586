#!/usr/bin/env bash
# Paddle's average pools with exclusive=False count the zeros of the padding at the top and on the left, and none at the
# bottom and on the right when these are padded more: a picture and its mirror image give other means.
# The documentation says that exclusive=False counts the padded zeros. Models brought over from PyTorch or ONNX differ at the edges.
# Seen: paddlepaddle 3.3.1 (2.6.2 too): ones, padded by a row of zeros: 0.5 above, but 1.0 below.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON311:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "paddlepaddle==3.3.1"
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import paddle
import paddle.nn.functional as F

x = paddle.ones([1, 1, 4, 4])
above, below = (
    F.avg_pool2d(x, 2, stride=1, padding=padding, exclusive=False).numpy()[0, 0, :, 0].tolist()
    for padding in ([1, 0, 0, 0], [0, 1, 0, 0])
)
print("a row of zeros above:", above, "below:", below)
assert above == [0.5, 1, 1, 1], "the padding above is counted otherwise now"
assert below == [1, 1, 1, 1], "the padding below is counted now"
PY
