"""Losses where a case alone proves too little."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import Generator, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Spec, registry
from paddlelike.layers.loss.sampled import alias_table
from paddlelike.ops.kernels.class_sampling import ClassDistribution, Twister
from paddlelike.ops.loss import crf
from paddlelike.ops.loss.cross_entropy import CrossEntropy, SoftmaxWithCrossEntropy
from paddlelike.ops.loss.nce import NceAttrs
from paddlelike.ops.loss.sample_logits import draw_shared_classes
from tests.ops.harness.contract import FakeContext, View


@pytest.mark.parametrize("together", [1, 20, 1 << 16], ids=["one-by-one", "a-few", "all"])
def test_the_best_labels_match_a_search_of_all_paths(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sequences are worked on at once; among integers sums are exact, and ways differ."""
    monkeypatch.setattr(crf, "_TOGETHER", together)
    rng, lengths, labels = np.random.RandomState(7), [4, 1, 5, 3, 2], 3
    rows = rng.randint(-99, 99, (sum(lengths), labels)).astype("float32")
    weights = rng.randint(-99, 99, (labels + 2, labels)).astype("float32")

    def score(way: tuple[int, ...], emission: np.ndarray) -> float:
        inner = sum(weights[2 + a, b] for a, b in itertools.pairwise(way))
        return float(weights[0, way[0]] + inner + weights[1, way[-1]] + emission[range(len(way)), way].sum())

    best = []
    for emission in np.split(rows, np.cumsum(lengths)[:-1]):
        ways = itertools.product(range(labels), repeat=len(emission))
        best += max(ways, key=lambda way, emission=emission: score(way, emission))
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, labels], "float32", lod_level=1)
        w = fluid.initializer.NumpyArrayInitializer(weights)
        attr = fluid.ParamAttr("w", initializer=w)
        fluid.layers.create_parameter([labels + 2, labels], "float32", attr=attr)
        path = fluid.layers.crf_decoding(x, attr)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": fluid.create_lod_tensor(rows, [lengths], fluid.CPUPlace())}
        found = exe.run(main, feed=feed, fetch_list=[path], return_numpy=False)[0]
    assert np.array(found).ravel().tolist() == best


P = np.array([[0.5, 0.0, 0.5]], np.float32)


def test_the_logarithm_of_zero_is_large_and_finite() -> None:
    # Paddle 1.8.5 gives 1.0000000200408773e+20
    loss = CrossEntropy.forward(P, np.array([[1]]), soft_label=False, ignore_index=-100)
    assert loss.dtype == np.float32
    assert loss.tolist() == [[np.float32(1e20)]]


def test_logits_far_below_the_largest_are_clipped_to_64_below() -> None:
    # Paddle 1.8.5: losses 64 and 45.781..., softmax 1.6038109e-28
    logits = np.array([[0, 100, -100]], np.float32)
    softmax, loss = SoftmaxWithCrossEntropy.forward(
        logits, np.array([[0]]), soft_label=False, ignore_index=-100, axis=-1
    )
    np.testing.assert_allclose(softmax, [[1.6038109e-28, 1, 1.6038109e-28]], rtol=1e-6)
    assert loss.tolist() == [[64]]


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_label_that_is_not_a_class_is_refused_with_its_index(wrong: int) -> None:
    with pytest.raises(EnforceNotMet, match=rf"Label holds {wrong} \(element 0 of 1\).* 3 classes"):
        CrossEntropy.forward(P, np.array([[wrong]]), soft_label=False, ignore_index=-100)


@pytest.mark.parametrize("shape", [(4, 3), (5, 1), (4, 1, 1)])
def test_a_label_of_another_shape_is_refused_with_both_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"Label has shape .* and X \(4, 3\)"):
        CrossEntropy.infer(Spec((4, 3), VarType.FP32), Spec(shape, VarType.INT64), soft_label=False)


layers = fluid.layers
W = np.array([[1, 0], [0, 1], [1, 1], [2, -1], [0.5, 0.5], [-1, 1]], "float32") / 2
B = np.arange(6, dtype="float32").reshape(6, 1) / 10
X = np.array([[1, 2], [0.5, -1], [0, 3]], "float32")
LABEL = np.array([[0], [3], [4]])


