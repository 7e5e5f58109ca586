"""Sources whose samples have an index: sweeps over them, in order or shuffled, from any position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from paddlelike.errors import SourceError
from paddlelike.training.sources.base import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    Minibatch,
    MinibatchSource,
    share_of,
)

Indexes = np.ndarray[Any, np.dtype[np.int64]]


class IndexedSource(MinibatchSource):
    """Reads ``count`` samples again and again. Its position is one number: the samples read since the start.

    The order of a shuffled sweep depends on the seed and the sweep alone, so every position can be restored
    without reading earlier samples.

    Parameters
    ----------
    count
        Samples in a sweep.
    max_samples, max_sweeps
        The number of samples or sweeps after which the data ends; by default it never ends.
    randomize, seed
        Shuffle each sweep.
    """

    position_key: ClassVar[str]  # of the number of samples, in the state
    crosses_sweeps: ClassVar[bool]  # whether a minibatch may have samples of two sweeps

    def __init__(
        self,
        count: int,
        *,
        max_samples: int = INFINITELY_REPEAT,
        max_sweeps: int = INFINITELY_REPEAT,
        randomize: bool = False,
        seed: int = 0,
    ) -> None:
        if count < 1:
            raise SourceError(f"{type(self).__name__} has no samples")
        if max_samples == FULL_DATA_SWEEP:
            max_samples, max_sweeps = INFINITELY_REPEAT, 1
        self._count = count
        self._end = min(max_samples, max_sweeps * count)
        self._randomize = bool(randomize)
        self._seed = int(seed)
        self._position = 0
        self._order: tuple[int, Indexes] | None = None  # of one sweep

    @abstractmethod
    def collect(self, indexes: Indexes) -> Mapping[str, Any]:
        """Return the values of samples by stream."""

    @property
    def samples_in_sweep(self) -> int:
        """The number of samples of a sweep."""
        return self._count

    def is_infinite(self) -> bool:
        return self._end >= FULL_DATA_SWEEP

    def read(self, num_samples: int, number_of_workers: int, worker_rank: int) -> Minibatch:
        """Return a minibatch. If fewer samples than workers are left in a sweep, these samples are
        skipped.
        """
        while True:
            start = self._position
            left = self._end - start
            if not self.crosses_sweeps:
                left = min(left, self._count - start % self._count)
            size = min(num_samples, left)
            if size <= 0:
                return Minibatch()
            self._position += size
            if size >= number_of_workers:
                break
            if num_samples < number_of_workers:
                raise SourceError(
                    f"a minibatch of {num_samples} samples is too small for {number_of_workers} workers"
                )
        own = share_of(size, number_of_workers, worker_rank)
        ends = self._position // self._count > start // self._count or self._position == self._end
        values = self.collect(self._indexes(start + own.start, start + own.stop))
        return Minibatch(values, len(own), end_of_sweep=ends, total_samples=size)

    def get_checkpoint_state(self) -> dict[str, Any]:
        return {
            self.position_key: self._position,
            "samples_in_sweep": self._count,
            "randomize": self._randomize,
            "randomization_seed": self._seed,
        }

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        position = state.get(self.position_key)
        if type(position) is not int or position < 0:
            raise SourceError(
                f"{type(self).__name__} cannot continue from {dict(state)!r:.200}: it has no "
                f"{self.position_key!r}",
                hint="restore the state of the same kind of source",
            )
        mine = self.get_checkpoint_state()
        differing = [
            f"{name} {state[name]!r} there, {mine[name]!r} here"
            for name in ("samples_in_sweep", "randomize", "randomization_seed")
            if name in state and state[name] != mine[name]
        ]
        if differing:
            raise SourceError(
                f"{type(self).__name__} cannot continue from this position, which is of other data or of "
                f"another order: {'; '.join(differing)}",
                hint="build the source as it was; for new data, do not restore the source's state",
            )
        self._position = position

    def _indexes(self, start: int, stop: int) -> Indexes:
        """Return the indexes of samples from their positions in the sequence of all sweeps."""
        parts = []
        while start < stop:
            sweep, first = divmod(start, self._count)
            last = min(self._count, first + stop - start)
            parts.append(self._sweep(sweep)[first:last])
            start += last - first
        return np.concatenate(parts)

    def _sweep(self, sweep: int) -> Indexes:
        if not self._randomize:
            return np.arange(self._count)
        if self._order is None or self._order[0] != sweep:
            self._order = sweep, order_of_sweep(self._count, self._seed, sweep)
        return self._order[1]


def order_of_sweep(count: int, seed: int, sweep: int) -> Indexes:
    """Return 0 .. count-1 in the order of a sweep, by numpy's Mersenne Twister, whose stream never changes.

    >>> order_of_sweep(5, seed=0, sweep=0).tolist() == order_of_sweep(5, seed=0, sweep=0).tolist()
    True
    """
    key = [seed % 2**32, seed // 2**32 % 2**32, sweep % 2**32, sweep // 2**32]
    return np.random.RandomState(key).permutation(count).astype(np.int64)
