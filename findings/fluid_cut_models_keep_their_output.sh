#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): load_inference_model, then save_inference_model of an inner variable, writes a
# model with the old output, without a word: both targets are named save_infer_model/scale_0.tmp_0, and the first
# operator that writes this name is kept. It happens in a new process, where names are counted from 0 again.
# Seen: x times 10 times 10, cut behind the first product: of 1 the cut model makes 100.0, not 10.0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON37:-python3.7}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==1.8.5 protobuf==3.20.3 numpy==1.21.6
cd "$folder"
cat > build.py <<'EOF'
import paddle.fluid as fluid

x = fluid.data("x", [-1, 1])
out = fluid.layers.scale(fluid.layers.scale(x, 10.0), 10.0)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
fluid.io.save_inference_model("whole", ["x"], [out], exe)
EOF
cat > cut.py <<'EOF'
import sys

import numpy as np
import paddle.fluid as fluid

exe = fluid.Executor(fluid.CPUPlace())
program, feeds, _ = fluid.io.load_inference_model("whole", exe)
block = program.global_block()
first = next(op for op in block.ops if op.type == "scale")
fluid.io.save_inference_model("cut", feeds, [block.var(first.output("Out")[0])], exe, program)
program, feeds, targets = fluid.io.load_inference_model("cut", exe)
(found,) = exe.run(program, feed={"x": np.ones((1, 1), "float32")}, fetch_list=targets)
print("cut behind the first product: of 1 it makes", found.item())
sys.exit(found.item() != 100.0)
EOF
for script in build cut; do
  "$folder/venv/bin/python" "$script.py" 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
done
