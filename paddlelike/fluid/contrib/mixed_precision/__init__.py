"""``fluid.contrib.mixed_precision``: the interface of mixed precision. All networks train in float32 here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike import unique_name
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable, default_main_program, default_startup_program
from paddlelike.layers.tensor.assign import create_global_var
from paddlelike.left_out import make_getattr

if TYPE_CHECKING:
    from paddlelike.framework import Operator, Parameter, Program
    from paddlelike.framework.typing import Minimized
    from paddlelike.optimizer.base import Optimizer
    from paddlelike.optimizer.state import ParamGrads

__all__ = ["AutoMixedPrecisionLists", "OptimizerWithMixedPrecision", "decorate"]

#: Fluid's modules of these names are this one.
__getattr__ = make_getattr(
    __name__, "contrib.mixed_precision", dict.fromkeys(["decorator", "fp16_lists"], __name__)
)

_WHITE = "conv2d matmul mul"
_BLACK = """
    exp square log mean sum cos_sim softmax softmax_with_cross_entropy sigmoid_cross_entropy_with_logits
    cross_entropy cross_entropy2
"""
_GRAY = """
    batch_norm cast dropout elementwise_add elementwise_div elementwise_floordiv elementwise_max
    elementwise_min elementwise_mod elementwise_mul elementwise_pow elementwise_sub fill_constant
    flatten2 gather gaussian_random gaussian_random_batch_size_like get_tensor_from_selected_rows
    leaky_relu lookup_table pool2d pool3d rank relu relu6 reshape2 scale sigmoid sign slice soft_relu
    stack tanh top_k transpose2 uniform_random_batch_size_like unstack
"""
#: Operators that Fluid computes in float16, never, or as the operators before them.
white_list, black_list, gray_list = set(_WHITE.split()), set(_BLACK.split()), set(_GRAY.split())


class AutoMixedPrecisionLists:
    """Which operators may compute in float16 (white) and which must not (black); here none does.

    Parameters
    ----------
    custom_white_list, custom_black_list
        Types of operators that are added to a list and leave the other.
    custom_black_varnames
        Names of variables that stay float32.

    Raises
    ------
    ValueError
        An operator is in both lists.

    See Also
    --------
    fluid.contrib.decorate, fluid.contrib.mixed_precision.OptimizerWithMixedPrecision

    >>> lists = AutoMixedPrecisionLists(custom_black_list=["mul"])
    >>> "mul" in lists.black_list, "mul" in lists.white_list
    (True, False)
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
    ) -> None:
        white, black = set(custom_white_list or ()), set(custom_black_list or ())
        if white & black:
            raise ValueError(f"both the white and the black list have {', '.join(sorted(white & black))}")
        self.white_list = white_list - black | white
        self.black_list = black_list - white | black
        self.black_varnames = set(custom_black_varnames or ())


class OptimizerWithMixedPrecision:
    """The optimizer returned by :func:`decorate`: it trains in float32 and does not scale the loss.

    It has Fluid's variables, which stay as they are, so that each side loads what the other has saved.

    Parameters
    ----------
    optimizer
        The optimizer that does the work.
    amp_lists
        The operators of each precision, without effect here.
    use_dynamic_loss_scaling
        Whether the counters of good and bad steps are created.

    See Also
    --------
    fluid.contrib.AutoMixedPrecisionLists, fluid.contrib.decorate

    >>> import paddlelike as fluid
    >>> lists = AutoMixedPrecisionLists()
    >>> both = OptimizerWithMixedPrecision(fluid.optimizer.SGD(0.1), lists, use_dynamic_loss_scaling=False)
    """

    def __init__(
        self, optimizer: Optimizer, amp_lists: AutoMixedPrecisionLists, *, use_dynamic_loss_scaling: bool
    ) -> None:
        self._optimizer = optimizer
        self._amp_lists = amp_lists
        self._train_program = default_main_program()
        self._startup_prog = default_startup_program()
        self._scaled_loss: Variable | None = None
        name = unique_name.generate("loss_scaling")
        self._loss_scaling = create_global_var([1], 1.0, "float32", persistable=True, name=name)
        for counter in ("num_good_steps", "num_bad_steps") if use_dynamic_loss_scaling else ():
            name = unique_name.generate(counter)
            create_global_var([1], 0, "int32", persistable=True, name=name)

    def get_loss_scaling(self) -> Variable:
        """Return the variable of the loss scaling, which is 1."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """Return the loss, which is not scaled; None before the backward pass."""
        return self._scaled_loss

    def backward(self, loss: Variable, *args: Any, **kwargs: Any) -> ParamGrads:
        """Append the backward pass of the wrapped optimizer."""
        self._scaled_loss = loss
        return self._optimizer.backward(loss, *args, **kwargs)

    def apply_gradients(self, scaled_params_grads: ParamGrads) -> list[Operator]:
        """Append the updates of the wrapped optimizer."""
        return self._optimizer.apply_gradients(scaled_params_grads)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> Minimized:
        """Append the training step of the wrapped optimizer."""
        self._scaled_loss = loss
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_optimizer":
            raise AttributeError(name)
        return getattr(self._optimizer, name)


def decorate(
    optimizer: Optimizer,
    amp_lists: AutoMixedPrecisionLists | None = None,
    init_loss_scaling: float = 2**15,
    incr_every_n_steps: int = 1000,
    decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0,
    decr_ratio: float = 0.8,
    use_dynamic_loss_scaling: bool = True,
) -> OptimizerWithMixedPrecision:
    """Return the optimizer with the methods for mixed precision; it trains in float32, with a warning.

    Parameters
    ----------
    optimizer
        The optimizer to wrap.
    amp_lists
        The operators of each precision, without effect here.
    init_loss_scaling, incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio
        They have no effect, as in Fluid: the loss is not scaled.
    use_dynamic_loss_scaling
        Whether the counters of good and bad steps are created.

    Returns
    -------
    OptimizerWithMixedPrecision
        It has ``minimize``, ``backward`` and ``apply_gradients``.

    See Also
    --------
    fluid.contrib.AutoMixedPrecisionLists, fluid.contrib.mixed_precision.OptimizerWithMixedPrecision

    >>> import warnings
    >>> import paddlelike as fluid
    >>> with warnings.catch_warnings(action="ignore"):
    ...     optimizer = decorate(fluid.optimizer.SGD(0.1))
    """
    warn_user(
        "mixed_precision.decorate: there is no float16 arithmetic on the CPU; the network trains in float32, "
        "and the loss is not scaled"
    )
    return OptimizerWithMixedPrecision(
        optimizer, amp_lists or AutoMixedPrecisionLists(), use_dynamic_loss_scaling=use_dynamic_loss_scaling
    )
