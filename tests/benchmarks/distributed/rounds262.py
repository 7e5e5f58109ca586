"""One process of a job of sparse rounds, by Paddle 2.6.2 or by this package: see ``bench_rounds262.py``.

``python rounds262.py ours|real async|sync IDS STEPS``, with the role in the environment; the trainer prints
its steps, seconds and processor seconds as JSON.
"""

import json
import sys
import time

import numpy as np

KIND, MODE, IDS, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
WIDTH, HEIGHT, WARM = 16, 1_000_000, 20


def draw(rng):
    return rng.integers(0, HEIGHT, (IDS, 1)), np.ones((1, 1), "float32")


def run(step):
    rng = np.random.default_rng(0)
    for _ in range(WARM):
        step(*draw(rng))
    fed = [draw(rng) for _ in range(20)]
    begin, used = time.perf_counter(), time.process_time()
    for at in range(STEPS):
        step(*fed[at % 20])
    print(json.dumps({"steps": STEPS, "seconds": time.perf_counter() - begin,
                      "processor": time.process_time() - used}), flush=True)  # fmt: skip


def run_real():
    import paddle
    from paddle.distributed import fleet

    paddle.enable_static()
    fleet.init(fleet.PaddleCloudRoleMaker())
    ids = paddle.static.data("ids", [None, 1], "int64")
    y = paddle.static.data("y", [None, 1], "float32")
    rows = paddle.static.nn.sparse_embedding(ids, [HEIGHT, WIDTH], param_attr=paddle.ParamAttr(name="emb"))
    pooled = paddle.reshape(paddle.mean(paddle.reshape(rows, [-1, WIDTH]), 0), [1, WIDTH])
    loss = paddle.mean(paddle.nn.functional.square_error_cost(paddle.static.nn.fc(pooled, 1), y))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = MODE == "async"
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    main = paddle.static.default_main_program()
    run(lambda x, t: exe.run(main, feed={"ids": x, "y": t}, fetch_list=[loss]))
    fleet.stop_worker()


def run_ours():
    import paddlelike.fluid as fluid
    from paddlelike.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
    from paddlelike.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
    from paddlelike.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
        StrategyFactory,
    )

    fleet.init(PaddleCloudRoleMaker())
    ids = fluid.data("ids", [None, 1], dtype="int64")
    y = fluid.data("y", [None, 1], dtype="float32")
    rows = fluid.contrib.layers.sparse_embedding(ids, [HEIGHT, WIDTH], param_attr=fluid.ParamAttr(name="emb"))
    pooled = fluid.layers.reshape(fluid.layers.reduce_mean(rows, 0), [1, WIDTH])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(pooled, 1), y))
    strategy = (
        StrategyFactory.create_async_strategy() if MODE == "async" else StrategyFactory.create_sync_strategy()
    )
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = fluid.Executor()
    exe.run(fleet.startup_program)
    fleet.init_worker()
    run(lambda x, t: exe.run(fleet.main_program, feed={"ids": x, "y": t}, fetch_list=[loss]))
    fleet.stop_worker()


if __name__ == "__main__":
    run_real() if KIND == "real" else run_ours()
