"""Blocks, values that are overwritten, counters and metrics."""

from __future__ import annotations

from typing import Any

import paddlelike as fluid
from tests.fuzz.training.network import Layer, Network

__all__ = ["CONTROL"]

L = fluid.layers


def counted(net: Network) -> None:
    form = net.rng.randrange(4)
    if form == 0:
        net.extra.append(L.autoincreased_step_counter())
    elif form == 1:
        count = L.create_global_var([1], 0.0, "float32", persistable=True, name=net.name("count"))
        L.increment(count, 2.0)
        net.extra.append(count)
    elif form == 2:
        value = net.take("row")
        total = L.create_global_var([1], 0.0, "float32", persistable=True, name=net.name("total"))
        L.sums([total, L.mean(value.variable)], out=total)
        net.extra.append(total)
    else:
        value = net.take("row")
        kept = L.create_global_var(
            [1, value.dims[0]], 0.0, "float32", persistable=True, name=net.name("kept")
        )
        net.extra.append(L.elementwise_add(value.variable, kept))  # the value of the run before
        average = L.reduce_mean(value.variable, dim=0, keep_dim=True)
        L.assign(kept * 0.5 + average * 0.5, output=kept)


def overwritten(net: Network) -> None:
    value = net.take("row")
    x = L.scale(value.variable, 0.9)
    view = L.reshape(x, [-1, 1, value.dims[0]])
    form = net.rng.randrange(3)
    if form == 0:
        L.assign(L.tanh(x), output=x)
    elif form == 1:
        L.sums([x, value.variable], out=x)
    else:
        x = L.sums([x, L.relu(x)], out=x)
    net.add(x, "row", *value.dims)
    if net.maybe():
        net.add(view, "cube", 1, value.dims[0])


def loop(net: Network) -> None:
    value = net.take("row")
    times = L.fill_constant([1], "int64", 0)
    limit = L.fill_constant([1], "int64", net.rng.choice([1, 2, 3]))
    state = L.scale(value.variable, 0.5)
    state.stop_gradient = False
    weight = net.parameter(value.dims[0])
    condition = L.less_than(times, limit)
    block = L.While(condition)
    with block.block():
        L.assign(L.tanh(L.elementwise_mul(state, weight, axis=1)), output=state)
        L.increment(times, 1, in_place=True)
        L.less_than(times, limit, cond=condition)
    net.add(state, "row", *value.dims)


def functional_loop(net: Network) -> None:
    value = net.take("row")
    begin = L.fill_constant([1], "int64", 0)
    limit = L.fill_constant([1], "int64", net.rng.choice([1, 2, 3]))
    _, out = L.while_loop(
        lambda i, x: L.less_than(i, limit),
        lambda i, x: [L.increment(i, 1, in_place=net.maybe()), L.sin(x) + 0.1],
        [begin, value.variable],
    )
    net.add(out, "row", *value.dims)


def loop_until(net: Network) -> None:
    """How many steps there are depends on values; nobody asks for the gradient."""
    value = net.take("row")
    total = L.scale(L.reduce_mean(L.square(value.variable)), 1.0, bias=0.2)
    total.stop_gradient = True
    limit = L.fill_constant([1], "float32", net.rng.choice([0.5, 3.0, 20.0]))
    condition = L.less_than(total, limit)
    block = L.While(condition)
    with block.block():
        L.assign(total * 2.0, output=total)
        L.less_than(total, limit, cond=condition)
    net.add(L.elementwise_mul(value.variable, L.tanh(total)), "row", *value.dims)


def branch(net: Network) -> None:
    value = net.take("row")
    x = value.variable
    total = L.reduce_mean(x)
    yes = L.greater_than(total, L.fill_constant([1], "float32", net.rng.choice([-0.2, 0.0, 0.2])))
    weight = net.parameter(value.dims[0])
    rate = net.rng.choice([0.0, 0.0, 0.3])
    out = L.cond(yes, lambda: L.elementwise_mul(_drop(x, rate), weight, axis=1), lambda: L.tanh(x) - 0.1)
    net.add(out, "row", *value.dims)


def _drop(x: Any, rate: float) -> Any:
    return L.dropout(x, rate) if rate else x


def parts(net: Network) -> None:
    value = net.take("row")
    x = value.variable
    total = L.reduce_sum(x, dim=1, keep_dim=True)
    total.stop_gradient = True
    branches = L.IfElse(total > L.zeros_like(total))
    with branches.true_block():
        branches.output(_drop(L.fc(branches.input(x), 3), net.rng.choice([0.0, 0.0, 0.3])))
    with branches.false_block():
        branches.output(L.fc(branches.input(x), 3, act="tanh"))
    net.add(branches()[0], "row", 3)


def switched(net: Network) -> None:
    rate = L.create_global_var([1], 0.1, "float32", persistable=True, name=net.name("switched"))
    step = L.create_global_var([1], 0.0, "float32", persistable=True, name=net.name("step"))
    L.increment(step)
    two = L.fill_constant([1], "float32", 2.0)
    with L.Switch() as switch:
        with switch.case(step < two):
            L.assign(L.fill_constant([1], "float32", 0.7), output=rate)
        with switch.default():
            L.assign(rate * 0.5, output=rate)
    value = net.take("row")
    net.add(L.elementwise_mul(value.variable, rate), "row", *value.dims)
    net.extra.append(rate)


def static_steps(net: Network) -> None:
    value = net.take("cube")
    a, b = value.dims
    steps = L.transpose(value.variable, [1, 0, 2])
    rnn = L.StaticRNN()
    with rnn.step():
        word = rnn.step_input(steps)
        memory = rnn.memory(shape=[-1, b], batch_ref=word, init_value=0.1)
        state = L.fc([word, memory], b, act="tanh")
        rnn.update_memory(memory, state)
        rnn.step_output(state)
    net.add(L.transpose(rnn(), [1, 0, 2]), "cube", a, b)


def metric(net: Network) -> None:
    value = net.find("row", where=lambda value: value.dims[0] > 1)
    if value is None:
        return
    width = value.dims[0]
    label = net.feed("label", (1,), ids=2 if net.maybe(0.3) else width)
    prediction = L.softmax(value.variable)
    net.extra.append(L.accuracy(prediction, label, k=net.rng.choice([1, 2]) if width > 2 else 1))
    if width == 2:
        net.extra.append(L.auc(prediction, label)[0])


CONTROL: tuple[Layer, ...] = (
    counted, counted, overwritten, overwritten, loop, loop_until, functional_loop, branch, parts, switched, static_steps, metric,
)  # fmt: skip
