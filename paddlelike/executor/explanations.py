"""Explain the error of an operator that fails in a run: its variables, its values, and the line that created
it.
"""

from __future__ import annotations

import re
import reprlib

import numpy as np

from paddlelike.core import Scope, VarType, convert_dtype
from paddlelike.errors import (
    EnforceNotMet,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
    ShapeError,
    UnsupportedError,
)
from paddlelike.executor.plans.frame import Frame
from paddlelike.framework import Block, Operator
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.hints import describe_shape, explain_missing_axis, explain_no_value
from paddlelike.framework.opdef import EMPTY, Spec, make_arguments, registry
from paddlelike.framework.passes.views import has_updates


def explain_error(frame: Frame, op: Operator, error: Exception) -> Exception:
    """Return the error to raise for an operator's error.

    An error of other code becomes its ``__cause__``; an error of our own checks becomes part of its text.
    """
    block = op.block
    if isinstance(error, OperatorError):  # from a sub-block: explained already
        return error
    line = format_line(op)
    # Operators that call other processes have inputs from there, and errors of their own.
    if not isinstance(error, UnsupportedError | NotInitializedError) and not registry.find(op.type).external:
        try:
            missing = _find_missing_inputs(frame, op, block)
        except EnforceNotMet:
            missing = []
        if missing:
            error = _explain_missing(missing, op, block, frame.scope)
    if isinstance(error, NotInitializedError | UnsupportedError):
        return type(error)(f"{_get_message(error)}{line}", hint=error.hint)
    variables = "".join(
        f"\n    {slot} = {', '.join(_describe(frame, op, name) for name in names)}"
        for slot, names in op.inputs.items()
        if names
    )
    misfit = _find_misfit(frame, op, error)
    flat = _find_wrong_rank(frame, op)
    hint = getattr(error, "hint", None)
    if flat is not None and isinstance(error, ValueError | IndexError | EnforceNotMet):
        text, hint = flat
    elif misfit is not None:
        text = misfit
    elif isinstance(error, EnforceNotMet):
        text = _get_message(error)
    else:
        text = f"{type(error).__name__}: {error}"
        cls = registry.find(op.type)
        misfits = ValueError | IndexError | TypeError | ZeroDivisionError
        if isinstance(error, misfits) and not cls.external:
            text = f"its inputs and attributes do not fit together ({text})"
            given = (f"{name}={reprlib.repr(op.attrs[name])}" for name in cls.attrs if name in op.attrs)
            hint = f"compare them with Paddle's documentation; given: {', '.join(given) or 'no attributes'}"
    explained = OperatorError(
        f"operator {op.type!r} -> {op.output_arg_names} failed: {text}\n  inputs{variables}{line}",
        hint=hint,
    )
    if misfit is None:
        explained.__cause__ = error.__cause__ if isinstance(error, PaddlelikeError) else error
    return explained


def _find_misfit(frame: Frame, op: Operator, error: Exception) -> str | None:
    """Return the error of an operator's shape rule for the actual values, if the rule refuses them.

    The error names variables instead of slots.
    """
    if isinstance(error, PaddlelikeError) or not isinstance(error, ValueError | IndexError):
        return None
    cls = registry.find(op.type)
    infer = getattr(cls, "infer", None)
    if infer is None:
        return None

    def find_spec(name: str) -> Spec:
        value = frame.values[frame.layout.get_position(op.block, name)]
        return Spec(value.shape, convert_dtype(value.dtype), 0)

    try:
        infer(*make_arguments(cls.input_slots, op.inputs, find_spec), **cls.make_infer_keywords(op.attrs))
    except ShapeError as refusal:
        single = {slot: names[0] for slot, names in op.inputs.items() if len(names) == 1}
        return re.sub(r"\b[A-Z]\w*\b", lambda found: single.get(found[0], found[0]), refusal.message)
    except Exception:  # values that are not arrays
        return None
    return None


