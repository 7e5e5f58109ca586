"""Learning rates that a load replaces: a resumed script with a new constant still gets the saved rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoDTensor
from paddlelike.framework.graph.program import Program

__all__ = ["find_initial_rates", "name_changed_rates"]


def find_initial_rates(program: Program, scope: Scope) -> dict[str, float]:
    """Return the learning rates of a program that hold what the startup program has set, by name."""
    names = {
        name
        for block in program.blocks
        for op in block.ops
        for name in op.inputs.get("LearningRate", ())
        if (variable := block._find_var_recursive(name)) is not None and variable.persistable
    }
    rates = {}
    for name in sorted(names):
        holder = scope.find_var(name)
        value = None if holder is None or holder.origin is not None else _get_scalar(holder.value)
        if value is not None:
            rates[name] = value
    return rates


def name_changed_rates(before: Mapping[str, float], loaded: Iterable[str], scope: Scope) -> list[str]:
    """Return a line for every loaded learning rate that is not the one before."""
    lines = []
    for name in loaded:
        holder = scope.find_var(name) if name in before else None
        value = None if holder is None else _get_scalar(holder.value)
        if value is not None and value != before[name]:
            was = f"the startup program had set {before[name]:.6g}"
            lines.append(f"learning rate {name}: {value:.6g} was loaded, {was}")
    return lines


def _get_scalar(value: object) -> float | None:
    """Return the number in a tensor of one element, else None."""
    array = value.held_array if isinstance(value, LoDTensor) else None
    if array is None or np.size(array) != 1:
        return None
    return float(np.reshape(array, -1)[0])
