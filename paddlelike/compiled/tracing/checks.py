"""The checks of a piece that can be computed before it: those of ids and labels alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

__all__ = ["find_check"]


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of values alone, which ignores the parameters of a primitive."""
    return lambda *given, **_: function(*given)


def _over_axes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction over the axes that a primitive has as a parameter."""
    return lambda x, axes, **_: function(x, axes)


#: What numpy computes as XLA does, of integers and truth values, by the name of a primitive.
_IN_NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "and": _of_values(np.bitwise_and),
    "broadcast_in_dim": lambda x, shape, broadcast_dimensions, **_: _broadcast(
        x, shape, broadcast_dimensions
    ),
    "convert_element_type": lambda x, new_dtype, **_: np.asarray(x).astype(new_dtype),
    "eq": _of_values(np.equal),
    "ge": _of_values(np.greater_equal),
    "gt": _of_values(np.greater),
    "le": _of_values(np.less_equal),
    "lt": _of_values(np.less),
    "ne": _of_values(np.not_equal),
    "not": _of_values(np.invert),
    "or": _of_values(np.bitwise_or),
    "reduce_and": _over_axes(np.all),
    "reduce_max": _over_axes(np.max),
    "reduce_min": _over_axes(np.min),
    "reduce_or": _over_axes(np.any),
    "reshape": lambda x, new_sizes, **_: np.reshape(x, new_sizes),
    "squeeze": lambda x, dimensions, **_: np.squeeze(x, dimensions),
    "stack": lambda *given, axis, **_: np.stack(given, axis),
}


class _Step(NamedTuple):
    """One equation: a function of values by their numbers, where constants have None."""

    function: Callable[..., Any]
    params: Mapping[str, Any]
    inputs: tuple[tuple[int | None, np.ndarray[Any, Any] | None], ...]
    result: int


def find_check(traced: ClosedJaxpr, *, on_cpu: bool) -> Any:
    """Return the last result of a traced piece as a function of the flat arguments of the piece.

    ``on_cpu``: numpy computes it where it can, in a tenth of the time of a call of XLA. Return None when the
    result depends on floating-point values, which may take as long as the piece.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> piece = jax.make_jaxpr(lambda table, ids: (table[ids], jnp.all(ids < 3)))
    >>> table, ids = jnp.zeros((3, 2)), jnp.arange(4)
    >>> bool(find_check(piece(table, ids), on_cpu=True)([table, ids]))
    False
    >>> piece = jax.make_jaxpr(lambda x: (x, jnp.all(x < 3)))
    >>> find_check(piece(table), on_cpu=True) is None
    True
    """
    equations = _find_needed(traced.jaxpr)
    if equations is None:
        return None
    steps = _plan_steps(traced.jaxpr, equations) if on_cpu else None
    return _compile(traced, equations) if steps is None else lambda flat: _run(steps, flat)


def _find_needed(jaxpr: Jaxpr) -> list[Any] | None:
    """Return the equations that the last result depends on; None if floating-point values are among them."""
    needed = {jaxpr.outvars[-1]}
    found = []
    for equation in reversed(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars):
            continue
        read = [var for var in equation.invars if not isinstance(var, Literal)]
        if any(not _is_exact(var) for var in (*read, *equation.outvars)):
            return None
        needed.update(read)
        found.append(equation)
    return found[::-1]


def _plan_steps(jaxpr: Jaxpr, equations: Sequence[Any]) -> list[_Step] | None:
    """Return what numpy computes, each value once; None where it lacks a primitive."""
    numbers: dict[Any, int] = {var: index for index, var in enumerate(jaxpr.invars)}
    known: dict[Any, int] = {}
    steps: list[_Step] = []
    for equation in equations:
        function = _IN_NUMPY.get(equation.primitive.name)
        if function is None or any(not isinstance(v, Literal) and v not in numbers for v in equation.invars):
            return None
        inputs = tuple(
            (None, np.asarray(var.val)) if isinstance(var, Literal) else (numbers[var], None)
            for var in equation.invars
        )
        described = [constant.tobytes() if constant is not None else number for number, constant in inputs]
        key = (equation.primitive.name, str(equation.params), str(equation.outvars[0].aval), *described)
        if key not in known:
            known[key] = len(jaxpr.invars) + len(steps)
            steps.append(_Step(function, equation.params, inputs, known[key]))
        numbers[equation.outvars[0]] = known[key]
    return steps if steps and numbers[jaxpr.outvars[-1]] == steps[-1].result else None


def _run(steps: Sequence[_Step], flat: Sequence[Any]) -> Any:
    values: dict[int, Any] = {}
    for function, params, inputs, result in steps:
        given = []
        for number, constant in inputs:
            if number is not None and number not in values:
                values[number] = np.asarray(flat[number])
            given.append(constant if number is None else values[number])
        values[result] = function(*given, **params)
    return values[steps[-1].result]


def _compile(traced: ClosedJaxpr, equations: Sequence[Any]) -> Any:
    jaxpr = traced.jaxpr
    read = {var for one in equations for var in one.invars if not isinstance(var, Literal)}
    places = [index for index, var in enumerate(jaxpr.invars) if var in read]
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


def _broadcast(x: Any, shape: Sequence[int], places: Sequence[int]) -> Any:
    """Return ``x``, whose dims are those at ``places`` of the result."""
    spread = [1] * len(shape)
    for place, dim in zip(places, np.shape(x), strict=True):
        spread[place] = dim
    return np.broadcast_to(np.reshape(x, spread), shape)


def _is_exact(var: Any) -> bool:
    """Return whether a value of a traced function holds integers or truth values."""
    return np.dtype(var.aval.dtype).kind in "biu"
