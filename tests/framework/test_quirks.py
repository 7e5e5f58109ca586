"""Every row of the table of quirks: Fluid's number by default, the textbook's when the flag says so."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import QuirkWarning, ShapeError, UnsupportedError
from paddlelike.framework import flags
from paddlelike.framework.quirks import QUIRKS
from paddlelike.reader.data_generator import MultiSlotStringDataGenerator
from tests.helpers.small_networks import run
from tests.optimizer.harness.training import follow

layers, optimizer = fluid.layers, fluid.optimizer
X = np.linspace(-2, 2, 12, dtype="float32").reshape(3, 4)
START, GRADIENTS = [0.5, -1.0, 2.0], [[0.3, -0.2, 0.1], [-0.1, 0.4, 1.0], [0.2, 0.2, -0.5]]


def on_x(layer: Callable[[Any], Any]) -> Any:
    """Return the value of a layer on X."""
    return run(layer(fluid.data("x", [None, 4])), x=X)


def swish() -> Any:
    return on_x(lambda x: layers.swish(x, beta=2.0))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def moving_mean() -> Any:
    x = fluid.data("x", [None, 4])
    momentum = layers.fill_constant([1], "float32", 0.25)
    run(layers.batch_norm(x, momentum=momentum, moving_mean_name="mean"), x=X)
    return np.array(fluid.global_scope().find_var("mean").get_tensor())


def gru_step() -> Any:
    """A step from a zero state without weights: (1 - gate) * candidate, all of them of the input."""
    zero = fluid.initializer.Constant(0.0)
    x, before = fluid.data("x", [None, 12]), fluid.data("h", [None, 4])
    options = {"activation": "relu", "gate_activation": "tanh", "origin_mode": True}
    hidden = layers.gru_unit(x, before, 12, param_attr=fluid.ParamAttr(initializer=zero), **options)[0]
    return run(hidden, x=np.tile(X, 3), h=np.zeros((3, 4), "float32"))


def deviation_of_filters() -> Any:
    layers.conv2d(fluid.data("x", [None, 8, 5, 5]), 4, 3, groups=4)
    ops = fluid.default_startup_program().global_block().ops
    return next(op.attr("std") for op in ops if op.type == "gaussian_random")


def top_shape() -> Any:
    x = fluid.data("x", [None, 4])
    return layers.topk(x, k=layers.fill_constant([1], "int32", 2))[0].shape


def second_gradient() -> Any:
    """Whether the second gradient of tanh(x^2) takes the slope of tanh as a constant."""
    x = fluid.data("x", [None, 4])
    x.stop_gradient = False
    (first,) = fluid.gradients([layers.tanh(layers.square(x))], [x])
    try:
        (second,) = fluid.gradients([first], [x])
    except UnsupportedError:
        return "refused"
    return bool(np.allclose(run(second, x=X), 2 / np.cosh(X**2) ** 2, atol=1e-6))


def ftrl() -> Any:
    return follow(optimizer.Ftrl(0.1, l1=0.05, l2=2.0), START, GRADIENTS)[-1]


def ftrl_formula(l2: float) -> Any:
    p, n, z = np.array(START), np.zeros(3), np.zeros(3)
    for g in np.array(GRADIENTS):
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / 0.1
        z, n = z + g - sigma * p, n + g * g
        p = np.where(np.abs(z) > 0.05, (0.05 * np.sign(z) - z) / (np.sqrt(n) / 0.1 + 2 * l2), 0)
    return p


def second_average() -> Any:
    """What a second ``apply`` takes for a parameter of ones, after two steps with decay 0.9."""
    ones = fluid.ParamAttr(name="w", initializer=fluid.initializer.Constant(1.0))
    layers.create_parameter([2], "float32", attr=ones)
    average = optimizer.ExponentialMovingAverage(0.9)
    average.update()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run()
    for _ in range(2):
        with average.apply(exe):
            found = np.array(fluid.global_scope().find_var("w").get_tensor())
    return found


def adadelta() -> Any:
    return follow(optimizer.Adadelta(1.0, epsilon=1e-3, rho=0.9), START, GRADIENTS)[-1]


def adadelta_formula(*, after: bool) -> Any:
    p, a, b = np.array(START), np.zeros(3), np.zeros(3)
    for g in np.array(GRADIENTS):
        a = 0.9 * a + 0.1 * g * g
        step = np.sqrt((b + 1e-3) / (a + 1e-3)) * g
        b = 0.9 * b + 0.1 * step * step
        p = p - (np.sqrt((b + 1e-3) / (a + 1e-3)) * g if after else step)
    return p


def lamb() -> Any:
    return follow(optimizer.Lamb(0.1, 0.01, 0.9, 0.99), START, GRADIENTS)[-1]


def lamb_formula(*, correct: bool) -> Any:
    p, m, v = np.array(START), np.zeros(3), np.zeros(3)
    for t, g in enumerate(np.array(GRADIENTS), 1):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        c, d = (1 - 0.9**t, 1 - 0.99**t) if correct else (1, 1)
        r = (m / c) / (np.sqrt(v / d) + 1e-6) + 0.01 * p
        p = p - 0.1 * np.linalg.norm(p) / np.linalg.norm(r) * r
    return p


def noises_alike() -> bool:
    """Whether all elements move by one noise, the gradient being 0."""
    after = follow(optimizer.Dpsgd(1.0, clip=1.0, batch_size=1.0, sigma=1.0), START, [[0.0, 0.0, 0.0]])[0]
    return float(np.ptp(after - START)) < 1e-6


def sparse_adam() -> Any:
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(1.0))
    rows = fluid.embedding(fluid.data("ids", [None, 1], "int64"), [3, 2], is_sparse=True, param_attr=attr)
    optimizer.Adam(0.1, beta1=0.5, beta2=0.75, epsilon=0.0).minimize(layers.reduce_sum(rows))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"ids": np.zeros((1, 1), "int64")})
    return np.array(fluid.global_scope().find_var("table").get_tensor())[0]


def adam_step(step: int) -> Any:
    """The first step of Adam for a gradient of 1, corrected as in the ``step``-th."""
    return 1 - 0.1 * np.sqrt(1 - 0.75**step) / (1 - 0.5**step) * 0.5 / np.sqrt(0.25) * np.ones(2)


def learning_gates() -> list[bool]:
    rows = np.random.RandomState(3).uniform(-1, 1, (5, 32)).astype("float32")
    x = fluid.data("x", [None, 32], lod_level=1)
    hidden, _ = layers.dynamic_lstm(x, 32, param_attr="w")
    fluid.backward.append_backward(layers.mean(hidden))
    (gradient,) = run(["w@GRAD"], x=fluid.create_lod_tensor(rows, [[2, 3]], fluid.CPUPlace()))
    return [bool(gate.any()) for gate in np.split(gradient, 4, axis=1)]


def dilated() -> Any:
    """A row of 3 ones over a row of data, in the middle."""
    x = fluid.data("x", [None, 1, 1, 7])
    ones = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0))
    out = layers.conv2d(x, 1, [1, 3], padding="SAME", dilation=[1, 2], param_attr=ones, bias_attr=False)
    return run(out, x=np.arange(7, dtype="float32").reshape(1, 1, 1, 7))[0, 0, 0]


def adaptive_maxima() -> Any:
    """Of 0 to 5; what real Fluid computed of 6 x 6 is the same along each dim."""
    x = fluid.data("x", [1, 1, 1, 6])
    out = x.block.create_var(name="out", dtype="float32")
    attrs = {"pooling_type": "max", "ksize": [1, 4], "strides": [1, 1], "adaptive": True}
    x.block.append_op(type="pool2d", inputs={"X": x}, outputs={"Out": out}, attrs=attrs)
    return run(out, x=np.arange(6, dtype="float32").reshape(1, 1, 1, 6))[0, 0, 0]


def leftover_channel() -> Any:
    """Three channels in two groups, by a filter of ones of size 1; an error without quirks."""
    x = fluid.data("x", [None, 3, 1, 1])
    x.stop_gradient = False
    ones = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0))
    options = {"filter_size": 1, "groups": 2, "param_attr": ones, "bias_attr": False}
    try:
        out = layers.conv2d_transpose(x, 2, **options)
    except ValueError:
        return "refused"
    gradient = fluid.gradients(layers.reduce_sum(out), x)[0]
    found = run([out, gradient], x=np.array([1.0, 2.0, 4.0], "float32").reshape(1, 3, 1, 1))
    return np.concatenate([one.reshape(-1) for one in found])


SCORES, LABELS = np.array([0.9, 0.8, 0.7, 0.3], "float32"), np.array([[1], [0], [1], [0]])


def areas() -> list[float]:
    both = np.stack([1 - SCORES, SCORES], 1)
    p, label = fluid.data("p", [None, 2]), fluid.data("l", [None, 1], "int64")
    metric = fluid.metrics.Auc("auc", curve="PR")
    metric.update(both, LABELS)
    area = run(layers.auc(p, label, curve="PR")[0], p=both, l=LABELS)
    return [float(area[0]), metric.eval()]


def kept_metrics() -> list[float]:
    both, auc = fluid.metrics.CompositeMetric(), fluid.metrics.Auc("auc")
    both.add_metric(fluid.metrics.Precision())
    both.update(np.array([[0.9], [0.8]]), np.array([[1], [0]]))
    auc.update(np.array([[0.1, 0.9], [0.2, 0.8]]), np.array([[1], [0]]))
    both.reset()
    auc.reset()
    return [*both.eval(), auc.eval()]


def nearly_equal() -> list[bool]:
    x, y = fluid.data("x", [None]), fluid.data("y", [None])
    near = np.array([1e-9, 0.0, 1.0], "float32")
    found = run(layers.equal(x, y), x=near, y=np.array([2e-9, 0.0, 2.0], "float32"))
    return [bool(one) for one in found]


def loop_gradients() -> list[float]:
    """Return the gradients of w and s for the sum of s = s * w, three times, from s = 2 with w = 1.5."""
    w, start = (
        layers.create_parameter([1], "float32", default_initializer=fluid.initializer.Constant(value))
        for value in (1.5, 2.0)
    )
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 3))
    _, s = layers.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, s * w], [i, layers.scale(start, 1.0)])
    gradients = dict(fluid.backward.append_backward(layers.reduce_sum(s)))
    return [float(value[0]) for value in run([gradients[w], gradients[start]])]


def loops_of_two_passes() -> int:
    """Return how many gradients of a loop two passes append."""
    x = fluid.data("x", [1])
    x.stop_gradient = False
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 3))
    _, s = layers.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, s * x], [i, layers.scale(x, 1.0)])
    loss = layers.reduce_sum(s)
    for _ in range(2):
        fluid.gradients(loss, x)
    return [op.type for op in loss.block.ops].count("while_grad")


def overwritten_gradients() -> list[float]:
    """Return the gradient of x for the sum of a, where a is x, and then a + a."""
    x = layers.create_parameter([1], "float32", default_initializer=fluid.initializer.Constant(3.0))
    a = layers.scale(x, 1.0)
    layers.assign(a + a, a)
    ((_, gradient),) = fluid.backward.append_backward(layers.reduce_sum(a))
    return [float(value[0]) for value in run([gradient])]


def tree_gradient() -> Any:
    """Return the gradient of the nodes of a tree of 4, of small whole numbers."""
    rng = np.random.RandomState(4)
    nodes, filters, above = (
        rng.randint(-4, 5, shape).astype("float32") for shape in [(1, 4, 2), (2, 3, 2, 2), (1, 4, 2, 2)]
    )
    x, edges = fluid.data("x", [1, 4, 2]), fluid.data("edges", [1, 3, 2], "int32")
    x.stop_gradient = False
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(filters))
    options = {"max_depth": 2, "act": None, "bias_attr": False, "param_attr": attr}
    out = fluid.contrib.layers.tree_conv(x, edges, 2, 2, **options)
    (gradient,) = fluid.gradients(layers.reduce_sum(out * layers.assign(above)), x)
    return run(gradient, x=nodes, edges=np.array([[[1, 2], [1, 3], [2, 4]]], "int32"))[0]


def tree_formula() -> Any:
    """Return the sum over the trees in which a node is: a node at depth 1 has weights left, right and top."""
    rng = np.random.RandomState(4)
    rng.randint(-4, 5, (1, 4, 2))
    filters, above = rng.randint(-4, 5, (2, 3, 2, 2)), rng.randint(-4, 5, (1, 4, 2, 2))[0]
    top = np.einsum("dof,nof->nd", filters[:, 2], above).astype(float)
    for node, root, (left, right) in ((1, 0, (0, 0.5)), (2, 0, (0.5, 0.25)), (3, 1, (0.25, 0.375))):
        weighed = left * filters[:, 0] + right * filters[:, 1] + 0.5 * filters[:, 2]
        top[node] = top[node] + np.einsum("dof,of->d", weighed, above[root])
    return top


def row_behind_a_tree() -> float:
    """Return the result of the third node of a tree of two; the third of the tree before it has 5."""
    x, edges = fluid.data("x", [2, 3, 1]), fluid.data("edges", [2, 2, 2], "int32")
    ones = fluid.ParamAttr(initializer=fluid.initializer.Constant(1.0))
    options = {"max_depth": 2, "act": None, "bias_attr": False, "param_attr": ones}
    out = fluid.contrib.layers.tree_conv(x, edges, 1, 1, **options)
    nodes = np.array([3, 4, 5, 6, 7, 8], "float32").reshape(2, 3, 1)
    return float(run(out, x=nodes, edges=np.array([[[1, 2], [1, 3]], [[1, 2], [0, 0]]], "int32"))[1, 2, 0, 0])


def filter_of_short_sequences() -> Any:
    """Return the gradient of a filter that sees only rows behind the end of a sequence."""
    x = fluid.data("x", [None, 1], lod_level=1)
    x.stop_gradient = False
    two = fluid.ParamAttr(initializer=fluid.initializer.Constant(2.0), name="w")
    out = layers.sequence_conv(x, 1, 1, padding_start=1, param_attr=two, bias_attr=False)
    w = fluid.default_main_program().global_block().var("w")
    gradient, _ = fluid.gradients(layers.reduce_sum(out), [w, x])
    row = fluid.create_lod_tensor(np.array([[5.0]], "float32"), [[1]], fluid.CPUPlace())
    return run(gradient, x=row)


def results_of_two_images() -> Any:
    """Return what filters of 1 and of 10 give for images of two pixels."""
    x, offset = fluid.data("x", [2, 1, 1, 2]), fluid.data("offset", [2, 2, 1, 2])
    weights = np.array([1, 10], "float32").reshape(2, 1, 1, 1)
    attr = fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(weights))
    options = {"im2col_step": 2, "param_attr": attr, "bias_attr": False, "modulated": False}
    out = layers.deformable_conv(x, offset, None, 2, 1, **options)
    pixels = np.array([1, 2, 3, 4], "float32").reshape(2, 1, 1, 2)
    return run(out, x=pixels, offset=np.zeros((2, 2, 1, 2), "float32")).ravel()


def fused_gradient() -> Any:
    """Return the gradient of y for the sum of X * tanh(y), y being a row."""
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [4])
    y.stop_gradient = False
    out = fluid.contrib.layers.fused_elemwise_activation(
        x, y, ["elementwise_mul", "tanh"], save_intermediate_out=False
    )
    return run(fluid.gradients(layers.reduce_sum(out), y)[0], x=X, y=X[0])


def grouped() -> list[Any]:
    """Return a result without scale, and the gradient of the input for its product with cos(3 X)."""
    x, above = fluid.data("x", [None, 4]), fluid.data("above", [None, 4])
    x.stop_gradient = False
    out = layers.group_norm(x, 1, param_attr=False, bias_attr=False)
    gradients = fluid.gradients(layers.reduce_sum(out * above), x)
    return run([out, *gradients], x=X, above=np.cos(3 * X))


def grouped_formula(*, mean: bool) -> list[Any]:
    x, above = (one.astype(float) for one in (X, np.cos(3 * X)))
    inverse = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    normal = (x - x.mean(-1, keepdims=True)) * inverse
    gradient = above - normal * (above * normal).mean(-1, keepdims=True)
    gradient -= above.mean(-1, keepdims=True) * mean
    return [normal, gradient * inverse]


def spectral_gradient() -> Any:
    """Return the gradient of a matrix for the sum of its quotient by the norm, weighed 1 to 4."""
    start = fluid.initializer.NumpyArrayInitializer(np.array([[3, 1], [1, 2]], "float32"))
    weight = layers.create_parameter([2, 2], "float32", default_initializer=start)
    out = layers.spectral_norm(weight, power_iters=50)
    weighed = out * layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    return run(fluid.gradients(layers.reduce_sum(weighed), weight)[0])


def spectral_formula() -> Any:
    weight, above = np.array([[3.0, 1], [1, 2]]), np.array([[1.0, 2], [3, 4]])
    u, norms, v = np.linalg.svd(weight)
    return (above - (above * weight).sum() / norms[0] * np.outer(u[:, 0], v[0])) / norms[0]


def shuffled_gradient() -> list[float]:
    x = fluid.data("x", [1, 6, 1, 1])
    x.stop_gradient = False
    above = layers.assign(np.arange(6, dtype="float32").reshape(1, 6, 1, 1))
    out = layers.shuffle_channel(x, 2) * above
    zeros = np.zeros((1, 6, 1, 1), "float32")
    return list(run(fluid.gradients(layers.reduce_sum(out), x)[0], x=zeros).reshape(-1))


def clipped() -> Any:
    """Return how far gradients of 1 move two parameters, of limits 0.5 and 0.25."""
    names = ["a", "b"]
    start = fluid.initializer.Constant(0.0)
    a, b = (
        layers.create_parameter([1], "float32", attr=fluid.ParamAttr(name=name, initializer=start))
        for name in names
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "set_gradient_clip is the older way")
        for name, limit in zip(names, (0.5, 0.25), strict=True):
            fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(limit), [name])
    optimizer.SGD(1.0).minimize(layers.reduce_sum(a + b))
    run([])
    return [float(np.array(fluid.global_scope().find_var(name).get_tensor())[0]) for name in names]


def learned() -> list[list[int]]:
    layers.group_norm(fluid.data("x", [None, 4, 2, 2]), 2)
    return [list(one.shape) for one in fluid.default_main_program().all_parameters()]


def order_of_equals() -> list[int]:
    x = fluid.data("x", [1, 5])
    return run(layers.topk(x, 3)[1], x=np.array([[1, 3, 3, 2, 3]], "float32"))[0].tolist()


def compared_with_nan() -> list[float]:
    """Return extremes of 1, NaN, 3, 2, the place of the greatest, NaN's sign, and the less of NaN and 3."""
    x = fluid.data("x", [4])
    found = [layers.reduce_max(x), layers.reduce_min(x), layers.argmax(x), layers.sign(x)]
    found.append(layers.elementwise_min(x, layers.fill_constant([4], "float32", 3.0)))
    fed = {"x": np.array([1, np.nan, 3, 2], "float32")}
    values = fluid.Executor().run(feed=fed, fetch_list=found)
    return [
        *(float(np.reshape(value, -1)[0]) for value in values[:3]),
        *(float(value[1]) for value in values[3:]),
    ]


