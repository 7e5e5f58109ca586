"""HTML for notebooks of programs, values, reports, plans and differences."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, ScopeVariable, SelectedRows
from paddlelike.errors import ExtraMissingError
from paddlelike.executor import Executor
from paddlelike.framework import Parameter, Program, Variable, variable_kind
from paddlelike.inspection.diagnosis import Diagnosis
from paddlelike.inspection.difference import Difference
from paddlelike.inspection.inspect import Inspection
from paddlelike.inspection.layers import LayerTable, list_layers
from paddlelike.inspection.statistics import Statistics, summarize
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.report import LoadReport, Moved, SaveReport
from paddlelike.io.training_log import TrainingLog
from paddlelike.param_attr import ParamAttr
from paddlelike.storage.verification import Verification
from paddlelike.view.curves import format_svg
from paddlelike.view.elements import Html, format_details, format_heading, format_lines, format_table, join


@singledispatch
def format_html(shown: object) -> Html:
    """Return an object as HTML without scripts; texts that come from files are escaped.

    >>> format_html(LoDTensor(np.float32([1, 2]))).startswith("<div><div><b>LoDTensor</b>")
    True
    """
    return format_lines([repr(shown)])


@format_html.register
def _(program: Program) -> Html:
    variables = [
        (variable_kind(v), v.name, v.dtype.name, list(v.shape))
        for v in sorted(program.list_vars(), key=lambda v: not v.persistable)
    ]
    return join(
        format_heading("Program", repr(program)[len("<Program: ") : -1]),
        _format_layers(list_layers(program)),
        format_details("Variables", format_table(("kind", "name", "type", "shape"), variables)),
    )


@format_html.register
def _(table: LayerTable) -> Html:
    return _format_layers(table)


@format_html.register
def _(variable: Variable) -> Html:
    rows: list[tuple[str, Any]] = [
        ("type", variable.dtype.name),
        ("shape", list(variable.shape)),
        ("persistable", variable.persistable),
        ("gradient", "stops here" if variable.stop_gradient else "flows"),
    ]
    if variable.lod_level:
        rows.append(("LoD levels", variable.lod_level))
    if isinstance(variable, Parameter):
        rows.append(("trainable", variable.trainable))
    writers = [op.type for op in variable.block.ops if variable.name in op.output_arg_names]
    readers = [op.type for op in variable.block.ops if variable.name in op.input_arg_names]
    rows += [("written by", ", ".join(writers) or "no operator"), ("read by", ", ".join(readers) or "none")]
    return join(format_heading(variable_kind(variable).capitalize(), variable.name), format_table((), rows))


@format_html.register
def _(tensor: LoDTensor) -> Html:
    if tensor.held_array is None:
        return format_heading("LoDTensor", "empty")
    lod = f", LoD {_shorten(tensor.lod())}" if tensor.lod() else ""
    facts = f"{tensor.held_array.dtype} {tensor.shape()}, {tensor.held_array.nbytes:,} bytes{lod}"
    return join(format_heading("LoDTensor", facts), _format_values(tensor.held_array))


@format_html.register
def _(rows: SelectedRows) -> Html:
    ids = np.array2string(rows.row_array, separator=", ", threshold=20)
    facts = f"{len(rows.row_array)} of {rows.height()} rows: {ids}"
    values = Html("") if rows.held_array is None else _format_values(rows.held_array)
    return join(format_heading("SelectedRows", facts), values)


@format_html.register
def _(holder: ScopeVariable) -> Html:
    origin = f", loaded from {holder.origin}" if holder.origin else ""
    return join(format_heading(holder.name, f"written {holder.version} times{origin}"), _show(holder.value))


@format_html.register
def _(scope: Scope) -> Html:
    names = scope.local_var_names()
    rows = [(name, *_describe_value(scope.var(name).value)) for name in names]
    inside = " inside of another" if scope.parent is not None else ""
    facts = f"{len(names)} variables{inside}"
    return join(format_heading("Scope", facts), format_table(("name", "kind", "type", "shape"), rows))


@format_html.register
def _(attr: ParamAttr) -> Html:
    rows = [(name, value) for name, value in vars(attr).items()]
    return join(format_heading(type(attr).__name__), format_table((), rows))


@format_html.register
def _(executor: Executor) -> Html:
    return format_heading("Executor", repr(executor)[len("Executor(") : -1])


@format_html.register
def _(report: LoadReport) -> Html:
    return join(*_format_verdict("loaded", report), _format_moved(report.loaded))


@format_html.register
def _(report: SaveReport) -> Html:
    return join(*_format_verdict("saved", report), _format_moved(report.saved))


@format_html.register
def _(plan: LoadPlan) -> Html:
    rows = [
        (row.what, row.variable or "", row.file or "", _facts(row.wants), _facts(row.has), row.why)
        for row in sorted(plan.rows, key=lambda row: row not in plan.problems)
    ]
    titles = ("", "variable", "file", "program wants", "file has", "why")
    proposals = [(one.file, one.variable) for one in plan.proposals]
    return join(
        format_heading("Plan of a load", repr(plan)[len("<LoadPlan: ") : -1]),
        format_table(titles, rows),
        format_details("Proposed renames", format_table(("file", "variable"), proposals)),
        format_lines([f"hint: {plan.hint}"]) if plan.hint else Html(""),
    )


@format_html.register
def _(log: TrainingLog) -> Html:
    curves = log.curves()
    rows = [
        (name, len(one.steps), one.steps[-1], _number(one.values[-1]), _number(min(one.values)))
        for name, one in curves.items()
    ]
    heading = format_heading("TrainingLog", f"{log.path}, restarts: {len(log.restarts())}")
    table = format_table(("value", "steps", "last step", "last", "smallest"), rows)
    try:
        picture = Html(format_svg(log)) if curves else Html("")
    except ExtraMissingError as error:
        picture = format_lines([str(error)])
    return join(heading, table, picture)


@format_html.register
def _(verification: Verification) -> Html:
    return join(*_format_verdict("verified", verification))


@format_html.register
def _(difference: Difference) -> Html:
    rows = [
        (one.name, one.what, one.left, one.right, _number(one.norm), _number(one.relative), one.elements)
        for one in difference.changed
    ]
    titles = ("changed", "what", "left", "right", "norm", "relative", "elements")
    other = [("added", name) for name in difference.added]
    other += [("removed", name) for name in difference.removed]
    other += [("renamed", f"{left} to {right}") for left, right in difference.renamed]
    return join(
        format_heading("Difference", repr(difference)[len("<Difference: ") : -1]),
        format_table(titles, rows),
        format_table(("", "name"), other),
        format_details("Operators", format_lines(difference.operators) if difference.operators else ""),
    )


@format_html.register
def _(found: Inspection) -> Html:
    titles = ("name", "role", "type", "shape", "bytes", "mean", "std", "minimum", "maximum", "")
    rows = []
    for one in found.variables:
        numbers = one.statistics or Statistics(0)
        cells = map(_number, (numbers.mean, numbers.std, numbers.minimum, numbers.maximum))
        remark = one.problem or ", ".join(numbers.flags)
        rows.append((one.name, one.role, one.dtype, list(one.shape), f"{one.nbytes:,}", *cells, remark))
    return join(format_heading(found.title, found.path), format_table(titles, rows))


@format_html.register
def _(diagnosis: Diagnosis) -> Html:
    findings = [tuple(finding) for finding in diagnosis.findings]
    titles = tuple(diagnosis.findings[0]._fields) if findings else ()
    return join(
        format_heading(diagnosis.title, diagnosis.path + ("" if findings else ": nothing is wrong")),
        format_table(titles, findings),
        format_details("How to open it", format_table(("with", "call"), diagnosis.calls)),
    )


def _format_layers(table: LayerTable) -> Html:
    titles = ("layer", "operators", "output", "parameters", "reads")
    rows = [(cells[0].replace(" ", "\N{NO-BREAK SPACE}"), *cells[1:]) for cells in table.cells()]
    return Html(format_table(titles, rows) + format_lines(table.totals))


def _format_verdict(what: str, report: Any) -> tuple[Html, Html]:
    """Return a heading with the outcome, and the text of the report."""
    verdict = what if report else f"not everything is {what}"
    return format_heading(type(report).__name__, verdict), format_lines([str(report)])


def _format_moved(moved: dict[str, Moved]) -> Html:
    rows = [(name, one.dtype, list(one.shape), f"{one.nbytes:,}") for name, one in moved.items()]
    return format_details("Variables", format_table(("name", "type", "shape", "bytes"), rows))


def _format_values(array: Array) -> Html:
    """Return statistics of the elements, and a sample of them."""
    some = np.array2string(array, threshold=200, edgeitems=3, precision=4, max_line_width=100)
    if array.dtype.kind not in "biuf" or not array.size:
        return format_lines([some])
    facts = summarize(array)
    numbers = {"mean": facts.mean, "std": facts.std, "minimum": facts.minimum, "maximum": facts.maximum}
    line = [f"{name} {_number(value)}" for name, value in numbers.items() if value is not None]
    line += facts.flags
    return Html(format_lines([", ".join(line)]) + format_lines([some]))


def _show(value: object) -> Html:
    return Html("no value") if value is None else format_html(value)


def _describe_value(value: object) -> tuple[str, str, str]:
    """Return kind, element type and shape of a value, without reading it."""
    array = getattr(value, "array", None)
    if value is None or (isinstance(value, LoDTensor) and array is None):
        return "no value", "", ""
    if array is None:
        return type(value).__name__, "", str(len(value)) if isinstance(value, list) else ""
    return type(value).__name__, str(array.dtype), str(list(array.shape))


def _facts(facts: Any) -> str:
    return "" if facts is None else f"{facts[0].name} {list(facts[1])}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _shorten(lod: list[list[int]]) -> str:
    text = str(lod)
    return text if len(text) <= 80 else text[:77] + "..."
