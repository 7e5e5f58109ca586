"""The checks of a piece that can be computed before it: those of ids and labels alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

__all__ = ["compile_check"]


def compile_check(traced: ClosedJaxpr) -> Any:
    """Return the last result of a traced piece as a compiled function of the flat arguments of the piece.

    Return None when the result depends on floating-point values, which may take as long as the piece.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> piece = jax.make_jaxpr(lambda table, ids: (table[ids], jnp.all(ids < 3)))
    >>> table, ids = jnp.zeros((3, 2)), jnp.arange(4)
    >>> bool(compile_check(piece(table, ids))([table, ids]))
    False
    >>> piece = jax.make_jaxpr(lambda x: (x, jnp.all(x < 3)))
    >>> compile_check(piece(table)) is None
    True
    """
    jaxpr = traced.jaxpr
    needed = {jaxpr.outvars[-1]}
    for equation in reversed(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars):
            continue
        read = [var for var in equation.invars if not isinstance(var, Literal)]
        if any(not _is_exact(var) for var in (*read, *equation.outvars)):
            return None
        needed.update(read)
    places = [index for index, var in enumerate(jaxpr.invars) if var in needed]
    if any(not _is_exact(jaxpr.invars[index]) for index in places):
        return None
    function = jaxpr_as_fun(traced)

    def compute(*given: Any) -> Any:
        values = dict(zip(places, given, strict=True))
        # XLA drops what the result does not depend on.
        flat = [
            values[i] if i in values else jnp.zeros(var.aval.shape, var.aval.dtype)
            for i, var in enumerate(jaxpr.invars)
        ]
        return function(*flat)[-1]

    shapes = [jax.ShapeDtypeStruct(jaxpr.invars[i].aval.shape, jaxpr.invars[i].aval.dtype) for i in places]
    compiled = jax.jit(compute).lower(*shapes).compile()
    return lambda flat: compiled(*[flat[index] for index in places])


def _is_exact(var: Any) -> bool:
    """Return whether a value of a traced function holds integers or truth values."""
    return np.dtype(var.aval.dtype).kind in "biu"
