"""Look-ups in growing tables, in this process or on servers, and the counts that servers keep.

Paddle does not have these operators: it uses ``lookup_table``, and its servers create the tables.
"""

from __future__ import annotations

import numpy as np

from paddlelike.core import SelectedRows, VarType, numpy_dtype
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Gradient,
    Int,
    Long,
    OpDef,
    Spec,
    String,
    Strings,
    register,
)
from paddlelike.framework.opdef.remote import find_remote
from paddlelike.ops.kernels.growing_rows import GrowingRows, RowRule, draw_unit

#: The columns of a table's counts.
COUNTS = ("show", "click", "unseen_days")
_ADMITTED_BY = 0x5EED  # seed of the draw that ProbabilityEntry compares


class MakeSparseTableAttrs(Attrs):
    """Attributes of make_sparse_table: those of a RowRule, and whether rows may leave memory for a store."""

    width: int = Int()
    dtype: int = Int(int(VarType.FP32))
    kind: str = String("fill_constant")
    first: float = Float(0.0)
    second: float = Float(0.0)
    seed: int = Long(0)
    is_stored: bool = Bool(False)


@register
class MakeSparseTable(OpDef):
    """``Out``: an empty table, whose rows are made when their ids are first looked up."""

    type = "make_sparse_table"
    traceable = False
    inputs = ()
    outputs = ("Out",)
    attrs = MakeSparseTableAttrs.table()

    @staticmethod
    def infer(*, attrs: MakeSparseTableAttrs) -> None:
        """Leave the variable as it was declared."""

    @staticmethod
    def forward(*, attrs: MakeSparseTableAttrs) -> SelectedRows:
        rule = RowRule(attrs.kind, attrs.first, attrs.second, attrs.seed)
        return GrowingRows(attrs.width, numpy_dtype(attrs.dtype), rule, is_stored=attrs.is_stored)


@register
class SparseEmbedding(OpDef):
    """``Out[i...] = W[Ids[i...]]`` for any int64 ids; zeros for ``padding_idx`` and where W has no row.

    Unless ``is_test``, each id increases its count in Counts, and W gets rows for the ids that ``entry``
    admits.
    """

    type = "sparse_embedding"
    traceable = False
    inputs = ("W", "Counts", "Ids", "Show?", "Click?")
    outputs = ("Out",)
    attrs = {"padding_idx": Long(-1), "is_test": Bool(False), "entry": String("none")}
    lod = "Ids"
    gradient = Gradient("Out@GRAD", "W", "Ids", outputs=("W@GRAD",))

    @staticmethod
    def infer(w: Spec, counts: Spec, ids: Spec, show: Spec | None, click: Spec | None) -> Spec:
        return Spec((*ids.shape, w.shape[1]), w.dtype)

    @staticmethod
    def forward(
        w: SelectedRows,
        counts: SelectedRows,
        ids: Array,
        show: Array | None,
        click: Array | None,
        *,
        padding_idx: int,
        is_test: bool,
        entry: str,
    ) -> Array:
        asked, where = np.unique(ids.reshape(-1), return_inverse=True)
        where = where.reshape(-1)
        places = w.find_rows(asked)
        if padding_idx != -1:
            places[asked == padding_idx] = -1
        if not is_test:
            if not (isinstance(w, GrowingRows) and isinstance(counts, GrowingRows)):
                raise EnforceNotMet(
                    "sparse_embedding: W and Counts were not made by the startup program",
                    hint="run the startup program first",
                )
            held = np.flatnonzero(asked != padding_idx) if padding_idx != -1 else np.arange(len(asked))
            shows = _sum_by_id(show, ids, where, len(asked), 1.0)
            clicks = _sum_by_id(click, ids, where, len(asked), 0.0)
            seen = _count(counts, asked[held], shows[held], clicks[held])
            new = held[(places[held] < 0) & _admit(entry, asked[held], seen)]
            if len(new):
                places[new] = len(w.row_array) + np.arange(len(new))
                w.add_rows(asked[new])
        rows = w.held_array
        assert rows is not None
        found = np.zeros((len(asked), *rows.shape[1:]), rows.dtype)
        there = places >= 0
        found[there] = rows[places[there]]
        out: Array = found[where].reshape(*ids.shape, rows.shape[1])
        return out


