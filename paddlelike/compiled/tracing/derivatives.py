"""Derivatives of operators by ``jax.vjp``, in the form of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.arrays import Ranks, SavedSteps, TensorArray, fit
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, SparseRows, get_rows


def differentiate(function: Callable[[list[Any]], Any], args: list[Any]) -> tuple[Any, Callable[[Any], Any]]:
    """Return the results of ``function``, and a function that maps their gradients to the gradients of
    ``args``.
    """
    leaves, tree = jax.tree_util.tree_flatten(args)
    real = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]

    def compute(*floats: Any) -> tuple[list[Any], Any]:
        given = list(leaves)
        for index, value in zip(real, floats, strict=True):
            given[index] = value
        found = function(jax.tree_util.tree_unflatten(tree, given))
        flat, shape = jax.tree_util.tree_flatten(found)
        is_real = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in flat]
        kept = [leaf for leaf, yes in zip(flat, is_real, strict=True) if yes]
        return kept, (
            _Known((shape, tuple(is_real))),
            [x for x, yes in zip(flat, is_real, strict=True) if not yes],
        )

    outs, pull, (known, others) = jax.vjp(compute, *[leaves[i] for i in real], has_aux=True)
    shape, is_real = known.value
    reals, rest = iter(outs), iter(others)
    flat = [next(reals) if yes else next(rest) for yes in is_real]
    results = jax.tree_util.tree_unflatten(shape, flat)

    def pull_back(gradients: list[Any]) -> list[Any]:
        given = jax.tree_util.tree_leaves(gradients)
        found = iter(pull([g for g, yes in zip(given, is_real, strict=True) if yes]))
        back = [next(found) if i in real else None for i in range(len(leaves))]
        return _put_back(args, iter(back))

    return results, pull_back


@jax.tree_util.register_static
class _Known:
    """Carries values that are known during tracing through a function of JAX."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.value == other.value


def _put_back(args: Any, gradients: Any) -> Any:
    """Return gradients in the structure of ``args``."""
    if isinstance(args, list):
        return [_put_back(one, gradients) for one in args]
    if args is None:
        return None
    if isinstance(args, Packed):
        rows = next(gradients)
        for _ in range(len(jax.tree_util.tree_leaves(args)) - 1):
            next(gradients)
        return None if rows is None else args.replace(rows, shown=False)
    if isinstance(args, TensorArray):
        stacked = _put_back(args.stacked, gradients)
        next(gradients)
        return None if stacked is None else TensorArray(stacked, args.length)
    if isinstance(args, Ranks | SavedSteps):
        for _ in jax.tree_util.tree_leaves(args):
            next(gradients)
        return None
    if isinstance(args, SparseRows):
        raise LoweringError("sparse rows have no gradient")
    return next(gradients)


def fit_gradient(value: Any, gradient: Any) -> object:
    """Return the gradient of a result in the structure of the result; zeros if there is none."""
    if value is None:
        return None
    if isinstance(value, list):
        given = gradient if isinstance(gradient, list) else [None] * len(value)
        return [fit_gradient(one, other) for one, other in zip(value, given, strict=True)]
    if isinstance(value, TensorArray):
        return value.empty() if gradient is None else fit(gradient, value)
    if isinstance(value, Packed):
        rows = get_rows(gradient)
        if rows is not None and rows.shape[0] < value.rows.shape[0]:  # without the unused rows
            missing = value.rows.shape[0] - rows.shape[0]
            rows = jnp.concatenate([rows, jnp.zeros((missing, *rows.shape[1:]), rows.dtype)])
        return value.replace(jnp.zeros_like(value.rows) if rows is None else rows.astype(value.rows.dtype))
    if isinstance(gradient, Packed):
        gradient = gradient.rows if gradient.rows.size == value.size else gradient.rows[: value.shape[0]]
    return jnp.zeros_like(value) if gradient is None else gradient.astype(value.dtype).reshape(value.shape)
