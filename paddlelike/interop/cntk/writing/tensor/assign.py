"""assign."""

from __future__ import annotations

from paddlelike.interop.cntk.writing.graph import Step
from paddlelike.interop.cntk.writing.writers import writes


@writes("assign")
def _write_assign(step: Step) -> None:
    step.give("Out", step.unary("NoOp", step.ref()))
