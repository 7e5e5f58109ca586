#!/usr/bin/env bash
# onnx.numpy_helper.to_array gives a bfloat16 tensor as float32 in onnx 1.16.2 and as ml_dtypes' bfloat16 in onnx 1.19.1.
# Code that saves, adds or compares the array silently works with other bytes and another precision after an upgrade.
# numpy itself stores the second one as raw 2-byte voids, which no longer say what they are.
# Seen: onnx 1.16.2 float32, 12 bytes for 3 numbers; onnx 1.19.1 bfloat16, 6 bytes; the numbers are equal.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
for version in 1.16.2 1.19.1; do
  "${PYTHON:-python3.11}" -m venv "$folder/$version"
  "$folder/$version/bin/pip" install -q "onnx==$version" numpy==2.2.6 ml_dtypes==0.5.3
  "$folder/$version/bin/python" - "$version" <<'PY'
import sys
from onnx import TensorProto, helper, numpy_helper
array = numpy_helper.to_array(helper.make_tensor("t", TensorProto.BFLOAT16, [3], [1.0, 0.5, -2.0]))
print("onnx", sys.argv[1], array.dtype, array.nbytes, "bytes", array.tolist())
assert array.tolist() == [1.0, 0.5, -2.0]
assert str(array.dtype) == {"1.16.2": "float32", "1.19.1": "bfloat16"}[sys.argv[1]]
PY
done
