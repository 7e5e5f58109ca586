"""Lookups in tables that live on servers: distributed_lookup_table, prefetch, lookup_sparse_table."""

from __future__ import annotations

from paddlelike.core.dtypes import VarType
from paddlelike.framework.registry import (
    Bool,
    Int,
    Long,
    Longs,
    OpDef,
    Spec,
    String,
    Strings,
    register,
)

__all__ = ["DistributedLookupTable", "LookupSparseTable", "Prefetch"]


@register
class DistributedLookupTable(OpDef):
    """``Outputs[k][i] = W[Ids[k][i]]``, only the rows asked for coming over the network.

    Rows ``sum(height_sections[:j])`` and following of ``W`` are ``table_names[j]`` at ``endpoints[j]``. Ids
    have the form of ``lookup_table`` (last dim 1) or ``lookup_table_v2``, as ``lookup_table_version`` says.
    """

    type = "distributed_lookup_table"
    inputs = ("Ids*", "W")
    outputs = ("Outputs*",)
    attrs = {
        "table_names": Strings(("",)),
        "height_sections": Longs(()),
        "endpoints": Strings(("127.0.0.1:6164",)),
        "trainer_id": Int(0),
        "padding_idx": Long(-1),
        "lookup_table_version": String("lookup_table"),
        "dtype": Int(int(VarType.FP32)),
    }
    pure = False

    @staticmethod
    def infer(ids: list[Spec], w: Spec, *, lookup_table_version: str) -> list[Spec]:
        first_form = lookup_table_version == "lookup_table"
        return [Spec((*(one.shape[:-1] if first_form else one.shape), w.shape[1]), w.dtype) for one in ids]


@register
class Prefetch(OpDef):
    """``Out[i]``: the rows with the numbers ``X[i]`` of the table that server ``epmap[i]`` keeps."""

    type = "prefetch"
    inputs = ("X*",)
    outputs = ("Out*",)
    attrs = {"trainer_id": Int(0), "epmap": Strings(("127.0.0.1:6164",))}
    pure = False

    @staticmethod
    def infer(x: list[Spec]) -> None:
        """What comes has the shape that ``Out`` was declared with."""


@register
class LookupSparseTable(OpDef):
    """``Out[i]``: the row ``Ids[i, 0]`` of the SelectedRows ``W``.

    With ``auto_grown_table`` a row that is asked for the first time is added to ``W``, unless ``is_test``.
    """

    type = "lookup_sparse_table"
    inputs = ("W", "Ids")
    attrs = {"padding_idx": Long(-1), "auto_grown_table": Bool(True), "is_test": Bool(False)}
    pure = False

    @staticmethod
    def infer(w: Spec, ids: Spec) -> Spec:
        return Spec((-1, w.shape[1]), w.dtype)
