"""Loss functions and metrics that a file keeps as one operation; most are saved as blocks of simpler ones."""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import Step, Value, reads


def _sum(step: Step, x: Variable) -> Variable:
    """Return the sum over the last dim, which stays as 1."""
    return step.reduce("Sum", x, -1)


def _check_rows(step: Step, *values: Value) -> list[Variable]:
    if any(value.rank != 1 for value in values):
        step.refuse("its inputs are not vectors")
    return [value.variable for value in values]


@reads("CosDistance")
def _read_cos_distance(step: Step) -> Value:
    x, y = _check_rows(step, step.value(), step.value(1))
    lengths = [step.unary("sqrt", _sum(step, step.unary("square", one))) for one in (x, y)]
    product = _sum(step, step.binary("elementwise_mul", x, y))
    out = step.binary("elementwise_div", product, step.binary("elementwise_mul", *lengths))
    like = next((value for value in step.values if value.dynamic), step.value())
    return step.give(step.reshape(like._replace(variable=out, rank=1), []), like, 0)


@reads("SquaredError")
def _read_squared_error(step: Step) -> Value:
    x, y = _check_rows(step, step.value(), step.value(1))
    return step.give(_sum(step, step.unary("square", step.binary("elementwise_sub", x, y))), rank=1)


@reads("CrossEntropyWithSoftmax")
def _read_cross_entropy(step: Step) -> Value:
    """Compute ``logsumexp(z) - y z``, which differs from Fluid's if the labels do not add up to 1."""
    labels, z = _check_rows(step, step.value(), step.value(1))
    whole = step.log_sum(z, [1])
    hit = _sum(step, step.binary("elementwise_mul", labels, z))
    return step.give(step.binary("elementwise_sub", whole, hit), rank=1)


@reads("Logistic")
def _read_logistic(step: Step) -> Value:
    """Compute the sum of ``-(y log p + (1 - y) log(1 - p))``."""
    labels, p = _check_rows(step, step.value(), step.value(1))
    hit = step.binary("elementwise_mul", labels, step.unary("log", p))
    rest = step.unary("log", step.scale(p, -1, 1))
    miss = step.binary("elementwise_mul", step.scale(labels, -1, 1), rest)
    return step.give(step.scale(_sum(step, step.binary("elementwise_add", hit, miss)), -1), rank=1)


@reads("ClassificationError")
def _read_classification_error(step: Step) -> Value:
    """Return 1 where the largest elements have different indexes, else 0."""
    rows = _check_rows(step, step.value(), step.value(1))
    if len(step.values) > 2:
        step.refuse("it compares more classes than the best one")
    attrs = {"axis": -1, "dtype": int(VarType.INT64)}
    best = [step.emit("arg_max", {"X": one}, attrs, dtype="int64") for one in rows]
    wrong = step.cast(step.binary("not_equal", *best, dtype="bool"), rows[0].dtype)
    return step.give(step.reshape_all(wrong, [-1, 1]), rank=1)