def ignored_gradient() -> Any:
    """Return the gradient of the logits for a label that is ignored, of four classes alike."""
    x, y = fluid.data("x", [1, 4]), fluid.data("y", [1, 1], "int64")
    x.stop_gradient = False
    (slope,) = fluid.gradients([layers.softmax_with_cross_entropy(x, y, ignore_index=1)], [x])
    return run(slope, x=np.zeros((1, 4), "float32"), y=np.ones((1, 1), "int64"))


def uneven_groups() -> Any:
    """Return four channels of one pixel in three groups, two of them with channels, or that it is refused."""
    x = fluid.data("x", [1, 4, 1, 1])
    try:
        out = layers.group_norm(x, 3, param_attr=True, bias_attr=True)
    except ShapeError:
        return "refused"
    fluid.Executor().run(fluid.default_startup_program())
    return run(out, x=np.arange(4, dtype="float32").reshape(1, 4, 1, 1)).reshape(-1)


def smoothed() -> bool:
    """Return whether what is smoothed has no gradient."""
    x = fluid.data("x", [2, 3])
    x.stop_gradient = False
    layers.label_smooth(x)
    return bool(x.stop_gradient)


def sliced_backwards() -> list[list[float]]:
    x = fluid.data("x", [5])
    parts = [layers.strided_slice(x, [0], [4], [end], [step]) for end, step in ((0, -2), (-6, -3))]
    fed = {"x": np.arange(5, dtype="float32")}
    return [part.tolist() for part in fluid.Executor().run(feed=fed, fetch_list=parts)]


