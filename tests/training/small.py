"""A small network to be trained, and its data."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike import training
from tests.helpers.golden_data import table

GOLDEN = table("cntk_training")  # of the real CNTK 2.7, see dump_training.py
X = np.random.RandomState(0).rand(20, 3).astype("float32")
Y = (np.arange(20) % 2).reshape(20, 1)


def criterion(act: str = "tanh", width: int = 4, dropout: float = 0.0) -> tuple[Any, Any]:
    """The loss and the error of a classifier of ``x`` into ``y``."""
    fluid.default_startup_program().random_seed = 5
    x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.fc(x, width, act=act)
    if dropout:
        hidden = fluid.layers.dropout(hidden, dropout)
    out = fluid.layers.softmax(fluid.layers.fc(hidden, 2))
    return fluid.layers.cross_entropy(out, y), 1.0 - fluid.layers.accuracy(out, y)


def trainer(*writers: Any, optimizer: Any = None, **network: Any) -> training.Trainer:
    learner = fluid.optimizer.Momentum(0.05, 0.9) if optimizer is None else optimizer
    return training.Trainer(None, criterion(**network), learner, writers)


def source(rows: int = 10, **options: Any) -> training.MinibatchSourceFromData:
    return training.MinibatchSourceFromData({"x": X[:rows], "y": Y[:rows]}, **options)


def values() -> dict[str, Any]:
    """The values of all persistables."""
    scope = fluid.global_scope()
    variables = fluid.io.get_program_persistable_vars(fluid.default_main_program())
    return {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in variables}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Assert that values have the same bits."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)
