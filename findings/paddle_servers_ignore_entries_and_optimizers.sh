#!/usr/bin/env bash
# Parameter servers of Paddle 2.6.2 ignore CountFilterEntry and train sparse tables by Adam whatever optimizer the script has.
# An id is looked up twice with CountFilterEntry(100), by SGD: its row is trained all the same, and the saved line has Adam's moments and powers.
# Rows of ids are zeros until the first push, which asynchronous trainers make some steps late: that looks like an entry at work.
# Seen: paddlepaddle 2.6.2, protobuf 5.29.5, Python 3.11 (protobuf 7 has no FieldDescriptor.label, which fleet reads).
set -euo pipefail
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
"${PYTHON311:-python3.11}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q paddlepaddle==2.6.2 protobuf==5.29.5 "numpy==1.26.4" setuptools==75.6.0
cat >"$folder/job.py" <<'PY'
import os, sys, time
import numpy as np
import paddle
from paddle.distributed import fleet

paddle.enable_static()
fleet.init(fleet.PaddleCloudRoleMaker())
ids = paddle.static.data("ids", [None, 1], "int64", lod_level=1)
entry = paddle.distributed.CountFilterEntry(100)
rows = paddle.static.nn.sparse_embedding(ids, [10, 4], entry=entry, param_attr=paddle.ParamAttr(name="emb"))
rows = paddle.static.nn.sequence_lod.sequence_pool(rows, "sum")
loss = paddle.mean(paddle.nn.functional.square_error_cost(paddle.static.nn.fc(rows, 1), paddle.sum(rows * 0, 1, keepdim=True) + 1))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
strategy.sparse_table_configs = {"emb": {"table_parameters.emb.shard_num": 1}}
fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for step in range(40):  # id 7 twice, then others
        x = np.array([[7 if step < 2 else 100 + step]], "int64")
        exe.run(feed={"ids": paddle.base.create_lod_tensor(x, [[1]], paddle.CPUPlace())}, fetch_list=[loss])
        time.sleep(0.05)
    time.sleep(3)
    fleet.save_persistables(exe, sys.argv[1])
    fleet.stop_worker()
PY
export PADDLE_PSERVERS_IP_PORT_LIST=127.0.0.1:36671 PADDLE_TRAINERS_NUM=1 PADDLE_TRAINER_ENDPOINTS=127.0.0.1:36672 PADDLE_TRAINER_ID=0 POD_IP=127.0.0.1
TRAINING_ROLE=PSERVER PADDLE_PORT=36671 timeout 200 "$folder/venv/bin/python" "$folder/job.py" "$folder/saved" >"$folder/server.log" 2>&1 &
TRAINING_ROLE=TRAINER PADDLE_PORT=36672 timeout 200 "$folder/venv/bin/python" "$folder/job.py" "$folder/saved" >"$folder/trainer.log" 2>&1 || { tail -5 "$folder/trainer.log"; exit 1; }
kill %1 2>/dev/null || true
line=$(zcat "$folder"/saved/000/part-000-*.gz | grep '^7 ')
echo "id, slot, days, score, shows, clicks, numbers and state: $line"
set -- $line
# width 4: SGD would have 4 numbers behind the clicks, Adam has 16; two shows did not keep the row from being trained
[ $# = 22 ] && [ "$5" = 2 ] && [ "$7" != 0 ] && echo "trained by Adam after 2 of 100 look-ups"
