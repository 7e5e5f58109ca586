"""Run the steps of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor, Scope, SelectedRows
from paddlelike.core.floats import run_quietly
from paddlelike.errors import EOFException, FaultError, OperatorError
from paddlelike.executor import profile
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.explanations import explain_error, format_line
from paddlelike.executor.plans.frame import Frame, PartError, Step
from paddlelike.executor.plans.rewrites.groups import is_batched
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.executor.plans.unrolled import Unrolled
from paddlelike.executor.threads import thread_limit
from paddlelike.framework import Operator
from paddlelike.framework.flags import flag


def run_plan(plan: Plan, scope: Scope, services: dict[str, Any], feeds: Mapping[str, Any]) -> Frame:
    """Run the steps of a plan once. Return the frame with the values."""
    frame = plan.create_frame(scope, services)
    if put_feeds(plan, frame, feeds) and plan.specializes:
        return run_plan(plan.generalize(), scope, services, feeds)
    # run_steps, inlined
    thread_limit.run(run_quietly, _run_steps, frame, plan.steps, plan.unrolled)
    return frame


def run_steps(frame: Frame, steps: list[Step]) -> None:
    """Run the steps in order.

    Raises OperatorError with the operator, its variables and the line of the user's script that created it;
    NotInitializedError for an input without a value; UnsupportedError, EOFException and FaultError as kernels
    raise them.
    """
    run_quietly(_run_steps, frame, steps, None)


def _run_steps(frame: Frame, steps: list[Step], unrolled: Unrolled | None) -> None:
    step = None
    try:
        if profile.current is not None:
            for step in _list_parts(steps):
                profile.current.run_step(frame, step)
        elif flag("FLAGS_check_nan_inf"):
            for step in _list_parts(steps):
                step.run(frame)
                _check_finite(frame, step.op)
        elif unrolled is not None and (run := unrolled.find(frame)) is not None:
            try:
                run(frame)
            except BaseException:
                step = steps[frame.failed]
                raise
        else:
            for step in steps:
                step[0](frame)  # step.run takes 20 ns more
    except (EOFException, FaultError):
        raise
    except Exception as error:
        assert step is not None
        _mark_written(frame)
        if is_batched(step.op.type):  # its error names the files
            raise
        op = step.op
        if isinstance(error, PartError):
            op, error = error.op, error.error
        explained = explain_error(frame, op, error)
        raise explained from explained.__cause__
    except BaseException:
        _mark_written(frame)
        raise


def _list_parts(steps: list[Step]) -> list[Step]:
    """Return steps of one operator each, so that values can be inspected after every operator."""
    return [part for step in steps for part in (step.parts or (step,))]


def _mark_written(frame: Frame) -> None:
    """Mark every persistable of a failed run as written, because a kernel may have changed part of it."""
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
                f"({len(bad)} of {value.size} elements are not finite){format_line(op)}",
                hint="mend the operator or its inputs, or set FLAGS_check_nan_inf to False to go on",
            )
