"""Gradients: how ``<type>_grad`` is derived from an operator, and the operators of a backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from paddlelike.core.roles import OpRole
from paddlelike.framework.opdef.slots import OpView, grad_name, grad_names

OWN: Final = "own"  # see Gradient


class Gradient:
    """The rule by which ``<type>_grad`` is derived from an operator.

    ``inputs`` are the slots that ``backward`` takes, by position. Each is a slot of the operator, or an
    output slot with ``@GRAD``; a mark such as ``"Mean?"`` replaces the operator's mark. ``outputs`` are the
    slots it returns, by default the gradient of every forward input slot in order. ``lod`` is the slot whose
    LoD level the gradients get, or OWN for the level of each gradient's variable. ``lod_in_run`` is the slot
    whose LoD the gradients get in a run, if Fluid's kernels take another one ("" for none). Of the slots in
    ``shapes_of``, ``backward`` reads only shape and dtype. Unless it is ``traceable`` (see :class:`OpDef`),
    compiled programs differentiate the operator's formula. ``views`` says whether gradients may share memory
    with arguments of ``backward``; None means the same as for the operator's outputs.
    """

    def __init__(
        self,
        *inputs: str,
        outputs: Sequence[str] | None = None,
        copies_attrs: bool = True,
        lod: str | None = None,
        lod_in_run: str | None = None,
        views: bool | None = None,
        shapes_of: Sequence[str] = (),
        traceable: bool = True,
    ) -> None:
        self.inputs = inputs
        self.outputs = None if outputs is None else tuple(outputs)
        self.copies_attrs = copies_attrs
        self.lod = lod
        self.lod_in_run = lod if lod_in_run is None else lod_in_run
        self.views = views
        self.shapes_of = tuple(shapes_of)
        self.traceable = traceable


class GradOp(NamedTuple):
    """An operator of the backward pass, before it is put into a block."""

    type: str
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    own_attrs: bool = False  # whether it inherits no op_namescope and the like from the forward operator


class BlockGradient(NamedTuple):
    """The gradient of a sub-block, as the gradient of its operator needs it."""

    block_index: int  # the block that receives the steps
    steps: list[GradOp]
    knows: Callable[[str], bool]  # whether a name means a variable of an outer or forward block
    exists: Callable[[str], bool]  # whether a gradient may have been computed before


def make_plain_op(
    type: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: dict[str, Any]
) -> GradOp:
    """Return an operator of the backward pass that is not the gradient of another operator.

    In Fluid such operators list their role before their device, gradient operators after it.
    """
    return GradOp(type, inputs, outputs, attrs | {"op_role": int(OpRole.Backward)}, own_attrs=True)


def derive_grad_op(op: OpView, type: str, slot: str = "X", index: int = 0, **attrs: Any) -> GradOp:
    """Return the operator ``type``, which computes the gradient of one input of ``op`` from the gradient of
    Out.
    """
    d_out = grad_names(op.output("Out"))
    d_x = [grad_name(op.input(slot)[index])]
    return GradOp(type, {"X": d_out}, {"Out": d_x}, attrs, own_attrs=True)
