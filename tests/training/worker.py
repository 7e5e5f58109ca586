"""A script of trainers and servers that train together; environment variables say which part it plays.

``RUN`` is a JSON object: ``root``, where checkpoints are; ``samples``, to train so many in a session; or
``steps``, to save and restore by hand after so many minibatches, 0: only to restore.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike import training
from paddlelike.errors import GraphError, SaveError

X = np.random.RandomState(0).rand(60, 6).astype("float32")


def make_trainer() -> tuple[training.Trainer, Any]:
    rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
    fluid.default_startup_program().random_seed = 3
    fluid.global_scope().generator.state = 100 + rank  # each process has masks of its own
    random.seed(rank)  # the readers begin with the numbers of the first process all the same
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    hidden = fluid.layers.dropout(fluid.layers.fc(x, 8, act="tanh"), 0.3)
    loss = fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y)
    adam = fluid.optimizer.Adam(fluid.layers.exponential_decay(0.02, 5, 0.9))
    learner = training.data_parallel_distributed_learner(adam)
    source = training.GeneratorSource(
        fluid.io.shuffle(lambda: iter(zip(X, X[:, :1], strict=True)), 30), [x, y]
    )
    return training.Trainer(None, loss, learner), source


def parameters() -> dict[str, list[float]]:
    scope = fluid.global_scope()
    names = sorted(one.name for one in fluid.default_main_program().all_parameters())
    return {name: np.array(scope.find_var(name).get_tensor()).ravel().tolist() for name in names}


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def train_by_hand(trainer: training.Trainer, source: Any, root: Path, steps: int) -> None:
    workers = trainer.workers
    for _ in range(steps):
        data = source.next_minibatch(8, number_of_workers=workers.size, worker_rank=workers.rank)
        trainer.train_minibatch(data)
    if steps:
        report = trainer.save_checkpoint(root / "model", {"rank": workers.rank, "of": workers.size})
        say(wrote=report is not None)
    say(restored=trainer.restore_from_checkpoint(root / "model"))
    if steps:
        try:
            trainer.save_checkpoint(root / "file" / "model")
        except SaveError as error:
            say(refused=str(error))


def main() -> None:
    run = json.loads(os.environ["RUN"])
    root = Path(run["root"])
    trainer, source = make_trainer()
    session = training.training_session(
        trainer,
        source,
        8,
        max_samples=run.get("samples"),
        checkpoint_config=training.CheckpointConfig(root / "model", frequency=16),
    )
    if trainer.is_server:
        say(serving=f"{os.environ['POD_IP']}:{os.environ['PADDLE_PORT']}")
    if "samples" in run:
        session.train()
    elif trainer.is_server:
        try:
            trainer.train_minibatch({})
        except GraphError as error:
            say(hint=error.hint)
        trainer.serve(root / "model")
    else:
        train_by_hand(trainer, source, root, run["steps"])
    if not trainer.is_server:
        say(parameters=parameters(), samples=trainer.total_number_of_samples_seen)
        trainer.close()


if __name__ == "__main__":
    main()
