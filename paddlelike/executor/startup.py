"""Warnings of programs that run where something else should: a startup program, a worker alone."""

from __future__ import annotations

from paddlelike.core.scope import Scope
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program


def warn_alone(program: Program) -> None:
    """Warn, once, when a program of the mode nccl2 updates parameters by this worker's gradients alone."""
    if any(op.attrs.get("op_role", 0) & OpRole.Optimize for op in program.global_block().ops):
        count, program._workers = program._workers, 1
        warn_user(
            f"this program was transpiled for {count} workers in the mode nccl2, in which only "
            "CompiledProgram(program).with_data_parallel adds their gradients up: run as it is, this worker "
            "trains alone"
        )


def warn_overwritten(program: Program, scope: Scope) -> None:
    """Warn, once, when values of a program were replaced by those of a model that was loaded."""
    where, source, name, count = program._overwritten
    if where() is not scope:
        return
    program._overwritten = None
    more = f" and {count - 1} more" if count > 1 else ""
    warn_user(
        f"this program computes with other values than before: {name!r}{more} were replaced by the model "
        f"loaded from {source}, which has variables of the same names. Load each model into its own scope: "
        "`with fluid.scope_guard(fluid.Scope()):` around load_inference_model and the runs of its program"
    )


def warn_overwriting(scope: Scope, names: list[str]) -> None:
    """Warn when a startup program is about to replace loaded values."""
    loaded = []
    for name in names:
        holder = scope.find_var(name)
        if holder is not None and holder.origin is not None:
            loaded.append((name, holder.origin))
            holder.origin = None
    if loaded:
        name, origin = loaded[0]
        more = f" and {len(loaded) - 1} more" if len(loaded) > 1 else ""
        warn_user(
            f"this program initializes {name!r}{more}, which replaces the values loaded from {origin}; "
            "run the startup program before loading, not after"
        )
