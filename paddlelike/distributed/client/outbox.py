"""The gradients that a trainer is about to push to a server, checked and ready to travel."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paddlelike.core import Array, SelectedRows
from paddlelike.distributed.placement import Entry, rows_at, values_at
from paddlelike.distributed.wire import Part, as_bytes
from paddlelike.errors import GraphError

Value = Array | SelectedRows
Outbox = dict[int, Value]  #: gradients of one push to one server, by index of the entry

SAME_NETWORK = "trainers and servers must be transpiled from the same network in the same way"


def fit_gradient(entry: Entry, name: str, value: Value, endpoint: str) -> Value:
    """Return a gradient in the form to send: arrays are contiguous and no row id repeats.

    Raises
    ------
    GraphError
        The server does not take gradients for that entry, or expects another shape or element type.
    """
    if (
        type(value) is np.ndarray
        and value.shape == entry.shape
        and value.dtype == entry.numpy_dtype
        and value.flags.c_contiguous
        and entry.kind.is_pushed
    ):
        return value
    if not entry.kind.is_pushed:
        raise GraphError(
            f"{name!r} is sent to the server at {endpoint} as a gradient; its kind there is {entry.kind}"
        )
    if isinstance(value, SelectedRows):
        value = value.merge() if value.held_array is not None and value.held_array.size else _no_rows(entry)
        assert value.held_array is not None
        shape, dtype = (value.height(), *value.held_array.shape[1:]), value.held_array.dtype
    else:
        value = np.ascontiguousarray(value)
        shape, dtype = value.shape, value.dtype
    if shape != entry.shape or dtype != entry.numpy_dtype:
        raise GraphError(
            f"{name!r} for the server at {endpoint}: expected {entry.numpy_dtype}{list(entry.shape)}, "
            f"got {dtype}{list(shape)}",
            hint=SAME_NETWORK,
        )
    return value


def row_counts(outbox: Outbox) -> tuple[tuple[int, int], ...]:
    """Return (index of the entry, number of rows) for the gradients that are selected rows."""
    return tuple((i, len(v.row_array)) for i, v in outbox.items() if isinstance(v, SelectedRows))


def outbox_parts(outbox: Outbox) -> Iterator[Part]:
    """Return the gradients as parts of a call."""
    for index, value in sorted(outbox.items()):
        yield from value_parts(index, value)


def value_parts(index: int, value: Value) -> Iterator[Part]:
    """Return one gradient, of the entry ``index``, as parts of a call."""
    if isinstance(value, SelectedRows):
        assert value.held_array is not None
        yield Part(rows_at(index), 0, as_bytes(value.row_array))
        yield Part(values_at(index), 0, as_bytes(np.ascontiguousarray(value.held_array)))
    else:
        yield Part(values_at(index), 0, as_bytes(value))


def _no_rows(entry: Entry) -> SelectedRows:
    return SelectedRows([], entry.shape[0], np.empty((0, *entry.shape[1:]), entry.numpy_dtype))