def rounded_halves() -> Any:
    return run(layers.round(fluid.data("x", [9])), x=np.arange(9, dtype="float32") + np.float32(0.5))


def elu_slope() -> Any:
    x = fluid.data("x", [2])
    x.stop_gradient = False
    return run(fluid.gradients([layers.elu(x)], [x])[0], x=np.array([88, 89], "float32"))


def padded_gradient() -> Any:
    """Return the gradient of 3 x 3 numbers that are padded to 15 x 8, for results weighed 0, 1, 2, ..."""
    x, weights = fluid.data("x", [3, 3], "float64"), fluid.data("w", [15, 8], "float64")
    x.stop_gradient = False
    (slope,) = fluid.gradients([layers.pad(x, [3, 9, 2, 3])], [x], [weights])
    return run(slope, x=np.zeros((3, 3)), w=np.arange(120.0).reshape(15, 8))


def powers() -> Any:
    """Return a row to the powers in a matrix, and the gradient of the row for their sum."""
    x, y = fluid.data("x", [4]), fluid.data("y", [None, 4])
    x.stop_gradient = False
    out = layers.elementwise_pow(x, y)
    found = run([out, *fluid.gradients(layers.reduce_sum(out), x)], x=abs(X[0]), y=X)
    return np.vstack(found)


