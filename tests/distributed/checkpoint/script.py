"""A process of a job that saves over one directory again and again, and may kill itself while it does.

``RUN`` is a JSON object: ``first`` and ``last`` step; ``load``, ``save`` (a directory or null), saved after
every second step; ``by_servers``; ``dies``: [which process, at which of its writes].
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import paddlelike as fluid
from paddlelike.distributed.checkpoint import streams
from paddlelike.distributed.server import writing
from tests.distributed.checkpoint.test_resume import ADAM
from tests.distributed.jobs import SEED, perceptron_feeds


def die_at(owner: Any, name: str, number: int) -> None:
    """Kill this process when a function is called for that time."""
    calls = iter(range(1, sys.maxsize))
    done = getattr(owner, name)

    def call(*args: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return done(*args)

    setattr(owner, name, call)


def main() -> None:
    run = json.loads(os.environ["RUN"])
    role, number = os.environ["TRAINING_ROLE"], int(os.environ["NUMBER"])
    servers = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    who, at = run.get("dies") or ("nobody", 0)
    if who == f"{role} {number}":
        die_at(*((writing, "_put") if role == "PSERVER" else (streams.OffsetFile, "write")), at)
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = SEED
    loss = ADAM.build()
    ADAM.optimizer().minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(0 if role == "PSERVER" else number, pservers=servers, trainers=2)
    executor = fluid.Executor()
    if role == "PSERVER":
        endpoint = servers.split(",")[number]
        program = t.get_pserver_program(endpoint)
        executor.run(t.get_startup_program(endpoint, program))
        if run["load"]:
            fluid.io.load_persistables(executor, run["load"], program)
        executor.run(program)
        return
    program = t.get_trainer_program()
    executor.run(fluid.default_startup_program())
    losses = []
    for step in range(run["first"], run["last"]):
        feed = perceptron_feeds(step, number)
        losses.append(float(executor.run(program, feed=feed, fetch_list=[loss])[0]))
        if number == 0 and run["save"] and step % 2:
            fluid.io.save_persistables(
                executor, run["save"], program, by_servers=run.get("by_servers", False)
            )
    executor.close()
    sys.stdout.write(json.dumps(losses))


if __name__ == "__main__":
    main()
