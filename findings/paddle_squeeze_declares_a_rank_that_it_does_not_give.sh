#!/usr/bin/env bash
# paddlepaddle 2.6.2 and 3.3.1, static graph on CPU: squeeze(x, axis) of a dim that is unknown when the network is built
# declares its result without that dim, but keeps the dim in the run unless it is 1: layers behind it are built for
# another rank than they get. Nothing warns.
# Seen: paddlepaddle 2.6.2, 3.3.1: x is [3, -1]; squeeze(x, [1]) has the declared shape [3]; fed with [3, 2] it gives [3, 2].
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
for version in 2.6.2 3.3.1; do
  "${PYTHON:-python3.11}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q "paddlepaddle==$version" setuptools
  "$folder/$version/bin/python" -W ignore - <<'PYTHON' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import sys

import numpy as np
import paddle

paddle.enable_static()
x = paddle.static.data("x", [3, -1], "float32")
y = paddle.squeeze(x, [1])
(out,) = paddle.static.Executor().run(feed={"x": np.zeros((3, 2), "float32")}, fetch_list=[y])
print(paddle.__version__, "declared", list(y.shape), "given", list(out.shape))
sys.exit(list(y.shape) != [3] or list(out.shape) != [3, 2])
PYTHON
done
