"""Adam, Adamax and Lamb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.clip import GradientClipBase
from paddlelike.core import VarType
from paddlelike.framework import Block, Parameter, Variable, name_scope, warn_quirk
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import Accumulator, ParamGrads

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["Adam", "AdamOptimizer", "Adamax", "AdamaxOptimizer", "Lamb", "LambOptimizer"]


class AdamOptimizer(Optimizer):
    """Adam: bias-corrected moving averages of the gradient and of its square (operator ``adam``).

    ``p -= r * m1 / (sqrt(m2) + epsilon)`` with ``r = learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t)``
    (Kingma & Ba, 2014). ``beta1`` and ``beta2`` may be variables of shape ``[1]``. With ``lazy_mode`` a
    sparse gradient updates the averages of its own rows only.

    Parameters
    ----------
    beta1
        The decay of the average of gradients: a number, or a variable of shape ``[1]``.
    beta2
        The decay of the average of squared gradients: a number, or a variable of shape ``[1]``.
    epsilon
        Added to the root of the squares, against division by zero.
    lazy_mode
        Whether a sparse gradient updates the averages of its own rows only.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Adam(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.800 0.700
    """

    type = "adam"
    accumulators = {
        "Moment1": Accumulator("moment1"),
        "Moment2": Accumulator("moment2"),
        "Beta1Pow": Accumulator("beta1_pow_acc", fill="beta1", single=True, device="cpu"),
        "Beta2Pow": Accumulator("beta2_pow_acc", fill="beta2", single=True, device="cpu"),
    }

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float | Variable = 0.9,
        beta2: float | Variable = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        lazy_mode: bool = False,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        betas = {"beta1": beta1, "beta2": beta2}
        self._tensors = {
            f"{name.title()}Tensor": beta for name, beta in betas.items() if isinstance(beta, Variable)
        }
        self._attrs = {
            "epsilon": epsilon,
            "lazy_mode": lazy_mode,
            "min_row_size_to_use_multithread": 1000,
            **{name: beta for name, beta in betas.items() if not isinstance(beta, Variable)},
        }

    def _extra_inputs(self) -> dict[str, Variable]:
        return self._tensors

    def _finish_update(self, block: Block, parameters_and_grads: ParamGrads) -> None:
        if any(grad.type == VarType.SELECTED_ROWS for _, grad in parameters_and_grads):
            warn_quirk("adam_sparse_correction")


class AdamaxOptimizer(Optimizer):
    """Adamax: Adam with the largest past gradient in place of the mean square (operator ``adamax``).

    ``u = max(|g|, beta2 * u + epsilon); p -= learning_rate / (1 - beta1^t) * m / u`` (Kingma & Ba, 2014).

    Parameters
    ----------
    beta1
        The decay of the average of gradients.
    beta2
        The decay of the largest gradient.
    epsilon
        Added to the largest gradient, against division by zero.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Adamax(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.800 0.700
    """

    type = "adamax"
    accumulators = {
        "Moment": Accumulator("moment"),
        "InfNorm": Accumulator("inf_norm"),
        "Beta1Pow": Accumulator("beta1_pow_acc", fill="beta1", single=True),
    }

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    def _finish_update(self, block: Block, parameters_and_grads: ParamGrads) -> None:
        for param, grad in parameters_and_grads:
            if not param.trainable:
                continue
            power = self._get_accumulator("beta1_pow_acc", param)
            with block.program._optimized_guard([param, grad]), name_scope("adamx"):
                block.append_op(
                    type="scale",
                    inputs={"X": power},
                    outputs={"Out": power},
                    attrs={"scale": self._attrs["beta1"]},
                )


class LambOptimizer(AdamOptimizer):
    """Lamb: the direction of Adam scaled to the norm of the parameter, for large batches (operator ``lamb``).

    ``r = m1 / (sqrt(m2) + epsilon) + lamb_weight_decay * p; p -= learning_rate * |p| / |r| * r`` with the
    moving averages ``m1`` (``beta1``) and ``m2`` (``beta2``) of Adam (You et al., 2019). Parameters for
    which ``exclude_from_weight_decay_fn`` is true are not decayed.

    Parameters
    ----------
    lamb_weight_decay
        The weight decay, a share of the parameter that is added to its step.
    beta1
        The decay of the average of gradients.
    beta2
        The decay of the average of squared gradients.
    epsilon
        Added to the root of the squares, against division by zero.
    exclude_from_weight_decay_fn
        A function of a parameter that returns whether to leave out its weight decay; None for no exception.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Lamb(learning_rate=0.1, lamb_weight_decay=0.0).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.810 0.729
    """

    type = "lamb"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        exclude_from_weight_decay_fn: Callable[[Parameter], bool] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate,
            parameter_list=parameter_list,
            regularization=regularization,
            grad_clip=grad_clip,
            name=name,
        )
        self._corrects = not warn_quirk("lamb_correction")
        self._weight_decay = lamb_weight_decay
        self._excluded = exclude_from_weight_decay_fn
        self._attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}

    def _make_attrs(self, param: Parameter) -> dict[str, Any]:
        excluded = self._excluded is not None and self._excluded(param)
        return {**self._attrs, "weight_decay": 0.0 if excluded else self._weight_decay}

    def _finish_update(self, block: Block, parameters_and_grads: ParamGrads) -> None:
        if not self._corrects:
            return
        for param, grad in parameters_and_grads:
            if param.trainable:
                for beta in ("beta1", "beta2"):
                    self._multiply_power(block, param, grad, f"{beta}_pow_acc", self._attrs[beta])

    def _multiply_power(
        self, block: Block, param: Parameter, grad: Variable, accumulator: str, beta: float
    ) -> None:
        power = self._get_accumulator(accumulator, param)
        with block.program._optimized_guard([param, grad]):
            attrs = {"scale": beta}
            block.append_op(type="scale", inputs={"X": power}, outputs={"Out": power}, attrs=attrs)


Adam = AdamOptimizer
Adamax = AdamaxOptimizer
Lamb = LambOptimizer
