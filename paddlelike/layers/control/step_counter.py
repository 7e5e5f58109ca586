"""A persistable counter of steps."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper

__all__ = ["autoincreased_step_counter"]


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """Return an int64 variable of shape (1,) that is ``begin`` in the first run, then grows by ``step``.

    It is incremented before anything else is computed. A program has one counter per name
    (``@STEP_COUNTER@`` if None): a second call returns the same one.
    """
    helper = LayerHelper("global_step_counter")
    counter, new = helper.create_or_get_global_variable(
        name="@STEP_COUNTER@" if counter_name is None else counter_name,
        dtype="int64",
        shape=[1],
        persistable=True,
        belong_to_optimizer=True,
    )
    if new:
        helper.set_variable_initializer(counter, Constant(begin - 1, force_cpu=True))
        helper.main_program.global_block()._prepend_op(
            type="increment",
            inputs={"X": [counter]},
            outputs={"Out": [counter]},
            attrs={"step": float(step)},
        )
        counter.stop_gradient = True
    return counter
