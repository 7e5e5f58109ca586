"""Loads into the existing arrays of the variables: no second model in memory, no new pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import LoadError
from paddlelike.io.planning.load_plan import LoadPlan

Array = np.ndarray[Any, Any]


class InPlaceTargets:
    """The arrays that a load overwrites, and the error when it fails half way."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._begun = 0  # variables

    def take_targets(self, plan: LoadPlan) -> dict[str, Array]:
        """Return the arrays of the plan's variables that can be read into, and mark them as written."""
        found: dict[str, Array] = {}
        for step in plan.steps:
            holder = self._scope.find_var(step.variable.name)
            tensor = None if holder is None else holder.value
            if step.recipe is not None or type(tensor) is not LoDTensor or tensor.held_array is None:
                continue
            if tensor.held_array.flags.c_contiguous and tensor.held_array.flags.writeable:
                found[step.variable.name] = tensor.held_array
                tensor.touch()  # even if the load fails, the next save must not treat it as unchanged
        self._begun = max(self._begun, len(found))
        return found

    def raise_mixed(self, where: str, error: BaseException) -> None:
        """Raise ``error`` with a note on the variables, if any may hold a mix; else return.

        Raises
        ------
        LoadError
            Variables may hold a mix of old and new values.
        """
        if not self._begun:
            return
        mix = f"with in_place=True up to {self._begun} variables now hold a mix of old and new values"
        if not isinstance(error, Exception):  # an interrupt stays one
            error.add_note(f"the load of {where} broke off: {mix}")
            return
        raise LoadError(
            f"the load of {where} broke off, and {mix}: {error}",
            hint="load a good directory, or run the startup program again",
        ) from error