def powers_formula(*, turned: bool) -> Any:
    x = abs(X[0])
    with np.errstate(invalid="ignore"):  # a negative number has no real power
        return np.vstack([X**x if turned else x**X, (X * x ** (X - 1)).sum(0)])


def empty_is_none() -> bool:
    """Whether the value of a tensor without elements is None."""
    return run(layers.scale(fluid.data("x", [None, 4]), 2.0), x=X[:0]) is None


def line_of_strings() -> str:
    return MultiSlotStringDataGenerator()._gen_str([("words", "17"), ("label", ["1"])])


def drawn_below() -> bool:
    """Whether the distribution draws below its bound."""
    return bool((run(layers.Uniform(1.0, 2.0).sample([100], seed=1)) < 1).any())


def one_dtype() -> str:
    return str(run(layers.uniform_random([2, 3], dtype="float64")).dtype)


def bilinear() -> Any:
    weight = layers.create_parameter(
        [2, 1, 4, 4], "float32", default_initializer=fluid.initializer.Bilinear()
    )
    return run(weight)[1, 0]


LINE = np.array([0.25, 0.75, 0.75, 0.25])
#: As Fluid 1.8.5 initialized a layer, under Python 3.7.
SHIFTED = np.array([[2, 9, 12, 5], [6, 21, 24, 7], [6, 15, 12, 3], [2, 3, 0, -1]]) / 32


