"""Means of the parameters over training, for tests and saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from paddlelike import unique_name
from paddlelike.core import Versioned
from paddlelike.executor.run import Executor
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import (
    Block,
    Parameter,
    Program,
    Variable,
    default_main_program,
    follows_fluid,
    name_scope,
    program_guard,
    warn_quirk,
)
from paddlelike.layers.control.branches import Switch
from paddlelike.layers.control.step_counter import autoincreased_step_counter
from paddlelike.layers.elementwise.binary import elementwise_pow
from paddlelike.layers.emit import INTEGERS, emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import assign, create_global_var
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["ExponentialMovingAverage", "ModelAverage"]


_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


class ModelAverage(Optimizer):
    """Means of the parameters over a window of the last steps (operator ``average_accumulates``).

    Create it after ``minimize``; inside of ``with average.apply(exe):`` the parameters are the means.
    Parameters with ``do_model_average=False`` are not averaged.

    Parameters
    ----------
    average_window_rate
        The length of the window, as a fraction of the steps so far.
    min_average_window, max_average_window
        The least and the greatest length of the window, in steps.
    regularization
        Accepted for Fluid; averages are not decayed.
    name
        A part of the names of the sums.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> _ = fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
    >>> average = fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=10)
    >>> average.apply_program.num_blocks, len(average.params_grads)
    (1, 2)
    """

    type = "average_accumulates"

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: WeightDecayRegularizer | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(0.0, regularization=regularization, name=name)
        self.average_window = average_window_rate
        self.min_average_window = min_average_window
        self.max_average_window = max_average_window
        self.params_grads = create_copies(default_main_program(), ".tmp")
        for param, copy in self.params_grads:
            with param.block.program._optimized_guard([param, copy]), name_scope("move_average"):
                self._append_average_accumulate_op(param)
        self.apply_program = Program()
        with program_guard(self.apply_program):
            for param, copy in self.params_grads:
                self._add_average_apply_op(self.apply_program.global_block(), param, copy)
        self.restore_program = make_restore_program(self.params_grads)

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Replace the parameters by the means inside the ``with`` block.

        With ``need_restore=False`` they stay replaced until :meth:`restore`.
        """
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Restore the parameters."""
        executor.run(self.restore_program)

    def _append_average_accumulate_op(self, param: Parameter) -> None:
        state = {name: self._add_accumulator(name, param) for name in _SUMS}
        for name in _COUNTS:
            state[name] = self._add_accumulator(name, param, dtype="int64", shape=[1])
        LayerHelper("average_accumulate").append_op(
            type=self.type,
            inputs={"param": param, **{f"in_{name}": variable for name, variable in state.items()}},
            outputs={f"out_{name}": variable for name, variable in state.items()},
            attrs={
                "average_window": self.average_window,
                "min_average_window": self.min_average_window,
                "max_average_window": self.max_average_window,
            },
        )

    def _add_average_apply_op(self, block: Block, param: Parameter, copy: Variable) -> None:
        """Append operators that copy the parameter to ``copy`` and overwrite it by the mean."""
        value = block._clone_variable(param)
        kept = block._clone_variable(copy)
        sums, counts = (
            [block._clone_variable(self._get_accumulator(name, param)) for name in names]
            for names in (_SUMS, _COUNTS[:2])
        )
        assign(value, output=kept)
        count = emit("sum", {"X": counts}, {"use_mkldnn": False})
        total = emit("sum", {"X": sums}, {"use_mkldnn": False})
        float32 = {"in_dtype": int(count.dtype), "out_dtype": 5}
        count = emit("cast", {"X": count}, float32, dtype="float32")
        float32 = {"in_dtype": int(total.dtype), "out_dtype": 5}
        total = emit("cast", {"X": total}, float32, dtype="float32")
        emit("elementwise_div", {"X": total, "Y": count}, out=value)


def create_copies(program: Program, suffix: str, prefix: str = "") -> list[tuple[Parameter, Variable]]:
    """Return every parameter to be averaged, with a new variable for a copy of its value."""
    pairs = []
    for param in program.global_block().all_parameters():
        if param.do_model_average is not False:
            copy = param.block.create_var(
                name=unique_name.generate(f"{prefix}{param.name}{suffix}"),
                dtype=param.dtype,
                persistable=False,
                stop_gradient=True,
            )
            pairs.append((param, copy))
    return pairs


def make_restore_program(pairs: list[tuple[Parameter, Variable]]) -> Program:
    """Return a program that restores parameters from their copies."""
    program = Program()
    block = program.global_block()
    with program_guard(program):
        for param, copy in pairs:
            value = block._clone_variable(param)
            assign(block._clone_variable(copy), output=value)
    return program


_COUNTER = "@EMA_STEP_COUNTER@"


class ExponentialMovingAverage(NearKeywords, Versioned):
    """``average = decay * average + (1 - decay) * parameter`` for every parameter, at every step.

    Call ``update`` once, after ``minimize``; inside of ``with ema.apply(exe):`` the parameters are the
    averages, corrected for their start at zero: ``average / (1 - decay^steps)``. As in Fluid 1.8 the
    corrected averages are stored, so averaging continues from them, and a second ``apply`` corrects them
    again. If ``FLAGS_fluid_quirks`` is False, the stored averages do not change. Parameters with
    ``do_model_average=False`` are not averaged.

    Parameters
    ----------
    decay
        The weight of the old average at each step.
    thres_steps
        A variable of shape ``[1]`` that counts steps; it limits the decay to ``(thres_steps + 1) /
        (thres_steps + 10)``. It should be float32: with an integer the limit is computed as 0 and ignored, as
        in Fluid.
    name
        A prefix of the names of the averages.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> _ = fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
    >>> average = fluid.optimizer.ExponentialMovingAverage(decay=0.99)
    >>> average.update()
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> with average.apply(exe):
    ...     pass  # evaluate, or save, with the averages
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None
    ) -> None:
        self._decay = decay
        self._stores_corrected = follows_fluid("moving_average_correction")
        self._name = "" if name is None else name
        self._decay_var = self._create_decay(thres_steps)
        self._params_tmps = create_copies(default_main_program(), ".ema_tmp", self._name)
        self._ema_vars = {}
        for param, copy in self._params_tmps:
            with param.block.program._optimized_guard([param, copy]), name_scope("moving_average"):
                self._ema_vars[param.name] = self._create_average(param)
        self.apply_program = Program()
        with program_guard(self.apply_program):
            self._build_apply(self.apply_program.global_block())
        self.restore_program = make_restore_program(self._params_tmps)

    def update(self) -> None:
        """Append the operators that update the averages to the default main program."""
        autoincreased_step_counter(counter_name=_COUNTER)
        decay = self._decay_var
        for param, copy in self._params_tmps:
            with param.block.program._optimized_guard([param, copy]), name_scope("moving_average"):
                average = self._ema_vars[param.name]
                assign(average * decay + param * (1 - decay), output=average)

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Replace the parameters by the averages inside the ``with`` block.

        With ``need_restore=False`` they stay replaced until :meth:`restore`.
        """
        if self._stores_corrected:
            warn_quirk("moving_average_correction")
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Restore the parameters."""
        executor.run(self.restore_program)

    def _create_decay(self, steps: Variable | None) -> Variable:
        """Return the variable of the decay, which depends on ``steps`` if that is given."""
        with default_main_program()._lr_schedule_guard():
            decay = create_global_var(
                [1], self._decay, "float32", persistable=True, name="scheduled_ema_decay_rate"
            )
            if steps is not None:
                if steps.dtype in INTEGERS:
                    warn_user(
                        f"ExponentialMovingAverage: thres_steps {steps.name!r} is an integer, so the decay "
                        f'stays at {self._decay}; pass layers.cast({steps.name}, "float32")'
                    )
                early = (steps + 1.0) / (steps + 10.0)
                limit = _create_constant_like(early, self._decay)
                with Switch() as switch:
                    with switch.case(early < limit):
                        assign(early, output=decay)
                    with switch.default():
                        assign(np.array([self._decay], "float32"), output=decay)
        return decay

    def _create_average(self, param: Parameter) -> Variable:
        return create_global_var(
            shape=param.shape,
            value=0.0,
            dtype=param.dtype,
            persistable=True,
            name=unique_name.generate(f"{self._name}{param.name}_ema"),
        )

    def _build_apply(self, block: Block) -> None:
        """Append operators that copy every parameter and overwrite it by the corrected average."""
        step = create_global_var([1], 0, "int64", persistable=True, name=_COUNTER)
        step = emit("cast", {"X": step}, {"in_dtype": int(step.dtype), "out_dtype": 5}, dtype="float32")
        decay = block._clone_variable(self._decay_var)
        faded = elementwise_pow(decay, step)
        for param, copy in self._params_tmps:
            value = block._clone_variable(param)
            assign(value, output=block._clone_variable(copy))
            average = block._clone_variable(self._ema_vars[param.name])
            if not self._stores_corrected:
                assign(average, output=value)
            with Switch() as switch, switch.case(step > 0.0):
                assign(average / (1.0 - faded), output=average if self._stores_corrected else value)
            if self._stores_corrected:
                assign(average, output=value)


def _create_constant_like(variable: Variable, value: float) -> Variable:
    """Return a temporary of shape ``[1]`` that holds ``value`` in the dtype of the variable."""
    out = variable.block.create_var(name=unique_name.generate("tmp"), dtype=variable.dtype)
    variable.block.append_op(
        type="fill_constant",
        outputs={"Out": out},
        attrs={"shape": [1], "dtype": int(variable.dtype), "value": value, "force_cpu": False},
    )
    return out
