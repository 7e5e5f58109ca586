"""Run the steps of a plan, and explain the error of a step that fails."""

from __future__ import annotations

import numpy as np

from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import (
    EnforceNotMet,
    EOFException,
    FaultError,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
    UnsupportedError,
)
from paddlelike.executor import profile
from paddlelike.executor.plans.batches import is_batched
from paddlelike.executor.plans.frame import Frame, Step
from paddlelike.framework.flags import flag
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.opdef import EMPTY, registry

__all__ = ["run_steps"]


def run_steps(frame: Frame, steps: list[Step]) -> None:
    """Run the steps in order.

    Raises OperatorError with the operator, its variables and the line of the user's script that created it;
    NotInitializedError for an input without a value; UnsupportedError, EOFException and FaultError as kernels
    raise them.
    """
    step = None
    try:
        with np.errstate(all="ignore"):  # as in C: log(0) is -inf and 1 / 0 is inf, without a warning
            if profile.current is not None:
                for step in steps:
                    with profile.current.measure(step.op.type):
                        step.run(frame)
            elif flag("FLAGS_check_nan_inf"):
                for step in steps:
                    step.run(frame)
                    _check_finite(frame, step.op)
            else:
                for step in steps:
                    step.run(frame)
    except (EOFException, FaultError):
        raise
    except Exception as error:
        assert step is not None
        _mark_written(frame)
        if is_batched(step.op.type):  # its error names the files
            raise
        raise _explain(frame, step.op, error) from error
    except BaseException:
        _mark_written(frame)
        raise


def _mark_written(frame: Frame) -> None:
    """Count every persistable of a failed run as written, because a kernel may have written part of it."""
    for holder in frame.holders.values():
        value = holder.value
        tensor = value.get_tensor() if isinstance(value, SelectedRows) else value
        if isinstance(tensor, LoDTensor):
            tensor.touch()


def _check_finite(frame: Frame, op: Operator) -> None:
    """Raise OperatorError when an output of ``op`` holds nan or inf."""
    for name in op.output_arg_names:
        value = frame.values[frame.layout.get_position(op.block, name)]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = np.argwhere(~np.isfinite(value))
            raise OperatorError(
                f"operator {op.type!r}: output {name!r} holds {value[tuple(bad[0])]} at {bad[0].tolist()} "
                f"({len(bad)} of {value.size} elements are not finite){_format_line(op)}",
                hint="the flag FLAGS_check_nan_inf asks for this error",
            )


def _explain(frame: Frame, op: Operator, error: Exception) -> Exception:
    """Return the error to raise for one that an operator raised."""
    block = op.block
    if isinstance(error, OperatorError):  # from a sub-block: explained already
        return error
    line = _format_line(op)
    if not isinstance(error, UnsupportedError | NotInitializedError):
        try:
            missing = _find_missing_inputs(frame, op, block)
        except EnforceNotMet:
            missing = []
        if missing:
            error = _explain_missing(missing, op, block)
    if isinstance(error, NotInitializedError | UnsupportedError):
        return type(error)(f"{_get_message(error)}{line}", hint=error.hint)
    variables = "".join(
        f"\n    {slot} = {', '.join(_describe(frame, op, name) for name in names)}"
        for slot, names in op.inputs.items()
        if names
    )
    text = _get_message(error) if isinstance(error, EnforceNotMet) else f"{type(error).__name__}: {error}"
    return OperatorError(
        f"operator {op.type!r} -> {op.output_arg_names} failed: {text}\n  inputs{variables}{line}",
        hint=getattr(error, "hint", None),
    )


def _get_message(error: Exception) -> str:
    return error.message if isinstance(error, PaddlelikeError) else str(error)


def _format_line(op: Operator) -> str:
    """Return the line that created an operator, also one of a script of real Paddle."""
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
    """Return the inputs of an operator that hold no value."""
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


def _explain_missing(names: list[str], op: Operator, block: Block) -> NotInitializedError:
    """Return the error for inputs without a value; its hint is the step that was left out."""
    first = block._find_var_recursive(names[0])
    if first is not None and first.persistable:
        hint = "run the startup program first (exe.run(fluid.default_startup_program())), or load the values"
    elif first is not None and (first.is_data or first.need_check_feed):
        hint = f"feed it: exe.run(..., feed={{{names[0]!r}: array}})"
    else:
        hint = "feed the data variables it is computed from"
    listed = ", ".join(repr(name) for name in names)
    return NotInitializedError(f"operator {op.type!r} reads {listed}, which hold no value yet", hint=hint)
