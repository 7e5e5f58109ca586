"""Optimizer state on servers: which of it is cut like the parameter it belongs to.

Source: the table of Fluid 1.8.5; for the optimizers that it refuses (adadelta, lamb, ...) the shape of the
state decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import Variable

#: By optimizer the slots that are cut; its other state is whole on every server.
_CUT = {
    "adagrad": ("Moment",),
    "adam": ("Moment1", "Moment2"),
    "adamax": ("Moment", "InfNorm"),
    "decayed_adagrad": ("Moment",),
    "ftrl": ("SquaredAccumulator", "LinearAccumulator"),
    "lars_momentum": ("Velocity",),
    "momentum": ("Velocity",),
    "rmsprop": ("Moment", "MeanSquare"),  # and MeanGrad where it is used
}
_NO_STATE = ("Param", "Grad", "LearningRate", "Beta1Tensor", "Beta2Tensor")


def yield_state(op: Operator, block: Block) -> Iterator[tuple[str, Variable]]:
    """Yield the slots of an update operator that hold state, and the whole variables in them."""
    for slot, names in op.inputs.items():
        if slot not in _NO_STATE and names:
            yield slot, block.var(names[0])


def shape_on_server(op: Operator, slot: str, whole: Variable, cut: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a state variable whose parameter has shape ``cut`` on a server."""
    if op.type in _CUT:
        used = slot in _CUT[op.type] or (slot == "MeanGrad" and op.attrs["centered"])
        return cut if used else tuple(whole.shape)
    is_like_parameter = len(whole.shape) == len(cut) and whole.shape[1:] == cut[1:] and whole.shape != (1,)
    return cut if is_like_parameter else tuple(whole.shape)
