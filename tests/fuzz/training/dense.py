"""Layers of rows (N, D) and of cubes (N, A, B)."""

from __future__ import annotations

from typing import Any

import paddlelike as fluid
from tests.fuzz.training.network import ACTIVATIONS, Layer, Network, Value

__all__ = ["DENSE"]

L = fluid.layers


def fc(net: Network) -> None:
    value, size = net.take("row"), net.rng.choice([1, 3, 4, 6, 8, 24])
    attr = None
    if net.maybe(0.3):  # shared by layers of these sizes
        attr = fluid.ParamAttr(
            name=f"shared_{value.dims[0]}_{size}",
            learning_rate=0.5,
            regularizer=fluid.regularizer.L2Decay(0.01),
        )
    elif net.maybe(0.2):
        attr = fluid.ParamAttr(
            name=net.name("w"),
            learning_rate=net.rng.choice([0.0, 0.3, 2.0]),
            trainable=net.maybe(0.8),
            regularizer=fluid.regularizer.L1Decay(0.003) if net.maybe() else None,
        )
    bias = False if net.maybe(0.2) else None
    net.add(L.fc(value.variable, size, param_attr=attr, bias_attr=bias, act=net.activation()), "row", size)


def fc_of_two(net: Network) -> None:
    one, two = net.take("row"), net.take("row")
    net.add(L.fc([one.variable, two.variable], 5, act=net.activation()), "row", 5)


def activation(net: Network) -> None:
    value = net.take(net.rng.choice(["row", "row", "cube", "image", "seq"]))
    out = getattr(L, net.rng.choice(ACTIVATIONS))(value.variable)
    net.add(out, value.kind, *value.dims)


def formula(net: Network) -> None:
    value = net.take(net.rng.choice(["row", "row", "cube", "image", "seq"]))
    x = value.variable
    choices = [
        lambda: x * 0.5 + 0.1,
        lambda: L.scale(x, -0.7, bias=0.3, bias_after_scale=net.maybe()),
        lambda: L.clip(x, -0.8, 0.9),
        lambda: L.reciprocal(1.0 + L.abs(x)),
        lambda: L.exp(L.clip(x, -2.0, 1.0)),
        lambda: L.sqrt(L.abs(x) + 0.5),
        lambda: L.log(L.square(x) + 1.0),
        lambda: L.pow(L.abs(x) + 0.1, 1.5),
        lambda: L.cast(L.cast(x, "float64") * 2.0, "float32"),
        lambda: L.assign(x),
        lambda: L.dropout(
            x, 0.3, dropout_implementation=net.rng.choice(["downgrade_in_infer", "upscale_in_train"])
        ),
        lambda: L.sums([x, x, L.tanh(x)]),
        lambda: L.elementwise_add(x, x),
        lambda: x - L.relu(x),
        lambda: L.gelu(x),
        lambda: L.hard_sigmoid(x),
        lambda: L.brelu(x, -1.0, 1.0),
        lambda: L.soft_relu(L.clip(x, -3.0, 3.0)),
        lambda: L.sin(x) * L.cos(x),
        lambda: L.stanh(x),
        lambda: L.logsigmoid(x),
        lambda: L.clip_by_norm(x, 2.0),
    ]
    net.add(net.rng.choice(choices)(), value.kind, *value.dims)


def stopped(net: Network) -> None:
    value = net.take("row")
    out = L.scale(value.variable, 1.5)
    out.stop_gradient = True
    net.add(out, "row", *value.dims)


def elementwise(net: Network) -> None:
    one = net.take(net.rng.choice(["row", "row", "cube", "image", "seq"]))
    two = net.find(one.kind, where=lambda value: value.dims == one.dims) or one
    name = net.rng.choice(["add", "sub", "mul", "max", "min", "add", "div"])
    function, x, y = getattr(L, f"elementwise_{name}"), one.variable, two.variable
    if name == "div":
        y = L.abs(y) + 0.7
    form = net.rng.randrange(5)
    act = net.rng.choice([None, None, "relu", "tanh"])
    if form == 0:
        y = net.parameter(one.dims[0])
        if name == "div":
            y = L.square(y) + 0.6
        out = function(x, y, axis=1, act=act)
    elif form == 1 and one.kind == "row":
        out = function(x, L.reduce_mean(L.abs(y), dim=1, keep_dim=True) + 0.5, act=act)
    elif form == 2 and one.kind == "row":
        out = function(x, L.reduce_mean(L.abs(y), dim=1) + 0.5, axis=0, act=act)
    elif form == 3:
        out = function(
            x, net.parameter(1) if name != "div" else L.fill_constant([1], "float32", 1.7), act=act
        )
    else:
        out = function(x, y, act=act)
    net.add(out, one.kind, *one.dims)


def normalized(net: Network) -> None:
    value = net.take("row")
    x = value.variable
    choices = [
        lambda: L.batch_norm(x, act=net.rng.choice([None, "relu"]), momentum=0.8),
        lambda: L.layer_norm(x, scale=net.maybe(0.8), shift=net.maybe(0.8)),
        lambda: L.softmax(x),
        lambda: L.l2_normalize(x + 0.1, axis=1),
        lambda: L.log_softmax(x) if hasattr(L, "log_softmax") else L.log(L.softmax(x)),
        lambda: L.data_norm(x),
    ]
    net.add(net.rng.choice(choices)(), "row", *value.dims)