def options_of_detections() -> Any:
    place, scores = fluid.data("place", [None, 20, 4]), fluid.data("scores", [None, 20, 3])
    anchors = fluid.data("anchors", [20, 4])
    out = layers.detection_output(
        place, scores, anchors, [1.0, 1.0, 1.0, 1.0], background_label=2, nms_eta=0.5
    )
    op = out.block.ops[-1]
    return [op.attr("background_label"), op.attr("nms_eta")]


def average_precision() -> float:
    """Of two classes: the only box of class 1 is found, that of class 2 is not."""
    found, box = fluid.data("found", [None, 6], lod_level=1), fluid.data("box", [None, 4], lod_level=1)
    label = fluid.data("label", [None, 1], lod_level=1)
    metric = fluid.metrics.DetectionMAP(found, label, box, class_num=3, background_label=2)
    boxes = np.array([[0.1, 0.1, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]], "float32")
    values = {
        "found": np.concatenate([[[1, 0.9]], boxes[:1]], 1).astype("float32"),
        "box": boxes,
        "label": np.array([[1], [2]], "float32"),
    }
    feed = {
        name: fluid.create_lod_tensor(value, [[len(value)]], fluid.CPUPlace())
        for name, value in values.items()
    }
    return float(run(metric.get_map_var()[0], **feed)[0])


