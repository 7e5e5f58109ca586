#!/usr/bin/env bash
# The gradient of paddle.gather along any axis but the first is wrong on a CPU in Paddle 2.6.2 (right in 3.3.1).
# Every slice along the axes before it gets the gradient of the first one; the values of gather are right.
# A network trains on with these numbers, without a word.
# Seen: paddlepaddle 2.6.2 [[1, 2, 0], [1, 2, 0]]; paddlepaddle 3.3.1 [[1, 2, 0], [3, 4, 0]], numpy 1.26.4.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
for version in 2.6.2 3.3.1; do
  "${PYTHON:-python3.11}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q "paddlepaddle==$version" numpy==1.26.4 setuptools
  "$folder/$version/bin/python" - "$version" <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import sys, paddle
paddle.set_device("cpu")
x = paddle.zeros([2, 3])
x.stop_gradient = False
picked = paddle.gather(x, paddle.to_tensor([0, 1]), axis=1)
(picked * paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
print("paddle", sys.argv[1], "gradient of gather along axis 1:", x.grad.numpy().astype(int).tolist())
second = [1, 2, 0] if sys.argv[1] == "2.6.2" else [3, 4, 0]
assert x.grad.numpy().tolist() == [[1, 2, 0], second], "the gradient of gather changed"
PY
done
