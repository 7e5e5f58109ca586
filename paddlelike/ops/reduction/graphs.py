"""Messages along the edges of graphs, as in ``paddle.geometric``: gathered at start nodes, reduced at end
nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Longs, String
from paddlelike.ops.later import register_kernel

_COMBINED: Final[dict[str, np.ufunc]] = {
    "ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide
}  # fmt: skip
_REDUCED: Final[dict[str, np.ufunc]] = {"SUM": np.add, "MEAN": np.add, "MAX": np.maximum, "MIN": np.minimum}
_SIZES: Final = {"reduce_op": String("SUM"), "out_size": Longs([0])}


@register_kernel("graph_send_recv", "X Src_index Dst_index Out_size? -> Out Dst_count?", _SIZES)
def _send_rows(
    x: Array, starts: Array, ends: Array, size: Array | None, *, reduce_op: str, out_size: list[int]
) -> tuple[Array, Array]:
    """The sum, mean, maximum or minimum of the rows of X that each node receives; zeros without any."""
    return _reduce(x[starts], ends, _find_size(x, size, out_size), reduce_op)


@register_kernel(
    "graph_send_ue_recv",
    "X Y Src_index Dst_index Out_size? -> Out Dst_count?",
    {"message_op": String("ADD"), **_SIZES},
)
def _send_edges(
    x: Array,
    y: Array,
    starts: Array,
    ends: Array,
    size: Array | None,
    *,
    message_op: str,
    reduce_op: str,
    out_size: list[int],
) -> tuple[Array, Array]:
    """``graph_send_recv`` of rows of X that are combined with the rows of Y for their edges."""
    return _reduce(_COMBINED[message_op](x[starts], y), ends, _find_size(x, size, out_size), reduce_op)


@register_kernel("graph_send_uv", "x y src_index dst_index -> out", {"message_op": String("ADD")})
def _combine_ends(x: Array, y: Array, starts: Array, ends: Array, *, message_op: str) -> Array:
    """For each edge, the row of X at its start combined with the row of Y at its end."""
    return np.asarray(_COMBINED[message_op](x[starts], y[ends]))


@register_kernel(
    "graph_reindex",
    "X Neighbors Count HashTable_Value? HashTable_Index? -> Reindex_Src Reindex_Dst Out_Nodes",
)
def _number_nodes(
    x: Array, neighbors: Array, count: Array, values: Array | None, places: Array | None
) -> tuple[Array, Array, Array]:
    """Number the nodes from 0 in order of appearance: first the nodes of X, then their neighbours."""
    nodes = np.concatenate([x, neighbors])
    known, first, inverse = np.unique(nodes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(order))
    targets = np.repeat(np.tile(np.arange(len(x)), len(count) // max(len(x), 1)), count)
    return numbers[inverse[len(x) :]].astype(x.dtype), targets.astype(x.dtype), known[order]


def _find_size(x: Array, size: Array | None, out_size: list[int]) -> int:
    wanted = int(size.reshape(-1)[0]) if size is not None else out_size[0] if out_size else 0
    return wanted if wanted > 0 else len(x)


def _reduce(rows: Array, ends: Array, size: int, kind: str) -> tuple[Array, Array]:
    if ends.size and not 0 <= ends.min() <= ends.max() < size:
        raise EnforceNotMet(f"edges end at nodes {ends.min()} to {ends.max()}, but there are {size} nodes")
    counts = np.bincount(ends, minlength=size).astype(np.int32)
    order = np.argsort(ends, kind="stable")
    out = np.zeros((size, *rows.shape[1:]), rows.dtype)
    if rows.size:
        first = np.flatnonzero(np.diff(ends[order], prepend=-1))
        out[ends[order][first]] = _REDUCED[kind].reduceat(rows[order], first)
    if kind == "MEAN":
        out /= np.maximum(counts, 1).reshape(-1, *[1] * (out.ndim - 1))
    return out, counts
