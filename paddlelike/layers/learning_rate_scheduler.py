"""Learning rate schedules: rates that depend on the number of steps.

Each function returns a variable to pass to an optimizer. The steps are counted by ``@LR_DECAY_COUNTER@``,
which is saved with the persistables, so that a schedule continues after a restart.

Parameters
----------
learning_rate
    The first rate: a number, or a variable of shape [1].
decay_steps
    The number by which the step is divided in the formula.
decay_rate
    The rate of decay in the formula.
staircase
    Whether ``step / decay_steps`` is rounded down, so that the rate falls in stairs.

Returns
-------
Variable
    float32 of shape (1,): the rate of the current step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, default_main_program
from paddlelike.layers.control.branches import Switch
from paddlelike.layers.control.step_counter import autoincreased_step_counter
from paddlelike.layers.elementwise.binary import elementwise_min
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.assign import assign, create_global_var
from paddlelike.layers.tensor.constant import fill_constant

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

__all__ = [
    "cosine_decay",
    "exponential_decay",
    "inverse_time_decay",
    "linear_lr_warmup",
    "natural_exp_decay",
    "noam_decay",
    "piecewise_decay",
    "polynomial_decay",
]

COUNTER: Final = "@LR_DECAY_COUNTER@"


def noam_decay(d_model: float, warmup_steps: float, learning_rate: float | Variable = 1.0) -> Variable:
    """Return ``learning_rate * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)``.

    The first step is 1. Vaswani et al., Attention is all you need, 2017.

    Parameters
    ----------
    d_model
        The width of the model.
    warmup_steps
        The number of steps in which the rate rises.
    learning_rate
        The factor of the rate.

    >>> import paddlelike as fluid
    >>> rate = fluid.layers.noam_decay(d_model=64, warmup_steps=2)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[rate])[0][0]:.4f}" for _ in range(4)))
    0.0442 0.0884 0.0722 0.0625
    """
    with default_main_program()._lr_schedule_guard():
        step = _decay_step_counter(begin=1)
        falling = step**-0.5
        rising = warmup_steps**-1.5 * step
        scaled: float = learning_rate * d_model**-0.5
        rate: Variable = scaled * elementwise_min(falling, rising)
        return rate


def exponential_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Return ``learning_rate * decay_rate ** (step / decay_steps)``.

    Operators ``increment`` and ``elementwise_pow``. With ``staircase`` the quotient is rounded down.

    Raises
    ------
    GraphError
        ``decay_steps`` is neither a number nor a variable.

    >>> import paddlelike as fluid
    >>> rate = fluid.layers.exponential_decay(learning_rate=0.8, decay_steps=1, decay_rate=0.5)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[rate])[0][0]:.2f}" for _ in range(4)))
    0.80 0.40 0.20 0.10
    """
    with default_main_program()._lr_schedule_guard():
        return learning_rate * decay_rate ** _periods(decay_steps, staircase)


