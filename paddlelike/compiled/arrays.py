"""Values of loops while a program is traced: arrays of tensors, rank tables, saved steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed
from paddlelike.core import LoDTensor, LoDTensorArray
from paddlelike.ops.control.rank_table import RankTable

_KNOWN = (np.ndarray, np.generic)  # while a program is traced


def index_tree(stacked: Any, place: Array | int) -> object:
    """Return element ``place`` of values stacked along the first axis."""
    return jax.tree_util.tree_map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, place, 0, keepdims=False), stacked
    )


def write_tree(stacked: Any, value: Any, place: Array | int) -> object:
    """Return stacked values with the element at ``place`` replaced."""
    return jax.tree_util.tree_map(
        lambda leaf, one: jax.lax.dynamic_update_index_in_dim(leaf, one.astype(leaf.dtype), place, 0),
        stacked,
        value,
    )


def stack_zeros(value: Any, count: int) -> object:
    """Return ``count`` stacked zeros with the structure of a value (or of its shapes)."""
    return jax.tree_util.tree_map(
        lambda leaf: jnp.zeros((count, *jnp.shape(leaf)), jnp.result_type(leaf)), value
    )


@jax.tree_util.register_pytree_node_class
class TensorArray:
    """A stacked array of tensors of one shape, with room for every element that a loop may write.

    Elements that were not written are zero.

    Attributes
    ----------
    stacked
        A value whose arrays have one more dim in front: (capacity, ...).
    length : array
        Shape (): the number of elements, as Paddle counts them.
    touched : list
        The places that were written since this object was made; not kept when it passes through JAX.
    """

    def __init__(self, stacked: Any, length: Array | int) -> None:
        self.stacked, self.length = stacked, length
        self.touched: list[Any] = []

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        """Return the arrays."""
        return (self.stacked, self.length), None

    @classmethod
    def tree_unflatten(cls, known: None, arrays: tuple[Any, Any]) -> TensorArray:
        """Return a value built from these arrays."""
        return cls(*arrays)

    @property
    def capacity(self) -> int:
        """The number of elements for which the array has room."""
        return int(jax.tree_util.tree_leaves(self.stacked)[0].shape[0])

    def read(self, place: Array | int) -> Any:
        """Return an element."""
        return index_tree(self.stacked, place)

    def write(self, place: Array | int, value: Any) -> TensorArray:
        """Return an array with one element replaced. Raises LoweringError for an element of another shape."""
        shapes = jax.tree_util.tree_map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.stacked
        )
        stacked = self.stacked
        if isinstance(value, Packed) and not isinstance(stacked, Packed):  # some rows instead of all
            stacked = _count_rows(stacked, value)
            shapes = jax.tree_util.tree_map(
                lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), stacked
            )
        value = fit(value, shapes, "an element of an array")
        known = isinstance(place, _KNOWN) and isinstance(self.length, _KNOWN)
        length = (np if known else jnp).maximum(self.length, place + 1)
        new = TensorArray(write_tree(stacked, value, place), length)
        new.touched = [*self.touched, place]
        return new

    def grow(self, capacity: int) -> TensorArray:
        """Return an array with room for at least ``capacity`` elements."""
        more = capacity - self.capacity
        if more <= 0:
            return self
        widths = [(0, more)]
        grown = jax.tree_util.tree_map(
            lambda leaf: jnp.pad(leaf, widths + [(0, 0)] * (leaf.ndim - 1)), self.stacked
        )
        return TensorArray(grown, self.length)

    def empty(self) -> TensorArray:
        """Return an empty array with the same shapes and dtypes."""
        return TensorArray(jax.tree_util.tree_map(jnp.zeros_like, self.stacked), np.zeros((), np.int64))

    def to_host(self) -> LoDTensorArray:
        """Return the array in the form of numpy's kernels."""
        out = LoDTensorArray()
        for place in range(int(self.length)):
            element = jax.tree_util.tree_map(lambda leaf, at=place: np.asarray(leaf)[at], self.stacked)
            if isinstance(element, Packed):
                lod = [[int(n) for n in level] for level in element.offsets]
                out.append(LoDTensor(np.array(element.rows[: int(element.total)]), lod))
            else:
                out.append(LoDTensor(np.array(element)))
        return out


