"""Values while a program is traced: arrays, sequences with padding, and the rows of a sparse gradient."""

from __future__ import annotations

import functools
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.core import memory

_ALIGNMENT: Final = 64  # bytes; XLA copies arrays that begin elsewhere
_LARGE: Final = 100_000  # bytes; XLA copies more than that in a thread of its own
_FEW: Final = 4  # from this many rows of a table for each row looked up, updating only the latter is faster


@jax.tree_util.register_pytree_node_class
class Packed:
    """Concatenated sequences with unused rows at the end, so that few shapes are compiled.

    Nothing may depend on the unused rows. They hold copies of the first row, which keeps functions of single
    rows finite there; their gradient is zero.

    Attributes
    ----------
    rows : array
        Shape (T, ...); T is a bucket.
    offsets : tuple of arrays
        One per level, as LoD has them; none for rows without a LoD when only the first ones are in use.
    longest : int
        A bucket: no sequence of the last level has more rows.
    shown : bool
        Whether the variable has the LoD outside of the computation, too.
    live : array or None
        Shape (): the number of sequences of the first level, or of rows without a LoD, that are in use. None
        means all. The others do not have rows.
    source : int or None
        The position of the piece's input whose lengths give the number of sequences in use.
    exact : bool
        Whether the longest sequence has just ``longest`` rows.
    full : bool
        Whether there are no unused rows; all sequences have one length then.
    """

    def __init__(
        self,
        rows: Array,
        offsets: tuple[Array, ...],
        longest: int,
        *,
        shown: bool = True,
        live: Array | None = None,
        source: int | None = None,
        exact: bool = False,
        full: bool = False,
    ) -> None:
        self.rows, self.offsets, self.longest, self.shown = rows, offsets, longest, shown
        self.live, self.source, self.exact = live, source, exact
        self.full = full

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arrays, and the properties that are fixed when a program is traced."""
        live = () if self.live is None else (self.live,)
        known = (len(self.offsets), self.longest, self.shown, self.source, self.exact, self.full)
        return (self.rows, *self.offsets, *live), known

    @classmethod
    def tree_unflatten(cls, known: tuple[Any, ...], arrays: tuple[Any, ...]) -> Packed:
        """Return a value built from these arrays."""
        levels, longest, shown, source, exact, full = known
        live = arrays[1 + levels] if len(arrays) > 1 + levels else None
        rows, offsets = arrays[0], tuple(arrays[1 : 1 + levels])
        return cls(rows, offsets, longest, shown=shown, live=live, source=source, exact=exact, full=full)

    @property
    def count(self) -> int:
        """The number of sequences of the last level."""
        return int(self.offsets[-1].shape[0]) - 1

    @property
    def lengths(self) -> Array:
        """The lengths of the sequences of the last level."""
        return self.offsets[-1][1:] - self.offsets[-1][:-1]

    @property
    def total(self) -> Array:
        """Shape (): the number of rows in use."""
        return self.offsets[-1][-1] if self.offsets else self.live

    @property
    def used(self) -> Array:
        """Shape (T,): whether a row belongs to a sequence."""
        return jnp.arange(self.rows.shape[0]) < self.total

    def index_rows(self) -> Array:
        """Return for each row the index of its sequence; the number of sequences for unused rows."""
        return jnp.searchsorted(self.offsets[-1][1:], jnp.arange(self.rows.shape[0]), side="right")

    def mask(self, rows: Array | None = None, unused: jax.typing.ArrayLike = 0) -> Array:
        """Return the rows, or the given ones, with ``unused`` in place of unused rows."""
        rows = self.rows if rows is None else rows
        used = self.used.reshape(-1, *[1] * (rows.ndim - 1))
        return jnp.where(used, rows, jnp.asarray(unused, rows.dtype))

    def replace(self, rows: Array, *, shown: bool | None = None) -> Packed:
        """Return sequences of the same lengths with other rows."""
        shown = self.shown if shown is None else shown
        return Packed(
            rows, self.offsets, self.longest,
            shown=shown, live=self.live, source=self.source, exact=self.exact, full=self.full,
        )  # fmt: skip


def get_rows(value: Array | Packed) -> Array:
    """Return the rows of sequences; an array as it is."""
    return value.rows if isinstance(value, Packed) else value


@jax.tree_util.register_pytree_node_class
class SparseRows:
    """Some rows of a tall matrix: a sparse gradient. Repeated rows add up."""

    def __init__(self, rows: Array, values: Array, height: int) -> None:
        self.rows, self.values, self.height = rows, values, height

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Return the arrays, and the number of rows of the whole."""
        return (self.rows, self.values), self.height

    @classmethod
    def tree_unflatten(cls, height: int, arrays: tuple[Any, ...]) -> SparseRows:
        """Return a value built from these arrays."""
        return cls(arrays[0], arrays[1], height)

    @property
    def has_few_rows(self) -> bool:
        """Whether work on these rows alone takes less time than on the whole matrix."""
        return self.rows.shape[0] * _FEW <= self.height

    def merge(self) -> SparseRows:
        """Return the unique rows in ascending order; unused entries have rows beyond the height."""
        size = min(self.rows.shape[0], self.height)
        ids = self.rows.astype(jnp.int32) if self.height < 2**31 else self.rows  # sorted in less time
        rows, places = jnp.unique(ids, size=size, fill_value=self.height, return_inverse=True)
        values = jnp.zeros((size, *self.values.shape[1:]), self.values.dtype).at[places].add(self.values)
        return SparseRows(rows.astype(self.rows.dtype), values, self.height)

    def to_dense(self) -> Array:
        """Return the whole matrix."""
        whole = jnp.zeros((self.height, *self.values.shape[1:]), self.values.dtype)
        return whole.at[self.rows].add(self.values)


@functools.cache
def find_array_type() -> type:
    """Return the class of JAX's arrays. Comparing with it is ten times faster than ``isinstance``."""
    return type(jnp.zeros(0))


def is_large(array: np.ndarray[Any, Any]) -> bool:
    """Return whether XLA would wait for another thread that copies an unaligned array."""
    return array.nbytes > _LARGE


def align_feed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a feed, or an aligned copy of it that XLA need not copy again.

    While a thread copies an input, XLA cannot compute in the thread of the caller.
    """
    if not is_large(array) or array.__array_interface__["data"][0] % _ALIGNMENT == 0:
        return array
    return memory.place(array)


#: An argument of an operator that takes sequences.
Value: TypeAlias = Array | Packed
