"""Elementwise functions that write their result over an input that is no longer needed.

They save the memory of a result and the time to bring it into the cache. The results have the same bits as
the operator's formula, since the steps are the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array, Kernel
from paddlelike.ops.kernels.broadcasting import align, pad_dims
from paddlelike.ops.kernels.nn.image.layouts import apply_by_channel, is_last_in_memory
from paddlelike.ops.kernels.special import bound_below, sigmoid

#: By operator: takes out, X and the attributes.
_VALUES: Final[Mapping[str, Callable[..., Any]]] = {
    "exp": lambda out, x: np.exp(x, out=out),
    "log": lambda out, x: np.log(x, out=out),
    "sqrt": lambda out, x: np.sqrt(x, out=out),
    "square": lambda out, x: np.square(x, out=out),
    "abs": lambda out, x: np.abs(x, out=out),
    "tanh": lambda out, x: np.tanh(x, out=out),
    "relu": lambda out, x: bound_below(x, 0, out),
    "relu6": lambda out, x, *, threshold: np.clip(x, 0, threshold, out=out),
    "leaky_relu": lambda out, x, *, alpha: np.maximum(x, alpha * x, out=out),
    "sigmoid": lambda out, x: sigmoid(x, out),
}
#: By operator: takes out, what the gradient reads (Out), and the gradient of Out, over which it may write.
_SLOPES: Final[Mapping[str, Callable[..., Any]]] = {
    "exp": lambda out, y, d: np.multiply(d, y, out=out),
    "relu": lambda out, y, d: np.multiply(d, y > 0, out=out),
}


def make_value(name: str, keywords: Mapping[str, Any]) -> Kernel | None:
    """Return an overwriting kernel of an elementwise function; see ``OpDef.make_overwriting_kernel``."""
    write = _VALUES.get(name)
    return None if write is None else functools.partial(_write_value, write, keywords)


def make_slope(name: str, keywords: Mapping[str, Any]) -> Kernel | None:
    """Return an overwriting kernel of the gradient of an elementwise function."""
    write = _SLOPES.get(name)
    return None if write is None else functools.partial(_write_slope, write, keywords)


def make_binary(ufunc: Callable[..., Array], axis: int) -> Kernel | None:
    """Return an overwriting kernel of an operator with two tensors."""
    return functools.partial(_write_binary, ufunc, axis) if isinstance(ufunc, np.ufunc) else None


def _write_value(write: Callable[..., Any], keywords: Mapping[str, Any], out: Array, x: Array) -> bool:
    if x.dtype.kind != "f":
        return False
    write(out, x, **keywords)
    return True


def _write_slope(
    write: Callable[..., Any], keywords: Mapping[str, Any], out: Array, read: Any, d_out: Any
) -> bool:
    if out is not d_out or out.dtype.kind != "f" or not _is_alike(out, read):
        return False
    write(out, read, d_out, **keywords)
    return True


def _write_binary(ufunc: np.ufunc, axis: int, out: Array, x: Any, y: Any) -> bool:
    if _is_alike(x, y):
        ufunc(x, y, out=out)
    elif out is not x or type(y) is not np.ndarray or y.dtype is not x.dtype or not _covers(x, y, axis):
        return False
    elif is_last_in_memory(x) and y.shape == x.shape[1:2]:
        apply_by_channel(ufunc, x, y, over=True)
    elif x.flags.c_contiguous:
        ufunc(*align(x, y, axis), out=x)
    else:
        return False
    return True


def _is_alike(x: Any, y: Any) -> bool:
    """Return whether two arrays have one dtype and one shape, and lie in memory in one order."""
    return (
        type(x) is np.ndarray
        and type(y) is np.ndarray
        and x.dtype is y.dtype
        and x.shape == y.shape
        and x.strides == y.strides
    )


def _covers(x: Array, y: Array, axis: int) -> bool:
    """Return whether the result of X and Y, which is broadcast, has the shape of X."""
    if y.ndim > x.ndim or axis > x.ndim - y.ndim:
        return False
    dims = pad_dims(y.shape, x.ndim, axis)
    return all(dim in (1, whole) for dim, whole in zip(dims, x.shape, strict=True))
