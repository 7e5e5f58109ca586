#!/usr/bin/env bash
# X2Paddle 1.6.0 converts ONNX ArgMax without its attribute select_last_index: of equal numbers the first one wins.
# The model converts, the report names nothing, and the Paddle model gives other indices than the ONNX model.
# A model that takes the last of equal scores, as some decoders do, changes its answers.
# Seen: x2paddle 1.6.0, paddlepaddle 2.6.2, onnxruntime 1.20.1: ArgMax of 1, 3, 3, 2 is 2 in ONNX and 1 after conversion.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q x2paddle==1.6.0 paddlepaddle==2.6.2 onnx==1.16.2 onnxruntime==1.20.1 \
  setuptools==69.5.1 six==1.17.0 pandas==2.2.3 sympy==1.13.1 requests==2.32.3
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import onnx
from onnx import TensorProto, helper
node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=1, select_last_index=1)
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
y = helper.make_tensor_value_info("y", TensorProto.INT64, [1, 1])
model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)])
model.ir_version = 8
onnx.save(model, "m.onnx")
PY
PATH="$folder/venv/bin:$PATH" x2paddle --framework=onnx --model=m.onnx --save_dir=converted > log.txt 2>&1
"$folder/venv/bin/python" - <<'PY' 2>"$folder/errors" || { tail -n 3 "$folder/errors"; exit 1; }
import numpy as np, onnxruntime, paddle
scores = np.array([[1, 3, 3, 2]], "float32")
(onnxs,) = onnxruntime.InferenceSession("m.onnx").run(None, {"x": scores})
paddles = np.array(paddle.jit.load("converted/inference_model/model")(paddle.to_tensor(scores)))
print("ONNX:", onnxs.ravel().tolist(), "converted:", paddles.ravel().tolist())
assert onnxs.ravel().tolist() == [2] and paddles.ravel().tolist() == [1], "the attribute is kept now"
PY
