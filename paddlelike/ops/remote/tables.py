"""Lookups in tables on servers: distributed_lookup_table, prefetch, lookup_sparse_table."""

from __future__ import annotations

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import (
    Array,
    Bool,
    Context,
    Int,
    Long,
    Longs,
    OpDef,
    Spec,
    String,
    Strings,
    register,
)
from paddlelike.framework.opdef.remote import find_remote


@register
class DistributedLookupTable(OpDef):
    """``Outputs[k][i] = W[Ids[k][i]]``; only the requested rows come over the network.

    Server ``endpoints[j]`` keeps ``height_sections[j]`` rows of ``W``, in order, as ``table_names[j]``.
    ``lookup_table_version`` is the operator whose form Ids have: ``lookup_table`` (last dim 1) or
    ``lookup_table_v2``.
    """

    type = "distributed_lookup_table"
    inputs = ("Ids*", "W")
    outputs = ("Outputs*",)
    attrs = {
        "table_names": Strings(("",)),
        "height_sections": Longs(()),
        "endpoints": Strings(("127.0.0.1:6164",)),
        "trainer_id": Int(0),
        "lookup_table_version": String("lookup_table"),
        "padding_idx": Long(-1),
        "dtype": Int(int(VarType.FP32)),
    }
    external = True

    @staticmethod
    def infer(ids: list[Spec], w: Spec, *, lookup_table_version: str) -> list[Spec]:
        first_form = lookup_table_version == "lookup_table"
        shapes = [one.shape[:-1] if first_form else one.shape for one in ids]
        levels = [one.lod_level for one in ids]
        return [Spec((*s, w.shape[1]), w.dtype, level) for s, level in zip(shapes, levels, strict=True)]

    @staticmethod
    def forward(ctx: Context, ids: list[Array], w: Array | None) -> list[Array]:
        return find_remote(ctx).lookup(ctx, ids)


@register
class Prefetch(OpDef):
    """``Out[i]``: the rows of the ids ``X[i]`` in the table that server ``epmap[i]`` keeps."""

    type = "prefetch"
    until = "1"
    inputs = ("X*",)
    outputs = ("Out*",)
    attrs = {"trainer_id": Int(0), "epmap": Strings(("127.0.0.1:6164",))}
    external = True

    @staticmethod
    def infer(x: list[Spec]) -> None:
        """Leave ``Out`` as declared."""

    @staticmethod
    def forward(ctx: Context, x: list[Array]) -> list[Array]:
        return find_remote(ctx).prefetch(ctx, x)


@register
class LookupSparseTable(OpDef):
    """``Out[i]``: the row ``Ids[i, 0]`` of the SelectedRows ``W``.

    With ``auto_grown_table`` an id that ``W`` lacks is added to it as a new row, unless ``is_test``.
    """

    type = "lookup_sparse_table"
    until = "1"
    traceable = False
    inputs = ("W", "Ids")
    attrs = {"padding_idx": Long(-1), "auto_grown_table": Bool(True), "is_test": Bool(False)}

    @staticmethod
    def infer(w: Spec, ids: Spec) -> Spec:
        return Spec((len(ids.shape), *w.shape[1:]), w.dtype)  # sic: Paddle declares the rank of Ids

    @staticmethod
    def forward(
        w: SelectedRows, ids: Array, *, padding_idx: int, auto_grown_table: bool, is_test: bool
    ) -> Array:
        asked = ids.reshape(-1)
        at = _find_places(w, asked, grow=auto_grown_table and not is_test)
        assert w.held_array is not None
        found: Array = np.where(at[:, None] >= 0, w.held_array[at], 0).astype(w.held_array.dtype, copy=False)
        if padding_idx >= 0:
            found[asked == padding_idx] = 0
        return found


def _find_places(w: SelectedRows, asked: Array, *, grow: bool) -> Array:
    """Return the row of each id in the table, or -1; new ids may get the next free rows."""
    at = w.find_rows(asked)
    if grow and (at < 0).any():
        new = np.array(list(dict.fromkeys(asked[at < 0].tolist())))  # in the order of their first mention
        held, room = len(w.row_array), 0 if w.held_array is None else len(w.held_array)
        if held + len(new) > room:
            raise EnforceNotMet(
                f"lookup_sparse_table: W has room for {room} rows and holds {held}; "
                f"{len(new)} new ids do not fit",
                hint="give the table of embedding(is_distributed=True) a row for each id",
            )
        w.add_rows(new)
        at = w.find_rows(asked)
    return at
