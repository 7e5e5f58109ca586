"""Loads into the arrays that the variables have already: no second model in memory, no new pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import LoadError
from paddlelike.io.planning.plan import LoadPlan

__all__ = ["InPlace"]

Array = np.ndarray[Any, Any]


class InPlace:
    """What a load writes over, and what an error must then say."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._begun = 0  # variables

    def targets(self, plan: LoadPlan) -> dict[str, Array]:
        """The arrays of the plan's variables that can be read into; they count as written from now on."""
        found: dict[str, Array] = {}
        for step in plan.steps:
            holder = self._scope.find_var(step.variable.name)
            tensor = None if holder is None else holder.value
            if step.recipe is not None or type(tensor) is not LoDTensor or tensor.array is None:
                continue
            if tensor.array.flags.c_contiguous and tensor.array.flags.writeable:
                found[step.variable.name] = tensor.array
                tensor.touch()  # whatever comes of it, the next save must not take it for unchanged
        self._begun = max(self._begun, len(found))
        return found

    def tell(self, where: str, error: BaseException) -> None:
        """Raise ``error`` with what has become of the variables, if any may be half read."""
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
