"""Delay transposes of images as long as operations work in the other order of dims.

XLA's convolutions for CPUs are fastest on images with channels last, but programs have channels second. So
lowerings of convolutions and pools transpose their images there and back. XLA cancels two transposes only if
no operation is between them. Here, elementwise operations and operations along dims keep the current order of
the data, so that transposes meet and cancel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import jax
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from paddlelike.compiled.backend import computes_on_cpu
from paddlelike.compiled.tracing.fusions import compute_once, find_repeated

_LEAST_DIMS: Final = 4  # dims of images

_ELEMENTWISE_NAMES: Final = """
    abs add add_any and atan2 cbrt ceil clamp convert_element_type copy copy_p cos cosh div eq erf erf_inv exp
    exp2 expm1 floor ge gt integer_pow is_finite le log log1p logistic lt max min mul ne neg nextafter not
    optimization_barrier or pow reduce_precision rem round rsqrt select_n sign sin sinh sqrt square
    stop_gradient sub tan tanh xor
"""
_ELEMENTWISE: Final = frozenset(_ELEMENTWISE_NAMES.split())
_WINDOWS: Final = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
#: Operations with parameters that have a number for each dim.
_BY_DIM: Final[dict[str, tuple[str, ...]]] = {
    "pad": ("padding_config",),
    "slice": ("start_indices", "limit_indices", "strides"),
    "reduce_window_max": _WINDOWS,
    "reduce_window_min": _WINDOWS,
    "reduce_window_sum": _WINDOWS,
}
#: Functions inside of functions, each with the parameter that holds the inner one.
_INNER: Final = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


class _Moved(NamedTuple):
    """An array with a delayed transpose: dim ``i`` of the value is dim ``order[i]`` of ``array``."""

    array: Array
    order: tuple[int, ...]


def delay_transposes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the same results that transposes images as late as possible.

    Only transposes that move the channels from dim 1 to the end, or back, count as such.

    >>> import jax.numpy as jnp
    >>> def add(x):  # shape (N, H, W, C)
    ...     return jnp.moveaxis(jnp.moveaxis(x, -1, 1) + 1, 1, -1)
    >>> "transpose" in str(jax.make_jaxpr(add)(jnp.zeros((1, 2, 3, 4))))
    True
    >>> "transpose" in str(jax.make_jaxpr(delay_transposes(add))(jnp.zeros((1, 2, 3, 4))))
    False
    """

    @functools.wraps(function)
    def compute(*args: Any) -> object:
        traced, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        leaves = jax.tree_util.tree_leaves(args)
        found = _evaluate(traced.jaxpr, traced.consts, leaves)
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shape), map(_settle, found))

    return compute


def _evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Iterable[Any]) -> list[Any]:
    """Evaluate a function of JAX; the results may have delayed transposes."""
    values: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(var: Any) -> Any:
        return var.val if isinstance(var, Literal) else values[var]

    repeated = find_repeated(jaxpr) if computes_on_cpu() else ()
    for eqn in jaxpr.eqns:
        results = _apply(eqn, [read(var) for var in eqn.invars])
        for var, result in zip(eqn.outvars, results, strict=True):
            values[var] = _compute_once(result) if var in repeated else result
    return [read(var) for var in jaxpr.outvars]


def _apply(eqn: JaxprEqn, args: list[Any]) -> Sequence[Any]:
    """Evaluate one operation; the results may have delayed transposes."""
    name, params = eqn.primitive.name, eqn.params
    if name in _INNER:
        inner = params[_INNER[name]]
        if isinstance(inner, ClosedJaxpr):
            return _evaluate(inner.jaxpr, inner.consts, args)
    if name == "transpose" and _is_of_images(params["permutation"]):
        return [_transpose(args[0], params["permutation"])]
    order = next((arg.order for arg in args if isinstance(arg, _Moved)), None)
    if order is not None:
        results = _apply_moved(eqn, args, order)
        if results is not None:
            return results
    return bind_equation(eqn, [_settle(arg) for arg in args], params)


def _compute_once(value: Array) -> Array:
    if isinstance(value, _Moved):
        return value._replace(array=compute_once(value.array))
    return compute_once(value)


def _is_of_images(permutation: Sequence[int]) -> bool:
    rest = list(range(1, len(permutation)))
    turned = ([0, *rest[1:], 1], [0, rest[-1], *rest[:-1]])
    return len(permutation) >= _LEAST_DIMS and list(permutation) in turned


def _apply_moved(eqn: JaxprEqn, args: list[Any], order: tuple[int, ...]) -> Sequence[Any] | None:
    """Return the results of an operation in the order of dims of its inputs, or None if that order is
    impossible.
    """
    name, params = eqn.primitive.name, eqn.params
    if name in _ELEMENTWISE:
        return [
            _Moved(one, order) for one in bind_equation(eqn, [_arrange(arg, order) for arg in args], params)
        ]
    if name == "concatenate":
        params = {**params, "dimension": order[params["dimension"]]}
        return [
            _Moved(one, order) for one in bind_equation(eqn, [_arrange(arg, order) for arg in args], params)
        ]
    if name in _BY_DIM:
        moved = {key: params[key] and tuple(_put(params[key], order)) for key in _BY_DIM[name]}
        found = bind_equation(eqn, [_arrange(arg, order) for arg in args], {**params, **moved})
        return [_Moved(one, order) for one in found]
    if name.startswith("reduce_") and "axes" in params:
        params = {**params, "axes": tuple(sorted(order[axis] for axis in params["axes"]))}
        rest = [order[i] for i in range(len(order)) if i not in eqn.params["axes"]]
        left = tuple(sorted(rest).index(dim) for dim in rest)
        return [_finish(_Moved(one, left)) for one in bind_equation(eqn, [args[0].array], params)]
    return None


def bind_equation(eqn: JaxprEqn, args: list[Any], params: dict[str, Any]) -> Sequence[Any]:
    """Return the results of one operation with other inputs and parameters."""
    given: Any = eqn.primitive.get_bind_params(params)
    functions, given = given if isinstance(given, tuple) else ((), given)  # with functions before JAX 0.10
    results = eqn.primitive.bind(*functions, *args, **given)
    return results if eqn.primitive.multiple_results else [results]


def _put(values: Sequence[Any], order: tuple[int, ...]) -> list[Any]:
    """Return one value per dim, in the order of the array's dims."""
    found = list(values)
    for value, dim in zip(values, order, strict=True):
        found[dim] = value
    return found


def _transpose(value: Array, permutation: Sequence[int]) -> Array:
    array, order = value if isinstance(value, _Moved) else (value, range(len(permutation)))
    return _finish(_Moved(array, tuple(order[dim] for dim in permutation)))


def _finish(value: _Moved) -> Array:
    """Return a value with its transpose done, unless that can be delayed further."""
    if value.order == tuple(range(len(value.order))):
        return value.array
    return value if len(value.order) >= _LEAST_DIMS else _settle(value)


def _settle(value: Any) -> object:
    """Do a delayed transpose, and return the array."""
    return jax.lax.transpose(value.array, value.order) if isinstance(value, _Moved) else value


def _arrange(value: Any, order: tuple[int, ...]) -> object:
    """Return the array of a value with its dims in a given order; numbers are returned unchanged."""
    if isinstance(value, _Moved) and value.order == order:
        return value.array
    value = _settle(value)
    if jax.numpy.ndim(value) == 0:
        return value
    return jax.lax.transpose(value, sorted(range(len(order)), key=order.__getitem__))
