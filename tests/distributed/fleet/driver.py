"""A job of fleet: python driver.py MODE FIRST LAST LOAD SAVE, run by the launcher."""

import os
import sys
import time

import numpy as np

import paddlelike as fluid
import paddlelike.incubate.fleet.base.role_maker as role_maker
from paddlelike.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory, fleet

mode, first, last, load, save = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]

fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
x, ids = fluid.data("x", [None, 13]), fluid.data("ids", [None, 1], "int64")
y = fluid.data("y", [None, 1])
rows = fluid.layers.embedding(ids, size=[3000, 8], is_sparse=True)
hidden = fluid.layers.concat([fluid.layers.fc(x, 700, act="tanh"), rows], axis=1)
prediction = fluid.layers.fc(hidden, 1)
loss = fluid.layers.mean(fluid.layers.square_error_cost(prediction, y))

fleet.init(role_maker.PaddleCloudRoleMaker())
strategy = getattr(StrategyFactory, f"create_{mode}_strategy")(*([10] if mode == "geo" else []))
rate = fluid.layers.exponential_decay(0.05, decay_steps=10, decay_rate=0.9)
fleet.distributed_optimizer(fluid.optimizer.Adagrad(rate), strategy).minimize(loss)


def batch(step: int) -> dict[str, np.ndarray]:
    rng = np.random.RandomState(1000 * step + fleet.worker_index())
    x = rng.uniform(-1, 1, (32, 13)).astype("float32")
    ids = rng.randint(0, 3000, (32, 1))
    return {"x": x, "ids": ids, "y": (x.sum(1, keepdims=True) + 0.1 * (ids % 7)).astype("float32")}


if fleet.is_server():
    fleet.init_server(None if load == "-" else load)
    fleet.run_server()
    print("served")
else:
    fleet.init_worker()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    for step in range(first, last):
        (value,) = exe.run(fleet.main_program, feed=batch(step), fetch_list=[loss])
        time.sleep(float(os.environ.get("SECONDS_A_STEP", "0")))
        print(f"step {step}: loss {value.item():.6f}", flush=True)
    if mode == "geo":
        fleet.barrier_worker()  # the servers have half of what trainer 0 learned, and wait for the other half
    if fleet.is_first_worker():
        fleet.save_persistables(exe, save)
        fleet.save_inference_model(exe, f"{save}.model", ["x", "ids"], [prediction])
    fleet.stop_worker()
    print("stopped")
