"""Running the steps of a plan, and what to say when one fails."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import (
    EnforceNotMet,
    EOFException,
    NotInitializedError,
    OperatorError,
    PaddlelikeError,
    UnsupportedError,
)
from paddlelike.executor import profile
from paddlelike.executor.plan import Frame, Step, missing_inputs, not_initialized
from paddlelike.framework.environment import flag
from paddlelike.framework.operator import Operator

__all__ = ["run_steps"]


def run_steps(frame: Frame, steps: list[Step]) -> None:
    """Run the steps in order. Raises OperatorError with the operator, its variables and the user's line."""
    step = None
    try:
        with np.errstate(all="ignore"):  # as in C: log(0) is -inf, 1 / 0 inf, without a word
            if profile.current is not None:
                for step in steps:
                    with profile.current.event(step.op.type):
                        step.run(frame)
            elif flag("FLAGS_check_nan_inf"):
                for step in steps:
                    step.run(frame)
                    _check_finite(frame, step.op)
            else:
                for step in steps:
                    step.run(frame)
    except EOFException:
        raise
    except Exception as error:
        assert step is not None
        raise _explained(frame, step.op, error) from error


def _check_finite(frame: Frame, op: Operator) -> None:
    for name in op.output_arg_names:
        value = frame.values[frame.plan.number(op.block, name)]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = np.argwhere(~np.isfinite(value))
            raise OperatorError(
                f"operator {op.type!r}: output {name!r} holds {value[tuple(bad[0])]} at {bad[0].tolist()} "
                f"({len(bad)} of {value.size} elements are not finite){_where(op)}",
                hint="the flag FLAGS_check_nan_inf asks for this error",
            )


def _explained(frame: Frame, op: Operator, error: Exception) -> Exception:
    """The error to raise for one that came out of an operator."""
    block = op.block
    if isinstance(error, OperatorError):  # from a sub-block: told already
        return error
    where = _where(op)
    if not isinstance(error, UnsupportedError | NotInitializedError):
        try:
            missing = missing_inputs(frame, op, block)
        except EnforceNotMet:
            missing = []
        if missing:
            error = not_initialized(missing, op, block)
    if isinstance(error, NotInitializedError | UnsupportedError):
        return type(error)(f"{_text(error)}{where}", hint=error.hint)
    variables = "".join(
        f"\n    {slot} = {', '.join(_described(frame, op, name) for name in names)}"
        for slot, names in op.inputs.items()
        if names
    )
    text = _text(error) if isinstance(error, EnforceNotMet) else f"{type(error).__name__}: {error}"
    return OperatorError(
        f"operator {op.type!r} -> {op.output_arg_names} failed: {text}\n  inputs{variables}{where}",
        hint=getattr(error, "hint", None),
    )


def _text(error: Exception) -> str:
    return error.message if isinstance(error, PaddlelikeError) else str(error)


def _where(op: Operator) -> str:
    """Where the operator was made, by us or, as its program says, in a script of real Paddle."""
    if op.line:
        return f"\n  made at {op.line}"
    stack = op.attrs.get("op_callstack") or []
    return f"\n  made at {stack[0].strip()}" if stack else ""


def _described(frame: Frame, op: Operator, name: str) -> str:
    number = frame.plan.number(op.block, name)
    value = frame.values[number] if number < len(frame.values) else None
    if isinstance(value, np.ndarray):
        return f"{name}: {value.dtype}{list(value.shape)}"
    return f"{name}: {'no value' if value is None else type(value).__name__}"