def classes(sampler: int) -> ClassDistribution:
    if sampler < 2:
        return ClassDistribution(sampler, 6)
    probs = np.array([0.05, 0.3, 0.02, 0.35, 0.18, 0.1], "float32")
    keep, alias = alias_table(probs.tolist())
    return ClassDistribution(sampler, 6, probs, alias, keep)


@pytest.mark.parametrize("sampler", [0, 1, 2], ids=["uniform", "log-uniform", "given"])
def test_classes_are_drawn_as_often_as_expected(sampler: int) -> None:
    drawn = classes(sampler).draw(Generator(4), (200, 300))
    often = np.bincount(drawn.reshape(-1), minlength=6) / drawn.size
    wanted = classes(sampler).probability(np.arange(6), "float64")
    if sampler == 1:
        wanted[5] = 0  # as in Paddle, the last class is never drawn
    np.testing.assert_allclose(often, wanted, atol=0.01)  # five standard errors


# Costs, sigmoids and gradients that the real one computed from the classes it drew.
REAL = {
    0: (
        [[0, 4, 0], [3, 1, 4], [4, 0, 0]],
        [[0.8898856043815613], [1.4259512424468994], [0.3660742938518524]],
        [[0.622459352016449, 0.7595109343528748, 0.622459352016449],
         [0.7858349680900574, 0.40131235122680664, 0.5683199763298035],
         [0.7595109343528748, 0.5, 0.5]],
        [0.14096811413764954, 0.6217964887619019, 0.0, -0.1212761327624321, 0.6075233221054077, 0.0],
    ),
    1: (
        [[0, 2, 0], [3, 0, 2], [4, 0, 0]],
        [[0.8960623741149902], [1.1633365154266357], [0.20573171973228455]],
        [[0.622459352016449, 0.8455347418785095, 0.622459352016449],
         [0.7858349680900574, 0.562176525592804, 0.4875026047229767],
         [0.7595109343528748, 0.5, 0.5]],
        [0.28827881813049316, 0.0, 0.5461327433586121, -0.07995095103979111, -0.003485197899863124, 0.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("sampler", REAL, ids=["uniform", "log-uniform"])
def test_nce_matches_fluid(sampler: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, cost, sigmoids, d_bias = (np.array(part) for part in REAL[sampler])
    monkeypatch.setattr(ClassDistribution, "draw", lambda *_: labels[:, 1:])
    op = registry.find("nce")
    weight = np.array([[1], [2], [0.5]], "float32")
    given = (X, LABEL, W, B, weight, None, None, None)
    attrs = NceAttrs(num_total_classes=6, num_neg_samples=2, sampler=sampler, seed=5)
    ctx = FakeContext(View("nce", {}, {}, {}), {}, {})
    out, o, found = op.forward(ctx, *given, attrs=attrs)
    # The layer divides the cost by the number of classes of a row.
    np.testing.assert_allclose(out / 3, cost, rtol=1e-6)
    np.testing.assert_allclose(o, sigmoids, rtol=1e-6)
    np.testing.assert_array_equal(found, labels)
    # The loss was the sum of the squares of that.
    wanted = (False, False, True)
    d_cost = (2 * cost / 3).astype("float32")
    *_, d = op.backward(ctx, *given, o, found, d_cost, attrs=attrs, wanted=wanted)
    np.testing.assert_allclose(d[:, 0], d_bias, rtol=2e-5, atol=1e-7)


def test_hsigmoid_gives_the_costs_of_fluid() -> None:
    op = registry.find("hierarchical_sigmoid")
    out, before, _ = op.forward(X, W[:4], LABEL, None, None, B[:4], num_classes=5)
    np.testing.assert_allclose(
        out, [[1.9545594453811646], [2.8799631595611572], [3.9403305053710938]], rtol=1e-6
    )
    np.testing.assert_allclose(
        before[0], [1.3873353004455566, 0.9740769863128662, 0.6931471824645996], rtol=1e-6
    )


def test_sampled_logits_match_the_logits_of_their_classes() -> None:
    logits = fluid.data("x", [None, 6])
    loss = layers.sampled_softmax_with_cross_entropy(logits, fluid.data("l", [None, 1], "int64"), 3, seed=4)
    names = [f"sample_logits_0.tmp_{i}" for i in range(4)]
    values = np.arange(18, dtype="float32").reshape(3, 6) / 10
    feed: dict[str, Any] = {"x": values, "l": LABEL}
    found = fluid.Executor().run(feed=feed, fetch_list=[loss, *names])
    cost, samples, chances, picked, places = found
    np.testing.assert_array_equal(samples[:, :1], LABEL)
    assert (samples[:, 1:] == samples[0, 1:]).all()
    assert len(set(samples[0, 1:].tolist())) == 3
    np.testing.assert_array_equal(places, np.zeros((3, 1)))
    hits = samples == LABEL
    hits[:, 0] = False
    plain = np.take_along_axis(values, samples, 1) - np.log(chances)
    np.testing.assert_allclose(picked[~hits], plain[~hits], rtol=1e-6)
    assert (picked[hits] < -1e19).all()
    powers = np.exp(np.where(hits, -np.inf, plain))
    np.testing.assert_allclose(cost[:, 0], -np.log(powers[:, 0] / powers.sum(1)), rtol=1e-5)


def test_the_probabilities_are_expected_counts() -> None:
    """Three different classes in three tries, as the real one drew them (seed 4)."""
    chance = np.log1p(1 / (np.array([0, 3, 1, 2]) + 1.0)) / np.log(7) * 3
    real = [1.0686216354370117, 0.3440193235874176, 0.6251035928726196, 0.4435180127620697]
    np.testing.assert_allclose(chance, real, rtol=1e-6)


# Classes that real Fluid 1.8.5 draws with the seed 7: of 100, twice, then of 20 by Walker's method.
SEEDED = {
    0: [[75, 94, 11, 89, 14], [5, 83, 90, 25, 71]],
    1: [[31, 78, 0, 59, 0], [0, 45, 62, 2, 26]],
}


@pytest.mark.parametrize("sampler", SEEDED, ids=["uniform", "log-uniform"])
def test_a_seed_draws_the_same_classes_as_fluid(sampler: int) -> None:
    for _ in range(2):  # every run begins anew
        drawn = ClassDistribution(sampler, 100).draw(Generator(1), (2, 5), 7)
        assert drawn.tolist() == SEEDED[sampler]


def test_a_seed_draws_the_same_classes_by_probabilities_as_fluid() -> None:
    probs = np.random.RandomState(0).uniform(size=20)
    keep, alias = alias_table((probs / probs.sum()).tolist())
    drawn = ClassDistribution(2, 20, probs, alias, keep).draw(Generator(1), (2, 6), 7)
    assert drawn.tolist() == [[1, 7, 17, 6, 10, 8], [8, 17, 7, 13, 18, 7]]


def test_a_seed_draws_the_same_shared_classes_as_fluid() -> None:
    drawn, tries = draw_shared_classes(Generator(1), 50, 8, 7)
    assert (drawn.tolist(), tries) == ([18, 40, 0, 32, 25, 33, 1, 15], 10)


def test_mersenne_twisters_match_the_cpp_standard_at_number_10000() -> None:
    assert Twister(5489).draw(10_000)[-1] == 9981545732273789042
    assert Twister(5489, is_short=True).draw(10_000)[-1] == 4123659995


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_target_of_nan_makes_the_divergence_nan(reduction: str) -> None:
    target = np.array([[0.5, np.nan], [0, -1]], "float32")
    loss = registry.find("kldiv_loss").forward(np.zeros((2, 2), "float32"), target, reduction=reduction)
    assert np.isnan(loss).all()


def test_an_infinite_transition_that_no_sequence_takes_has_no_gradient() -> None:
    op, weights = registry.find("linear_chain_crf"), np.ones((5, 3), "float32")
    weights[3, 1] = np.inf
    given = (np.zeros((2, 1, 3), "float32"), weights, np.array([[[1]], [[0]]]), np.array([[1], [1]]))
    ctx = FakeContext(View(op.type, {}, {}, {}), {}, {})
    d_weights = op.backward(ctx, *given, *op.forward(ctx, *given)[:3], np.ones((2, 1), "float32"))[1]
    assert d_weights[2:].tolist() == [[0, 0, 0]] * 3  # as in Paddle 1.8.5: each sequence has one row
