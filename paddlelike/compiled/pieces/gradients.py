"""Gradient operators that are in another piece than their forward operators, so that results may be missing.

Values that numpy's gradient reads, such as the gates of `lstm`, may be missing because JAX keeps a lowering's
derivative instead. A gradient in another piece computes its forward operator again, if it has that operator's
inputs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from paddlelike.compiled.lowerings import Lowering, find_lowering
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.core import VarType
from paddlelike.executor.plans.frame import Frame
from paddlelike.framework import Operator
from paddlelike.framework.opdef import GRAD, OpDef, registry


def find_left_out(plan: CompiledPlan, steps: range, missing: Collection[int]) -> int | None:
    """Return a step whose result a later gradient needs, although the piece did not return that result."""
    for index in range(steps.stop, len(plan.steps)) if missing else ():
        found = _find_forward(plan, index)
        if found is None or found not in steps or not plan.reads[index] & plan.writes[found] & set(missing):
            continue
        cls = registry.find_or_none(plan.steps[index].op.type)
        row = None if cls is None else find_lowering(cls)
        if cls is None or cls.forward_of is None or row is None or not row.by_vjp:
            return found
        if not _is_repeatable(cls.forward_of, row, [slot.name for slot in cls.input_slots]):
            return found
    return None


def find_forward_for_numpy(plan: CompiledPlan, frame: Frame, index: int) -> int | None:
    """Return the step of the forward operator that numpy must run before a gradient."""
    missing = {n for n in plan.reads[index] if frame.values[n] is None}
    found = _find_forward(plan, index) if missing else None
    if found is None or not missing & plan.writes[found]:
        return None
    if plan.writes[found] & plan.layout.persistables.keys():
        return None  # it would change them twice
    return found if all(frame.values[n] is not None for n in plan.reads[found]) else None


def _is_repeatable(base: type[OpDef], row: Lowering, names: Collection[str]) -> bool:
    """Return whether a gradient operator with these slots can compute its forward operator again."""
    needed = {slot.name for slot in base.input_slots if not slot.optional} - row.without.keys()
    return not row.draws and needed <= set(names)


def _find_forward(plan: CompiledPlan, index: int) -> int | None:
    """Return the step whose results have the gradients that a gradient operator reads."""
    op = plan.steps[index].op
    cls = registry.find_or_none(op.type)
    if cls is None or cls.forward_of is None:
        return None
    base = cls.forward_of
    names = [name for slot in base.output_slots for name in op.input(slot.name + GRAD) if GRAD in name]
    wanted = {name.partition(GRAD)[0] for name in names}
    for place in range(index - 1, -1, -1):
        earlier = plan.steps[place].op
        if earlier.type == base.type and not wanted.isdisjoint(earlier.output_arg_names):
            return place
    return None


def draws_values(plan: CompiledPlan, op: Operator) -> bool:
    """Return whether an operator or one of its blocks uses random values, which the host draws."""
    cls = registry.find_for_version(op.type, plan.program.paddle_version)
    row = None if cls is None else find_lowering(cls)
    inside = (inner for block in op.sub_blocks() for inner in plan.program.blocks[block].ops)
    return (row is not None and row.draws) or any(draws_values(plan, inner) for inner in inside)


def pads_to_longest(op: Operator) -> bool:
    """Return whether a result of an operator has the size of the longest sequence."""
    return op.type == "sequence_pad" and op.attrs.get("padded_length", -1) < 0


def counts_rows(op: Operator) -> bool:
    """Return whether the shape of a result, or a constant, depends on the number of used rows."""
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
    """Return the positions of XShape, arrays (0, *shape of X), each with the position of X.

    Inside a piece they have the padding of X, which numpy must not see. The XShape of ``cross_entropy2`` has
    the rows of X, and is cut like X.
    """
    for step in plan.steps[start:stop]:
        if step.op.type == "cross_entropy2":
            continue
        for name, source in zip(step.op.output("XShape"), step.op.input("X"), strict=False):
            block = step.op.block
            yield plan.layout.get_position(block, name), plan.layout.get_position(block, source)


def is_sparse_variable(plan: CompiledPlan, positions: set[int]) -> bool:
    """Return whether one of these positions holds a persistable of SelectedRows, which stays on the host."""
    kept = plan.layout.persistables
    return any(n in kept and kept[n].type == VarType.SELECTED_ROWS for n in positions)