def counted_steps() -> Any:
    """The counter of a schedule after two evaluations before any step; the first step makes it 0."""
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))
    rate = layers.exponential_decay(0.1, 1, 0.5)
    evaluation = fluid.default_main_program().clone(for_test=True)
    optimizer.SGD(rate).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        exe.run(evaluation, feed={"x": X}, fetch_list=[loss.name])
    return np.array(fluid.global_scope().find_var("@LR_DECAY_COUNTER@").get_tensor())


GATE = 1 / (1 + np.exp(-X.astype(float)))
#: By row: what computes it, Fluid's value and the textbook's.
CASES: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "swish_beta": (swish, X * sigmoid(X), X * sigmoid(2 * X)),
    "clamp_lower": (lambda: on_x(lambda x: layers.clamp(x, max=1.0)), np.clip(X, 0, 1), np.minimum(X, 1)),
    "batch_norm_momentum": (moving_mean, 0.1 * X.mean(0), 0.75 * X.mean(0)),
    "gru_unit_activations": (
        gru_step, (1 - GATE) * np.tanh(X), (1 - np.tanh(X)) * np.maximum(X, 0)
    ),
    "moving_average_correction": (second_average, np.full(2, 1 / (1 - 0.9**2)), np.ones(2)),
    "uniform_random_dtype": (one_dtype, "float32", "float64"),
    "uniform_distribution": (drawn_below, True, False),
    "topk_variable": (top_shape, (-1, 1), (-1, -1)),
    "ftrl_l2": (ftrl, ftrl_formula(0.05), ftrl_formula(2.0)),
    "adadelta_step": (adadelta, adadelta_formula(after=True), adadelta_formula(after=False)),
    "lamb_correction": (lamb, lamb_formula(correct=False), lamb_formula(correct=True)),
    "dpsgd_noise": (noises_alike, True, False),
    "adam_sparse_correction": (sparse_adam, adam_step(2), adam_step(1)),
    "lstm_cell_gradient": (learning_gates, [False, False, False, True], [True] * 4),
    "same_padding_dilation": (dilated, [1, 3, 6, 9, 12, 15, 11], [2, 4, 6, 9, 12, 8, 10]),
    "adaptive_maxima": (adaptive_maxima, [3, 4, 5, 5], [1, 2, 4, 5]),
    "bilinear_weights": (bilinear, SHIFTED, np.outer(LINE, LINE)),
    "detection_output_options": (options_of_detections, [0, 1.0], [2, 0.5]),
    "detection_map_background": (average_precision, 0.5, 1.0),
    "conv_transpose_groups": (leftover_channel, [1, 2, 1, 1, 0], "refused"),
    "auc_curve": (areas, [0.75, 0.75], [5 / 6, 5 / 6]),
    "metric_reset": (kept_metrics, [0.5, 1.0], [0.0, 0.0]),
    "equal_tolerance": (nearly_equal, [True, True, False], [False, True, False]),
    "stopped_second_gradients": (second_gradient, True, "refused"),
    # of one step and with the last s, 2 * 1.5^3; or of d(s w^3)
    "loop_gradient": (loop_gradients, [2 * 1.5**3, 0], [2 * 3 * 1.5**2, 1.5**3]),
    "later_pass": (loops_of_two_passes, 1, 2),
    "overwritten_gradient": (overwritten_gradients, [3], [2]),
    # Fluid 1.8.5's gradient of these numbers
    "tree_conv_gradient": (
        tree_gradient, [[-18, -29], [-13, -37.5], [-20, -55], [-1.5, -13]], tree_formula()
    ),
    "tree_conv_padding": (row_behind_a_tree, 5, 0),
    "sequence_conv_gradient": (filter_of_short_sequences, [[2]], [[0]]),
    "deformable_steps": (
        results_of_two_images, [1, 2, 3, 4, 10, 20, 30, 40], [1, 2, 10, 20, 3, 4, 30, 40]
    ),
    "fused_activation_gradient": (
        fused_gradient, X.sum(0) * (1 - X[0] ** 2), X.sum(0) * (1 - np.tanh(X[0]) ** 2)
    ),
    "group_norm_gradient": (grouped, grouped_formula(mean=False), grouped_formula(mean=True)),
    "spectral_norm_gradient": (  # Fluid 1.8.5's gradient of these numbers
        spectral_gradient, [[-0.1105573, 0.0744893], [0.1117339, 0.514365]], spectral_formula()
    ),
    "shuffle_channel_gradient": (shuffled_gradient, [0, 3, 1, 4, 2, 5], [0, 2, 4, 1, 3, 5]),
    "set_gradient_clip": (clipped, [-0.25, -0.25], [-0.5, -0.25]),
    "group_norm_parameters": (learned, [], [[4], [4]]),
    "conv_group_channels": (deviation_of_filters, math.sqrt(2 / (9 * 8)), math.sqrt(2 / (9 * 2))),
    "order_of_equals": (order_of_equals, [4, 1, 2], [1, 2, 4]),
    "nan_comparisons": (compared_with_nan, [3, 1, 2, 0, 3], [math.nan, math.nan, 1, math.nan, math.nan]),
    "ignored_labels": (ignored_gradient, [[0.25, -0.75, 0.25, 0.25]], [[0.0] * 4]),
    "group_norm_groups": (uneven_groups, [-1, 1, -1, 1], "refused"),
    "label_smooth_gradient": (smoothed, True, False),
    "strided_slice_backwards": (sliced_backwards, [[3, 1], [3, 0]], [[4, 2], [4, 1]]),
    "pad_gradient": (
        padded_gradient,  # Fluid 1.8.5's gradient of these numbers
        [[26, 27, 28], [29, 35, 36], [37, 38, 44]],
        [[26, 27, 28], [34, 35, 36], [42, 43, 44]],
    ),
    "round_packets": (rounded_halves, [0, 2, 2, 4, 4, 6, 6, 8, 9], [1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "elu_gradient": (elu_slope, [1, math.nan], [1, 1]),
    "elementwise_order": (powers, powers_formula(turned=True), powers_formula(turned=False)),
    "empty_fetch": (empty_is_none, True, False),
    "clone_schedule": (counted_steps, [1], [-1]),
    "string_slots": (line_of_strings, "2 1 7 1 1\n", "1 17 1 1\n"),
}  # fmt: skip
#: Rows that only values show: every comparison, every search would warn.
UNANNOUNCED = {
    *("deformable_steps", "elu_gradient", "equal_tolerance", "nan_comparisons"),
    *("order_of_equals", "round_packets", "tree_conv_padding"),
}
#: Rows of which the layer warns as well.
TOGETHER = {"group_norm_parameters": ["group_norm_gradient"], "later_pass": ["loop_gradient"]}


def agrees(found: Any, wanted: Any) -> None:
    if isinstance(wanted, str | bool | tuple):
        assert found == wanted
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)  # float32 against float64


