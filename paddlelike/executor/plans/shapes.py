"""Values of which later operators read shape and dtype alone: their memory is released, the shape stays."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.executor.plans.frame import Frame, Step

__all__ = ["hollow_after"]

_SMALL: Final = 16 << 10  # bytes; smaller arrays stay as they are


def hollow_after(step: Step, positions: tuple[int, ...]) -> Step:
    """Return a step that leaves arrays without memory of their own at some positions.

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
            if type(value) is np.ndarray and value.nbytes > _SMALL:
                values[position] = np.broadcast_to(np.zeros((), value.dtype), value.shape)

    binding = step.binding and step.binding._replace(hollow=positions)
    return step._replace(run=run, binding=binding)
