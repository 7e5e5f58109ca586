"""What layers made of several operators compute, against their formula in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid

layers = fluid.layers
RNG = np.random.default_rng(5)


def run(fetch: Any, **feed: Any) -> Any:
    exe = fluid.Executor(fluid.CPUPlace())
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    several = isinstance(fetch, list | tuple)
    found = exe.run(feed=feed, fetch_list=list(fetch) if several else [fetch])
    return found if several else found[0]


def given(name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> tuple[Any, Any]:
    """A data variable and its values."""
    values = RNG.uniform(low, high, shape).astype("float32")
    return fluid.data(name, [None, *shape[1:]]), values


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def test_fc_sums_the_products_of_several_inputs() -> None:
    (x, a), (y, b) = given("x", 3, 4), given("y", 3, 2, 5)
    out = layers.fc([x, y], 6, act="tanh", bias_attr=fluid.initializer.Constant(0.5))
    weights = [p.name for p in out.block.all_parameters()][:2]
    found, w, v = run([out, *weights], x=a, y=b)
    np.testing.assert_allclose(found, np.tanh(a @ w + b.reshape(3, 10) @ v + 0.5), atol=1e-6)


def test_log_softmax_and_logsumexp() -> None:
    x, a = given("x", 3, 5)
    soft, total = run([layers.log_softmax(x), layers.logsumexp(x, 1, keepdim=True)], x=a)
    np.testing.assert_allclose(soft, np.log(softmax(a)), atol=1e-6)
    np.testing.assert_allclose(a - soft, np.broadcast_to(total, a.shape), atol=1e-5)


def test_mse_loss_is_the_mean_of_squares() -> None:
    (x, a), (y, b) = given("x", 3, 5), given("y", 3, 5)
    np.testing.assert_allclose(run(layers.mse_loss(x, y), x=a, y=b), [np.mean((a - b) ** 2)], rtol=1e-6)


def test_dice_loss_measures_the_overlap() -> None:
    x, a = given("x", 4, 3, low=0.0)
    label = fluid.data("label", [None, 1], "int64")
    ids = np.array([[0], [2], [1], [2]])
    truth = np.eye(3)[ids[:, 0]]
    wanted = np.mean(1 - 2 * (a * truth).sum(1) / (a.sum(1) + 1 + 1e-5))
    np.testing.assert_allclose(run(layers.dice_loss(x, label), x=a, label=ids), [wanted], rtol=1e-6)


def test_npair_loss() -> None:
    a, p = (RNG.normal(size=(4, 3)).astype("float32") for _ in range(2))
    ids = np.array([1, 2, 1, 3], "float32")
    anchor, positive = (fluid.data(name, [4, 3]) for name in "ap")
    loss = layers.npair_loss(anchor, positive, fluid.data("l", [4]), l2_reg=0.01)
    same = (ids[:, None] == ids).astype("float64")
    same /= same.sum(1, keepdims=True)
    cost = -(same * np.log(softmax(a @ p.T))).sum(1, keepdims=True)
    penalty = 0.25 * 0.01 * ((a * a).sum(1).mean() + (p * p).sum(1).mean())
    # The sum over rows, not columns, is Fluid's.
    wanted = penalty + (same * cost).sum(0).mean()
    # As in Fluid the labels are reshaped in place, and must be fed as columns.
    np.testing.assert_allclose(run(loss, a=a, p=p, l=ids[:, None]), [wanted], rtol=1e-5)


def test_addcmul() -> None:
    (x, a), (y, b), (z, c) = given("x", 2, 3), given("y", 2, 3), given("z", 2, 3)
    np.testing.assert_allclose(run(layers.addcmul(x, y, z, 2.0), x=a, y=b, z=c), a + 2 * b * c, rtol=1e-5)


@pytest.mark.parametrize(("low", "high"), [(None, 0.25), (-0.25, None), (-0.25, 0.25)])
def test_clamp_without_a_bound_leaves_that_side_alone(low: float | None, high: float | None) -> None:
    x, a = given("x", 4, 5)
    np.testing.assert_array_equal(run(layers.clamp(x, low, high), x=a), np.clip(a, low, high))


@pytest.mark.parametrize(("shifts", "dims"), [(2, None), ([1, -1], [0, 1]), (1, 1)])
def test_roll(shifts: Any, dims: Any) -> None:
    a = RNG.normal(size=(3, 4)).astype("float32")
    out = layers.roll(fluid.data("x", [3, 4]), shifts, dims)
    wanted = np.roll(a, shifts, None if dims is None else tuple(np.atleast_1d(dims)))
    np.testing.assert_array_equal(run(out, x=a), wanted)


def test_eye_is_repeated_over_a_batch() -> None:
    found = run(layers.eye(2, 3, batch_shape=[4, 5]))
    np.testing.assert_array_equal(found, np.broadcast_to(np.eye(2, 3), (4, 5, 2, 3)))


def test_nonzero_as_a_tuple_is_a_column_per_dim() -> None:
    a = np.array([[0, 1, 0], [2, 0, 3]], "float32")
    found = run(layers.nonzero(fluid.data("x", [2, 3]), as_tuple=True), x=a)
    np.testing.assert_array_equal(np.concatenate(found, 1), np.argwhere(a))


@pytest.mark.parametrize("heads", [1, 2])
def test_attention(heads: int) -> None:
    (q, a), (k, b), (v, c) = given("q", 2, 3, 4), given("k", 2, 5, 4), given("v", 2, 5, 6)
    out = fluid.nets.scaled_dot_product_attention(q, k, v, num_heads=heads)
    names = [p.name for p in out.block.all_parameters()]
    found, *parameters = run([out, *names], q=a, k=b, v=c)
    if heads > 1:
        a, b, c = (
            x @ w + bias for x, w, bias in zip((a, b, c), parameters[::2], parameters[1::2], strict=True)
        )
    parts = [
        softmax(x @ y.transpose(0, 2, 1) / math.sqrt(4 / heads)) @ z
        for x, y, z in zip(*(np.split(t, heads, axis=2) for t in (a, b, c)), strict=True)
    ]
    np.testing.assert_allclose(found, np.concatenate(parts, 2), atol=1e-6)


def test_glu_gates_one_half_with_the_other() -> None:
    x, a = given("x", 3, 6)
    np.testing.assert_allclose(run(fluid.nets.glu(x), x=a), a[:, :3] / (1 + np.exp(-a[:, 3:])), atol=1e-6)


@pytest.mark.parametrize("dim", [None, 0, 1, 2])
def test_weight_norm_begins_as_the_plain_weight_and_scales_with_g(dim: int | None) -> None:
    shape = [2, 3, 4]
    attr = fluid.WeightNormParamAttr(dim=dim, name="w")
    weight = layers.create_parameter(shape, "float32", attr=attr)
    w, v, g = run([weight, "w_v", "w_g"])
    np.testing.assert_allclose(w, v, rtol=1e-5)
    fluid.global_scope().find_var("w_g").get_tensor().set(3 * g, fluid.CPUPlace())
    scaled = fluid.Executor(fluid.CPUPlace()).run(fetch_list=[weight])[0]
    np.testing.assert_allclose(scaled, 3 * v, rtol=1e-5)
    axes = tuple(i for i in range(3) if i != dim)
    np.testing.assert_allclose(g, np.sqrt((v * v).sum(axes, keepdims=True)), rtol=1e-5)


def test_step_counter_counts_runs() -> None:
    counter = layers.autoincreased_step_counter(begin=5, step=2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    # The first value is begin - 1 + step, as in Fluid.
    assert [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)] == [6, 8, 10]


class TestDistributions:
    def test_normal(self) -> None:
        mine, other = layers.Normal([0.5, 1.0], [2.0, 3.0]), layers.Normal(0.0, [1.0, 2.0])
        at = layers.assign(np.array([0.2, -0.4], "float32"))
        entropy, density, divergence = run([mine.entropy(), mine.log_prob(at), mine.kl_divergence(other)])
        mean, deviation = np.array([0.5, 1.0]), np.array([2.0, 3.0])
        np.testing.assert_allclose(entropy, 0.5 * np.log(2 * np.pi * np.e * deviation**2), rtol=1e-6)
        z = (np.array([0.2, -0.4]) - mean) / deviation
        np.testing.assert_allclose(density, -z * z / 2 - np.log(deviation * np.sqrt(2 * np.pi)), rtol=1e-5)
        ratio = deviation / np.array([1.0, 2.0])
        wanted = (ratio**2 + (mean / np.array([1.0, 2.0])) ** 2 - 1) / 2 - np.log(ratio)
        np.testing.assert_allclose(divergence, wanted, rtol=1e-5)

    def test_samples_have_the_moments_of_their_distribution(self) -> None:
        normal, uniform = layers.Normal(0.5, 2.0), layers.Uniform([1.0, -1.0], 3.0)
        a, b = run([normal.sample([20000], seed=3), uniform.sample([20000], seed=3)])
        # Five standard errors.
        np.testing.assert_allclose([a.mean(), a.std()], [0.5, 2.0], atol=0.08)
        np.testing.assert_allclose(b.mean(0), [2.0, 1.0], atol=0.05)
        assert (b >= [1.0, -1.0]).all()
        assert (b < 3.0).all()

    def test_uniform(self) -> None:
        uniform = layers.Uniform(1.0, 3.0)
        inside = layers.assign(np.array([2.0], "float32"))
        entropy, density = run([uniform.entropy(), uniform.log_prob(inside)])
        np.testing.assert_allclose([entropy, density], [[np.log(2)], [-np.log(2)]], rtol=1e-6)

    def test_categorical(self) -> None:
        (x, a), (y, b) = given("x", 2, 4), given("y", 2, 4)
        mine, other = layers.Categorical(x), layers.Categorical(y)
        entropy, divergence = run([mine.entropy(), mine.kl_divergence(other)], x=a, y=b)
        p, q = softmax(a), softmax(b)
        np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(divergence, (p * np.log(p / q)).sum(1, keepdims=True), atol=1e-6)

    def test_multivariate_normal(self) -> None:
        rows = {"a": [0.1, 0.4], "b": [0.3, -0.2]}
        scales = {"s": np.diag([0.5, 2.0]), "t": np.diag([1.5, 0.7])}
        mean, others = (fluid.data(name, [2]) for name in rows)
        scale, other_scale = (fluid.data(name, [2, 2]) for name in scales)
        mine = layers.MultivariateNormalDiag(mean, scale)
        divergence = mine.kl_divergence(layers.MultivariateNormalDiag(others, other_scale))
        feed = {name: np.array(value, "float32") for name, value in {**rows, **scales}.items()}
        entropy, found = run([mine.entropy(), divergence], **feed)
        s, t = np.array([0.5, 2.0]), np.array([1.5, 0.7])
        np.testing.assert_allclose(entropy, [0.5 * np.log((2 * np.pi * np.e) ** 2 * s.prod())], rtol=1e-5)
        distance = np.array(rows["b"]) - np.array(rows["a"])
        wanted = 0.5 * ((s / t).sum() + (distance**2 / t).sum() - 2 + np.log(t.prod() / s.prod()))
        np.testing.assert_allclose(found, [wanted], rtol=1e-5)
