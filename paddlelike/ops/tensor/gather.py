"""Operators that read or write at indexes in another array: gather, scatter, where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.core.rows import add_rows, sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.later import keep_attrs, register_kernel
from paddlelike.ops.operands import can_be_equal, normalize_axis


def _flatten_index(op: str, index: Array, height: int, slot: str = "Index") -> Array:
    """Return the index as one row. Raises EnforceNotMet when it points outside ``height`` rows."""
    rows = index.reshape(-1)
    if rows.size and not 0 <= rows.min() <= rows.max() < height:
        raise EnforceNotMet(
            f"{op}: {slot} goes from {rows.min()} to {rows.max()}, but there are {height} rows"
        )
    return rows


def _count_rows(op: str, index: Spec, slot: str = "Index") -> int:
    """Return the number of rows that an index of shape (N,) or (N, 1) selects."""
    if len(index.shape) == 1 or (len(index.shape) == 2 and index.shape[1] in (1, -1)):
        return index.shape[0]
    raise ShapeError(f"{op}: {slot} has shape {index.shape}, expected (N,) or (N, 1)")


@register
class Gather(OpDef):
    """``Out[i] = X[Index[i]]``.

    The gradient is ``dX[Index[i]] += dOut[i]``; as in Paddle, with ``overwrite`` only the last of repeated
    rows counts.
    """

    type = "gather"
    inputs = ("X", "Index")
    attrs = {"overwrite": Bool(True)}
    gradient = Gradient("Out@GRAD", "X", "Index", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, index: Spec) -> Spec:
        return Spec((_count_rows("gather", index), *x.shape[1:]), x.dtype)

    @staticmethod
    def forward(x: Array, index: Array) -> Array:
        return x.take(_flatten_index("gather", index, len(x)), axis=0)

    @staticmethod
    def backward(d_out: Array, x: Array, index: Array, *, overwrite: bool) -> Array:
        rows = index.reshape(-1)
        if not overwrite:
            return sum_rows(rows, d_out, len(x))
        d_x = np.zeros(x.shape, d_out.dtype)
        d_x[rows] = d_out
        return d_x


def _find_flat_indices(op: str, index: Array, dims: Sequence[int]) -> Array:
    """Return index vectors over the first dims of an array as one flat index each."""
    vectors = index.reshape(-1, index.shape[-1])
    try:
        return np.ravel_multi_index(tuple(vectors.T), tuple(dims[: vectors.shape[1]]))
    except ValueError:
        raise EnforceNotMet(f"{op}: Index points outside of an array of shape {list(dims)}") from None


def _gather_slices(x: Sequence[int], index: Sequence[int], op: str) -> tuple[int, ...]:
    if not index or not 1 <= index[-1] <= len(x):
        raise ShapeError(
            f"{op}: Index has shape {tuple(index)}, its last dim must be 1 .. {len(x)}, "
            f"the number of dims of X {tuple(x)}"
        )
    return (*index[:-1], *x[index[-1] :])


@register
class GatherNd(OpDef):
    """``Out[i...] = X[Index[i..., 0], Index[i..., 1], ...]``: Index holds positions in X."""

    type = "gather_nd"
    inputs = ("X", "Index")
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Index", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, index: Spec) -> Spec:
        return Spec(_gather_slices(x.shape, index.shape, "gather_nd"), x.dtype)

    @staticmethod
    def forward(x: Array, index: Array) -> Array:
        depth = index.shape[-1]
        places = _find_flat_indices("gather_nd", index, x.shape)
        rows = x.reshape(-1, *x.shape[depth:]).take(places, axis=0)
        return rows.reshape(*index.shape[:-1], *x.shape[depth:])

    @staticmethod
    def backward(d_out: Array, x: Array, index: Array) -> Array:
        depth = index.shape[-1]
        places = _find_flat_indices("gather_nd", index, x.shape)
        d_x = np.zeros(x.shape, d_out.dtype)
        values = d_out.reshape(-1, *x.shape[depth:])
        add_rows(d_x.reshape(-1, *x.shape[depth:]), places, values)
        return d_x


@register
class Scatter(OpDef):
    """``Out = X`` with ``Out[Ids[i]] = Updates[i]``; without ``overwrite``, the sum of the Updates.

    As in Paddle 1.8, dX is dOut, even in the overwritten rows.
    """

    type = "scatter"
    inputs = ("X", "Ids", "Updates")
    attrs = {"overwrite": Bool(True)}
    views = True
    gradient = Gradient("Out@GRAD", "Ids", "Updates", outputs=("X@GRAD", "Updates@GRAD"))

    @staticmethod
    def infer(x: Spec, ids: Spec, updates: Spec) -> Spec:
        count = _count_rows("scatter", ids, "Ids")
        want = (count, *x.shape[1:])
        if len(updates.shape) != len(x.shape) or not all(map(can_be_equal, updates.shape, want)):
            raise ShapeError(
                f"scatter: Updates has shape {updates.shape}, expected {want} "
                f"for Ids {ids.shape} and X {x.shape}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, ids: Array, updates: Array, *, overwrite: bool) -> Array:
        rows = _flatten_index("scatter", ids, len(x), "Ids")
        out = np.array(x, order="C")
        if overwrite:
            out[rows] = updates
        else:
            out[rows] = 0
            add_rows(out, rows, updates)
        return out

    @staticmethod
    def backward(d_out: Array, ids: Array, updates: Array) -> tuple[Array, Array]:
        return d_out, d_out.take(ids.reshape(-1), axis=0)


@register
class ScatterNdAdd(OpDef):
    """``Out = X`` with ``Out[Index[i..., 0], Index[i..., 1], ...] += Updates[i...]``."""

    type = "scatter_nd_add"
    inputs = ("X", "Index", "Updates")
    lod = "X"
    views = True
    gradient = Gradient("Out@GRAD", "Index", "Updates", outputs=("X@GRAD", "Updates@GRAD"))

    @staticmethod
    def infer(x: Spec, index: Spec, updates: Spec) -> Spec:
        want = _gather_slices(x.shape, index.shape, "scatter_nd_add")
        if len(updates.shape) != len(want) or not all(map(can_be_equal, updates.shape, want)):
            raise ShapeError(
                f"scatter_nd_add: Updates has shape {updates.shape}, expected {want} "
                f"for Index {index.shape} and X {x.shape}"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, index: Array, updates: Array) -> Array:
        depth = index.shape[-1]
        places = _find_flat_indices("scatter_nd_add", index, x.shape)
        out = np.array(x, order="C")
        rest = x.shape[depth:]
        add_rows(out.reshape(-1, *rest), places, updates.reshape(-1, *rest))
        return out

    @staticmethod
    def backward(d_out: Array, index: Array, updates: Array) -> tuple[Array, Array]:
        return d_out, GatherNd.forward(d_out, index)


@register
class IndexSelect(OpDef):
    """``Out``: the slices of X at the integers of Index along ``dim``."""

    type = "index_select"
    inputs = ("X", "Index")
    attrs = {"dim": Int(0)}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Index", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, index: Spec, *, dim: int) -> Spec:
        dim = normalize_axis("index_select", dim, len(x.shape), name="dim")
        count = _count_rows("index_select", index)
        return Spec((*x.shape[:dim], count, *x.shape[dim + 1 :]), x.dtype)

    @staticmethod
    def forward(x: Array, index: Array, *, dim: int) -> Array:
        return x.take(_flatten_index("index_select", index, x.shape[dim]), axis=dim)

    @staticmethod
    def backward(d_out: Array, x: Array, index: Array, *, dim: int) -> Array:
        first = np.ascontiguousarray(np.moveaxis(d_out, dim, 0))
        return np.moveaxis(sum_rows(index.reshape(-1), first, x.shape[dim]), 0, dim)


@register
class IndexSample(OpDef):
    """``Out[i, j] = X[i, Index[i, j]]``."""

    type = "index_sample"
    inputs = ("X", "Index")
    lod = "Index"
    gradient = Gradient("Out@GRAD", "X", "Index", outputs=("X@GRAD",), copies_attrs=False)

    @staticmethod
    def infer(x: Spec, index: Spec) -> Spec:
        if len(x.shape) != 2 or len(index.shape) != 2:
            raise ShapeError(
                f"index_sample: X has shape {x.shape} and Index {index.shape}, expected two dims each"
            )
        return Spec(index.shape, x.dtype)

    @staticmethod
    def forward(x: Array, index: Array) -> Array:
        _flatten_index("index_sample", index, x.shape[1])
        return np.take_along_axis(x, index, 1)

    @staticmethod
    def backward(d_out: Array, x: Array, index: Array) -> Array:
        places = np.arange(len(x))[:, None] * x.shape[1] + index
        return sum_rows(places.reshape(-1), d_out.reshape(-1), x.size).reshape(x.shape)


@register
class Where(OpDef):
    """``Out``: X where Condition holds, Y elsewhere."""

    type = "where"
    by_row = True
    inputs = ("Condition", "X", "Y")
    lod = "X"
    gradient = Gradient("Out@GRAD", "Condition", "X", "Y", outputs=("X@GRAD", "Y@GRAD"), copies_attrs=False)

    @staticmethod
    def infer(condition: Spec, x: Spec, y: Spec) -> Spec:
        for name, other in (("X", x), ("Y", y)):
            if len(other.shape) != len(condition.shape) or not all(
                map(can_be_equal, other.shape, condition.shape)
            ):
                raise ShapeError(
                    f"where: {name} has shape {other.shape} and Condition {condition.shape}; "
                    "they must be the same"
                )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(condition: Array, x: Array, y: Array) -> Array:
        return np.where(condition, x, y)

    @staticmethod
    def backward(
        d_out: Array, condition: Array, x: Array, y: Array, *, wanted: tuple[bool, bool]
    ) -> tuple[Array | None, Array | None]:
        zero = d_out.dtype.type(0)
        return (
            np.where(condition, d_out, zero) if wanted[0] else None,
            np.where(condition, zero, d_out) if wanted[1] else None,
        )


@register_kernel(
    "scatter_grad", "Out@GRAD Ids Updates -> X@GRAD Updates@GRAD", {"overwrite": Bool(True)}, changed=True
)
def _scatter_grad(d_out: Array, ids: Array, updates: Array, *, overwrite: bool) -> tuple[Array, Array]:
    """The gradients of ``scatter``. Overwritten rows of X get zeros, unlike in Fluid."""
    rows = ids.reshape(-1)
    is_written = np.isin(np.arange(len(d_out)), rows).reshape(-1, *[1] * (d_out.ndim - 1))
    return np.where(is_written, d_out.dtype.type(0), d_out), d_out.take(rows, axis=0)


@register_kernel(
    "gather", "X Index Axis? -> Out", {"axis": Int(0)}, changed=True, make_grad=classmethod(keep_attrs)
)
def _gather(x: Array, index: Array, tensor: Array | None, *, axis: int) -> Array:
    """The slices of X along an axis that an index selects."""
    at = axis if tensor is None else int(tensor.item())
    return x.take(index.reshape(-1) if index.ndim else index, at)


@register_kernel(
    "gather_grad", "X Index Axis? Out@GRAD -> X@GRAD", {"axis": Int(0)}, changed=True, traceable=False
)
def _gather_grad(x: Array, index: Array, tensor: Array | None, d_out: Array, *, axis: int) -> Array:
    """For each slice of X, the sum of the gradients of its copies; Fluid uses the gradient of the last
    copy.
    """
    at = (axis if tensor is None else int(tensor.item())) % x.ndim
    rows = index.reshape(-1) % x.shape[at]  # forwards, negative ids count from the end
    slices = d_out.reshape(*x.shape[:at], len(rows), *x.shape[at + 1 :])
    first = np.ascontiguousarray(np.moveaxis(slices, at, 0))
    return np.moveaxis(sum_rows(rows, first, x.shape[at]), 0, at)


@register_kernel("take_along_axis", "Input Index -> Result", {"Axis": Int(0)})
def _take_along_axis(x: Array, index: Array, *, Axis: int) -> Array:  # noqa: N803
    """The elements along an axis at the index given for each position."""
    return np.take_along_axis(x, index, Axis)


@register_kernel("masked_select", "X Mask -> Y")
def _masked_select(x: Array, mask: Array) -> Array:
    """The elements where the mask is true, in one row."""
    x, mask = np.broadcast_arrays(x, mask)
    return x[mask]
