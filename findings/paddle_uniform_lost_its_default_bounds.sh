#!/usr/bin/env bash
# paddle.uniform(shape) draws from [-1, 1) in Paddle 2.6.2 and from [0, 1) in Paddle 3.3.1.
# The default of min went from -1.0 to 0. paddle.seed gives the same underlying numbers in both.
# Weights that a script draws this way lose their negative half, without a word.
# Seen: paddlepaddle 2.6.2 [-0.394, 0.301, -0.441]; paddlepaddle 3.3.1 [0.303, 0.651, 0.279], both after paddle.seed(3).
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
for version in 2.6.2 3.3.1; do
  "${PYTHON:-python3.11}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q "paddlepaddle==$version" setuptools
  "$folder/$version/bin/python" - "$version" <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import sys, paddle
paddle.set_device("cpu")
paddle.seed(3)
default = paddle.uniform([1000]).numpy()
paddle.seed(3)
named = paddle.uniform([1000], min=-1.0, max=1.0).numpy()
print("paddle", sys.argv[1], "default:", default[:3].round(3).tolist(), "least:", default.min().round(3))
assert named.min() < -0.9
assert (default.min() < -0.9) == (sys.argv[1] == "2.6.2"), "the default bounds changed again"
PY
done
