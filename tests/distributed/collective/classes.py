"""A classifier of whose last layer each worker has its own columns, trained by any number of workers."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from paddlelike.transpiler.collective import GradAllReduce
from tests.distributed.collective.cases import split_classes


def train_classes(endpoints: list[str], rank: int) -> list[float]:
    """Train worker ``rank`` in the global scope, on its part of each batch; return the losses."""
    workers = len(endpoints)
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss = split_classes(fluid, workers, rank)
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    if workers > 1:
        GradAllReduce(1).transpile(startup, main, rank, endpoints, endpoints[rank])
    exe = fluid.Executor()
    exe.run(startup)
    columns = np.random.default_rng(1).standard_normal((8, 6)).astype("float32")
    fluid.global_scope().find_var("own").get_tensor().set(np.split(columns, workers, 1)[rank])
    losses = []
    for step in range(8):
        x = np.random.default_rng(step).random((16, 4), np.float32)
        y = x.argmax(1)[:, None] + 2
        feed = {"x": x[rank::workers], "y": y[rank::workers]}
        losses.append(float(exe.run(main, feed=feed, fetch_list=[loss])[0][0]))
    return losses
