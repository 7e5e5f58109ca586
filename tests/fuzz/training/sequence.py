"""Layers of sequences: rows (rows, D) with a LoD."""

from __future__ import annotations

import paddlelike as fluid
from tests.fuzz.training.network import Layer, Network

__all__ = ["SEQUENCES"]

L = fluid.layers


def embedded(net: Network) -> None:
    rows, width = net.rng.choice([(11, 4), (30, 8), (5000, 16)])
    name = net.name("words_table")
    ids = net.feed("words", (1,), ids=rows, levels=1)
    out = L.embedding(
        ids,
        [rows, width],
        is_sparse=net.choose_sparse(name),
        padding_idx=net.rng.choice([None, None, 0]),
        param_attr=fluid.ParamAttr(name=name, initializer=fluid.initializer.Uniform(-0.5, 0.5)),
    )
    net.add(out, "seq", width)


def nested(net: Network) -> None:
    """Sentences of words: the rows are sentences, after the words of each are pooled."""
    words = net.feed("sentences", (1,), ids=20, levels=2)
    name = net.name("words_table")
    table = L.embedding(words, [20, 4], is_sparse=net.choose_sparse(name), param_attr=name)
    if net.maybe():
        table = L.fc(table, 4, act=net.activation())
    net.add(L.sequence_pool(table, net.rng.choice(["sum", "average", "max", "last"])), "seq", 4)


def pooled(net: Network) -> None:
    value = net.take("seq")
    form = net.rng.choice(["sum", "average", "sqrt", "max", "last", "first"])
    net.add(L.sequence_pool(value.variable, form), "row", *value.dims)


def per_row(net: Network) -> None:
    value = net.take("seq")
    x = value.variable
    form = net.rng.randrange(7)
    if form == 0:
        net.add(L.fc(x, 6, act=net.activation()), "seq", 6)
    elif form == 1:
        net.add(L.layer_norm(x), "seq", *value.dims)
    elif form == 2:
        net.add(L.sequence_conv(x, 5, filter_size=3, act=net.activation()), "seq", 5)
    elif form == 3:
        net.add(L.row_conv(x, 2), "seq", *value.dims)
    elif form == 4:
        net.add(L.sequence_reverse(x), "seq", *value.dims)
    elif form == 5:
        weight = L.sequence_softmax(L.fc(x, 1))
        net.add(L.elementwise_mul(x, L.reshape(weight, [-1]), axis=0), "seq", *value.dims)
    else:
        net.add(L.dropout(x, 0.2), "seq", *value.dims)


def recurrent(net: Network) -> None:
    value = net.take("seq")
    size, form = net.rng.choice([3, 4]), net.rng.randrange(2)
    reverse = net.maybe(0.3)
    if form == 0:
        hidden, cell = L.dynamic_lstm(
            L.fc(value.variable, size * 4, bias_attr=False),
            size * 4,
            use_peepholes=net.maybe(),
            is_reverse=reverse,
        )
        net.add(hidden, "seq", size)
        if net.maybe(0.3):
            net.add(cell, "seq", size)
    else:
        hidden = L.dynamic_gru(
            L.fc(value.variable, size * 3), size, is_reverse=reverse, origin_mode=net.maybe()
        )
        net.add(hidden, "seq", size)


def expanded(net: Network) -> None:
    row, value = net.take("row"), net.take("seq")
    out = L.sequence_expand_as(row.variable, value.variable)
    net.add(out, "seq", *row.dims)


def padded(net: Network) -> None:
    value = net.take("seq")
    zero = L.fill_constant([1], "float32", 0.0)
    rows, lengths = L.sequence_pad(value.variable, zero)
    form = net.rng.randrange(3)
    if form == 0:
        net.add(L.sequence_unpad(rows, lengths), "seq", *value.dims)
    elif form == 1:
        net.add(L.reduce_sum(rows, dim=1), "row", *value.dims)
    else:
        net.add(L.sequence_unpad(L.tanh(rows) * 0.5, lengths), "seq", *value.dims)


def stepwise(net: Network) -> None:
    value, size = net.take("seq"), 4
    row = net.find("row")
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(value.variable)
        memory = rnn.memory(shape=[size], value=0.1)
        parts = [word, memory]
        if row is not None and net.maybe():
            parts.append(rnn.static_input(row.variable))
        state = L.fc(parts, size, act="tanh")
        rnn.update_memory(memory, state)
        rnn.output(state)
    out = rnn()
    if net.maybe():
        net.add(L.sequence_last_step(out), "row", size)
    else:
        net.add(out, "seq", size)


SEQUENCES: tuple[Layer, ...] = (
    embedded, embedded, nested, pooled, pooled, per_row, per_row, per_row, recurrent, expanded, padded, stepwise,
)  # fmt: skip
