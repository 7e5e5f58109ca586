#!/usr/bin/env bash
# paddlepaddle 1.8.5 on a CPU (Python 3.7): a program that goes through a graph and back (IrGraph, to_program), as every
# pass of contrib.slim.quantization makes it, keeps its loops and branches and loses the blocks that they run. Post-training
# quantization saves such models without a word; quantization during training ends in a crash.
# Seen: with numpy 1.21.6, a recurrent network of blocks with 3 and 7 operators comes back as one block with 3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON37:-python3.7}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==1.8.5 protobuf==3.20.3 numpy==1.21.6
cd "$folder"
cat > back.py <<'EOF'
import sys

import paddle.fluid as fluid

rows = fluid.layers.transpose(fluid.data("x", [-1, 5, 3]), [1, 0, 2])
loop = fluid.layers.StaticRNN()
with loop.step():
    row = loop.step_input(rows)
    before = loop.memory(shape=[-1, 4], batch_ref=row)
    after = fluid.layers.fc([row, before], 4, act="tanh")
    loop.update_memory(before, after)
    loop.step_output(after)
program = fluid.default_main_program()
graph = fluid.framework.IrGraph(fluid.core.Graph(program.desc), for_test=True)
sizes = [[len(block.ops) for block in one.blocks] for one in (program, graph.to_program())]
print("operators of each block before:", sizes[0], "and after:", sizes[1])
sys.exit(sizes != [[3, 7], [3]])
EOF
"$folder/venv/bin/python" back.py 2> "$folder/log" || { tail -3 "$folder/log"; exit 1; }
