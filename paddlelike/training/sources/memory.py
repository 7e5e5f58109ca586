"""A source over arrays in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from paddlelike.core import Array, LoDTensor
from paddlelike.errors import SourceError
from paddlelike.training.sources.base import INFINITELY_REPEAT, Streams
from paddlelike.training.sources.indexed import IndexedSource, Indexes


class MinibatchSourceFromData(IndexedSource):
    """Reads arrays in memory, which are not copied. A minibatch ends with a sweep at the latest.

    Parameters
    ----------
    data_streams
        Arrays by name, whose first axis counts the samples; or lists of arrays, where each array is a
        sequence and one sample. All have the same number of samples.
    max_samples
        The number of samples after which the data ends; ``FULL_DATA_SWEEP`` for one sweep.
    randomize, randomization_seed
        Whether to shuffle each sweep (CNTK's source of this name does not), and the seed.

    Raises
    ------
    SourceError
        The streams have different counts, or are not arrays.

    >>> source = MinibatchSourceFromData({"x": np.arange(5)}, max_samples=7)
    >>> [source.next_minibatch(3)["x"].tolist() for _ in range(3)], len(source.next_minibatch(3))
    ([[0, 1, 2], [3, 4], [0, 1]], 0)
    """

    position_key = "total_num_samples"
    crosses_sweeps = False

    def __init__(
        self,
        data_streams: Mapping[str, Any],
        max_samples: int = INFINITELY_REPEAT,
        *,
        randomize: bool = False,
        randomization_seed: int = 0,
    ) -> None:
        self._data = {name: _check_stream(name, value) for name, value in data_streams.items()}
        counts = {name: len(value) for name, value in self._data.items()}
        if len(set(counts.values())) != 1:
            raise SourceError(
                f"the streams must have the same number of samples; they have {counts or 'none'}"
            )
        self._streams = Streams(list(self._data))
        super().__init__(
            len(next(iter(self._data.values()))),
            max_samples=max_samples,
            randomize=randomize,
            seed=randomization_seed,
        )

    @property
    def streams(self) -> Streams:
        return self._streams

    def collect(self, indexes: Indexes) -> dict[str, Any]:
        return {
            name: join_sequences([value[i] for i in indexes]) if isinstance(value, list) else value[indexes]
            for name, value in self._data.items()
        }

    def get_checkpoint_state(self) -> dict[str, Any]:
        return {"cursor": self._position % self._count, **super().get_checkpoint_state()}


def join_sequences(sequences: list[Array]) -> LoDTensor:
    """Return sequences, each (length, ...) or (length,), as one tensor of all their elements.

    >>> join_sequences([np.ones(2), np.ones(3)]).recursive_sequence_lengths()
    [[2, 3]]
    """
    rows = np.concatenate(sequences)
    tensor = LoDTensor(rows.reshape(-1, 1) if rows.ndim == 1 else rows)
    tensor.set_recursive_sequence_lengths([[len(sequence) for sequence in sequences]])
    return tensor


Stream = TypeVar("Stream")


def _check_stream(name: str, value: Stream) -> Stream:
    if isinstance(value, list) and value and all(isinstance(one, np.ndarray) and one.ndim for one in value):
        return value
    if not isinstance(value, np.ndarray) or value.ndim == 0 or value.dtype == object:
        raise SourceError(
            f"stream {name!r} is a {type(value).__name__}, expected an array or a list of arrays",
            hint="numpy.asarray(..., 'float32') makes an array of lists of numbers",
        )
    return value
