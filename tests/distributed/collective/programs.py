"""Programs that workers run: each prints lines of JSON, which its test reads."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.distributed.collective import member
from paddlelike.incubate.fleet import collective as collective_fleet
from paddlelike.incubate.fleet.base.role_maker import PaddleCloudRoleMaker
from paddlelike.layers import collective
from paddlelike.transpiler.collective import GradAllReduce, LocalSGD
from tests.distributed.collective.classes import train_classes

ENDPOINTS = os.environ["PADDLE_TRAINER_ENDPOINTS"].split(",")
RANK = int(os.environ["PADDLE_TRAINER_ID"])
STEPS = 8


def report(**found: Any) -> None:
    print(json.dumps(found), flush=True)  # noqa: T201


def make_batch(step: int) -> tuple[Any, Any]:
    """Return the batch of a step, of all workers together."""
    x = np.random.default_rng(step).random((16, 8), np.float32)
    return x, x.sum(1, keepdims=True)


def build() -> tuple[fluid.Program, fluid.Program, Any]:
    """Return a small network; with different initial values in every worker."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1 + RANK
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
        hidden = fluid.layers.fc(x, 16, act="tanh")
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        fluid.optimizer.Momentum(0.01, 0.9).minimize(loss)
    return main, startup, loss


def train(kind: str = "GradAllReduce", fault: str = "", victim: str = "0") -> None:
    """Train; the worker ``victim`` gets the signal ``fault``, or has an error, after half of the steps."""
    main, startup, loss = build()
    if len(ENDPOINTS) > 1:
        transpiler = LocalSGD(2) if kind == "LocalSGD" else GradAllReduce(2)
        transpiler.transpile(startup, main, RANK, ENDPOINTS, ENDPOINTS[RANK])
    exe = fluid.Executor(fluid.CUDAPlace(RANK) if kind == "on a GPU" else None)
    exe.run(startup)
    losses = []
    for step in range(STEPS):
        x, y = (part[RANK :: len(ENDPOINTS)] for part in make_batch(step))
        losses.append(float(exe.run(main, feed={"x": x, "y": y}, fetch_list=[loss])[0]))
        if fault and step == STEPS // 2 and int(victim) == RANK:
            report(fault=fault)
            if fault == "an error":
                raise ValueError("no such column")
            os.kill(os.getpid(), signal.Signals[fault])
    values = {one.name: read(one.name) for one in main.list_vars() if one.persistable and one.type == 7}
    report(losses=losses, values=values)


def take_hints() -> None:
    """Train after mistakes whose hints are followed; report the hints and the losses."""
    job = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PADDLE_")}
    exe, hints = fluid.Executor(), []

    def run(program: Any, feed: Any = None, fetch: Any = (), executor: Any = exe) -> Any:
        try:
            return executor.run(program, feed=feed, fetch_list=list(fetch))
        except Exception as error:
            hints.append(getattr(error, "hint", None) or repr(error))

    adding, threads = fluid.Program(), fluid.Program()
    with fluid.program_guard(adding, fluid.Program()):
        total = collective._c_allreduce(fluid.data("x", [2], "float32"))
    threads.global_block().append_op("c_comm_init_all", {}, {}, {"ring_id": 0})
    own = {"x": np.full(2, 1 + RANK, "float32")}
    run(adding, own, [total])  # no job is known
    main, startup, loss = build()
    plain = main.clone()
    GradAllReduce(2).transpile(startup, main, RANK, ENDPOINTS, ENDPOINTS[RANK])
    exe.run(startup)
    apart = fluid.Executor()
    apart._services.clear()
    run(adding, own, [total], apart)
    sums = run(adding, own, [total])[0].tolist()
    run(threads)
    strategy = fluid.BuildStrategy()
    strategy.num_trainers, strategy.trainer_id = 2, 1 - RANK
    x, y = (part[RANK::2] for part in make_batch(0))
    for program in (main, plain):
        compiled = fluid.CompiledProgram(program).with_data_parallel(
            loss.name, strategy, places=[fluid.CPUPlace()]
        )
        run(compiled, {"x": x, "y": y}, [loss.name])
    os.environ.update(job)
    role = PaddleCloudRoleMaker(is_collective=True)
    role.generate_role()
    strategy.num_trainers, strategy.trainer_id = role.worker_num(), role.worker_index()
    copies = run(compiled, {"x": x, "y": y}, [loss.name])
    report(hints=hints, sums=sums, copied=float(copies[0]))


