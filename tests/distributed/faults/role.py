"""The script of every process of a job: a server or a trainer by the environment.

Besides Fluid's variables it reads JOB (JSON: steps, every, mode, network, think, together) and FAULT
(see ``points``), when ``main`` is called: the fork server imports this module once for all processes. It
reports its progress on standard output, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.distributed.client.trainers import resumable_steps
from paddlelike.distributed.server.service import Service
from paddlelike.distributed.wire import Server
from paddlelike.errors import RoundRolledBack
from tests.distributed.faults import points

JOB: dict[str, Any] = {}
WIDTH, WORDS, BATCH = 130, 40, 8


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def network() -> Any:
    """Two layers, one of them cut over the servers; momentum and a schedule, so that lost state shows."""
    x = fluid.data("x", [None, WIDTH])
    y = fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, WIDTH, act="tanh")
    if JOB["network"] == "sparse":
        words = fluid.data("words", [None, 1], "int64")
        embedded = fluid.embedding(words, [WORDS, WIDTH], is_sparse=True, param_attr="table")
        hidden = hidden + fluid.layers.reshape(embedded, [-1, WIDTH])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
    rate = fluid.layers.exponential_decay(0.05, decay_steps=4, decay_rate=0.9)
    if JOB["network"] == "sparse":
        rate = 0.05
    fluid.optimizer.MomentumOptimizer(rate, momentum=0.9).minimize(loss)
    return loss


def feed(step: int, trainer: int) -> dict[str, Any]:
    random = np.random.default_rng([step, trainer])
    values = {
        "x": random.standard_normal((BATCH, WIDTH), np.float32),
        "y": random.standard_normal((BATCH, 1), np.float32),
    }
    if JOB["network"] == "sparse":
        values["words"] = random.integers(0, WORDS, (BATCH, 1))
    return values


def digest(arrays: dict[str, Any]) -> int:
    crc = 0
    for name, array in sorted(arrays.items()):
        crc = zlib.crc32(name.encode() + np.ascontiguousarray(array).tobytes(), crc)
    return crc


def transpile_network() -> tuple[Any, Any]:
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 90
    loss = network()
    config = fluid.DistributeTranspilerConfig()
    if JOB["mode"] != "sync":
        config.sync_mode, config.runtime_split_send_recv = False, JOB["mode"] == "async"
    t = fluid.DistributeTranspiler(config=config)
    t.transpile(
        int(os.environ.get("PADDLE_TRAINER_ID", "0")),
        pservers=os.environ["PADDLE_PSERVERS_IP_PORT_LIST"],
        trainers=int(os.environ["PADDLE_TRAINERS_NUM"]),
        sync_mode=JOB["mode"] == "sync",
    )
    return t, loss


def serve(t: Any, exe: Any) -> None:
    endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
    main = t.get_pserver_program(endpoint)
    exe.run(t.get_startup_program(endpoint, main))
    saves = os.environ["PADDLELIKE_CHECKPOINT_DIR"]
    if Path(saves, "__manifest__").exists():
        points.reach("server.load")
        fluid.io.load_persistables(exe, saves, main)
    services: list[Service] = []
    init, enter = Service.__init__, Server.__enter__

    def noted(service: Service, *args: Any) -> None:
        init(service, *args)
        services.append(service)

    def entered(server: Server) -> Server:
        found = enter(server)
        say(serving=endpoint, round=services[0].state.round)
        return found

    Service.__init__ = noted  # type: ignore[method-assign]
    Server.__enter__ = entered  # type: ignore[method-assign]
    exe.run(main)
    held = {}
    for one in main._parameters_on_pservers.on(endpoint):
        holder = fluid.global_scope().find_var(one.name)
        held[f"{one.origin} {one.first_row}"] = np.array(holder.get_tensor())
    state = services[0].state
    rows = {name: digest({name: array}) for name, array in held.items()}
    updates = state.position()["updates"]
    say(end=state.round, finished=state.is_finished, rows=rows, updates=updates)


def await_trainers(me: int) -> None:
    """Wait until every trainer of the job has joined once."""
    home = Path(os.environ["PADDLELIKE_CHECKPOINT_DIR"]).parent
    (home / f"joined.{me}").touch()
    while len(list(home.glob("joined.*"))) < int(os.environ["PADDLE_TRAINERS_NUM"]):
        time.sleep(0.02)


def train(t: Any, exe: Any, loss: Any) -> None:
    me = int(os.environ["PADDLE_TRAINER_ID"])
    main = t.get_trainer_program()
    exe.run(fluid.default_startup_program())
    say(joined=me)
    if JOB["together"]:
        await_trainers(me)
    for step in resumable_steps(JOB["steps"]):
        say(at=step)
        time.sleep(JOB.get("think", 0.0))
        exe.run(main, feed=feed(step, me), fetch_list=[loss.name])
        say(done=step)
        if me == 0 and JOB["every"] and (step + 1) % JOB["every"] == 0:
            say(saving=step + 1)
            try:
                fluid.io.save_persistables(exe, os.environ["PADDLELIKE_CHECKPOINT_DIR"], main)
            except RoundRolledBack as error:
                say(unsaved=step + 1, back=error.step)
            else:
                say(saved=step + 1)
    names = [p.name for p in main.global_block().all_parameters() if p.name != "table"]
    values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
    exe.close()
    say(end=JOB["steps"], parameters=digest(values))


def main() -> None:
    JOB.update(json.loads(os.environ["JOB"]))
    points.install()
    t, loss = transpile_network()
    exe = fluid.Executor()
    if os.environ["TRAINING_ROLE"] == "PSERVER":
        serve(t, exe)
    else:
        train(t, exe, loss)
