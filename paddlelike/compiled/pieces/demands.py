"""What operators ask of the piece that they are in: random values, exact sizes, shapes that are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

from paddlelike.compiled.lowerings import find_lowering
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import registry


def draws_values(plan: CompiledPlan, op: Operator) -> bool:
    """Return whether an operator, or one of its blocks, has random values, which the host draws."""
    cls = registry.find_for_version(op.type, plan.program.paddle_version)
    row = None if cls is None else find_lowering(cls)
    inside = (inner for block in op.sub_blocks() for inner in plan.program.blocks[block].ops)
    return (row is not None and row.draws) or any(draws_values(plan, inner) for inner in inside)


def pads_to_longest(op: Operator) -> bool:
    """Return whether a result of an operator has the size of the longest sequence."""
    return op.type == "sequence_pad" and op.attrs.get("padded_length", -1) < 0


def counts_rows(op: Operator) -> bool:
    """Return whether the shape of a result, or a constant, depends on how many rows there are in use."""
    if op.type != "reshape2":
        return op.type in ("sequence_reshape", "shape")
    x = op.block._find_var_recursive(op.input("X")[0])
    dims, shape = [] if x is None else x.shape[1:], list(op.attrs.get("shape", ()))
    if not dims or -1 in dims or shape[:1] != [-1]:
        return False
    # A zero stands for the dim of X.
    found = [dims[axis - 1] if n == 0 and axis <= len(dims) else n for axis, n in enumerate(shape[1:], 1)]
    return math.prod(found) != math.prod(dims)


def find_shapes_kept(plan: CompiledPlan, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Return the positions of XShape, arrays (0, *shape of X), each with that of X.

    Inside a piece they have the padding of X, which numpy must not see. That of ``cross_entropy2`` has the
    rows of X in front, and is cut as X is.
    """
    for step in plan.steps[start:stop]:
        if step.op.type == "cross_entropy2":
            continue
        for name, source in zip(step.op.output("XShape"), step.op.input("X"), strict=False):
            block = step.op.block
            yield plan.layout.get_position(block, name), plan.layout.get_position(block, source)


def is_sparse_variable(plan: CompiledPlan, positions: set[int]) -> bool:
    """Return whether a persistable among some positions holds SelectedRows, which stay on the host."""
    kept = plan.layout.persistables
    return any(n in kept and kept[n].type == VarType.SELECTED_ROWS for n in positions)
