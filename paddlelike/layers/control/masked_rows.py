"""Splitting the rows of a batch by a mask, and merging them again."""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import BOOL, check_variable
from paddlelike.layers.emit import emit, emit_all


def split_lod_tensor(input: Variable, mask: Variable, level: int = 0) -> tuple[Variable, Variable]:
    """Return the rows (or sequences) of ``input`` where ``mask`` is true, and the others.

    Raises TypeError unless ``input`` and ``mask`` are variables of supported dtypes.
    """
    check_variable("split_lod_tensor", "input", input)
    check_variable("split_lod_tensor", "mask", mask, BOOL)
    inputs = {"X": input, "Mask": mask}
    outputs = {"OutTrue": input.dtype, "OutFalse": input.dtype}
    true, false = emit_all("split_lod_tensor", inputs, outputs, {"level": level})
    return true, false


def merge_lod_tensor(
    in_true: Variable, in_false: Variable, x: Variable, mask: Variable, level: int = 0
) -> Variable:
    """Return the rows (or sequences) of two tensors in the places where ``mask`` is true and false.

    Raises TypeError unless the inputs are variables of supported dtypes.
    """
    inputs = {"X": x, "Mask": mask, "InTrue": in_true, "InFalse": in_false}
    for name, value in inputs.items():
        check_variable("merge_lod_tensor", name, value)
    return emit("merge_lod_tensor", inputs, {"level": level}, dtype=in_true.dtype)
