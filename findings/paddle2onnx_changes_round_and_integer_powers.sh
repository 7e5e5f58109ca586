#!/usr/bin/env bash
# paddle2onnx 1.3.1 writes paddle.round as ONNX Round and an int32 power as ONNX Pow; neither computes what Paddle does.
# Paddle 2.6.2 rounds halves away from zero, ONNX rounds them to even. Paddle's int32 power wraps, onnxruntime's saturates.
# The converter and its checker say nothing.
# Seen: paddlepaddle 2.6.2, paddle2onnx 1.3.1, onnxruntime 1.20.1: round(0.5, 2.5) 1, 3 becomes 0, 2; 46341 ** 2 -2147479015 becomes -2147483648.
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==2.6.2 paddle2onnx==1.3.1 onnx==1.16.2 onnxruntime==1.20.1 setuptools==69.5.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY' 2>/dev/null | grep -v Paddle2ONNX
import numpy as np, onnxruntime, paddle, paddle2onnx
paddle.enable_static()

def compare(name, function, x):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        data = paddle.static.data("x", list(x.shape), str(x.dtype))
        out = function(data)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        (paddles,) = executor.run(main, feed={"x": x}, fetch_list=[out])
        paddle.static.save_inference_model(name, [data], [out], executor, program=main)
    paddle2onnx.export(name + ".pdmodel", "", name + ".onnx", opset_version=16, enable_onnx_checker=True)
    (onnxs,) = onnxruntime.InferenceSession(name + ".onnx").run(None, {"x": x})
    print(name, x.tolist(), "Paddle:", paddles.tolist(), "ONNX:", onnxs.tolist())
    return paddles.tolist(), onnxs.tolist()

rounded = compare("round", paddle.round, np.array([0.5, 2.5], "float32"))
power = compare("power", lambda x: paddle.pow(x, 2), np.array([46341, 3], "int32"))
assert rounded == ([1.0, 3.0], [0.0, 2.0]) and power == ([-2147479015, 9], [-2147483648, 9]), "they agree otherwise now"
PY
