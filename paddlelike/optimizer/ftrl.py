"""FTRL: follow the regularized leader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlelike.clip import GradientClipBase
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import Accumulator

__all__ = ["Ftrl", "FtrlOptimizer"]


class FtrlOptimizer(Optimizer):
    """FTRL: weights become exactly zero where ``l1`` dominates (operator ``ftrl``).

    McMahan et al., Ad click prediction: a view from the trenches, 2013. Fluid 1.8 passes ``l1``
    as ``l2`` to the operator; so does this one, with a warning when they differ.
    """

    type = "ftrl"
    accumulators = {
        "SquaredAccumulator": Accumulator("squared"),
        "LinearAccumulator": Accumulator("linear"),
    }

    def __init__(
        self,
        learning_rate: float | Variable,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        if l2 != l1 and warn_quirk("ftrl_l2"):
            l2 = l1
        self._attrs = {"l1": l1, "l2": l2, "lr_power": lr_power}


Ftrl = FtrlOptimizer
