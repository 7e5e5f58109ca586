"""What cannot be part of a compiled piece: numpy runs it, and the reason is shown by ``explain``."""

from __future__ import annotations


class LoweringError(Exception):
    """XLA cannot be told an operator with these inputs and attributes; the text says why."""


class RefusedError(Exception):
    """An operator, by its index in the plan, that cannot be part of a compiled piece, and why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


class Uncovered(str):
    """The text of a check on values that a lowering does not cover: where it fails, numpy runs the operator.

    ``step`` is the index of the operator in the plan.
    """

    step: int

    def __new__(cls, reason: str, index: int) -> Uncovered:
        """Return the text with an index."""
        text = super().__new__(cls, reason)
        text.step = index
        return text
