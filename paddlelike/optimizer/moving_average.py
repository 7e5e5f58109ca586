"""ExponentialMovingAverage: evaluate with parameters that forget old steps slowly."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from paddlelike import unique_name
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.guards import default_main_program, name_scope, program_guard
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.layers.checks import INTEGERS
from paddlelike.layers.control.branches import Switch
from paddlelike.layers.control.step_counter import autoincreased_step_counter
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.creation import assign, create_global_var
from paddlelike.optimizer.model_average import restoring, with_copies

__all__ = ["ExponentialMovingAverage"]

_COUNTER = "@EMA_STEP_COUNTER@"


class ExponentialMovingAverage:
    """``average = decay * average + (1 - decay) * parameter`` for every parameter, at every step.

    ``update`` is called once, after ``minimize``; ``with ema.apply(exe):`` runs something on the averages,
    corrected for their start at zero: ``average / (1 - decay^steps)``. The stored averages do not change
    thereby, so that ``apply`` may be used again and again (Fluid 1.8 stores the corrected ones, and is wrong
    from the second time on). Parameters with ``do_model_average=False`` are left out.

    Parameters
    ----------
    decay
        How much of the average is kept at a step.
    thres_steps
        A variable of shape ``[1]`` that counts steps: the decay is then at most
        ``(thres_steps + 1) / (thres_steps + 10)``. It should be float32; that of an integer is 0, as in
        Fluid, and then has no effect.
    name
        Put in front of the names of the averages.
    """

    def __init__(
        self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None
    ) -> None:
        self._decay = decay
        self._name = "" if name is None else name
        self._decay_var = self._scheduled_decay(thres_steps)
        self._params_tmps = with_copies(default_main_program(), ".ema_tmp", self._name)
        self._ema_vars = {}
        for param, copy in self._params_tmps:
            with param.block.program._optimized_guard([param, copy]), name_scope("moving_average"):
                self._ema_vars[param.name] = self._create_average(param)
        self.apply_program = Program()
        with program_guard(self.apply_program):
            self._build_apply(self.apply_program.global_block())
        self.restore_program = restoring(self._params_tmps)

    def update(self) -> None:
        """Append the operators that take one step of the averages to the default main program."""
        autoincreased_step_counter(counter_name=_COUNTER)
        decay = self._decay_var
        for param, copy in self._params_tmps:
            with param.block.program._optimized_guard([param, copy]), name_scope("moving_average"):
                average = self._ema_vars[param.name]
                assign(average * decay + param * (1 - decay), output=average)

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Put the averages in place of the parameters inside the ``with`` block.

        ``need_restore=False`` leaves them there; :meth:`restore` takes the parameters back later.
        """
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Take the parameters back."""
        executor.run(self.restore_program)

    def _scheduled_decay(self, steps: Variable | None) -> Variable:
        """The decay's variable, and the operators that change it with ``steps``."""
        with default_main_program()._lr_schedule_guard():
            decay = create_global_var(
                [1], self._decay, "float32", persistable=True, name="scheduled_ema_decay_rate"
            )
            if steps is not None:
                if steps.dtype in INTEGERS:
                    warnings.warn(
                        f"ExponentialMovingAverage: thres_steps {steps.name!r} is an integer, so the decay "
                        f'stays at {self._decay}; pass layers.cast({steps.name}, "float32")',
                        stacklevel=3,
                    )
                early = (steps + 1.0) / (steps + 10.0)
                limit = _constant_like(early, self._decay)
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
        """Keep every parameter in its copy, and write the corrected average over it."""
        step = create_global_var([1], 0, "int64", persistable=True, name=_COUNTER)
        step = emit("cast", {"X": step}, {"in_dtype": int(step.dtype), "out_dtype": 5}, dtype="float32")
        decay = block._clone_variable(self._decay_var)
        faded = emit("elementwise_pow", {"X": decay, "Y": step})
        for param, copy in self._params_tmps:
            value = block._clone_variable(param)
            assign(value, output=block._clone_variable(copy))
            average = block._clone_variable(self._ema_vars[param.name])
            assign(average, output=value)
            with Switch() as switch, switch.case(step > 0.0):
                assign(average / (1.0 - faded), output=value)


def _constant_like(variable: Variable, value: float) -> Variable:
    """A temporary of shape ``[1]`` that holds ``value`` as the variable's dtype can."""
    out = variable.block.create_var(name=unique_name.generate("tmp"), dtype=variable.dtype)
    variable.block.append_op(
        type="fill_constant",
        outputs={"Out": out},
        attrs={"shape": [1], "dtype": int(variable.dtype), "value": value, "force_cpu": False},
    )
    return out
