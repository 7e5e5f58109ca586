"""``fluid.contrib.extend_optimizer``: optimizers with decoupled weight decay.

I. Loshchilov, F. Hutter, "Decoupled Weight Decay Regularization" (2019): before the update, each parameter
shrinks by a fraction, whatever its gradient is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike import layers
from paddlelike.framework import Parameter, Variable, name_scope
from paddlelike.left_out import make_getattr
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.framework import Program
    from paddlelike.framework.typing import Minimized

__all__ = ["extend_with_decoupled_weight_decay"]

#: Fluid's modules of these names are this one.
__getattr__ = make_getattr(
    __name__, "contrib.extend_optimizer", dict.fromkeys(["extend_optimizer_with_weight_decay"], __name__)
)


def extend_with_decoupled_weight_decay(base_optimizer: type[Any]) -> type[Any]:
    """Return a class like ``base_optimizer`` with two more arguments, which come first.

    ``weight_decay``, a float or a variable, is the fraction that a step subtracts from each parameter;
    ``apply_decay_param_fun(name)`` selects the parameters. Pass all other arguments by name.

    Parameters
    ----------
    base_optimizer
        A class of optimizers, such as ``fluid.optimizer.Adam``.

    Returns
    -------
    type
        The new class.

    Raises
    ------
    TypeError
        ``base_optimizer`` is not a class of optimizers.

    See Also
    --------
    fluid.optimizer.Adam

    >>> from paddlelike.optimizer import SGD
    >>> AdamW = extend_with_decoupled_weight_decay(SGD)
    >>> type(AdamW(0.01, learning_rate=0.1)).__name__
    'OptimizerWithDecoupledWeightDecay'
    """
    if not (isinstance(base_optimizer, type) and issubclass(base_optimizer, Optimizer)):
        raise TypeError(f"base_optimizer must be a class of optimizers, got {base_optimizer!r}")

    class OptimizerWithDecoupledWeightDecay(base_optimizer):  # type: ignore[misc]
        __doc__ = f"{base_optimizer.__name__} with decoupled weight decay."

        def __init__(
            self,
            weight_decay: float | Variable,
            apply_decay_param_fun: Callable[[str], bool] | None = None,
            **kwargs: Any,
        ) -> None:
            if not isinstance(weight_decay, float | Variable):
                raise TypeError(f"weight_decay must be a float or a variable, got {weight_decay!r}")
            super().__init__(**kwargs)
            self._weight_decay = weight_decay
            self._decays = apply_decay_param_fun

        def minimize(
            self,
            loss: Variable,
            startup_program: Program | None = None,
            parameter_list: Sequence[Parameter | str] | None = None,
            no_grad_set: Iterable[Variable | str] | None = None,
        ) -> Minimized:
            """Append the operators of one training step, the decay before the updates."""
            pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
            chosen = [
                (parameter, gradient)
                for parameter, gradient in pairs
                if gradient is not None and (self._decays is None or self._decays(parameter.name))
            ]
            if self._weight_decay != 0.0 or isinstance(self._weight_decay, Variable):
                _append_decay(chosen, self._weight_decay)
            return self.apply_optimize(loss, startup_program, pairs), pairs

    return OptimizerWithDecoupledWeightDecay


def _append_decay(pairs: list[tuple[Parameter, Variable]], weight_decay: float | Variable) -> None:
    """Append ``parameter -= weight_decay * parameter`` for each parameter; all products come first."""
    products = []
    for parameter, gradient in pairs:
        with parameter.block.program._optimized_guard([parameter, gradient]), name_scope("weight decay"):
            products.append(parameter * weight_decay)
    for (parameter, gradient), product in zip(pairs, products, strict=True):
        with parameter.block.program._optimized_guard([parameter, gradient]), name_scope("weight decay"):
            layers.assign(layers.elementwise_sub(parameter, product), parameter)
