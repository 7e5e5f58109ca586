"""Checks of a piece that depend only on ids and labels, and so can run before it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun


def _make(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a numpy function for a primitive; it ignores the primitive's parameters, which do not matter."""
    return lambda **_: function


def _make_reduction(function: np.ufunc) -> Callable[..., Any]:
    return lambda axes, **_: functools.partial(function.reduce, axis=axes)


#: Primitives of integers and truth values that numpy computes like XLA, by name: functions from an equation's
#: parameters to a function of its values.
_IN_NUMPY: Final[dict[str, Callable[..., Any]]] = {
    "and": _make(np.bitwise_and),
    "broadcast_in_dim": lambda shape, broadcast_dimensions, **_: (
        lambda x: _broadcast(x, shape, broadcast_dimensions)
    ),
    "convert_element_type": lambda new_dtype, **_: lambda x: np.asarray(x).astype(new_dtype),
    "eq": _make(np.equal),
    "ge": _make(np.greater_equal),
    "gt": _make(np.greater),
    "le": _make(np.less_equal),
    "lt": _make(np.less),
    "ne": _make(np.not_equal),
    "not": _make(np.invert),
    "or": _make(np.bitwise_or),
    "reduce_and": _make_reduction(np.logical_and),
    "reduce_max": _make_reduction(np.maximum),
    "reduce_min": _make_reduction(np.minimum),
    "reduce_or": _make_reduction(np.logical_or),
    "reshape": lambda new_sizes, **_: lambda x: x.reshape(new_sizes),
    "squeeze": lambda dimensions, **_: lambda x: np.squeeze(x, dimensions),
    "stack": lambda axis, **_: lambda *given: np.stack(given, axis) if axis else np.array(given),
}


class _Steps(NamedTuple):
    """A computation by numpy on a list of values: the arguments, the constants, then one value per step.

    Each of ``steps`` has a function, the indexes of its inputs, and the index of its result.
    """

    read: Sequence[int]  # the indexes of the given values that are read
    constants: Sequence[Any]
    steps: Sequence[tuple[Callable[..., Any], Sequence[int], int]]


def find_check(traced: ClosedJaxpr, *, on_cpu: bool) -> object:
    """Return a function of a traced piece's flat arguments that computes its last result, the check.

    With ``on_cpu`` numpy computes the check if it can, in a tenth of the time of a call of XLA. Return None
    if the check depends on floating-point values, since it may then take as long as the piece.

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


def _plan_steps(jaxpr: Jaxpr, equations: Sequence[Any]) -> _Steps | None:
    """Return the steps for numpy, each value computed once; None if numpy lacks a primitive."""
    count = len(jaxpr.invars)
    numbers: dict[Any, int] = {var: index for index, var in enumerate(jaxpr.invars)}
    literals = [var for one in equations for var in one.invars if isinstance(var, Literal)]
    constants = {(str(var.aval), np.asarray(var.val).tobytes()): np.asarray(var.val) for var in literals}
    known: dict[Any, int] = {key: count + index for index, key in enumerate(constants)}
    steps: list[tuple[Callable[..., Any], Sequence[int], int]] = []
    for equation in equations:
        make = _IN_NUMPY.get(equation.primitive.name)
        if make is None or any(not isinstance(v, Literal) and v not in numbers for v in equation.invars):
            return None
        inputs = [
            known[str(var.aval), np.asarray(var.val).tobytes()] if isinstance(var, Literal) else numbers[var]
            for var in equation.invars
        ]
        key = (equation.primitive.name, str(equation.params), str(equation.outvars[0].aval), *inputs)
        if key not in known:
            known[key] = count + len(constants) + len(steps)
            steps.append((make(**equation.params), inputs, known[key]))
        numbers[equation.outvars[0]] = known[key]
    if not steps or numbers[jaxpr.outvars[-1]] != steps[-1][-1]:
        return None
    return _Steps(
        sorted({n for _, inputs, _ in steps for n in inputs if n < count}), [*constants.values()], steps
    )


def _run(planned: _Steps, flat: Sequence[Any]) -> Any:
    values = [*flat, *planned.constants, *planned.steps]
    for index in planned.read:
        values[index] = np.asarray(values[index])
    for function, inputs, result in planned.steps:
        values[result] = function(*[values[index] for index in inputs])
    return values[-1]


def _compile(traced: ClosedJaxpr, equations: Sequence[Any]) -> object:
    jaxpr = traced.jaxpr
    read = {var for one in equations for var in one.invars if not isinstance(var, Literal)}
    places = [index for index, var in enumerate(jaxpr.invars) if var in read]
    function = jaxpr_as_fun(traced)

    def compute(*given: Any) -> object:
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


def _broadcast(x: jax.Array, shape: Sequence[int], places: Sequence[int]) -> jax.Array:
    """Broadcast ``x``; its dims become the dims at ``places`` of the result."""
    spread = [1] * len(shape)
    for place, dim in zip(places, np.shape(x), strict=True):
        spread[place] = dim
    return np.broadcast_to(np.reshape(x, spread), shape)


def _is_exact(var: Any) -> bool:
    """Return whether a value of a traced function holds integers or truth values."""
    return np.dtype(var.aval.dtype).kind in "biu"
