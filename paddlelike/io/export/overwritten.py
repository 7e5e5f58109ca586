"""Models loaded over the values of another program, which then computes with the model's values."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from weakref import ref

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, global_scope
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program
from paddlelike.io.calls import get_program_persistable_vars

_STARTED: Final = 1  # writes of a value that only the startup program has set


@contextmanager
def overwritten_marked(program: Program, source: str) -> Iterator[None]:
    """Mark other programs if a load of ``program`` in the ``with`` block changes their values.

    The Executor warns when a marked program runs. Only trained values and values loaded from another place
    than ``source`` count, not the initial values of a startup program.
    """
    scope = global_scope()
    before = _take_values(program, source, scope)
    yield
    changed = [name for name, array in before.items() if not _is_equal(array, _find_array(scope, name))]
    if not changed:
        return
    caution = _Overwritten(scope, source, changed)
    for other in gc.get_objects():
        if (
            type(other) is Program
            and other is not program
            and any(map(other.global_block().has_var, changed))
        ):
            other._caution = caution


class _Overwritten:
    """The warning of a program after a loaded model has replaced some of its values."""

    def __init__(self, scope: Scope, source: str, names: list[str]) -> None:
        self.scope, self.source, self.names = ref(scope), source, names

    def __call__(self, program: Program, scope: Scope) -> None:
        """Warn, once, when the program runs in the scope of these values."""
        if self.scope() is not scope:
            return
        program._caution = None
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        warn_user(
            f"this program computes with other values than before: {self.names[0]!r}{more} were replaced by "
            f"the model loaded from {self.source}, which has variables of the same names. Load each model "
            "into its own scope: `with fluid.scope_guard(fluid.Scope()):` around load_inference_model and "
            "the runs of its program"
        )


def _take_values(program: Program, source: str, scope: Scope) -> Mapping[str, Array]:
    """Return the arrays in the scope that are compared, by name."""
    values = {}
    for variable in get_program_persistable_vars(program):
        holder, array = scope.find_var(variable.name), _find_array(scope, variable.name)
        if holder is None or array is None or holder.origin == source:
            continue
        if holder.origin is not None or holder.version > _STARTED:
            values[variable.name] = array
    return values


def _find_array(scope: Scope, name: str) -> Array | None:
    holder = scope.find_var(name)
    value = None if holder is None else holder.value
    return value.held_array if isinstance(value, LoDTensor) else None


def _is_equal(one: Array, other: Array | None) -> bool:
    return other is not None and one.shape == other.shape and np.array_equal(one, other, equal_nan=True)
