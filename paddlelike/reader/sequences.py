"""LoD tensors from lists or arrays of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from paddlelike.core import LoDTensor, Place
from paddlelike.errors import EnforceNotMet, FeedError

if TYPE_CHECKING:
    from paddlelike.core import Array


def create_lod_tensor(
    data: Array | LoDTensor | Sequence[Sequence[int] | Array],
    recursive_seq_lens: Sequence[Sequence[int]],
    place: Place | None = None,
) -> LoDTensor:
    """Return a tensor divided into sequences of the given lengths.

    ``data`` is an array whose rows are the elements of all sequences, another LoDTensor, or a list of lists
    of ids, one list per sequence, which becomes int64 of shape ``(N, 1)``.

    Parameters
    ----------
    data
        An array, a LoDTensor, or a list of sequences of ids.
    recursive_seq_lens
        The lengths of the sequences, a list for each level.
    place
        It is not needed on a CPU.

    Returns
    -------
    LoDTensor
        (N, 1) of int64 for lists, else the shape and dtype of ``data``; with the offsets of the sequences.

    Raises
    ------
    FeedError
        The lists have other lengths than ``recursive_seq_lens``.
    EnforceNotMet
        The lengths do not add up to the rows.
    TypeError
        ``data`` has another type.

    >>> create_lod_tensor([[1, 2], [3, 4, 5]], [[2, 3]]).lod()
    [[0, 2, 5]]
    """
    if isinstance(data, LoDTensor):
        data = np.array(data)
    elif isinstance(data, list):
        flat = [np.ravel(sequence) for sequence in data]
        lengths = [len(sequence) for sequence in flat]
        if lengths != list(recursive_seq_lens[-1]):
            raise FeedError(
                f"the {len(lengths)} lists have lengths {lengths}, expected {list(recursive_seq_lens[-1])}"
            )
        data = np.concatenate(flat).astype(np.int64).reshape(-1, 1)
    if not isinstance(data, np.ndarray):
        raise TypeError(f"data must be a numpy array, a LoDTensor or a list of lists, got {data!r}")
    if recursive_seq_lens and sum(recursive_seq_lens[-1]) != len(data):
        raise EnforceNotMet(
            f"recursive_seq_lens is {recursive_seq_lens}: the last lengths add up to "
            f"{sum(recursive_seq_lens[-1])} rows, the data has {len(data)}",
            hint="give the number of rows of each sequence (lengths, not offsets)",
        )
    tensor = LoDTensor()
    tensor.set(data, place)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    return tensor


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]],
    base_shape: Sequence[int],
    place: Place | None,
    low: int,
    high: int,
) -> LoDTensor:
    """Return random integers from ``low`` to ``high``, both included, divided into sequences.

    Each element has shape ``base_shape``; the tensor is int64. Like Fluid it draws from numpy's global
    generator, so that a script that calls ``np.random.seed`` gets Fluid's numbers.

    Parameters
    ----------
    recursive_seq_lens
        The lengths of the sequences, a list for each level.
    base_shape
        The shape of a row.
    place
        It is not needed on a CPU.
    low
        The least integer.
    high
        The greatest integer, included.

    Returns
    -------
    LoDTensor
        int64 ``(rows, *base_shape)``, rows being the sum of the lengths of the last level.

    >>> import paddlelike as fluid
    >>> fluid.create_random_int_lodtensor([[2, 3]], [1], fluid.CPUPlace(), 0, 9).shape()
    [5, 1]
    """
    count = sum(recursive_seq_lens[-1])
    data = np.random.randint(low, high + 1, (count, *base_shape), np.int64)  # noqa: NPY002
    return create_lod_tensor(data, recursive_seq_lens, place)
