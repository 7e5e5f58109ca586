"""What is fed to a run, checked against the variables and put into its frame."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core.dtypes import convert_dtype, numpy_dtype
from paddlelike.core.tensor import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.errors import FeedError
from paddlelike.executor.frame import Frame, keep
from paddlelike.framework.graph.variable import Variable

__all__ = ["one_feed", "put_feeds"]


def one_feed(feed: Any) -> Mapping[str, Any]:
    """The feed of one copy: a dict, or a list of one dict."""
    if feed is None:
        return {}
    if isinstance(feed, list | tuple):
        if len(feed) != 1:
            raise FeedError(f"feed is a dict or a list of one dict, not a list of {len(feed)}")
        feed = feed[0]
    if not isinstance(feed, Mapping):
        raise TypeError(f"feed is a dict of arrays by variable name, not {feed!r}")
    return feed


def put_feeds(frame: Frame, feeds: Mapping[str, Any]) -> None:
    """Put fed values into a frame; a fed persistable is written into the scope. Raises FeedError."""
    plan = frame.plan
    for name, value in feeds.items():
        fed = plan.fed.get(name)
        if fed is None:
            continue  # as Fluid: a feed may hold more than the program takes
        variable, number, dtype = fed
        lod = None
        if type(value) is np.ndarray and value.dtype == dtype and _is_plain(value, variable.shape):
            array: Any = value
        else:
            array, lod = _fed_value(variable, value)
        if lod:
            frame.lods[number] = lod
        if name in plan.aliases.overwrites_feed:
            array = array.copy() if isinstance(array, np.ndarray) else array
        frame.values[number] = keep(frame, number, array) if number in frame.holders else array


def _is_plain(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    """Whether an array just fits: the usual case, told quickly."""
    if array.ndim != len(shape) or not array.flags.c_contiguous:
        return False
    for dim, wanted in zip(array.shape, shape, strict=True):  # noqa: SIM110  (a generator takes as long again)
        if dim != wanted and wanted != -1:
            return False
    return True


def _fed_value(variable: Variable, value: Any) -> tuple[Any, Any]:
    """The array and the LoD of a fed value, checked against its variable."""
    lod = None
    if isinstance(value, LoDTensor):
        if value.array is None:
            raise FeedError(f"the tensor fed to {variable.name!r} is empty")
        array, lod = value.array, value._lod
    elif isinstance(value, SelectedRows | LoDTensorArray):
        return value, None
    elif isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, numbers.Number | np.generic):
        array = np.full(1, value, numpy_dtype(variable.dtype))
    else:
        raise FeedError(
            f"variable {variable.name!r} is fed a {type(value).__name__}; "
            "it takes a numpy array, a LoDTensor or a number",
            hint="wrap it: numpy.array(value, dtype), or use fluid.DataFeeder or fluid.create_lod_tensor",
        )
    if variable.need_check_feed:
        _check_fed(variable, array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(array) if array.ndim else array, lod


def _check_fed(variable: Variable, array: Any) -> None:
    got = convert_dtype(array.dtype)
    if got != variable.dtype:
        raise FeedError(
            f"variable {variable.name!r} has dtype {numpy_dtype(variable.dtype)}, "
            f"the fed array has {array.dtype}",
            hint=f"convert it: array.astype({numpy_dtype(variable.dtype).name!r})",
        )
    want, have = variable.shape, array.shape
    if len(have) == 1 and want[:1] == (-1,):
        return  # as Fluid: a flat array passes, the operators judge it
    fits = len(want) == len(have) and all(w in (-1, h) for w, h in zip(want, have, strict=True))
    if not fits:
        shown = ["None" if dim == -1 else str(dim) for dim in want]
        raise FeedError(
            f"variable {variable.name!r} has shape [{', '.join(shown)}], the fed array has {list(have)}",
            hint="None stands for any size; reshape the array or declare the variable as it is fed",
        )
