"""What cannot be part of a compiled piece: numpy runs it, and the reason is shown by ``explain``."""

from __future__ import annotations

__all__ = ["LoweringError", "RefusedError"]


class LoweringError(Exception):
    """XLA cannot be told an operator with these inputs and attributes; the text says why."""


class RefusedError(Exception):
    """An operator, by its index in the plan, that cannot be part of a compiled piece, and why."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason
