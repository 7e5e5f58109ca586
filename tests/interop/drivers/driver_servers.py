"""One process of a job with parameter servers, with the `fluid` that this interpreter has.

    python3.7 driver_servers.py JOB.json      (paddlepaddle 1.8.5)

A job is {"role": "server" or "trainer", "number", "network", "endpoints", "trainers", "load": directory or
null, "first", "last": steps, "save": directory or null, "save_at": before which step, "out": path}. A trainer
writes its losses to OUT, a server what it holds after the load. A server serves until it is ended.

Keeps to what Python 3.7 understands; our own side only takes the networks and feeds.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

ROWS = 2500


def build(fluid, name):
    """The loss of a network of that name, with its updates in the program."""
    network = name.split("-")[0]
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    if network == "mlp":
        x = fluid.data(name="x", shape=[None, 130], dtype="float32")
        hidden = fluid.layers.fc(input=x, size=320, act="tanh")
    else:
        ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
        attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(0.05))
        sharded = network == "shards"
        rows = fluid.layers.embedding(
            ids, size=[ROWS, 8], is_sparse=True, is_distributed=sharded, param_attr=attr
        )
        hidden = fluid.layers.sequence_pool(rows, "sum")
    out = fluid.layers.fc(input=hidden, size=1)
    return fluid.layers.mean(fluid.layers.square_error_cost(input=out, label=y))


def make_optimizer(fluid, name):
    """The optimizer of a network of that name."""
    return {
        "sgd": lambda: fluid.optimizer.SGD(0.05),
        "momentum": lambda: fluid.optimizer.Momentum(0.01, 0.9),
        "adam": lambda: fluid.optimizer.Adam(0.01),
        "adagrad": lambda: fluid.optimizer.Adagrad(0.05),
    }[name.split("-")[1]]()


def feeds(fluid, name, step, trainer):
    """What a trainer is fed in a step."""
    rng = np.random.RandomState(1000 * step + trainer)
    y = rng.uniform(-1, 1, (4, 1)).astype("float32")
    if name.startswith("mlp"):
        return {"x": rng.uniform(-1, 1, (4, 130)).astype("float32"), "y": y}
    ids = rng.randint(0, ROWS, (12, 1)).astype("int64")
    return {"ids": fluid.create_lod_tensor(ids, [[3, 1, 5, 3]], fluid.CPUPlace()), "y": y}


def transpile_case(fluid, job):
    """The transpiler of this process, its trainer's loss."""
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 2020
    loss = build(fluid, job["network"])
    make_optimizer(fluid, job["network"]).minimize(loss)
    t = fluid.DistributeTranspiler(config=fluid.DistributeTranspilerConfig())
    is_server = job["role"] == "server"
    t.transpile(
        trainer_id=0 if is_server else job["number"],
        pservers=",".join(job["endpoints"]),
        trainers=job["trainers"],
        sync_mode=True,
        current_endpoint=job["endpoints"][job["number"] if is_server else 0],
    )
    return t, loss


def serve(fluid, job):
    """Load and serve."""
    endpoint = job["endpoints"][job["number"]]
    t, _ = transpile_case(fluid, job)
    main = t.get_pserver_program(endpoint)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(t.get_startup_program(endpoint, main))
    if job["load"]:
        fluid.io.load_persistables(exe, job["load"], main)
        if job["network"].startswith("shards"):
            load_shard(fluid, exe, job, main)
    exe.run(main)


def load_shard(fluid, exe, job, main):
    """Real Fluid has no call for it."""
    program = fluid.Program()
    variable = main.global_block().var("table")
    shape, kind = variable.shape, variable.type
    block = program.global_block()
    out = block.create_var(name="table", type=kind, shape=shape, dtype=variable.dtype, persistable=True)
    path = str(Path(job["load"], "__lookup_table__", "table_%d" % job["number"]))
    block.append_op(type="load", inputs={}, outputs={"Out": [out]}, attrs={"file_path": path})
    exe.run(program)


def train(fluid, job):
    """Train, and save on trainer 0."""
    t, loss = transpile_case(fluid, job)
    main = t.get_trainer_program()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    losses = []
    for step in range(job["first"], job["last"]):
        if job["save"] and job["number"] == 0 and step == job["save_at"]:
            fluid.io.save_persistables(exe, job["save"], main)
        feed = feeds(fluid, job["network"], step, job["number"])
        (value,) = exe.run(main, feed=feed, fetch_list=[loss])
        losses.append(float(value))
    Path(job["out"]).write_text(json.dumps(losses))
    exe.close()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    job = json.loads(Path(sys.argv[1]).read_text())
    import paddle.fluid as fluid

    if job["network"].startswith("shards"):  # 1.8.5 compares a text with a list there
        sys.modules["paddle.fluid.transpiler.distribute_transpiler"].LOOKUP_TABLE_TYPE = "lookup_table"
    (serve if job["role"] == "server" else train)(fluid, job)
