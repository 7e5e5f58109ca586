"""Check fed values against their variables and write them into the frame of a run."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray, SelectedRows, convert_dtype, numpy_dtype
from paddlelike.core.dtypes import unify_dtype
from paddlelike.errors import FeedError
from paddlelike.executor.plans.frame import Frame, write_persistable
from paddlelike.executor.plans.run_plan import Plan
from paddlelike.foundation.amounts import describe
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.framework.hints import explain_missing_axis
from paddlelike.framework.passes.views import has_updates

if TYPE_CHECKING:
    from paddlelike.core import Array, LoD
    from paddlelike.core.typing import FedValue
    from paddlelike.framework.typing import Feed


def get_single_feed(feed: Feed | Sequence[Feed] | None) -> Feed:
    """Return the feed of one copy, given as a dict or a list of one dict.

    Raises FeedError for a longer list, TypeError for anything else.
    """
    if type(feed) is dict:
        return feed
    if feed is None:
        return {}
    if isinstance(feed, list | tuple):
        if any(not isinstance(one, Mapping) for one in feed):
            raise TypeError(
                f"feed is a {type(feed).__name__} of {len(feed)}, the first {describe(feed[0])}; expected a "
                "dict of arrays by variable name\n  hint: feed={'x': x_array, 'y': y_array}"
            )
        if len(feed) != 1:
            raise FeedError(
                f"feed is a list of {len(feed)} dicts, expected a dict or a list of one",
                hint="several copies of a batch need fluid.CompiledProgram(...).with_data_parallel()",
            )
        feed = feed[0]
    if not isinstance(feed, Mapping):
        raise TypeError(
            f"feed is {describe(feed)}, expected a dict of arrays by variable name: {{'x': array}}"
        )
    return feed


def put_feeds(plan: Plan, frame: Frame, feeds: Feed) -> bool:
    """Write fed values into a frame, fed persistables also into the scope.

    Return whether another dtype was fed to a variable of real numbers: as in Fluid, kernels then compute in
    the fed dtype. Raises FeedError for a value that does not fit its variable.
    """
    find, values, ndarray, is_other = plan.fed.get, frame.values, np.ndarray, False
    for name, value in feeds.items():
        fed = find(name)
        if fed is None:
            continue  # as in Fluid, a feed may hold names that the program does not have
        variable, position, dtype, row = fed
        if (
            type(value) is ndarray
            and value.dtype is dtype
            and value.shape[1:] == row
            and value.flags.c_contiguous
            and value.size
        ):  # the usual case
            values[position] = value
            continue
        lod = None
        if type(value) is np.ndarray and value.dtype == dtype and _is_plain(value, variable.shape):
            array: Any = value if value.dtype is dtype else unify_dtype(value)
        else:
            array, lod = _convert(variable, value)
        if not getattr(array, "size", 1):
            _check_rows(variable, array)
        if dtype is not None and dtype.kind == "f" and getattr(array, "dtype", dtype).kind != "f":
            is_other = True
        if lod:
            frame.lods[position] = lod
        if name in plan.aliases.overwrites_feed:
            array = array.copy() if isinstance(array, np.ndarray) else array
        if position in frame.holders:
            array = write_persistable(frame, position, array)
        frame.values[position] = array
    return is_other


def warn_unknown(program: Program, names: Sequence[str]) -> None:
    """Warn, as Fluid does, of fed names that the program does not have; they are ignored."""
    known = [v.name for v in program.list_vars() if v.is_data] or [v.name for v in program.list_vars()]
    for name in names:
        near = suggest_names(name, known, lead="; ")
        warn_user(f"the fed variable {name!r} is not found in the program{near}")


def _is_plain(array: Array, shape: tuple[int, ...]) -> bool:
    """Return whether an array fits without any conversion, which is the fast path."""
    if array.ndim != len(shape) or not array.flags.c_contiguous:
        return False
    for dim, wanted in zip(array.shape, shape, strict=True):  # noqa: SIM110  (a generator takes as long again)
        if dim != wanted and wanted != -1:
            return False
    return True


def _suggest_array(value: object) -> str:
    """Return a hint for a value that is not an array."""
    if value is None:
        return "None is not data: did the function that makes the batch return it?"
    with suppress(Exception):  # of a class of the user
        if isinstance(value, list | tuple) and np.asarray(value).dtype.kind not in "OSU":
            return "wrap it: numpy.array(value, dtype); fluid.DataFeeder does so for lists of samples"
    return (
        "wrap numbers by numpy.array(value, dtype), rows of different lengths by fluid.create_lod_tensor; "
        "words become ids by a vocabulary"
    )


def _convert(variable: Variable, value: FedValue) -> tuple[Any, LoD | None]:
    """Return the array and the LoD of a fed value. Raises FeedError when they do not fit the variable."""
    lod = None
    if isinstance(value, LoDTensor):
        if value.held_array is None:
            raise FeedError(f"the tensor fed to {variable.name!r} is empty")
        array, lod = value.held_array, value._lod
    elif isinstance(value, SelectedRows | LoDTensorArray):
        return value, None
    elif isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, numbers.Number | np.generic):
        array = np.full(1, value, numpy_dtype(variable.dtype))
    else:
        raise FeedError(
            f"variable {variable.name!r} is fed a {type(value).__name__}; "
            "expected a numpy array, a LoDTensor or a number",
            hint=_suggest_array(value),
        )
    if array.dtype.kind in "OSUMm":
        raise FeedError(
            f"variable {variable.name!r} is fed an array of {array.dtype}, expected numbers",
            hint="words become ids by a vocabulary; rows of different lengths by fluid.create_lod_tensor",
        )
    if variable.need_check_feed:
        _check_fed(variable, array)
    if array.ndim == 1 < len(variable.shape) and variable.shape[0] in (-1, len(array)):
        _warn_flat(variable, array)
    array = unify_dtype(array.astype(array.dtype.newbyteorder("="), copy=False))
    return np.ascontiguousarray(array) if array.ndim else array, lod


def _check_rows(variable: Variable, array: Array) -> None:
    """Raise FeedError for a batch without rows in a training program: it would make all parameters NaN.

    In other programs, warn if one computes a mean. Sequences may be empty.
    """
    if variable.lod_level or array.shape[:1] != (0,) or variable.shape[:1] != (-1,):
        return
    ops = variable.block.program.global_block().ops
    if not any(op.type in ("mean", "reduce_mean") for op in ops):
        return
    what = f"variable {variable.name!r} is fed a batch of no rows (shape {list(array.shape)})"
    if has_updates(variable.block.program):
        raise FeedError(
            f"{what}, and the program trains on a mean: the loss and all parameters would become NaN",
            hint="leave out empty batches: `if len(array):` around the run",
        )
    warn_user(f"{what}, whose mean is NaN. Leave out empty batches: `if len(array):` around the run")


def _warn_flat(variable: Variable, array: Array) -> None:
    """Warn of a flat array for a variable with more dims: operators broadcast it along another dim."""
    rows = len(array)
    shape = ", ".join("None" if dim == -1 else str(dim) for dim in variable.shape)
    warn_user(
        f"variable {variable.name!r} has shape [{shape}] and is fed an array of shape [{rows}]; as in Fluid "
        f"it is not reshaped, so X - {variable.name} has shape [{rows}, {rows}] for X of shape [{rows}, 1]. "
        "Feed array.reshape(-1, 1)"
    )


def _check_fed(variable: Variable, array: Array) -> None:
    """Raise FeedError unless dtype and shape of an array match its variable."""
    if convert_dtype(array.dtype) != variable.dtype:
        raise FeedError(
            f"variable {variable.name!r} has dtype {numpy_dtype(variable.dtype)}, "
            f"the fed array has {array.dtype}",
            hint=f"convert it: array.astype({numpy_dtype(variable.dtype).name!r})",
        )
    want, have = variable.shape, array.shape
    if len(have) == 1 and want[:1] in ((-1,), have):
        return  # as in Fluid, the shape of a flat array is left to the operators
    fits = len(want) == len(have) and all(w in (-1, h) for w, h in zip(want, have, strict=True))
    if not fits:
        shown = ["None" if dim == -1 else str(dim) for dim in want]
        raise FeedError(
            f"variable {variable.name!r} has shape [{', '.join(shown)}], the fed array has {list(have)}",
            hint=explain_missing_axis(variable, have)
            or "None is any size; reshape the array, or declare the variable with the shape that is fed",
        )