def natural_exp_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Return ``learning_rate * exp(-decay_rate * step / decay_steps)``.

    Operators ``increment`` and ``exp``. With ``staircase`` the quotient is rounded down.

    >>> import paddlelike as fluid
    >>> fluid.layers.natural_exp_decay(0.1, decay_steps=100, decay_rate=0.5).shape
    (1,)
    """
    with default_main_program()._lr_schedule_guard():
        return learning_rate * emit("exp", {"X": -decay_rate * _periods(decay_steps, staircase)})


def inverse_time_decay(
    learning_rate: float | Variable, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Variable:
    """Return ``learning_rate / (1 + decay_rate * step / decay_steps)``.

    Operators ``increment``, ``scale`` and ``elementwise_div``. With ``staircase`` the quotient is rounded
    down.

    Raises
    ------
    GraphError
        ``decay_steps`` is neither a number nor a variable.

    >>> import paddlelike as fluid
    >>> fluid.layers.inverse_time_decay(0.1, decay_steps=100, decay_rate=0.5).shape
    (1,)
    """
    with default_main_program()._lr_schedule_guard():
        return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


def polynomial_decay(
    learning_rate: float | Variable,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Variable:
    """Return a rate that falls to ``end_learning_rate`` as ``(1 - step / decay_steps) ** power``.

    Operators ``increment``, ``elementwise_min`` and ``elementwise_pow``. After ``decay_steps`` the rate is
    constant; with ``cycle``, ``decay_steps`` grows to its next multiple instead.

    Parameters
    ----------
    end_learning_rate
        The rate at the end.
    power
        The exponent in the formula.
    cycle
        Whether the rate starts again after ``decay_steps``, each time longer.

    >>> import paddlelike as fluid
    >>> fluid.layers.polynomial_decay(0.1, decay_steps=100).shape
    (1,)
    """
    with default_main_program()._lr_schedule_guard():
        step = _decay_step_counter()
        length: float | Variable = decay_steps
        if cycle:
            length = decay_steps * _cycles(step, decay_steps)
        else:
            last = fill_constant(shape=[1], dtype="float32", value=float(decay_steps))
            step = elementwise_min(step, last)
        span = learning_rate - end_learning_rate
        rate: Variable = span * (1 - step / length) ** power + end_learning_rate
        return rate


def piecewise_decay(boundaries: Sequence[float], values: Sequence[float]) -> Variable:
    """Return ``values[i]`` while the step is below ``boundaries[i]``, and the last of ``values`` afterwards.

    Operators ``increment``, ``less_than`` and ``conditional_block``.

    Parameters
    ----------
    boundaries
        The steps at which the rate changes, ascending.
    values
        The rates; their number is one more than the number of ``boundaries``.

    Raises
    ------
    GraphError
        The number of ``values`` is not one more than the number of ``boundaries``.

    >>> import paddlelike as fluid
    >>> rate = fluid.layers.piecewise_decay(boundaries=[2, 3], values=[0.5, 0.25, 0.125])
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[rate])[0][0]:.3f}" for _ in range(5)))
    0.500 0.500 0.250 0.125 0.125
    """
    if len(values) != len(boundaries) + 1:
        raise GraphError(
            f"piecewise_decay: {len(boundaries)} boundaries go with {len(boundaries) + 1} values, "
            f"got {len(values)}"
        )
    with default_main_program()._lr_schedule_guard():
        step = _decay_step_counter()
        rate = _global_rate("learning_rate", "float32")
        with Switch() as switch:
            for boundary, value in zip(boundaries, values, strict=False):
                limit = fill_constant([1], "float32", float(boundary), force_cpu=True)
                chosen = fill_constant([1], "float32", float(value))
                with switch.case(step < limit):
                    assign(chosen, output=rate)
            chosen = fill_constant([1], "float32", float(values[-1]))
            with switch.default():
                assign(chosen, output=rate)
        return rate


def cosine_decay(learning_rate: float | Variable, step_each_epoch: int, epochs: int) -> Variable:
    """Return ``learning_rate / 2 * (1 + cos(pi * epoch / epochs))``; an epoch has ``step_each_epoch`` steps.

    Loshchilov & Hutter, SGDR, 2016.

    Parameters
    ----------
    step_each_epoch
        The number of steps of an epoch.
    epochs
        The number of epochs.

    Raises
    ------
    TypeError
        ``learning_rate`` is neither a float nor a variable.

    >>> import paddlelike as fluid
    >>> fluid.layers.cosine_decay(0.1, step_each_epoch=100, epochs=10).shape
    (1,)
    """
    if not isinstance(learning_rate, float | Variable):
        raise TypeError(f"cosine_decay: learning_rate must be a float or a variable, got {learning_rate!r}")
    with default_main_program()._lr_schedule_guard():
        epoch = emit("floor", {"X": _decay_step_counter() / step_each_epoch})
        return learning_rate * 0.5 * (emit("cos", {"X": epoch * math.pi / epochs}) + 1)


def linear_lr_warmup(
    learning_rate: float | Variable, warmup_steps: int, start_lr: float, end_lr: float
) -> Variable:
    """Return a rate that goes from ``start_lr`` to ``end_lr``, and is ``learning_rate`` afterwards.

    Operators ``increment``, ``less_than`` and ``conditional_block``. Goyal et al., Accurate, large minibatch
    SGD, 2017.

    Parameters
    ----------
    learning_rate
        The rate after the warm-up: a number, or another schedule.
    warmup_steps
        The number of steps of the warm-up.
    start_lr, end_lr
        The rates at which the warm-up begins and ends.

    >>> import paddlelike as fluid
    >>> fluid.layers.linear_lr_warmup(0.1, warmup_steps=100, start_lr=0.0, end_lr=0.1).shape
    (1,)
    """
    dtype = learning_rate.dtype if isinstance(learning_rate, Variable) else "float32"
    slope = float(end_lr) - float(start_lr)
    with default_main_program()._lr_schedule_guard():
        rate = _global_rate("learning_rate_warmup", dtype)
        step = _decay_step_counter()
        with Switch() as switch:
            with switch.case(step < warmup_steps):
                assign(start_lr + slope * (step / float(warmup_steps)), output=rate)
            with switch.default():
                if not isinstance(learning_rate, Variable):
                    learning_rate = fill_constant([1], dtype, float(learning_rate))
                assign(learning_rate, output=rate)
        return rate


def _decay_step_counter(begin: int = 0) -> Variable:
    """Return the index of the step as float32. The first index is ``begin``, unless the program already
    counts.
    """
    counter = autoincreased_step_counter(COUNTER, begin=begin)
    attrs = {"in_dtype": int(counter.dtype), "out_dtype": int(VarType.FP32)}
    return emit("cast", {"X": counter}, attrs, dtype="float32")


def _periods(length: float, staircase: bool) -> Variable:
    """Return how many times ``length`` steps have passed."""
    periods = _decay_step_counter() / length
    return emit("floor", {"X": periods}) if staircase else periods


def _cycles(step: Variable, length: int) -> Variable:
    """Return the number of the cycle of ``step``, counted from 1."""
    cycles = emit("ceil", {"X": step / length})
    zero = fill_constant([1], "float32", 0.0)
    one = fill_constant([1], "float32", 1.0)
    with Switch() as switch, switch.case(step == zero):
        assign(one, output=cycles)
    return cycles


def _global_rate(name: str, dtype: DtypeLike) -> Variable:
    return create_global_var([1], 0.0, dtype, persistable=True, name=name)
