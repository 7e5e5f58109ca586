"""Jobs resume from what trainer 0 of a real job saved: the losses are the real job's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.real.runs import RUNS, run_of
from tests.distributed.jobs import MOMENTUM, Network, perceptron_feeds


def table() -> Any:
    """The network of the recorded run: a table of 300 rows that is sharded by id."""
    ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    rows = fluid.layers.embedding(
        ids,
        size=[300, 8],
        is_sparse=True,
        is_distributed=True,
        param_attr=fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.05)),
    )
    out = fluid.layers.fc(input=fluid.layers.sequence_pool(rows, "sum"), size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


def table_feeds(step: int, trainer: int) -> dict[str, Any]:
    rng = np.random.RandomState(1000 * step + trainer)
    ids = rng.randint(0, 300, (8, 1)).astype("int64")
    y = rng.uniform(-1, 1, (4, 1)).astype("float32")
    return {"ids": fluid.create_lod_tensor(ids, [[2, 2, 3, 1]], fluid.CPUPlace()), "y": y}


TABLE = Network(table, lambda: fluid.optimizer.SGD(0.1))
RUN_OF = {
    "mlp_momentum_sync_2x2": (MOMENTUM, perceptron_feeds),
    "table_sgd_sync_2x2": (TABLE, table_feeds),
}


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("run", RUN_OF)
def test_the_losses_after_the_reload_match_the_real_job(run: str, servers: int) -> None:
    network, feeds = RUN_OF[run]
    with SavingJob(network, servers=servers, loaded=RUNS / run / "saved_by_trainer0") as job:
        losses = job.go(feeds, 5, 10)
    # Sums in float32 go in another order than in Eigen.
    np.testing.assert_allclose(losses, run_of(run)["losses_after_reload_steps5to9"], rtol=5e-6)


def test_the_shards_hold_the_ids_of_the_real_shards() -> None:
    run = "table_sgd_sync_2x2"
    job = SavingJob(TABLE, loaded=RUNS / run / "saved_by_trainer0")
    for number, endpoint in enumerate(job.endpoints):
        programs, scope = job.server(endpoint), fluid.Scope()
        with fluid.scope_guard(scope):
            exe = fluid.Executor()
            exe.run(programs.startup)
            fluid.io.load_persistables(exe, str(job.loaded), programs.main)
            held = scope.find_var("table").get_selected_rows()
        real = run_of(run)["pserver_values_after_load"][number]["table"]
        assert held.rows() == real["rows"]
        assert held.height() == real["height"]
        assert list(held.get_tensor().shape()) == real["shape"]
