"""Trainers: the numbers of the real DyNet, recorded by tests/interop/drivers/driver_dynet_trainers.py."""

from __future__ import annotations

import re

import numpy as np
import pytest

import paddlelike.collection as dy
from paddlelike.errors import GraphError, OperatorError
from tests.helpers.golden_data import GOLDEN
from tests.interop.drivers.driver_dynet_trainers import TRAINERS, WAYS, train

RECORDED = GOLDEN / "dynet" / "trainers.npz"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", sorted(TRAINERS))
def test_training_gives_the_numbers_of_dynet(kind: str, way: str, capfd: pytest.CaptureFixture[str]) -> None:
    with np.load(RECORDED) as recorded:
        wanted = recorded[f"{kind}, {way}"]
    found = train(dy, kind, way)
    # float32: exp, log and sums in another order, eight times
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)
    rate = re.escape(f"{float(wanted[15]):g}")
    assert re.fullmatch(rf"\[lr={rate} clips=\d updates=8\] ", capfd.readouterr().err)


def make() -> tuple[dy.ParameterCollection, dy.Parameters]:
    m = dy.ParameterCollection()
    w = m.add_parameters(2, init=[1.0, 2.0])
    dy.renew_cg()
    return m, w


def test_restart_clears_the_accumulators() -> None:
    m, w = make()
    trainer = dy.MomentumSGDTrainer(m, 0.1)
    steps = []
    for _ in range(3):
        w.set_value([1.0, 2.0])
        dy.renew_cg()
        dy.squared_norm(w).backward()
        trainer.update()
        steps.append(w.as_array())
        if len(steps) == 2:
            trainer.restart(0.1)
    assert steps[0].tolist() == steps[2].tolist() != steps[1].tolist()
    trainer.set_learning_rate(0.5)
    assert (trainer.learning_rate, trainer.whoami(), trainer.get_clip_threshold()) == (
        0.5, "MomentumSGDTrainer", 5.0,
    )  # fmt: skip


def test_gradients_that_are_not_finite_change_nothing() -> None:
    m, w = make()
    trainer = dy.SimpleSGDTrainer(m)
    w.add_gradient(np.float32([np.inf, 0]))
    with pytest.raises(OperatorError, match="norm of the gradients is inf") as caught:
        trainer.update()
    assert w.name() in str(caught.value)
    assert w.as_array().tolist() == [1, 2]


def test_an_update_changes_only_parameters_with_a_gradient_and_clears_it() -> None:
    m, w = make()
    other = m.add_parameters(2, init=3.0)
    trainer = dy.SimpleSGDTrainer(m, 0.25)
    trainer.set_clip_threshold(-1)
    for _ in range(2):  # gradients add up until an update
        dy.squared_norm(w).backward()
    trainer.update()
    assert w.as_array().tolist() == [0, 0]
    assert other.as_array().tolist() == [3, 3]
    assert not w.has_gradient()


def test_an_expression_of_an_earlier_graph_is_refused() -> None:
    _, w = make()
    earlier = dy.tanh(w)
    value = earlier.npvalue()
    dy.renew_cg()
    for use in (lambda: earlier + w, lambda: w + earlier, lambda: dy.esum([dy.tanh(w), earlier])):
        with pytest.raises(GraphError, match=r"belongs to an earlier graph: renew_cg\(\)") as caught:
            use()
        assert earlier.variable.name in str(caught.value)
    np.testing.assert_array_equal(earlier.npvalue(), value)  # its own graph is still there