def joined(net: Network) -> None:
    kind = net.rng.choice(["row", "row", "seq"])
    parts = [net.take(kind) for _ in range(net.rng.choice([2, 3]))]
    if kind == "row" or net.maybe(0.5):
        out = L.concat([part.variable for part in parts], axis=1)
        size = sum(part.dims[0] for part in parts)
        net.add(L.fc(out, 6) if size > 40 else out, kind, 6 if size > 40 else size)


def cut(net: Network) -> None:
    value = net.find("row", where=lambda value: value.dims[0] > 1)
    if value is None:
        fc(net)
        return
    x, width = value.variable, value.dims[0]
    form = net.rng.randrange(5)
    if form == 0 and width % 2 == 0:
        parts = L.split(x, 2, dim=1)
        net.add(parts[0], "row", width // 2)
        net.add(parts[1], "row", width // 2)
    elif form == 1:
        parts = L.split(x, [1, width - 1], dim=-1)
        net.add(parts[1], "row", width - 1)
        if net.maybe():
            net.add(parts[0], "row", 1)
    elif form == 2:
        net.add(x[:, 1:], "row", width - 1)
    elif form == 3:
        net.add(L.slice(x, axes=[1], starts=[0], ends=[width - 1]), "row", width - 1)
    else:
        net.add(L.topk(x, k=width - 1)[0], "row", width - 1)


def widened(net: Network) -> None:
    value = net.take("row")
    x, width = value.variable, value.dims[0]
    form = net.rng.randrange(4)
    if form == 0:
        net.add(L.expand(x, [1, 2]), "row", width * 2)
    elif form == 1:
        net.add(L.pad(x, [0, 0, 1, 1]), "row", width + 2)
    elif form == 2:
        net.add(L.stack([x, L.tanh(x)], axis=1), "cube", 2, width)
    else:
        net.add(L.unsqueeze(x, axes=[1]), "cube", 1, width)


def to_cube(net: Network) -> None:
    value = net.find("row", where=lambda value: value.dims[0] % 2 == 0)
    if value is None:
        fc(net)
        return
    half = value.dims[0] // 2
    shape = net.rng.choice([[-1, 2, half], [0, 2, half]])
    net.add(_reshape(net, value, shape), "cube", 2, half)


def _reshape(net: Network, value: Value, shape: list[int]) -> Any:
    """Return a value of another shape, which may be the same variable."""
    inplace = net.maybe(0.3) and not value.variable.is_data
    if inplace:
        net.values = [one for one in net.values if one.variable is not value.variable]
    return L.reshape(value.variable, shape, inplace=inplace)


def of_cube(net: Network) -> None:
    value = net.take("cube")
    x, (a, b) = value.variable, value.dims
    form = net.rng.randrange(10)
    if form == 0:
        net.add(L.transpose(x, [0, 2, 1]), "cube", b, a)
    elif form == 1:
        net.add(L.matmul(x, x, transpose_y=True, alpha=0.5), "cube", a, a)
    elif form == 2:
        net.add(L.matmul(L.softmax(L.matmul(x, x, transpose_x=True)), x, transpose_y=True), "cube", b, a)
    elif form == 3:
        net.add(L.layer_norm(x, begin_norm_axis=net.rng.choice([1, 2])), "cube", a, b)
    elif form == 4:
        net.add(L.fc(x, 3, num_flatten_dims=2, act=net.activation()), "cube", a, 3)
    elif form == 5:
        net.add(_reshape(net, value, [-1, a * b]), "row", a * b)
    elif form == 6:
        net.add(L.flatten(x, axis=1), "row", a * b)
    elif form == 7:
        reduce = getattr(L, net.rng.choice(["reduce_sum", "reduce_mean", "reduce_max", "reduce_min"]))
        net.add(reduce(x, dim=net.rng.choice([1, -2])), "row", b)
    elif form == 8:
        net.add(L.softmax(x, axis=net.rng.choice([1, 2])), "cube", a, b)
    else:
        net.add(L.transpose(x, [2, 0, 1])[0], "row", a)


def product(net: Network) -> None:
    value = net.take("row")
    weight = net.parameter(5, value.dims[0])
    form = net.rng.randrange(3)
    if form == 0:
        net.add(
            L.matmul(value.variable, weight, transpose_y=True, alpha=net.rng.choice([1.0, 0.5])), "row", 5
        )
    elif form == 1:
        net.add(L.mul(value.variable, L.transpose(weight, [1, 0])), "row", 5)
    else:
        other = net.find("row", where=lambda one: one.dims == value.dims) or value
        net.add(L.cos_sim(value.variable + 0.1, other.variable + 0.2), "row", 1)


def looked_up(net: Network) -> None:
    rows, width = net.rng.choice([(11, 4), (30, 8), (5000, 16)])
    name = f"table_{rows}" if net.maybe(0.5) else net.name("table")
    ids = net.feed("ids", (1,), ids=rows)
    out = L.embedding(
        ids,
        [rows, width],
        is_sparse=net.choose_sparse(name),
        padding_idx=net.rng.choice([None, None, 0, -1]),
        param_attr=fluid.ParamAttr(name=name, initializer=fluid.initializer.Uniform(-0.5, 0.5)),
    )
    net.add(out, "row", width)


DENSE: tuple[Layer, ...] = (
    fc, fc, fc, fc_of_two, activation, formula, formula, formula, stopped, elementwise, elementwise, normalized,
    joined, cut, widened, to_cube, of_cube, of_cube, product, looked_up,
)  # fmt: skip
