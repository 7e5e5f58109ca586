"""Running the steps of a plan, and what to say when one fails."""

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
from paddlelike.executor.batches import is_batched
from paddlelike.executor.frame import Frame
from paddlelike.executor.plan import Step
from paddlelike.framework.environment import flag
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.opdef import EMPTY, registry

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
    except (EOFException, FaultError):
        raise
    except Exception as error:
        assert step is not None
        _count_writes(frame)
        if is_batched(step.op.type):  # what reads and writes files says by itself which
            raise
        raise _explained(frame, step.op, error) from error
    except BaseException:
        _count_writes(frame)
        raise


def _count_writes(frame: Frame) -> None:
    """Let every persistable of a run that broke off count as written: a kernel may have been at it."""
    for holder in frame.holders.values():
        value = holder.value
        tensor = value.get_tensor() if isinstance(value, SelectedRows) else value
        if isinstance(tensor, LoDTensor):
            tensor.touch()


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
            missing = _missing_inputs(frame, op, block)
        except EnforceNotMet:
            missing = []
        if missing:
            error = _not_initialized(missing, op, block)
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


def _missing_inputs(frame: Frame, op: Operator, block: Block) -> list[str]:
    """The inputs of an operator that hold no value."""
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
        and frame.values[frame.plan.number(block, name)] is None
    ]


def _is_holder(block: Block, name: str) -> bool:
    """Whether a variable stands for something besides values: a reader, a list of feeds."""
    variable = block._find_var_recursive(name)
    return variable is not None and variable.type in HOLDERS


def _not_initialized(names: list[str], op: Operator, block: Block) -> NotInitializedError:
    """The error for inputs without a value: which step was left out."""
    first = block._find_var_recursive(names[0])
    if first is not None and first.persistable:
        hint = "run the startup program first (exe.run(fluid.default_startup_program())), or load the values"
    elif first is not None and (first.is_data or first.need_check_feed):
        hint = f"feed it: exe.run(..., feed={{{names[0]!r}: array}})"
    else:
        hint = "feed the data variables it is computed from"
    listed = ", ".join(repr(name) for name in names)
    return NotInitializedError(f"operator {op.type!r} reads {listed}, which hold no value yet", hint=hint)
