"""A training whose pickles are golden files; ``python -m tests.bundle.golden`` writes this release's."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import paddlelike as fluid
from paddlelike import bundle

PICKLES = Path(__file__).parent.parent / "golden" / "pickles"
FEED = {"x": np.linspace(-1, 1, 20, dtype="float32").reshape(5, 4)}


class Training(NamedTuple):
    """The objects of one training."""

    main: fluid.Program
    startup: fluid.Program
    loss: str
    optimizer: Any
    scope: fluid.Scope

    def run(self, steps: int) -> list[float]:
        """Train and return the losses."""
        exe = fluid.Executor()
        with fluid.scope_guard(self.scope):
            return [exe.run(self.main, feed=FEED, fetch_list=[self.loss])[0].item() for _ in range(steps)]


def train(optimizer: Any = None) -> Training:
    """Build a network with dropout, clips and decay, and train it for 3 steps."""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 3
    with fluid.unique_name.guard(), fluid.program_guard(main, startup), fluid.scope_guard(scope):
        x = fluid.data("x", [None, 4])
        weight = fluid.ParamAttr(
            name="w", initializer=fluid.initializer.Xavier(), regularizer=fluid.regularizer.L2Decay(0.01)
        )
        hidden = fluid.layers.dropout(
            fluid.layers.fc(x, 3, act="tanh", param_attr=weight, bias_attr="b"), 0.5
        )
        loss = fluid.layers.mean(hidden)
        clip = fluid.clip.GradientClipByGlobalNorm(1.0)
        optimizer = fluid.optimizer.Adam(0.1, grad_clip=clip) if optimizer is None else optimizer()
        optimizer.minimize(loss)
        fluid.Executor().run(startup)
    training = Training(main, startup, loss.name, optimizer, scope)
    training.run(3)
    return training


def write() -> None:
    """Write the golden files."""
    training = train()
    for program in (training.main, training.startup):
        for op in program.global_block().ops:
            op.line = None  # a path of the machine that wrote the file
    saved = (training.main, training.startup, training.loss, training.optimizer, training.scope)
    PICKLES.mkdir(exist_ok=True)
    (PICKLES / "training-1.pkl").write_bytes(pickle.dumps(saved, 4))
    bundle.dump(saved, PICKLES / "training-1.zip")
    facts = {"main": training.main.to_string(True), "losses": training.run(4)}
    (PICKLES / "training-1.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    write()
