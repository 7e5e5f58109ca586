"""Values of which later operators read shape and dtype alone, and values that are reshaped in place.

The memory of the former is released, the shape stays. The latter: ``layers.reshape(x, shape, inplace=True)``
writes into the variable of ``x``. The gradient of an activation that computed it gets the value in the new
shape, and its gradient in the old one. As in Fluid, their elements meet in the order of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, Final

import numpy as np

from paddlelike.core.tensor import Array
from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import OpDef

SMALL: Final = 16 << 10  # bytes; smaller arrays stay as they are
_RESHAPES: Final = frozenset({"reshape", "reshape2"})


def hollow_after(step: Step, positions: tuple[int, ...]) -> Step:
    """Return a step that replaces the arrays at some positions by hollow ones.

    They have the shape and dtype of the values there, and one zero for all elements.
    """
    if not positions:
        return step
    run_before = step.run

    def run(frame: Frame) -> None:
        run_before(frame)
        values = frame.values
        for position in positions:
            value = values[position]
            if type(value) is np.ndarray and value.nbytes > SMALL:
                values[position] = make_hollow(value)

    binding = step.binding and step.binding._replace(hollow=positions)
    return step._replace(run=run, binding=binding)


def make_hollow(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array with the shape and dtype of another one, and one zero for all elements."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


def find_reshaped(ops: Iterable[Operator]) -> set[str]:
    """Return the variables that a reshape overwrites with themselves."""
    return {op.input("X")[0] for op in ops if op.type in _RESHAPES and op.input("X") == op.output("Out")}


def take_in_shape(
    kernel: Callable[..., Any], cls: type[OpDef], op: Operator, reshaped: Set[str]
) -> Callable[..., Any]:
    """Return a kernel that gets its forward value reshaped to the shape of the gradient."""
    if not cls.by_element or cls.forward_of is None or reshaped.isdisjoint(op.input_arg_names):
        return kernel
    if len(cls.input_slots) != 2:
        return kernel

    def run(value: Array, d_out: Array) -> object:
        same_size = value.shape != d_out.shape and value.size == d_out.size
        return kernel(value.reshape(d_out.shape) if same_size else value, d_out)

    return run
