"""Decisions before a program runs: numpy or JAX, and warnings of probable mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paddlelike.core.places import CUDAPlace, Place
from paddlelike.core.scope import Scope
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.flags import flag
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program, Twin
from paddlelike.hooks import Hook

_UNTRAINED_RUNS: Final = 20  # of a program that trains nothing, after which it is said


def warn_alone(program: Program) -> None:
    """Warn, once, when a program of the mode nccl2 updates parameters by this worker's gradients alone."""
    if _trains(program):
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


def warn_of_twin(program: Program, twin: Twin, scope: Scope) -> None:
    """Warn, once, when a program runs in place of its clone, or a clone in place of its original.

    A program that trains nothing may run some times before the other one does.
    """
    twin.runs += 1
    other = twin.program()
    if other is None:
        program._twin = None
    elif _trains(program):
        program._twin = None
        if twin.is_copy and other.plans and _trains(other) and _is_trained(program, scope):
            warn_user(
                "this program is a clone of one that was trained, optimizer included: each run trains the "
                "same parameters. To evaluate, run program.clone(for_test=True)"
            )
    elif other.plans:
        program._twin = None
    elif twin.runs == _UNTRAINED_RUNS:
        program._twin = None
        if _trains(other) and not _is_trained(program, scope):
            which = "the program that it was cloned from" if twin.is_copy else "its clone"
            warn_user(
                f"this program has run {twin.runs} times and trains nothing: the optimizer was added to "
                f"{which}, which has not run yet. To train, run that one"
            )


def _trains(program: Program) -> bool:
    return any(op.attrs.get("op_role", 0) & OpRole.Optimize for op in program.global_block().ops)


def _is_trained(program: Program, scope: Scope) -> bool:
    """Return whether a parameter was updated or loaded since the startup program gave it a value."""
    holders = (scope.find_var(parameter.name) for parameter in program.global_block().iter_parameters())
    return any(one is not None and (one.origin is not None or one.version > 1) for one in holders)


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


_explain_compiled: Final[Hook[[Program, list[str], list[str], Place], str]] = Hook("explain_compiled")

BACKENDS: Final = ("numpy", "jax")


def choose_backend(place: Place, backend: str | None = None) -> str:
    """Return the backend, "numpy" or "jax": as requested, else by FLAGS_backend; JAX on a GPU.

    Raises ValueError for another value of the flag.
    """
    if backend is None:
        backend = str(flag("FLAGS_backend"))
    if backend == "numpy" and not isinstance(place, CUDAPlace):
        return backend
    if backend not in BACKENDS:
        raise ValueError(f"FLAGS_backend is {backend!r}, expected one of {', '.join(BACKENDS)}")
    if isinstance(place, CUDAPlace):
        backend = "jax"
    if backend == "jax" and flag("FLAGS_check_nan_inf"):
        return "numpy"  # which knows after each operator
    return backend


def explain_pieces(program: Program, feed: Iterable[str] | None, fetches: list[str], place: Place) -> str:
    """Describe which operators JAX runs together, and why numpy runs others, given the names in ``feed``."""
    return _explain_compiled.function(program, list(feed or ()), fetches, place)
