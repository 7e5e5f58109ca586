"""A persistable counter of steps.

Parameters
----------
counter_name
    The name of the counter; None for ``@STEP_COUNTER@``.
begin
    The value in the first run, if ``step`` is 1.
step
    The number that each run adds.
"""

from __future__ import annotations

from paddlelike.framework import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper

__all__ = ["autoincreased_step_counter"]


def autoincreased_step_counter(counter_name: str | None = None, begin: int = 1, step: int = 1) -> Variable:
    """Return an int64 variable of shape (1,) that grows by ``step`` in every run.

    In the first run it is ``begin - 1 + step``, which is ``begin`` if ``step`` is 1. It is incremented before
    anything else is computed (operator ``increment``). A program has one counter per ``counter_name``
    (``@STEP_COUNTER@`` if None): a second call returns the same one.

    Returns
    -------
    Variable
        int64 (1,): the number of the current run. It is persistable.

    >>> import paddlelike as fluid
    >>> step = fluid.layers.autoincreased_step_counter(begin=0)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> [int(exe.run(fetch_list=[step])[0][0]) for _ in range(3)]
    [0, 1, 2]
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
            type="increment", inputs={"X": [counter]}, outputs={"Out": [counter]}, attrs={"step": float(step)}
        )
        counter.stop_gradient = True
    return counter
