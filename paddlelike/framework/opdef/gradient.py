"""Gradients: how ``<type>_grad`` is derived from an operator, and the operators of a backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["OWN", "BlockGradient", "GradOp", "Gradient"]

OWN: Final = "own"  # see Gradient


class Gradient:
    """How ``<type>_grad`` is made from an operator.

    ``inputs`` are the slots that ``backward`` takes, by position: slots of the operator, or of its
    outputs with ``@GRAD``; a mark of their own (``"Mean?"``) goes before the operator's. ``outputs``
    are the slots it returns, by default the gradient of every forward input slot in order. ``lod`` is
    the slot whose LoD level they take over, OWN when each takes that of what it is the gradient of.
    ``views``: gradients may share memory with what ``backward`` takes (None: as the operator's outputs do).
    """

    def __init__(
        self,
        *inputs: str,
        outputs: Sequence[str] | None = None,
        copies_attrs: bool = True,
        lod: str | None = None,
        views: bool | None = None,
    ) -> None:
        self.inputs = inputs
        self.outputs = None if outputs is None else tuple(outputs)
        self.copies_attrs = copies_attrs
        self.lod = lod
        self.views = views


class GradOp(NamedTuple):
    """An operator of the backward pass, before it is put into a block."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    own_attrs: bool = False  # True: does not inherit op_namescope and its like from the forward


class BlockGradient(NamedTuple):
    """The gradient of the sub-block of an operator, as far as its own gradient has to know it."""

    number: int  # of the block that the steps are put into
    steps: list[GradOp]
    knows: Callable[[str], bool]  # whether a name means a variable around that block, or of the forward one
    exists: Callable[[str], bool]  # whether a gradient has been computed before
