"""Probability distributions against their formulas in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.framework import flags
from tests.helpers.small_networks import random_input, run, softmax

layers = fluid.layers


class TestDistributions:
    def test_a_normal_distribution_follows_its_formulas(self) -> None:
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

    def test_samples_have_the_mean_and_variance_of_their_distribution(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(flags, "_flags", {"FLAGS_fluid_quirks": False})
        normal, uniform = layers.Normal(0.5, 2.0), layers.Uniform([1.0, -1.0], 3.0)
        a, b = run([normal.sample([20000], seed=3), uniform.sample([20000], seed=3)])
        # Five standard errors.
        np.testing.assert_allclose([a.mean(), a.std()], [0.5, 2.0], atol=0.08)
        np.testing.assert_allclose(b.mean(0), [2.0, 1.0], atol=0.05)
        assert (b >= [1.0, -1.0]).all()
        assert (b < 3.0).all()

    def test_a_uniform_distribution_follows_its_formulas(self) -> None:
        uniform = layers.Uniform(1.0, 3.0)
        inside = layers.assign(np.array([2.0], "float32"))
        entropy, density = run([uniform.entropy(), uniform.log_prob(inside)])
        np.testing.assert_allclose([entropy, density], [[np.log(2)], [-np.log(2)]], rtol=1e-6)

    def test_a_categorical_distribution_follows_its_formulas(self) -> None:
        (x, a), (y, b) = random_input("x", 2, 4), random_input("y", 2, 4)
        mine, other = layers.Categorical(x), layers.Categorical(y)
        entropy, divergence = run([mine.entropy(), mine.kl_divergence(other)], x=a, y=b)
        p, q = softmax(a), softmax(b)
        np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(divergence, (p * np.log(p / q)).sum(1, keepdims=True), atol=1e-6)

    def test_a_multivariate_normal_distribution_follows_its_formulas(self) -> None:
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
