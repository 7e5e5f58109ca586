"""Pools: maxima and means over windows of images, and the maxima with their places."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.backend import computes_on_cpu
from paddlelike.compiled.lowering.nn.conv.conv import list_places, put_back, take_first
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.ops.kernels.nn.image import pool as pool_kernels
from paddlelike.ops.nn.image.pool import PoolAttrs, WindowAttrs, find_factor

_MOST_PLACES: Final = 25  # of a window; each one makes a program longer


@lowers("pool2d", "pool3d")
def pool(
    x: Array,
    *, ksize: list[int], strides: list[int], paddings: list[int], global_pooling: bool, adaptive: bool,
    pooling_type: str,
    exclusive: bool, ceil_mode: bool, padding_algorithm: str, data_format: str,
) -> Array:  # fmt: skip
    x = take_first(x, data_format)
    attrs = PoolAttrs(
        ksize=ksize, strides=strides, paddings=paddings, global_pooling=global_pooling, adaptive=adaptive,
        pooling_type=pooling_type, exclusive=exclusive, ceil_mode=ceil_mode,
        padding_algorithm=padding_algorithm, data_format=data_format,
    )  # fmt: skip
    _, axes = attrs.arrange("pool", x.shape[2:])
    if pooling_type == "max":
        out = reduce_windows(x, axes, jax.lax.max, -np.inf, jnp.max)
        out = jnp.maximum(out, np.finfo(x.dtype).min)  # a window beyond the data
    else:
        total = reduce_windows(x, axes, jax.lax.add, 0, jnp.sum)
        counts = pool_kernels.count_elements(axes, x.dtype, exclusive=exclusive or adaptive)
        out = total / jnp.asarray(counts, x.dtype)
    return put_back(out, data_format)


@lowers("pool2d@2", "pool3d@2")
@functools.wraps(pool)
def later_pool(x: Array, **given: Any) -> Array:
    factor = find_factor("pool", x, PoolAttrs(**given))
    return pool(x, **given) if factor is None else pool(x, **given) * jnp.asarray(factor)


def reduce_windows(
    x: Array,
    axes: Sequence[pool_kernels.Axis],
    function: Callable[..., Array],
    start: int | float,
    whole: Callable[..., Array],
) -> Array:
    """Reduce every window with ``function``; if the windows differ in size, one dim after the other."""
    if all(axis.stride is not None for axis in axes):
        x = x[(..., *(slice(axis.spans[0][0], axis.size + min(_pad_after(axis), 0)) for axis in axes))]
        pads = ((0, 0), (0, 0), *((axis.pad[0], max(_pad_after(axis), 0)) for axis in axes))
        strides = tuple(axis.stride or 1 for axis in axes)
        kernel = tuple(axis.kernel for axis in axes)
        if function is jax.lax.max and computes_on_cpu() and math.prod(kernel) <= _MOST_PLACES:
            return _find_maxima(kernel, strides, jnp.pad(x, pads, constant_values=start))
        out = jax.lax.reduce_window(
            x, np.asarray(start, x.dtype)[()], function, (1, 1, *kernel), (1, 1, *strides), pads
        )
        # No element equals a maximum that is NaN.
        return jnp.where(out == out, out, jax.lax.stop_gradient(out)) if function is jax.lax.max else out
    for dim, axis in enumerate(axes, 2):
        parts = [jax.lax.slice_in_dim(x, a, b, axis=dim) for a, b in axis.clipped]
        x = jnp.stack([whole(part, dim) for part in parts], dim)
    return x


# On a CPU the gradient of XLA's ``reduce_window`` takes 10 to 18 times as long: for windows of 3 x 3 with a
# stride of 2 on 8 x 64 x 112 x 112, 193 ms of one processor instead of 20.


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _find_maxima(kernel: tuple[int, ...], strides: tuple[int, ...], x: Array) -> Array:
    """Return the maxima of the windows of ``x``, of shape (N, C, *dims)."""
    return functools.reduce(jnp.maximum, list_places(x, kernel, strides, (1,) * len(kernel)))


def _find_maxima_forward(
    kernel: tuple[int, ...], strides: tuple[int, ...], x: Array
) -> tuple[Array, Array | tuple[Array, Array]]:
    maxima = _find_maxima(kernel, strides, x)
    return maxima, (x, maxima)


def _find_maxima_backward(
    kernel: tuple[int, ...], strides: tuple[int, ...], kept: tuple[Any, Any], d_out: Array
) -> tuple[Array]:
    """Return the gradient of ``x``: the gradient of a window goes to its first maximum."""
    x, maxima = kept
    places = list(np.ndindex(*kernel))
    first = jnp.full(maxima.shape, len(places), jnp.uint8)
    for i, values in reversed(list(enumerate(list_places(x, kernel, strides, (1,) * len(kernel))))):
        first = jnp.where(values == maxima, np.uint8(i), first)
    first = jax.lax.optimization_barrier(first)  # else each position computes it again
    total = jnp.zeros((), x.dtype)
    for i, place in enumerate(places):
        dims = zip(place, x.shape[2:], maxima.shape[2:], strides, strict=True)
        spread = [
            (start, size - start - (count - 1) * step - 1, step - 1) for start, size, count, step in dims
        ]
        mine = jnp.where(first == i, d_out, jnp.zeros((), d_out.dtype))
        total = total + jax.lax.pad(mine, jnp.zeros((), d_out.dtype), [(0, 0, 0), (0, 0, 0), *spread])
    return (total,)


_find_maxima.defvjp(_find_maxima_forward, _find_maxima_backward)


def _pad_after(axis: pool_kernels.Axis) -> int:
    """Return the padding after the data that gives exactly the requested number of windows."""
    return axis.spans[-1][1] - axis.size - axis.pad[0]


@lowers("max_pool2d_with_index", "max_pool3d_with_index")
def max_pool_with_index(
    x: Array,
    *,
    ksize: list[int],
    strides: list[int],
    paddings: list[int],
    global_pooling: bool,
    adaptive: bool,
) -> Results:
    attrs = WindowAttrs(
        ksize=ksize, strides=strides, paddings=paddings, global_pooling=global_pooling, adaptive=adaptive
    )
    _, axes = attrs.count_windows("max_pool", x.shape[2:])
    if any(axis.stride is None for axis in axes):
        raise LoweringError("its windows have uneven sizes")
    padded = jnp.pad(
        x, [(0, 0), (0, 0), *((axis.pad[0], max(_pad_after(axis), 0)) for axis in axes)],
        constant_values=np.finfo(x.dtype).min,
    )  # fmt: skip
    places = np.stack(np.meshgrid(*[np.arange(axis.kernel) for axis in axes], indexing="ij"), -1)
    values, indexes = [], []
    for place in places.reshape(-1, len(axes)):
        where = tuple(axis.at(int(p)) for axis, p in zip(axes, place, strict=True))
        values.append(padded[(..., *where)])
        starts = [
            [a + int(p) - axis.pad[0] for a, _ in axis.spans] for axis, p in zip(axes, place, strict=True)
        ]
        indexes.append(pool_kernels.flatten_indices(starts, axes))
    stacked = jnp.stack(values)
    least = np.finfo(x.dtype).min
    seen = jnp.fmax(stacked, least)  # Paddle's comparisons are false for NaN
    first = jnp.argmax(seen, 0)
    known = jnp.stack([jnp.asarray(one, jnp.int32) for one in indexes])[:, None, None]
    index = jnp.take_along_axis(jnp.broadcast_to(known, stacked.shape), first[None], 0)[0]
    seen, out = (jnp.take_along_axis(each, first[None], 0)[0] for each in (seen, stacked))
    return jnp.where(seen > least, out, least), jnp.where(seen > least, index, -1)