@jax.tree_util.register_pytree_node_class
class Ranks:
    """A rank table: the sequences of the last level of a LoD, the longest first.

    Attributes
    ----------
    order, lengths : array
        Shape (n,): the indices of the sequences, and their lengths in that order.
    offsets : tuple of arrays
        The LoD of the variable that was sorted.
    longest, rows : int
        Buckets: an upper bound of the lengths, and the number of rows of the variable, unused ones
        included.
    source : int or None
        The position of the piece's input that has this LoD.
    """

    def __init__(
        self,
        order: Array,
        lengths: Array,
        offsets: tuple[Array, ...],
        longest: int,
        rows: int,
        source: int | None,
    ) -> None:
        self.order, self.lengths, self.offsets = order, lengths, offsets
        self.longest, self.rows, self.source = longest, rows, source

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arrays, and the properties that are fixed when a program is traced."""
        return (self.order, self.lengths, *self.offsets), (self.longest, self.rows, self.source)

    @classmethod
    def tree_unflatten(cls, known: tuple[Any, ...], arrays: tuple[Any, ...]) -> Ranks:
        """Return a value built from these arrays."""
        return cls(arrays[0], arrays[1], tuple(arrays[2:]), *known)

    def count(self, step: Array) -> Array:
        """Return how many sequences have a step."""
        return (self.lengths > step).sum().astype(jnp.int32)

    def to_host(self) -> RankTable:
        """Return the table in the form of numpy's kernels."""
        lod = [np.asarray(level).tolist() for level in self.offsets]
        return RankTable(
            np.asarray(self.order).tolist(), np.asarray(self.lengths).tolist(), len(lod) - 1, lod
        )


@jax.tree_util.register_pytree_node_class
class SavedSteps:
    """The values that the gradient of a block reads from each step, by position.

    Attributes
    ----------
    before, after : dict
        The variables that a step overwrites, with their values before the step, and the block's own
        variables, with their values after it; stacked by step where the block is a loop.
    entry : dict
        The overwritten variables, with their values before the first step.
    count : array
        Shape (): the number of steps that ran; for a branch, whether it ran.
    """

    def __init__(self, before: Any, after: Any, entry: Any, count: Array) -> None:
        self.before, self.after, self.entry, self.count = before, after, entry, count

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the arrays."""
        return (self.before, self.after, self.entry, self.count), None

    @classmethod
    def tree_unflatten(cls, known: None, arrays: tuple[Any, ...]) -> SavedSteps:
        """Return a value built from these arrays."""
        return cls(*arrays)


def add_arrays(one: Any, other: Any) -> object:
    """Return the sum of two gradients of the same structure; of two counts of rows, the larger one is
    kept.
    """
    return jax.tree_util.tree_map(
        lambda a, b: a + b if jnp.issubdtype(jnp.result_type(a), jnp.floating) else _larger(a, b), one, other
    )


def _larger(a: Any, b: Any) -> object:
    return (np if isinstance(a, _KNOWN) and isinstance(b, _KNOWN) else jnp).maximum(a, b)


def fit(value: Any, like: Any, what: str = "a value") -> Any:
    """Convert a value to the form of another value, or of its shapes.

    Raises LoweringError for another shape or dtype, since values that a loop carries keep their form.
    """
    if isinstance(like, Packed) and not isinstance(value, Packed | TensorArray) and not like.offsets:
        value = _count_rows_once(value, like)
    if isinstance(like, TensorArray) and isinstance(value, TensorArray):
        if isinstance(like.stacked, Packed) and not isinstance(value.stacked, Packed):
            value = TensorArray(_count_rows(value.stacked, like.stacked), value.length)
        value = value.grow(like.capacity)
    leaves, form = jax.tree_util.tree_flatten(value)
    wanted, wanted_form = jax.tree_util.tree_flatten(like)
    if len(leaves) != len(wanted) or (type(value) is not type(like) and isinstance(value, Packed)):
        raise LoweringError(f"{what} changes its form in a block: from {wanted_form} to {form}")
    found = []
    for leaf, model in zip(leaves, wanted, strict=True):
        if jnp.shape(leaf) != tuple(model.shape) or jnp.result_type(leaf) != model.dtype:
            raise LoweringError(
                f"a block changes {what} of {model.dtype}{list(model.shape)} "
                f"into {jnp.result_type(leaf)}{list(jnp.shape(leaf))}"
            )
        found.append(jax.lax.convert_element_type(leaf, model.dtype))
    return jax.tree_util.tree_unflatten(wanted_form, found)


def _count_rows(stacked: Any, like: Packed) -> Packed:
    """Convert stacked tensors to stacked rows, all of them in use."""
    live = jnp.full(stacked.shape[0], stacked.shape[1], jnp.int32)
    return Packed(stacked, (), like.longest, shown=False, live=live, source=like.source)


def _count_rows_once(value: Any, like: Packed) -> Packed:
    live = jnp.asarray(jnp.shape(value)[0], jnp.int32)
    return Packed(jnp.asarray(value), (), like.longest, shown=False, live=live, source=like.source)
