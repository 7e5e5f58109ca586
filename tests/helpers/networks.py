"""The networks of the golden files, and random ones, written once for both systems.

Every builder takes the `fluid` module to build with: ours, or in another process the real one (so
this file keeps to what Python 3.7 understands). Feeds come from numpy's legacy generator, whose
stream is frozen: a batch is {name: array}, or (array, offsets per LoD level) for sequences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SEED = 2020
WARM_STEPS = 3  # training steps before the golden files were saved


class Built(NamedTuple):
    """The forward part of a network."""

    loss: Any
    infer: list[Any]
    feed: list[str]
    infer_feed: list[str]


class Network(NamedTuple):
    """A network, its optimizer and its data."""

    build: Callable[[Any], Built]
    optimizer: Callable[[Any], Any]
    feeds: Callable[[Any], dict[str, Any]]


def fit_a_line(fluid: Any) -> Built:
    """Linear regression on 13 features."""
    x = fluid.data(name="x", shape=[None, 13], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    price = fluid.layers.fc(input=x, size=1, act=None)
    cost = fluid.layers.square_error_cost(input=price, label=y)
    return Built(fluid.layers.mean(cost), [price], ["x", "y"], ["x"])


def fit_a_line_feeds(rng: Any) -> dict[str, Any]:
    x = rng.uniform(-1, 1, (8, 13)).astype("float32")
    return {"x": x, "y": (x[:, :3].sum(1, keepdims=True) + 0.5).astype("float32")}


def mnist_conv_bn(fluid: Any) -> Built:
    """Digits: two convolutions with batch normalisation between them."""
    layers = fluid.layers
    image = fluid.data(name="img", shape=[None, 1, 28, 28], dtype="float32")
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    pooled = {"filter_size": 5, "pool_size": 2, "pool_stride": 2, "act": "relu"}
    hidden = fluid.nets.simple_img_conv_pool(input=image, num_filters=6, **pooled)
    hidden = layers.batch_norm(hidden)
    hidden = fluid.nets.simple_img_conv_pool(input=hidden, num_filters=8, **pooled)
    digits = layers.fc(input=hidden, size=10, act="softmax")
    loss = layers.mean(layers.cross_entropy(input=digits, label=label))
    layers.accuracy(input=digits, label=label)
    return Built(loss, [digits], ["img", "label"], ["img"])


def mnist_feeds(rng: Any) -> dict[str, Any]:
    return {
        "img": (rng.randint(0, 17, (4, 1, 28, 28)) / 8.0 - 1.0).astype("float32"),
        "label": rng.randint(0, 10, (4, 1)).astype("int64"),
    }


WORDS = ["firstw", "secondw", "thirdw", "forthw"]


def word2vec_shared(fluid: Any) -> Built:
    """The next word from four, which share one embedding table."""
    layers = fluid.layers
    words = [fluid.data(name=name, shape=[None, 1], dtype="int64") for name in WORDS]
    following = fluid.data(name="nextw", shape=[None, 1], dtype="int64")
    table = {"size": [120, 12], "is_sparse": False, "param_attr": "shared_w"}
    embedded = [layers.embedding(input=word, **table) for word in words]
    hidden = layers.fc(input=layers.concat(input=embedded, axis=1), size=24, act="sigmoid")
    guess = layers.fc(input=hidden, size=120, act="softmax")
    loss = layers.mean(layers.cross_entropy(input=guess, label=following))
    return Built(loss, [guess], [*WORDS, "nextw"], WORDS)


def word2vec_feeds(rng: Any) -> dict[str, Any]:
    return {name: rng.randint(0, 120, (6, 1)).astype("int64") for name in [*WORDS, "nextw"]}


def sentiment_lstm(fluid: Any) -> Built:
    """Sentiment of word sequences of any length."""
    layers = fluid.layers
    words = fluid.data(name="words", shape=[None, 1], dtype="int64", lod_level=1)
    label = fluid.data(name="label", shape=[None, 1], dtype="int64")
    embedded = layers.embedding(input=words, size=[80, 10], is_sparse=False)
    projected = layers.fc(input=embedded, size=32)
    hidden, _ = layers.dynamic_lstm(input=projected, size=32)
    pools = [layers.sequence_pool(input=x, pool_type="max") for x in (projected, hidden)]
    mood = layers.fc(input=pools, size=2, act="softmax")
    loss = layers.mean(layers.cross_entropy(input=mood, label=label))
    return Built(loss, [mood], ["words", "label"], ["words"])


def sentiment_feeds(rng: Any) -> dict[str, Any]:
    offsets = [0, 3, 4, 9, 11]
    return {
        "words": (rng.randint(0, 80, (offsets[-1], 1)).astype("int64"), [offsets]),
        "label": rng.randint(0, 2, (4, 1)).astype("int64"),
    }


NETWORKS = {
    "fit_a_line": Network(
        fit_a_line, lambda fluid: fluid.optimizer.SGD(learning_rate=0.05), fit_a_line_feeds
    ),
    "mnist_conv_bn": Network(
        mnist_conv_bn,
        lambda fluid: fluid.optimizer.Momentum(learning_rate=0.002, momentum=0.9),
        mnist_feeds,
    ),
    "word2vec_shared": Network(
        word2vec_shared, lambda fluid: fluid.optimizer.Adam(learning_rate=0.01), word2vec_feeds
    ),
    "sentiment_lstm": Network(
        sentiment_lstm, lambda fluid: fluid.optimizer.Adagrad(learning_rate=0.05), sentiment_feeds
    ),
}


def mlp_adam(fluid: Any) -> Built:
    """Two dense layers: small enough for today's Paddle to build the same."""
    layers = fluid.layers
    x = fluid.data(name="x", shape=[None, 6], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    out = layers.fc(layers.fc(x, 5, act="relu"), 1)
    return Built(layers.mean(layers.square(out - y)), [out], ["x", "y"], ["x"])


def mlp_feeds(rng: Any) -> dict[str, Any]:
    x = rng.uniform(-1, 1, (4, 6)).astype("float32")
    return {"x": x, "y": x.sum(1, keepdims=True).astype("float32")}


#: The network of the files of Paddle 2.6.2.
MLP_ADAM = Network(mlp_adam, lambda fluid: fluid.optimizer.Adam(0.01), mlp_feeds)


def network(name: str) -> Network:
    """One of NETWORKS, ``mlp_adam``, or ``random-<number>``: a network nobody has seen before."""
    if name.startswith("random-"):
        return random_network(int(name[len("random-") :]))
    return {**NETWORKS, "mlp_adam": MLP_ADAM}[name]


def as_feed(module: Any, batch: dict[str, Any]) -> dict[str, Any]:
    """A batch of tests/helpers/networks.py as a feed of that `fluid` module."""

    def value(item: Any) -> Any:
        if not isinstance(item, tuple):
            return item
        array, levels = item
        lengths = [np.diff(offsets).tolist() for offsets in levels]
        return module.create_lod_tensor(array, lengths, module.CPUPlace())

    return {name: value(item) for name, item in batch.items()}


def random_network(number: int) -> Network:
    """A network, an optimizer and data drawn by the generator seeded with ``number``.

    Epsilons are large and no bias stands in front of a normalisation: a gradient that is zero but for
    rounding must not be blown up by a division, or no two systems would agree.
    """
    family = [_random_dense, _random_image, _random_sequence][number % 3]
    build, feeds = family(number)
    return Network(build, lambda fluid: _random_optimizer(fluid, number), feeds)


_ACTS = ["relu", "tanh", "sigmoid", "leaky_relu", "softsign", None]


def _random_dense(number: int) -> Any:
    rng = np.random.RandomState(number)
    features, classes, rows = rng.randint(3, 20), rng.randint(2, 7), rng.randint(2, 9)
    plan = [(int(rng.randint(2, 24)), _ACTS[rng.randint(6)], rng.randint(6)) for _ in range(3)]

    def build(fluid: Any) -> Built:
        layers = fluid.layers
        x = fluid.data(name="x", shape=[None, features], dtype="float32")
        label = fluid.data(name="label", shape=[None, 1], dtype="int64")
        hidden = x
        for size, act, kind in plan:
            bias = None if kind > 2 else False
            branch = layers.fc(hidden, size, act=None if kind == 2 else act, bias_attr=bias)
            if kind == 1:
                branch = layers.layer_norm(branch)
            elif kind == 2:
                branch = layers.batch_norm(branch, act=act, momentum=0.8, epsilon=1e-3)
            elif kind == 3:
                branch = branch * 0.5 + layers.fc(hidden, size, name=f"side{size}")
            elif kind == 4:
                branch = layers.dropout(branch, 0.25, dropout_implementation="upscale_in_train")
            elif kind == 5:
                branch = layers.concat([branch, hidden], axis=1)
            hidden = branch
        logits = layers.fc(hidden, classes)
        loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
        return Built(loss, [layers.softmax(logits)], ["x", "label"], ["x"])

    def feeds(data: Any) -> dict[str, Any]:
        return {
            "x": data.uniform(-1, 1, (rows, features)).astype("float32"),
            "label": data.randint(0, classes, (rows, 1)).astype("int64"),
        }

    return build, feeds


def _random_image(number: int) -> Any:
    rng = np.random.RandomState(number)
    channels, size, classes = rng.randint(1, 4), rng.randint(8, 13), rng.randint(2, 6)
    filters, kernel = int(rng.randint(1, 5)) * 2, int(rng.choice([1, 3]))
    stride, groups, norm, pool = (
        rng.randint(1, 3),
        rng.randint(1, 3),
        rng.randint(3),
        rng.randint(2),
    )

    def build(fluid: Any) -> Built:
        layers = fluid.layers
        image = fluid.data(name="img", shape=[None, channels, size, size], dtype="float32")
        target = fluid.data(name="target", shape=[None, classes], dtype="float32")
        if norm == 0:
            hidden = layers.conv2d(image, filters, 3, padding=1, bias_attr=False)
            hidden = layers.batch_norm(hidden, act="relu", epsilon=1e-3)
        else:
            hidden = layers.conv2d(image, filters, 3, padding=1, act="relu")
        hidden = layers.pool2d(hidden, 2, ["max", "avg"][pool], pool_stride=2, ceil_mode=True)
        if norm == 1:
            hidden = layers.prelu(hidden, "channel")
        hidden = layers.conv2d(hidden, filters, kernel, stride=stride, padding=kernel // 2, groups=groups)
        hidden = layers.pool2d(hidden, pool_type="avg", global_pooling=True)
        out = layers.fc(hidden, classes, act="sigmoid")
        loss = layers.mean(layers.square_error_cost(out, target))
        return Built(loss, [out], ["img", "target"], ["img"])

    def feeds(data: Any) -> dict[str, Any]:
        return {
            "img": data.uniform(-1, 1, (3, channels, size, size)).astype("float32"),
            "target": data.uniform(0, 1, (3, classes)).astype("float32"),
        }

    return build, feeds


def _random_sequence(number: int) -> Any:
    rng = np.random.RandomState(number)
    words, width, hidden_size = rng.randint(10, 60), rng.randint(3, 12), int(rng.randint(2, 9))
    cell, pool, sparse = rng.randint(3), rng.randint(5), _is_sparse(number)
    reverse = bool(rng.randint(2))
    lengths = rng.randint(1, 6, rng.randint(2, 6))

    def build(fluid: Any) -> Built:
        layers = fluid.layers
        ids = fluid.data(name="ids", shape=[None, 1], dtype="int64", lod_level=1)
        score = fluid.data(name="score", shape=[None, 1], dtype="float32")
        x = layers.embedding(ids, size=[words, width], is_sparse=sparse)
        if cell == 0:
            x, _ = layers.dynamic_lstm(layers.fc(x, 4 * hidden_size), 4 * hidden_size, is_reverse=reverse)
        elif cell == 1:
            x = layers.dynamic_gru(layers.fc(x, 3 * hidden_size), hidden_size, is_reverse=reverse)
        else:
            x = layers.sequence_conv(x, hidden_size, 3, act="tanh")
        pooled = layers.sequence_pool(x, ["sum", "average", "max", "last", "sqrt"][pool])
        out = layers.fc(pooled, 1)
        loss = layers.mean(layers.square_error_cost(out, score))
        return Built(loss, [out], ["ids", "score"], ["ids"])

    def feeds(data: Any) -> dict[str, Any]:
        offsets = [0, *np.cumsum(lengths).tolist()]
        return {
            "ids": (data.randint(0, words, (offsets[-1], 1)).astype("int64"), [offsets]),
            "score": data.uniform(-1, 1, (len(lengths), 1)).astype("float32"),
        }

    return build, feeds


def _random_optimizer(fluid: Any, number: int) -> Any:
    rng = np.random.RandomState(number + 1)
    optimizer, layers = fluid.optimizer, fluid.layers
    rate = float(np.float32(rng.uniform(0.001, 0.05)))
    schedules = [
        lambda: rate,
        lambda: layers.exponential_decay(rate, 3, 0.7, staircase=True),
        lambda: layers.piecewise_decay([2, 5], [rate, rate / 2, rate / 4]),
        lambda: layers.polynomial_decay(rate, 6, rate / 10),
        lambda: layers.noam_decay(64, 50),
    ]
    learning_rate = schedules[rng.randint(len(schedules))]()
    options: dict[str, Any] = {}
    if rng.randint(2):
        options["regularization"] = fluid.regularizer.L2Decay(1e-3)
    if rng.randint(2):
        options["grad_clip"] = fluid.clip.GradientClipByGlobalNorm(0.5)
    kinds = [
        lambda: optimizer.SGD(learning_rate, **options),
        lambda: optimizer.Adam(learning_rate, beta1=0.8, epsilon=1e-3, **options),
        lambda: optimizer.Adagrad(learning_rate, epsilon=1e-2, **options),
        # Of sparse gradients Fluid's Momentum loses rows when the ids come unsorted.
        lambda: optimizer.Momentum(learning_rate, 0.9, use_nesterov=True, **options),
        lambda: optimizer.RMSProp(learning_rate, epsilon=1e-2, momentum=0.5, centered=True, **options),
        lambda: optimizer.Adamax(learning_rate, epsilon=1e-2, **options),
        lambda: optimizer.Adadelta(learning_rate, epsilon=1e-2, **options),
    ]
    return kinds[rng.randint(3 if _is_sparse(number) else len(kinds))]()


def _is_sparse(number: int) -> bool:
    """Whether the embedding of a random sequence network has sparse gradients."""
    return number % 3 == 2 and number % 2 == 0
