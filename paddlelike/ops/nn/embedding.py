"""Operators on tables of embeddings: lookup_table, and operators on its sparse gradients.

``lookup_table`` takes Ids of shape (..., 1), ``lookup_table_v2`` of any shape. Out has the dims of Ids
(without the 1), then the width of W.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    Array,
    Attr,
    Bool,
    Gradient,
    Int,
    Kernel,
    Long,
    Longs,
    OpDef,
    Spec,
    Strings,
    register,
)
from paddlelike.ops.kernels.fast.sums import find_held_rows, sum_rows

_NO_PADDING = -1
_UNSIGNED = np.dtype(np.uint64)
_MANY = 4  # rows of a table for each one looked up, below which the whole table takes less time


class _Lookup(OpDef):
    inputs = ("W", "Ids")
    attrs: ClassVar[dict[str, Attr]] = {
        "is_sparse": Bool(False),
        "is_distributed": Bool(False),
        "padding_idx": Long(_NO_PADDING),
        "remote_prefetch": Bool(False),
        "trainer_id": Int(0),
        "height_sections": Longs([]),
        "epmap": Strings([]),
        "table_names": Strings([]),
    }
    lod = "Ids"
    gradient = Gradient("Out@GRAD", "W", "Ids", outputs=("W@GRAD",))

    @staticmethod
    def forward(w: Array | SelectedRows, ids: Array, *, padding_idx: int) -> Array:
        if isinstance(w, SelectedRows):
            table, rows = w.held_array, _find_rows(w, ids.reshape(-1)).reshape(ids.shape)
            assert table is not None
        else:
            table, rows = w, ids
            _check_ids(ids, len(w), padding_idx)
        out = table.take(rows, axis=0, mode="clip")
        if padding_idx != _NO_PADDING:
            out[ids == padding_idx] = 0
        return out

    @staticmethod
    def infer(w: Spec, ids: Spec) -> Spec:
        if len(w.shape) != 2:
            raise ShapeError(f"lookup_table: W has shape {w.shape}, expected (rows, width)")
        return Spec((*ids.shape, w.shape[1]), w.dtype)


def _check_ids(ids: Array, height: int, padding_idx: int) -> None:
    """Raise EnforceNotMet when an id is neither a row of the table nor the padding."""
    if ids.size == 0:
        return
    if ids.dtype.itemsize == _UNSIGNED.itemsize:  # one pass: negative ids are the greatest without a sign
        unsigned = ids.view(_UNSIGNED)
        if unsigned.item(unsigned.argmax()) < height:  # max takes twice as long for a few ids
            return
    elif ids.min() >= 0 and ids.max() < height:
        return
    ids = ids.reshape(-1)
    outside = (ids < 0) | (ids >= height)
    if padding_idx != _NO_PADDING:
        outside &= ids != padding_idx
    wrong = np.flatnonzero(outside)
    if wrong.size:
        raise EnforceNotMet(
            f"lookup_table: Ids hold {int(ids[wrong[0]])} (element {int(wrong[0])} of {ids.size}), "
            f"but W has {height} rows",
            hint=f"ids go from 0 to {height - 1}; is the size of the embedding right?",
        )


def _find_rows(table: SelectedRows, ids: Array) -> Array:
    """Return the index of each id among the rows of a table that holds only some ids.

    Raises EnforceNotMet for an id that the table does not hold.
    """
    rows = table.find_rows(ids)
    if (rows < 0).any():
        raise EnforceNotMet(
            f"lookup_table: Ids hold {int(ids[rows < 0][0])}, "
            f"which is not one of the {len(table.row_array)} rows that the table W keeps",
            hint="is the table on parameter servers? The trainer's program fetches rows from there",
        )
    return rows


@register
class LookupTable(_Lookup):
    """``Out[i] = W[Ids[i, 0]]``; zeros where the id is ``padding_idx`` (-1: there is none)."""

    type = "lookup_table"
    by_row = True
    fluid_order = (
        "is_sparse is_distributed padding_idx grad_inplace remote_prefetch trainer_id height_sections "
        "epmap table_names"
    )
    attrs = {**_Lookup.attrs, "grad_inplace": Bool(False)}

    @staticmethod
    def infer(w: Spec, ids: Spec) -> Spec:
        if not ids.shape or ids.shape[-1] not in (1, -1):
            raise ShapeError(
                f"lookup_table: Ids has shape {ids.shape}, the last dim must be 1",
                hint="lookup_table_v2 (fluid.embedding) takes ids of any shape",
            )
        return _Lookup.infer(w, Spec(ids.shape[:-1], ids.dtype))

    @staticmethod
    def forward(w: Array | SelectedRows, ids: Array, *, padding_idx: int) -> Array:
        return _Lookup.forward(w, ids.reshape(ids.shape[:-1]), padding_idx=padding_idx)


@register
class LookupTableV2(_Lookup):
    """``Out[i...] = W[Ids[i...]]``; zeros where the id is ``padding_idx`` (-1: there is none)."""

    type = "lookup_table_v2"
    by_row = True


class _LookupGrad(OpDef):
    inputs = ("Out@GRAD", "W", "Ids")
    outputs = ("W@GRAD",)
    views = True

    @staticmethod
    def infer(d_out: Spec, w: Spec, ids: Spec, *, is_sparse: bool) -> Spec:
        kind = VarType.SELECTED_ROWS if is_sparse else VarType.LOD_TENSOR
        return Spec(w.shape, w.dtype, NO_LOD, kind)

    @staticmethod
    def forward(
        d_out: Array, w: Array | SelectedRows, ids: Array, *, is_sparse: bool, padding_idx: int
    ) -> Array | SelectedRows:
        rows = ids.reshape(-1)
        d_rows = d_out.reshape(len(rows), d_out.shape[-1])  # there may be no rows
        height = w.height() if isinstance(w, SelectedRows) else len(w)
        _check_ids(rows, height, padding_idx)
        if is_sparse:  # Paddle's sparse gradient keeps the rows of padding, the dense one does not
            return SelectedRows(rows, height, d_rows)
        return sum_rows(*_drop_padding(rows, d_rows, padding_idx), height)

    @classmethod
    def make_rows_kernel(cls, keywords: Mapping[str, Any]) -> Kernel | None:
        return None if keywords["is_sparse"] else functools.partial(_sum_looked_up, **keywords)


def _sum_looked_up(
    d_out: Array, w: Array | SelectedRows, ids: Array, *, is_sparse: bool, padding_idx: int
) -> Array | SelectedRows:
    """Return the dense gradient as rows of the looked-up ids, if these are few."""
    if isinstance(w, SelectedRows):
        return _LookupGrad.forward(d_out, w, ids, is_sparse=is_sparse, padding_idx=padding_idx)
    rows, height = ids.reshape(-1), len(w)
    _check_ids(rows, height, padding_idx)
    rows, d_rows = _drop_padding(rows, d_out.reshape(len(rows), d_out.shape[-1]), padding_idx)
    held, places = find_held_rows(rows, height)
    if len(held) * _MANY > height:
        return sum_rows(rows, d_rows, height)
    return SelectedRows(held, height, sum_rows(places, d_rows, len(held)))


def _drop_padding(rows: Array, d_rows: Array, padding_idx: int) -> tuple[Array, Array]:
    """Return ids and their gradients without the padding id."""
    if padding_idx == _NO_PADDING:
        return rows, d_rows
    keep = rows != padding_idx
    return rows[keep], d_rows[keep]


@register
class LookupTableGrad(_LookupGrad):
    """``dW[id] += dOut[i]`` for every id: dense, or as SelectedRows when ``is_sparse``."""

    type = "lookup_table_grad"
    attrs = LookupTable.attrs
    forward_of = LookupTable


@register
class LookupTableV2Grad(_LookupGrad):
    """``dW[id] += dOut[i...]`` for every id: dense, or as SelectedRows when ``is_sparse``."""

    type = "lookup_table_v2_grad"
    attrs = LookupTableV2.attrs
    forward_of = LookupTableV2


@register
class MergeSelectedRows(OpDef):
    """``Out``: X with distinct, sorted rows; the values of repeated rows are added up."""

    type = "merge_selected_rows"
    keeps_rows = True

    @staticmethod
    def infer(x: Spec) -> Spec:
        return Spec(x.shape or (0,), x.dtype, 0, VarType.SELECTED_ROWS)

    @staticmethod
    def forward(x: SelectedRows) -> SelectedRows:
        return x.merge()


@register
class GetTensorFromSelectedRows(OpDef):
    """``Out``: the values of the SelectedRows X, as a tensor of (number of rows, ...)."""

    type = "get_tensor_from_selected_rows"
    views = True

    @staticmethod
    def infer(x: Spec) -> Spec:
        return Spec(x.shape or (0,), x.dtype, NO_LOD, VarType.LOD_TENSOR)

    @staticmethod
    def forward(x: SelectedRows) -> Array:
        value = x.held_array
        assert value is not None
        return value
