"""The end of a load: put its values into the scope at once, and report them and changed learning rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard
from weakref import ref

import numpy as np

from paddlelike.core import LoDTensor, Scope, ScopeVariable, SelectedRows, global_scope
from paddlelike.framework import Program
from paddlelike.io.contents.interface import Reading, Value
from paddlelike.io.contents.lazy import MappedTensor
from paddlelike.io.incremental import State, get_array, ledger
from paddlelike.io.load.values import make_constant
from paddlelike.io.planning.load_plan import LoadPlan, Row
from paddlelike.io.report import LoadReport, Moved, make_moved
from paddlelike.storage.location import Location

if TYPE_CHECKING:
    from paddlelike.ops.kernels.growing_rows import GrowingRows

States = dict[ScopeVariable, State]


def _is_growing(value: object) -> TypeGuard[GrowingRows]:
    from paddlelike.ops.kernels.growing_rows import GrowingRows  # late: few programs have such tables

    return isinstance(value, GrowingRows)


def commit_values(plan: LoadPlan, values: Sequence[Value]) -> tuple[dict[str, Moved], States]:
    """Put the values into the scope; return the report's entries, and the states of the variables. This
    cannot fail; an interrupt is raised when all values are in place.
    """
    scope = global_scope()
    filled = [
        (scope.find_var(fill.variable.name) or scope.var(fill.variable.name), LoDTensor(make_constant(fill)))
        for fill in plan.fills
    ]
    holders = [scope.find_var(step.variable.name) or scope.var(step.variable.name) for step in plan.steps]
    named = list(zip(holders, values, strict=True))
    moved, states = {}, {}
    for holder, value in named:
        array = value._array if isinstance(value, LoDTensor) else value.held_array
        assert array is not None
        moved[holder.name] = make_moved(array.dtype, array.shape, holder.is_initialized())

    def assign() -> None:
        for holder, value in (*named, *filled):
            old = holder.value
            holder.origin = plan.source
            # Later writes by other threads do not count as loaded.
            if type(old) is type(value) is LoDTensor:  # references to the tensor see its new value
                array = value._array
                assert array is not None
                states[holder] = State(holder.version + 1, ref(array))
                old.adopt(array, value._lod)
                continue
            states[holder] = State(holder.version + (old is not value), ref(get_array(value)))
            if type(value) is SelectedRows and _is_growing(old):
                old.adopt(value.row_array, value.held_array)  # its rule lets it grow further
            elif old is not value:
                holder.set_value(value)

    try:
        assign()
    except BaseException:
        assign()
        raise
    return moved, states


def record_loaded(where: Location, stamp: object, plan: LoadPlan, states: States) -> None:
    """Record in the ledger which variables hold exactly the values in the files of their names."""
    names = {step.variable.name for step in plan.steps if step.recipe is None}
    same = {
        holder: state
        for holder, state in states.items()
        if holder.name in names and not isinstance(holder.value, MappedTensor)
    }
    ledger.note_loaded(where, stamp, same)


def make_report(plan: LoadPlan, reading: Reading, moved: dict[str, Moved], verified: bool) -> LoadReport:
    """Return the report of a load that was carried out."""
    notes = [
        f"{held.name}: {held.header.surplus} bytes after the tensor were ignored"
        for step in plan.steps
        for held in step.held
        if held.header.surplus and held.size
    ]
    if reading.unaligned:
        notes.append(
            f"{reading.unaligned} of {reading.mapped} mapped values do not begin at a multiple of their "
            "element's size: each is copied when it is first used"
        )
    by_kind: dict[str, list[Row]] = {}
    for row in plan.others:
        by_kind.setdefault(row.what, []).append(row)

    def names(what: str) -> tuple[str, ...]:
        return tuple(row.variable for row in by_kind.get(what, ()) if row.variable is not None)

    return LoadReport(
        source=plan.source,
        loaded=moved,
        missing=names("missing"),
        unexpected=tuple(row.file for row in by_kind.get("not requested", ()) if row.file is not None),
        notes=(*notes, *reading.notes, *plan.notes),
        misfits={row.variable: row.why for row in by_kind.get("does not fit", ()) if row.variable},
        renamed={
            step.variable.name: " + ".join(step.recipe.files)
            for step in plan.steps
            if step.recipe is not None and step.recipe.files != (step.variable.name,)
        },
        skipped=names("skip"),
        kept=names("keep"),
        initialized=names("init"),
        verified=verified,
        mapped=reading.mapped,
    )


def find_initial_rates(program: Program, scope: Scope) -> dict[str, float]:
    """Return by name the learning rates of a program that still have the value from the startup program."""
    names = {
        name
        for block in program.blocks
        for op in block.ops
        for name in op.inputs.get("LearningRate", ())
        if (variable := block._find_var_recursive(name)) is not None and variable.persistable
    }
    rates = {}
    for name in sorted(names):
        holder = scope.find_var(name)
        value = None if holder is None or holder.origin is not None else _get_scalar(holder.value)
        if value is not None:
            rates[name] = value
    return rates


def name_changed_rates(before: Mapping[str, float], loaded: Iterable[str], scope: Scope) -> list[str]:
    """Return a line for every loaded learning rate that differs from the previous one."""
    lines = []
    for name in loaded:
        holder = scope.find_var(name) if name in before else None
        value = None if holder is None else _get_scalar(holder.value)
        if value is not None and value != before[name]:
            was = f"the startup program had set {before[name]:.6g}"
            lines.append(f"learning rate {name}: {value:.6g} was loaded, {was}")
    return lines


def _get_scalar(value: object) -> float | None:
    """Return the number in a tensor with one element, else None."""
    array = value.held_array if isinstance(value, LoDTensor) else None
    if array is None or np.size(array) != 1:
        return None
    return float(np.reshape(array, -1)[0])
