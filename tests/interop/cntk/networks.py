"""Networks of Fluid's layers with random parameters, and what they are fed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import LoDTensor

layers = fluid.layers


def _mlp() -> list[Any]:
    x = fluid.data("x", [None, 4])
    hidden = layers.dropout(layers.fc(x, 6, act="tanh"), 0.4)
    return [layers.fc(hidden, 3, act="softmax")]


def _lenet() -> list[Any]:
    image = fluid.data("image", [None, 1, 12, 12])
    one = layers.conv2d(image, 4, 3, padding=1, act="relu")
    one = layers.pool2d(layers.batch_norm(one), 2, pool_stride=2)
    two = layers.conv2d(one, 6, 3, stride=2, padding=1, groups=2, bias_attr=False)
    two = layers.pool2d(layers.leaky_relu(two, 0.1), 3, "avg", 1, 1)
    return [layers.fc(two, 5, act="softmax")]


def _residual() -> list[Any]:
    image = fluid.data("image", [None, 3, 9, 9])
    main = layers.conv2d(image, 6, 3, stride=2, padding=1, bias_attr=False)
    main = layers.batch_norm(main, act="relu")
    short = layers.conv2d(image, 6, 1, stride=2, bias_attr=False)
    out = layers.elementwise_add(main, layers.batch_norm(short), act="relu")
    return [layers.fc(layers.pool2d(out, global_pooling=True), 4)]


def _words() -> list[Any]:
    words = [fluid.data(f"word{i}", [None, 1], "int64") for i in range(3)]
    joined = layers.concat([layers.embedding(one, [20, 5], param_attr="table") for one in words], axis=1)
    return [layers.fc(layers.fc(joined, 8, act="sigmoid"), 20, act="softmax")]


def _wide_and_deep() -> list[Any]:
    x, ids = fluid.data("x", [None, 6]), fluid.data("ids", [None, 4], "int64")
    table = fluid.embedding(ids, [30, 3], padding_idx=0)
    deep = layers.layer_norm(layers.fc(layers.reshape(table, [-1, 12]), 6, act="relu"))
    cross = layers.elementwise_mul(layers.fc(x, 6), deep)
    parts = layers.split(cross, 2, dim=1)
    wide = layers.reduce_sum(layers.square(layers.elementwise_sub(*parts)), dim=1, keep_dim=True)
    return [layers.sigmoid(wide), layers.scale(layers.clip(deep, -1, 1), 2.0, 0.5)]


def _text(kind: str) -> list[Any]:
    x = fluid.data("x", [None, 3], lod_level=1)
    if kind == "lstm":
        out, cell = layers.dynamic_lstm(layers.fc(x, 16), 16, use_peepholes=True)
        out = layers.concat([out, cell], axis=1)
    elif kind == "reversed":
        out, _ = layers.dynamic_lstm(layers.fc(x, 16), 16, use_peepholes=False, is_reverse=True)
    else:
        out = layers.dynamic_gru(layers.fc(x, 12), 4)
    pooled = [layers.sequence_pool(out, how) for how in ("max", "average", "last", "first")]
    return [layers.fc(layers.concat(pooled, axis=1), 2), out]


def _sentiment() -> list[Any]:
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    table = layers.embedding(words, [20, 6])
    wide = fluid.nets.sequence_conv_pool(table, 5, 3, act="tanh", pool_type="max")
    weights = layers.sequence_softmax(layers.fc(table, 1))
    attended = layers.sequence_pool(layers.elementwise_mul(table, weights, axis=0), "sum")
    return [layers.fc([wide, attended], 2, act="softmax"), weights]


NETWORKS: dict[str, Callable[[], list[Any]]] = {
    "mlp": _mlp,
    "lenet": _lenet,
    "residual": _residual,
    "words": _words,
    "wide_and_deep": _wide_and_deep,
    "lstm": lambda: _text("lstm"),
    "reversed": lambda: _text("reversed"),
    "gru": lambda: _text("gru"),
    "sentiment": _sentiment,
}


def build(name: str) -> tuple[fluid.Program, dict[str, Any], list[Any]]:
    """Return a network for prediction, its feed, and its outputs; parameters are in the current scope."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        outputs = NETWORKS[name]()
    fluid.Executor().run(startup)
    rng = np.random.default_rng(len(name))
    for variable in main.list_vars():
        if variable.persistable:
            values = np.abs(rng.standard_normal(variable.shape)) if "batch_norm" in variable.name else None
            values = 0.4 * rng.standard_normal(variable.shape) if values is None else 0.5 + values
            fluid.global_scope().var(variable.name).get_tensor().set(values.astype("float32"))
    feed: dict[str, Any] = {}
    for variable in main.list_vars():
        if not variable.is_data:
            continue
        if variable.lod_level and variable.dtype == fluid.core.VarDesc.VarType.INT64:
            feed[variable.name] = LoDTensor(rng.integers(0, 20, (7, 1)), [[0, 4, 6, 7]])
        elif variable.lod_level:
            feed[variable.name] = LoDTensor(rng.standard_normal((7, 3)).astype("float32"), [[0, 4, 6, 7]])
        elif variable.dtype == fluid.core.VarDesc.VarType.INT64:
            feed[variable.name] = rng.integers(0, 20, (3, *variable.shape[1:]))
        else:
            feed[variable.name] = rng.standard_normal((3, *variable.shape[1:])).astype("float32")
    return main.clone(for_test=True), feed, [one.name for one in outputs]


def run(program: fluid.Program, feed: dict[str, Any], fetches: list[Any]) -> list[np.ndarray]:
    """Return the outputs of a program in the current scope."""
    made = fluid.Executor().run(program, feed=feed, fetch_list=fetches, return_numpy=False)
    return [np.asarray(one.array) for one in made]


def as_real(feed: dict[str, Any]) -> dict[str, Any]:
    """Return a feed with whole numbers as float32, which models of CNTK take."""
    return {
        name: one if isinstance(one, LoDTensor) else np.asarray(one, "float32") for name, one in feed.items()
    }