def join_late() -> None:
    """Join a job after JAX has computed."""
    import jax.numpy

    jax.numpy.zeros(2).block_until_ready()
    train()


def restore_share(source: str, last: str, who: str) -> None:
    """Load shared state on the workers ``who``, save it before a step, then train a step and save again."""
    strategy, fleet = collective_fleet.DistributedStrategy(), collective_fleet.fleet
    strategy.reduce_strategy = fluid.BuildStrategy.ReduceStrategy.Reduce
    fleet.init(PaddleCloudRoleMaker(is_collective=True))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        hidden = fluid.layers.fc(fluid.data("x", [None, 8]), 500, act="tanh")
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(hidden, 500)))
        fleet.distributed_optimizer(fluid.optimizer.Adam(0.01), strategy).minimize(loss)
    exe = fluid.Executor()
    exe.run(fleet.startup_program)
    found, before = None, read_count()
    if str(RANK) in who:
        found = fluid.io.load_persistables(exe, source, main)
    read = read_count() - before
    for name in ("loaded", "trained"):
        if not RANK:
            fleet.save_persistables(exe, f"{last}/{name}")
        exe.run(fleet.main_program, feed={"x": make_batch(0)[0][:4]}, fetch_list=[loss])
    report(read=read, skipped=[] if found is None else found.skipped, is_good=bool(found))


def read_count() -> int:
    """Return how many bytes this process has read."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def train_fleet(options: str = "{}", path: str = "", killed_at: str = "", last: str = "") -> None:
    """Train as scripts of fleet do, with a checkpoint below ``path`` after each step, and save to ``last``.

    Worker 1 is killed at a step, unless the launcher has started the job again.
    """
    strategy = collective_fleet.DistributedStrategy()
    for name, value in json.loads(options).items():
        setattr(strategy, name, value)
    fleet = collective_fleet.fleet
    fleet.init(PaddleCloudRoleMaker(is_collective=True))
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1 + fleet.worker_index()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
        hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 16))
        hidden = fluid.layers.fc(fluid.layers.tanh(hidden), 16) if "sync_batch_norm" in options else x
        ids = fluid.layers.cast(fluid.layers.slice(x * 10, [1], [0], [1]), "int64")
        rows = fluid.layers.embedding(ids, [10, 4], is_sparse=True)
        hidden = fluid.layers.fc(fluid.layers.concat([hidden, rows], 1), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(hidden, y))
        fleet.distributed_optimizer(fluid.optimizer.Adam(0.01), strategy).minimize(loss)
    exe = fluid.Executor()
    exe.run(fleet.startup_program)
    status = fleet.load_check_point(exe, path, fleet.worker_index()) if path else None
    losses = []
    first = not int(os.environ.get("PADDLELIKE_JOB_ATTEMPT", "0"))
    for step in range(0 if status is None else status.next(), STEPS):
        if first and killed_at == str(step) and fleet.worker_index() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x, y = (part[fleet.worker_index() :: fleet.worker_num()] for part in make_batch(step))
        losses.append(float(exe.run(fleet.main_program, feed={"x": x, "y": y}, fetch_list=[loss])[0]))
        if path:
            fleet.save_check_point(exe, path, collective_fleet.TrainStatus(step))
        if path and fleet.is_first_worker():  # which changes the program of this worker alone
            fluid.io.save_inference_model(f"{path} exported", ["x"], [hidden], exe, main)
    if last and fleet.is_first_worker():
        fleet.save_persistables(exe, last, filename="all")
        fluid.save(main, f"{last}/fluid/model")
    report(losses=losses, values={one.name: read(one.name) for one in main.all_parameters() if one.trainable})


def train_split() -> None:
    """Train a classifier of whose last layer each worker has its own columns; then worker 0 has an error.

    Worker 1 neither exchanges nor ends meanwhile.
    """
    report(losses=train_classes(ENDPOINTS, RANK), own=read("own"))
    if RANK == 0:
        raise ValueError("no such column")
    time.sleep(600)


def stop_while_joining(victim: str, moment: str) -> None:
    """Train; the worker ``victim`` stops itself before it joins, or ``"connected"`` before it exchanges."""
    connect = member.connect

    def stop(job: Any, **options: Any) -> Any:
        notes = connect(job, **options) if moment == "connected" else None
        if int(victim) == RANK:
            report(fault=moment)
            os.kill(os.getpid(), signal.SIGSTOP)
        return notes or connect(job, **options)

    member.connect = stop
    train()


def train_until_cut() -> None:
    """Train for longer than any test."""
    main, startup, loss = build()
    GradAllReduce(1).transpile(startup, main, RANK, ENDPOINTS, ENDPOINTS[RANK])
    exe = fluid.Executor()
    exe.run(startup)
    x, y = make_batch(0)
    for step in range(100_000):
        exe.run(main, feed={"x": x, "y": y}, fetch_list=[loss])
        if not step:
            report(joined=True)


def wait_for_ports() -> None:
    """Let worker 0 wait until the other endpoints take connections, as scripts of Paddle's own tests do."""
    main, startup, _ = build()
    GradAllReduce(1).transpile(startup, main, RANK, ENDPOINTS, ENDPOINTS[RANK])
    for endpoint in ENDPOINTS[1:] if RANK == 0 else []:
        host, _, port = endpoint.rpartition(":")
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    break
            time.sleep(0.1)
    fluid.Executor().run(startup)
    report(joined=True)