def _sum_by_id(values: Array | None, ids: Array, where: Array, count: int, default: float) -> Array:
    """Return for each id the sum of the values of its rows in Ids, or the default."""
    if values is None:
        return np.bincount(where, minlength=count) * default
    if not len(ids) or values.size != len(ids):
        raise ShapeError(
            f"sparse_embedding: Show and Click must have one value for each of the {len(ids)} rows of Ids, "
            f"got {values.size}"
        )
    weights = np.repeat(values.reshape(-1), ids.size // len(ids))
    return np.bincount(where, weights, count)


def _count(counts: GrowingRows, ids: Array, shows: Array, clicks: Array) -> Array:
    """Increase the counts of distinct ids; return how often each was shown."""
    places = counts.find_rows(ids)
    new = places < 0
    if new.any():
        places[new] = len(counts.row_array) + np.arange(np.count_nonzero(new))
        counts.add_rows(ids[new])
    table = counts.held_array
    assert table is not None
    table[places, 0] += shows
    table[places, 1] += clicks
    table[places, 2] = 0
    counts.get_tensor().touch()
    return table[places, 0]


def _admit(entry: str, ids: Array, shows: Array) -> Array:
    """Return a mask of the ids that get a row."""
    name, *numbers = entry.split(":")
    if name == "count_filter_entry":
        return shows >= float(numbers[0])
    if name == "probability_entry":
        return draw_unit(ids, 1, _ADMITTED_BY)[:, 0] < float(numbers[0])
    return np.ones(len(ids), np.bool_)


@register
class SparseEmbeddingGrad(OpDef):
    """``dW[id] += dOut[i...]``, as SelectedRows; ids without a row are left out by the update."""

    type = "sparse_embedding_grad"
    inputs = ("Out@GRAD", "W", "Ids")
    outputs = ("W@GRAD",)
    attrs = SparseEmbedding.attrs
    forward_of = SparseEmbedding
    views = True

    @staticmethod
    def infer(d_out: Spec, w: Spec, ids: Spec) -> Spec:
        return Spec(w.shape, w.dtype, NO_LOD, VarType.SELECTED_ROWS)

    @staticmethod
    def forward(d_out: Array, w: SelectedRows, ids: Array, *, padding_idx: int) -> SelectedRows:
        rows = ids.reshape(-1)
        d_rows = d_out.reshape(len(rows), d_out.shape[-1])
        if padding_idx != -1:
            keep = rows != padding_idx
            rows, d_rows = rows[keep], d_rows[keep]
        return SelectedRows(rows, w.height(), d_rows)


@register
class DistributedSparseEmbedding(OpDef):
    """``Out`` as in sparse_embedding, from a table whose rows are distributed over servers by id.

    ``Seen`` holds the ids with their shows and clicks; the servers count these when the gradients arrive. So
    a look-up alone changes nothing: it returns the row that an id admitted by ``entry`` would get.
    """

    type = "distributed_sparse_embedding"
    inputs = ("W", "Counts?", "Ids", "Show?", "Click?")
    outputs = ("Out", "Seen")
    attrs = {**SparseEmbedding.attrs, "endpoints": Strings(("127.0.0.1:6164",)), "trainer_id": Int(0)}
    lod = "Ids"
    external = True

    @staticmethod
    def infer(
        w: Spec, counts: Spec | None, ids: Spec, show: Spec | None, click: Spec | None
    ) -> tuple[Spec, Spec]:
        seen = Spec((w.shape[0], 2), VarType.FP32, NO_LOD, VarType.SELECTED_ROWS)
        return Spec((*ids.shape, w.shape[1]), w.dtype, ids.lod_level), seen

    @staticmethod
    def forward(
        ctx: Context,
        w: SelectedRows,
        counts: SelectedRows | None,
        ids: Array,
        show: Array | None,
        click: Array | None,
        *,
        padding_idx: int,
        is_test: bool,
        entry: str,
    ) -> tuple[Array, SelectedRows]:
        asked, where = np.unique(ids.reshape(-1), return_inverse=True)
        where = where.reshape(-1)
        found, shown = find_remote(ctx).look_up_growing(ctx, asked)
        shows = _sum_by_id(show, ids, where, len(asked), 1.0)
        clicks = _sum_by_id(click, ids, where, len(asked), 0.0)
        held = np.full(len(asked), not is_test) & ((asked != padding_idx) | (padding_idx == -1))
        there = shown < 0
        there[held] |= _admit(entry, asked[held], shown[held] + shows[held])
        found[~there | ((asked == padding_idx) & (padding_idx != -1))] = 0
        seen = np.stack([shows, clicks], 1).astype(np.float32)
        out: Array = found[where].reshape(*ids.shape, found.shape[1])
        return out, SelectedRows(asked[held], w.height(), seen[held])


@register
class CountSparseTable(OpDef):
    """Add the ids that trainers have seen to a table's counts, and create rows for admitted ids."""

    type = "count_sparse_table"
    traceable = False
    inputs = ("Param", "Table", "Grad")
    outputs = ("ParamOut", "TableOut")
    attrs = {"entry": String("none")}
    inplace = {"ParamOut": "Param", "TableOut": "Table"}

    @staticmethod
    def infer(counts: Spec, table: Spec, seen: Spec) -> tuple[Spec, Spec]:
        return counts, table

    @staticmethod
    def forward(
        counts: GrowingRows, table: GrowingRows, seen: SelectedRows, *, entry: str
    ) -> tuple[GrowingRows, GrowingRows]:
        if len(seen.row_array):
            once = seen.merge()
            ids, values = once.row_array, once.held_array
            assert values is not None
            shown = _count(counts, ids, values[:, 0], values[:, 1])
            table.add_rows(ids[(table.find_rows(ids) < 0) & _admit(entry, ids, shown)])
        return counts, table
