"""Options of strategies can be set, and misspelt ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid


@pytest.mark.parametrize("make", [fluid.BuildStrategy, fluid.ExecutionStrategy])
def test_every_option_can_be_set_and_read(make: Any) -> None:
    strategy = make()
    for name in vars(strategy):
        setattr(strategy, name, "a value")
    assert set(vars(strategy).values()) == {"a value"}
    assert "a value" not in vars(make()).values()


@pytest.mark.parametrize("make", [fluid.BuildStrategy, fluid.ExecutionStrategy])
def test_an_option_that_fluid_does_not_have_is_refused(make: Any) -> None:
    with pytest.raises(AttributeError, match=r"has no option 'num_thread'; it has .*, "):
        make().num_thread = 4


def test_gradients_are_averaged_unless_the_strategy_says_otherwise() -> None:
    scaling = fluid.BuildStrategy.GradientScaleStrategy
    assert fluid.BuildStrategy().gradient_scale_strategy == scaling.CoeffNumDevice
    assert (scaling.CoeffNumDevice, scaling.One, scaling.Customized) == (0, 1, 2)
