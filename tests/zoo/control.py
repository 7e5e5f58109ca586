"""The entries of the table of layers that take more than one line: blocks, arrays, readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddlelike as fluid

__all__ = ["CONTROL"]

L = fluid.layers


def while_loop() -> Any:
    i = L.fill_constant([1], "int64", 0)
    n = L.fill_constant([1], "int64", 5)
    total = L.fill_constant([1], "float32", 0.0)
    going = L.less_than(i, n)
    with L.While(going).block():
        L.assign(L.scale(total, 1.0, 1.0), total)
        L.increment(i, 1.0, in_place=True)
        L.less_than(i, n, cond=going)
    return total


def cond() -> Any:
    a = L.fill_constant([1], "float32", 1.0)
    b = L.fill_constant([1], "float32", 2.0)
    return L.cond(L.less_than(a, b), lambda: a + b, lambda: a - b)


def static_rnn() -> Any:
    x = fluid.data("x", [5, 2, 4], "float32")
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(x)
        before = rnn.memory(shape=[-1, 3], batch_ref=word)
        hidden = L.fc([word, before], 3, act="relu")
        rnn.update_memory(before, hidden)
        rnn.step_output(hidden)
    return rnn()


def dynamic_rnn() -> Any:
    sequence = fluid.data("seq", [None, 8], "float32", lod_level=1)
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(sequence)
        before = rnn.memory(shape=[3])
        hidden = L.fc([word, before], 3, act="relu")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    return rnn()


def array_ops() -> Any:
    i = L.fill_constant([1], "int64", 0)
    array = L.array_write(fluid.data("x", [None, 6], "float32"), i)
    L.array_length(array)
    return L.array_read(array, i)


def py_reader() -> Any:
    reader = L.py_reader(4, [(-1, 3), (-1, 1)], ["float32", "int64"])
    features, _ = L.read_file(reader)
    return L.fc(features, 2)


def switch() -> Any:
    step = L.autoincreased_step_counter()
    rate = L.create_global_var([1], 0.0, "float32", True, name="lr")
    limit = L.fill_constant([1], "int64", 10)
    with L.Switch() as cases:
        with cases.case(step < limit):
            L.assign(L.fill_constant([1], "float32", 1.0), rate)
        with cases.default():
            L.assign(L.fill_constant([1], "float32", 2.0), rate)
    return rate


def crf_decoding() -> Any:
    shared = fluid.ParamAttr(name="crfw")
    emission = fluid.data("seq", [None, 4], "float32", lod_level=1)
    label = fluid.data("l", [None, 1], "int64", lod_level=1)
    L.linear_chain_crf(emission, label, param_attr=shared)
    return L.crf_decoding(emission, param_attr=fluid.ParamAttr(name="crfw"))


def weight_norm() -> Any:
    x = fluid.data("x", [None, 4], "float32")
    return L.fc(x, 3, param_attr=fluid.WeightNormParamAttr(dim=1, name="wn"))


CONTROL: dict[str, Callable[[], Any]] = {
    "array_ops": array_ops,
    "cond": cond,
    "crf_decoding": crf_decoding,
    "dynamic_rnn": dynamic_rnn,
    "py_reader": py_reader,
    "static_rnn": static_rnn,
    "switch": switch,
    "weight_norm_fc": weight_norm,
    "while": while_loop,
}
