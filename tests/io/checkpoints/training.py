"""A training of 60 steps that saves a checkpoint after each and resumes from the last one.

It reads the environment: ROOT, where the checkpoints are; MODE, "blocking" or not; STRIKE, at which commit it
kills itself (before it, or after it where the number is negative; 0: never). It prints the number of losses,
the losses, and the state of the random generator.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.storage.local import generation


def build() -> Any:
    fluid.default_startup_program().random_seed = 3
    x = fluid.data("x", [None, 8])
    hidden = fluid.layers.dropout(fluid.layers.fc(x, 64, act="relu"), 0.5)
    loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(hidden, 1) - 1.0))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def die_at_commit(strike: int) -> None:
    """Kill this process before or after one of its commits."""
    commit, commits = generation.Generation.commit, 0

    def counted(self: generation.Generation, **options: Any) -> None:
        nonlocal commits
        commits += 1
        if commits == strike:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, **options)
        if commits == -strike:
            os.kill(os.getpid(), signal.SIGKILL)

    generation.Generation.commit = counted  # type: ignore[method-assign]


def main() -> None:
    root = os.environ["ROOT"]
    loss, main, exe = build(), fluid.default_main_program(), fluid.Executor()
    exe.run(fluid.default_startup_program())
    blocking = os.environ["MODE"] == "blocking"
    checkpoints = fluid.io.Checkpoints(root, keep_last=2, keep_best=1, every=2, blocking=blocking)
    state = checkpoints.restore(exe, main)
    if state is None:
        fluid.global_scope().generator.state = 2024
        state = {"step": 0, "losses": []}
    losses = state["losses"]
    die_at_commit(int(os.environ["STRIKE"]))
    for step in range(state["step"] + 1, 61):
        time.sleep(0.01)
        data = np.random.RandomState(step).rand(16, 8).astype("float32")
        losses.append(float(exe.run(main, feed={"x": data}, fetch_list=[loss])[0]))
        checkpoints.save(exe, main, step, metric=losses[-1], state={"losses": losses})
    fluid.io.save_persistables(exe, root + "/final", main)
    sys.stdout.write(f"{len(losses)} {losses} {fluid.global_scope().generator.state}\n")
