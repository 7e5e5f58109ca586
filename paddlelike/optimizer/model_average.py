"""ModelAverage: evaluation with the mean of the parameters over many steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paddlelike import unique_name
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.guards import default_main_program, name_scope, program_guard
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import assign
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["ModelAverage"]

_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


class ModelAverage(Optimizer):
    """Means of the parameters over a window of the last steps (operator ``average_accumulates``).

    Create it after ``minimize``; inside of ``with average.apply(exe):`` the parameters are the means.
    Parameters with ``do_model_average=False`` are not averaged.

    Parameters
    ----------
    average_window_rate
        The length of the window, as a fraction of the steps so far, ...
    min_average_window, max_average_window
        ... within these limits.
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
        """Replace the parameters by the means inside of the ``with`` block.

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
    """Return every parameter to average with a new variable for a copy of its value."""
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
