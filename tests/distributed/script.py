"""A script that every process of a job runs; environment variables say which part it plays, as for Fluid.

``RUN`` is a JSON object: ``steps``; ``optimizer``; ``save`` (a directory, each save into one of its own);
``save_every``; ``follow`` (go back with the servers); ``slow`` (seconds for each step).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import paddlelike as fluid
from paddlelike.distributed.client.trainers import resumable_steps
from tests.distributed import jobs


def main() -> None:
    run = json.loads(os.environ["RUN"])
    role, servers = os.environ["TRAINING_ROLE"], os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
    number, trainers = int(os.environ.get("PADDLE_TRAINER_ID", "0")), int(os.environ["PADDLE_TRAINERS_NUM"])
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = jobs.SEED
    loss = jobs.perceptron()
    getattr(jobs, run.get("optimizer", "momentum"))().minimize(loss)
    t = fluid.DistributeTranspiler()
    t.transpile(number, pservers=servers, trainers=trainers, sync_mode=run.get("sync", True))
    executor = fluid.Executor()
    if role == "PSERVER":
        endpoint = f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}"
        program = t.get_pserver_program(endpoint)
        executor.run(t.get_startup_program(endpoint, program))
        say(serving=endpoint)
        executor.run(program)
        say(served=endpoint)
        return
    program = t.get_trainer_program()
    executor.run(fluid.default_startup_program())
    steps = resumable_steps(run["steps"]) if run.get("follow") else range(run["steps"])
    losses: dict[int, float] = {}
    for step in steps:
        feed = jobs.perceptron_feeds(step, number)
        (value,) = executor.run(program, feed=feed, fetch_list=[loss])
        losses[step] = float(value)
        say(step=step)
        time.sleep(run.get("slow", 0.0))
        if number == 0 and run.get("save") and (step + 1) % run["save_every"] == 0:
            fluid.io.save_persistables(executor, str(Path(run["save"], f"{step + 1:05d}")), program)
            say(saved=step + 1)
    executor.close()
    say(losses=[losses[step] for step in sorted(losses)])


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