def operators() -> None:
    """Run every collective layer once on values that differ by worker."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [4, 2], "float32")
        ids = fluid.data("ids", [3], "int64")
        fetched = {
            "sum": collective._c_allreduce(x),
            "max": collective._c_allreduce(x, reduce_type="max"),
            "min": collective._c_allreduce(x, reduce_type="min"),
            "prod": collective._c_allreduce(x, reduce_type="prod"),
            "ints": collective._c_allreduce(ids),
            "old": collective._allreduce(x, reduce_type="max"),
            "gather": collective._c_allgather(x, len(ENDPOINTS)),
            "scatter": collective._c_reducescatter(x, len(ENDPOINTS)),
            "later": collective._c_sync_comm_stream(collective._c_allreduce(fluid.layers.scale(x, 2.0)), 0),
            "root": collective._c_broadcast(fluid.layers.scale(x, 3.0), root=1),
            "old root": collective._broadcast(fluid.layers.scale(x, 4.0), root=1),
        }
    feed = {"x": np.arange(8, dtype="float32").reshape(4, 2) - RANK, "ids": np.arange(3) * 2**40 + RANK}
    found = fluid.Executor().run(main, feed=feed, fetch_list=list(fetched.values()))
    report(**{name: value.tolist() for name, value in zip(fetched, found, strict=True)})


def scatter_large(steps: str) -> None:
    """Add up rows of 11 MB so that each worker has its own, and report in how many steps they were wrong."""
    count, width = len(ENDPOINTS), 1_441_200
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [count, width], "float64")
        out = collective._c_reducescatter(x, count)
    exe = fluid.Executor()
    sent = [np.random.RandomState(rank).randint(-1000, 1000, (count, width)) for rank in range(count)]
    right = sum(sent)[RANK]
    wrong = 0
    for step in range(int(steps)):
        (found,) = exe.run(main, feed={"x": (sent[RANK] + step).astype("float64")}, fetch_list=[out])
        wrong += not np.array_equal(found[0], right + count * step)
    report(wrong=wrong)


def differ() -> None:
    """Exchange arrays of another shape in every worker."""
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x = fluid.data("x", [None, 2], "float32")
        out = collective._c_allreduce(x)
    fluid.Executor().run(main, feed={"x": np.ones((3 + RANK, 2), "float32")}, fetch_list=[out])


def read(name: str) -> str:
    """Return the bytes of a variable as text."""
    return np.asarray(fluid.global_scope().find_var(name).get_tensor()).tobytes().hex()


def main() -> None:
    """Run the program that the environment names, in a process of a fork server."""
    program, *arguments = json.loads(os.environ["PROGRAM_OF_WORKER"])
    globals()[program](*arguments)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