def _find_wrong_rank(frame: Frame, op: Operator) -> tuple[str, str] | None:
    """Return the problem and the next step if an input was fed with another number of dims than declared."""
    for name in op.input_arg_names:
        variable = op.block._find_var_recursive(name)
        if variable is None or not variable.is_data or variable.lod_level:
            continue
        position = frame.layout.get_position(op.block, name)
        value = frame.values[position] if position < len(frame.values) else None
        if not isinstance(value, np.ndarray) or value.ndim == len(variable.shape):
            continue
        declared = describe_shape(variable.shape)
        hint = explain_missing_axis(variable, value.shape) or "reshape the array"
        if value.shape == tuple(variable.shape[1:]) and value.ndim > 1:
            hint += (
                f". Or, if {value.shape[0]} is the batch: layers.data puts a batch axis in front, so "
                f"declare layers.data({name!r}, {list(value.shape[1:])})"
            )
        return f"variable {name!r} has shape {declared}, the fed array has {list(value.shape)}", hint
    return None


def _get_message(error: Exception) -> str:
    return error.message if isinstance(error, PaddlelikeError) else str(error)


def format_line(op: Operator) -> str:
    """Return the line that created an operator, also for operators from real Paddle."""
    if op.line:
        return f"\n  created at {op.line}"
    stack = op.attrs.get("op_callstack") or []
    return f"\n  created at {stack[0].strip()}" if stack else ""


def _describe(frame: Frame, op: Operator, name: str) -> str:
    position = frame.layout.get_position(op.block, name)
    value = frame.values[position] if position < len(frame.values) else None
    if isinstance(value, np.ndarray):
        return f"{name}: {value.dtype}{list(value.shape)}"
    return f"{name}: {'no value' if value is None else type(value).__name__}"


def _find_missing_inputs(frame: Frame, op: Operator, block: Block) -> list[str]:
    """Return the inputs of an operator that have no value."""
    cls = registry.find(op.type)
    optional = {slot.name for slot in cls.input_slots if slot.optional}
    return [
        name
        for slot, names in op.inputs.items()
        for name in names
        if slot not in optional
        and "@GRAD" not in slot
        and name != EMPTY
        and not _is_holder(block, name)
        and frame.values[frame.layout.get_position(block, name)] is None
    ]


def _is_holder(block: Block, name: str) -> bool:
    """Return whether a variable has no value of its own: a reader, a list of feeds."""
    variable = block._find_var_recursive(name)
    return variable is not None and variable.type in HOLDERS


def _find_writers(name: str, block: Block) -> list[Operator]:
    """Return the operators of a program that write a variable."""
    return [op for one in block.program.blocks for op in one.ops if name in op.output_arg_names]


def _explain_missing(names: list[str], op: Operator, block: Block, scope: Scope) -> NotInitializedError:
    """Return the error for inputs without a value, with a hint at the missing step."""
    first = block._find_var_recursive(names[0])
    if first is not None and first.persistable:
        hint = explain_no_value(names, block.program, scope)
    elif first is not None and (first.is_data or first.need_check_feed):
        hint = f"feed it: exe.run(..., feed={{{names[0]!r}: array}})"
        if has_updates(block.program):
            hint += (
                "; program.clone(for_test=True) with use_prune=True computes the results that do not need it"
            )
    elif first is not None and first.type == VarType.LOD_TENSOR_ARRAY:
        hint = "write the element first with layers.array_write"
    elif any(one.attrs.get("is_test") for one in _find_writers(names[0], block)):
        hint = "take the gradient of the training program, not of its clone(for_test=True)"
    elif _find_writers(names[0], block):
        hint = "write it before this operator, as by layers.assign(value, variable): its own has not run"
    elif names[0].endswith("@GRAD"):
        hint = (
            "call program.clone(for_test=True) before minimize: the clone then has no operator that needs it"
        )
    else:
        hint = f"feed it: exe.run(..., feed={{{names[0]!r}: array}})"
    listed = ", ".join(repr(name) for name in names)
    holds = "holds" if len(names) == 1 else "hold"
    return NotInitializedError(f"operator {op.type!r} reads {listed}, which {holds} no value yet", hint=hint)
