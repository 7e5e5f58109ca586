"""Guards that keep the old persistables if a check that is computed with the results fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

from paddlelike.compiled.tracing.orders import bind_equation

_LARGE: Final = 1 << 20  # from this many bytes on, copying an array takes longer than a branch


def keep_unless_checked(traced: Any, places: Sequence[int], results: Sequence[int]) -> Callable[..., Any]:
    """Return the function of a piece that keeps old persistables unless all checks hold.

    ``traced`` is a function of a list of persistables to overwrite (those at ``places``), and of other
    values. It returns a list of ``results``, also by position, and whether each check holds. The returned
    function has a third result: old persistables by position, where the new ones have another shape (such as
    the table of `auc` after the first step).

    Selecting the old or the new array needs both, and so would copy every table with some updated rows.
    Therefore operations that only such updates need are in a branch that runs if the checks hold.
    """
    jaxpr, likes = traced.jaxpr.jaxpr, dict(zip(results, traced.out_info[0], strict=True))

    def compute(given_away: list[Any], *others: Any) -> object:
        given = jax.tree_util.tree_leaves((given_away, *others))
        donated = dict(zip(places, given_away, strict=True))
        values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*traced.jaxpr.consts, *given], strict=True))
        updated = {n for n, old in donated.items() if n in likes and _is_like(old, likes[n])}
        variables = dict(zip(likes, _group(jaxpr.outvars, likes.values()), strict=True))
        by_rows = _find_updates_by_rows(jaxpr, {n: variables[n][0] for n in updated})
        rest = [var for n, several in variables.items() if n not in by_rows for var in several]
        outside = _find_needed(jaxpr, [*rest, jaxpr.outvars[-1]])
        _run(jaxpr, outside, values)
        held = _read(values, jaxpr.outvars[-1])
        inside = _find_needed(jaxpr, [variables[n][0] for n in by_rows]) - outside

        def update() -> list[Any]:
            inner = dict(values)
            _run(jaxpr, inside, inner)
            return [_read(inner, variables[n][0]) for n in by_rows]

        branch: Sequence[Any] = ()
        if by_rows:
            branch = jax.lax.cond(held.all(), update, lambda: [donated[n] for n in by_rows])
        found = dict(zip(by_rows, branch, strict=True))
        for n, like in likes.items():
            if n in updated - found.keys():
                found[n] = jnp.where(held.all(), _read(values, variables[n][0]), donated[n])
            elif n not in found:
                tree = jax.tree_util.tree_structure(like)
                found[n] = jax.tree_util.tree_unflatten(tree, [_read(values, var) for var in variables[n]])
        return (
            [found[n] for n in results],
            held,
            {n: old for n, old in donated.items() if n in likes and n not in updated},
        )

    return compute


def _is_like(old: Any, new: Any) -> bool:
    """Return whether a result is a single array with the shape and dtype of the old value."""
    return jax.tree_util.all_leaves([new]) and (old.shape, old.dtype) == (new.shape, new.dtype)


def _group(variables: Sequence[Any], likes: Iterable[Any]) -> list[list[Any]]:
    """Return the variables that belong to each result."""
    rest = iter(variables)
    return [[next(rest) for _ in jax.tree_util.tree_leaves(like)] for like in likes]


def _find_updates_by_rows(jaxpr: Jaxpr, updated: Mapping[int, Any]) -> list[int]:
    """Return the updated arrays that are large tables with changed rows, or are computed from such tables."""
    scattered = {
        index: eqn.outvars[0].aval.shape
        for index, eqn in enumerate(jaxpr.eqns)
        if "scatter" in eqn.primitive.name and _is_large(eqn.outvars[0])
    }
    if not scattered:
        return []
    return sorted(
        n
        for n, var in updated.items()
        if _is_large(var)
        and any(scattered.get(index) == var.aval.shape for index in _find_needed(jaxpr, [var]))
    )


def _is_large(var: Any) -> bool:
    return bool(var.aval.size * var.aval.dtype.itemsize >= _LARGE)


def _find_needed(jaxpr: Jaxpr, wanted: Iterable[Any]) -> set[int]:
    """Return the indices of the equations that some variables depend on."""
    needed = {var for var in wanted if not isinstance(var, Literal)}
    found = set()
    for index in reversed(range(len(jaxpr.eqns))):
        eqn: JaxprEqn = jaxpr.eqns[index]
        if not needed.isdisjoint(eqn.outvars):
            needed.update(var for var in eqn.invars if not isinstance(var, Literal))
            found.add(index)
    return found


def _run(jaxpr: Jaxpr, equations: Iterable[int], values: dict[Any, Any]) -> None:
    for index in sorted(equations):
        eqn = jaxpr.eqns[index]
        results = bind_equation(eqn, [_read(values, var) for var in eqn.invars], eqn.params)
        values.update(zip(eqn.outvars, results, strict=True))


def _read(values: Mapping[Any, Any], var: Any) -> Any:
    return var.val if isinstance(var, Literal) else values[var]