def test_every_quirk_has_a_test_case() -> None:
    assert sorted(CASES) == sorted(QUIRKS)


@pytest.mark.parametrize("name", CASES)
def test_by_default_quirks_give_the_results_of_fluid_and_warn(name: str) -> None:
    compute, wanted, _ = CASES[name]
    if name in UNANNOUNCED:
        agrees(compute(), wanted)
        return
    with pytest.warns(QuirkWarning, match=r"as in Fluid 1\.8\.5.*FLAGS_fluid_quirks") as given:
        found = compute()
    where = tuple(QUIRKS[row].where for row in (name, *TOGETHER.get(name, ())))
    assert all(str(one.message).startswith(where) for one in given)
    places = (__file__[:-3], "training.py", "small_networks.py")  # the last runs what a layer returned
    assert any(place in given[0].filename for place in places)
    agrees(found, wanted)


@pytest.mark.parametrize("name", CASES)
def test_the_flag_switches_to_textbook_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "_flags", {})
    fluid.set_flags({"FLAGS_fluid_quirks": False})
    compute, _, wanted = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compute()
    agrees(found, wanted)


def test_every_quirk_has_all_its_texts() -> None:
    rows = fluid.quirks()
    text = str(rows)
    words: Sequence[str] = [word for row in rows for word in row[1:-1]]
    assert all(word in text and word for word in words)
    assert len({row.name for row in rows}) == len(rows)
    assert [row.name for row in rows if row.followed] == list(QUIRKS)


CITATION = (
    r"(?:python/)?paddle/(?:fluid|phi)/[\w/]+\.(?:py|h|cc)(?::\d+(?:, \d+)*|, [\w:]+) "
    r"\((?:1\.8\.5|2\.6\.2|3\.3\.1|2\.6\.2, 3\.3\.1)\)"
)


def test_every_quirk_cites_a_paddle_file_and_a_line_or_function() -> None:
    assert [row.name for row in fluid.quirks() if not re.match(CITATION, row.source)] == []
