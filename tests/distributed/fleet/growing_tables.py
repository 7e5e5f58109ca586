"""Days of clicks on a growing table: python growing.py SAVES, run by the launcher."""

import os
import sys
import time
from pathlib import Path

import numpy as np

import paddlelike as fluid
import paddlelike.incubate.fleet.base.role_maker as role_maker
from paddlelike.distributed import growing_tables as tables, resumable_steps
from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import fleet

saves = Path(sys.argv[1])
fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
ids, y = fluid.data("ids", [None, 3], "int64"), fluid.data("y", [None, 1])
attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-0.1, 0.1))
kind, mode = os.environ.get("TABLE_CLASS", "MemorySparseTable"), int(os.environ.get("SAVE_MODE", "0"))
entry = tables.CountFilterEntry(2)
found = tables.sparse_embedding(ids, [1, 4], entry=entry, param_attr=attr, table_class=kind)
prediction = fluid.layers.fc(fluid.layers.reshape(found, [-1, 12]), 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))

fleet.init(role_maker.PaddleCloudRoleMaker())
fleet.distributed_optimizer(fluid.optimizer.Adagrad(0.1)).minimize(loss)


def batch(step: int) -> dict[str, np.ndarray]:
    """Ids that move on day by day."""
    rng = np.random.RandomState(1000 * step + fleet.worker_index())
    ids = rng.randint(step, step + 40, (16, 3)) * 977 - (1 << 62)
    return {"ids": ids, "y": np.sin(ids[:, :1] % 10).astype("float32")}


if fleet.is_server():
    Path(f"server{fleet.server_index()}.pid").write_text(str(os.getpid()))
    done = sorted(saves.glob("day*")) if saves.exists() else []
    fleet.init_server(str(done[-1]) if done else None)
    fleet.run_server()
else:
    exe = fluid.Executor()
    exe.run(fleet.startup_program)
    for step in resumable_steps(30):
        exe.run(fleet.main_program, feed=batch(step), fetch_list=[loss])
        time.sleep(float(os.environ.get("SECONDS_A_STEP", "0")))
        if step % 6 == 5:
            fleet.shrink(0.15, delete_after_unseen_days=2)
            fleet.save_persistables(exe, str(saves / f"day{step:02}"), mode=mode)
            fleet.barrier_worker()
    fleet.print_table_stat(0)
    if fleet.is_first_worker():
        fleet.save_inference_model(exe, str(saves / "model"), ["ids"], [prediction])
    fleet.stop_worker()
