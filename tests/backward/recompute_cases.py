"""Training programs that compute activations again; `fluid` is ours, or the real one in another process."""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 7
STEPS = 4
RATE = 0.05


def feeds(step: int) -> dict[str, Any]:
    rng = np.random.RandomState(100 + step)
    return {
        "x": rng.uniform(-1, 1, (4, 6)).astype("float32"),
        "label": rng.randint(0, 3, (4, 1)).astype("int64"),
        "image": rng.uniform(-1, 1, (2, 2, 6, 6)).astype("float32"),
        "ids": rng.randint(0, 9, (4, 2)).astype("int64"),
    }


def _minimize(fluid: Any, loss: Any, checkpoints: list[Any], inner: Any = None) -> Any:
    tool = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(RATE) if inner is None else inner)
    tool._set_checkpoints(checkpoints)
    tool.minimize(loss)
    return loss


def _classify(fluid: Any, hidden: Any) -> Any:
    label = fluid.data("label", [None, 1], "int64")
    return fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act="softmax"), label))


def layers_of_fc(fluid: Any) -> Any:
    """Six layers, a checkpoint at every other."""
    hidden = [fluid.data("x", [None, 6], "float32")]
    for _ in range(6):
        hidden.append(fluid.layers.fc(hidden[-1], 5, act="tanh"))
    loss = _classify(fluid, hidden[-1])
    return _minimize(fluid, loss, [hidden[4], hidden[2], hidden[6]], fluid.optimizer.Momentum(RATE, 0.9))


def one_checkpoint(fluid: Any) -> Any:
    x = fluid.data("x", [None, 6], "float32")
    first = fluid.layers.fc(fluid.layers.fc(x, 7, act="relu"), 4, act="sigmoid")
    return _minimize(fluid, _classify(fluid, fluid.layers.fc(first, 5, act="relu")), [first])


def dropouts(fluid: Any) -> Any:
    """Dropout with a fixed seed inside of a segment: both runs drop the same."""
    x = fluid.data("x", [None, 6], "float32")
    hidden = [x]
    for seed in (3, 5, 8):
        kept = fluid.layers.dropout(fluid.layers.fc(hidden[-1], 8, act="relu"), 0.4, seed=seed)
        hidden.append(fluid.layers.fc(kept, 6))
    return _minimize(fluid, _classify(fluid, hidden[-1]), hidden[1:])


def images(fluid: Any) -> Any:
    """Convolutions, batch norm, a shortcut across a checkpoint."""
    layers = fluid.layers
    image = fluid.data("image", [None, 2, 6, 6], "float32")
    one = layers.batch_norm(layers.conv2d(image, 3, 3, padding=1, bias_attr=False), act="relu")
    two = layers.batch_norm(layers.conv2d(one, 3, 3, padding=1))
    three = layers.relu(layers.elementwise_add(one, two))
    pooled = layers.pool2d(layers.conv2d(three, 4, 3), 2, "avg", 2)
    loss = layers.reduce_mean(layers.square(layers.fc(pooled, 1)))
    return _minimize(fluid, loss, [one, three, pooled])


def table(fluid: Any) -> Any:
    ids = fluid.data("ids", [None, 2], "int64")
    rows = fluid.layers.reshape(fluid.embedding(ids, [9, 3]), [-1, 6])
    hidden = fluid.layers.fc(rows, 5, act="relu")
    return _minimize(fluid, _classify(fluid, fluid.layers.fc(hidden, 5, act="tanh")), [rows, hidden])


def frozen(fluid: Any) -> Any:
    """A parameter that is not trained, a product of data before the first checkpoint and after the last."""
    layers = fluid.layers
    x = layers.scale(fluid.data("x", [None, 6], "float32"), 2.0)
    first = layers.fc(x, 5, act="relu", param_attr=fluid.ParamAttr("kept", trainable=False))
    second = layers.batch_norm(layers.layer_norm(layers.fc(first, 5)))
    third = layers.fc([second, layers.scale(x, 0.5)], 4, act="tanh")
    return _minimize(fluid, _classify(fluid, third), [first, second])


CASES = {case.__name__: case for case in (layers_of_fc, one_checkpoint, dropouts, images, table, frozen)}
