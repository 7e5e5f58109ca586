"""Minibatch sources: streams, minibatches, and a position that can be saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import LoDTensor
from paddlelike.errors import SourceError
from paddlelike.framework import Variable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

INFINITELY_REPEAT: Final = 2**64 - 1  # CNTK's numbers
FULL_DATA_SWEEP: Final = 2**64 - 2


class StreamInformation(str):
    """A stream of a source: its name, which is also its key in minibatches.

    >>> import numpy as np
    >>> from paddlelike import training
    >>> source = training.MinibatchSourceFromData({"x": np.ones((8, 4), "float32")})
    >>> source.streams.x
    'x'
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the stream."""
        return str(self)


class Streams(Mapping[str, StreamInformation]):
    """The streams of a source by name, also as attributes.

    Parameters
    ----------
    names
        The names of the streams.

    >>> Streams(["features", "labels"]).labels
    'labels'
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._streams = {name: StreamInformation(name) for name in names}

    def __getitem__(self, name: str) -> StreamInformation:
        return self._streams[name]

    def __getattr__(self, name: str) -> StreamInformation:
        try:
            return self.__dict__["_streams"][name]  # type: ignore[no-any-return]
        except KeyError:
            known = ", ".join(self.__dict__.get("_streams", ()))
            raise AttributeError(f"there is no stream {name!r}; the streams are {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)

    def __repr__(self) -> str:
        return f"Streams({list(self._streams)})"


class Minibatch(dict[Any, Any]):
    """The arrays or LoDTensors of one minibatch, by stream; empty at the end of the data.

    Parameters
    ----------
    values
        An array or a LoDTensor for each stream, by its name; None for no streams.
    num_samples
        The number of samples in the minibatch: rows, or sequences.
    total_samples
        The samples of all workers together; each worker has a share.
    end_of_sweep
        Whether a sweep over the data ends with this minibatch, or within it.

    >>> import numpy as np
    >>> from paddlelike import training
    >>> training.Minibatch({"x": np.ones((3, 2))}, num_samples=3).num_samples
    3
    """

    def __init__(
        self,
        values: Mapping[Any, Any] | None = None,
        num_samples: int = 0,
        *,
        end_of_sweep: bool = False,
        total_samples: int | None = None,
    ) -> None:
        super().__init__(values or {})
        self.num_samples = num_samples
        self.total_samples = num_samples if total_samples is None else total_samples
        self.end_of_sweep = end_of_sweep

    def map_to(self, inputs: Mapping[Any, str]) -> Minibatch:
        """Return the same minibatch by variable; ``inputs`` gives the stream of each variable.

        Raises
        ------
        SourceError
            There is no such stream.
        """
        if not self:
            return self
        for key, stream in inputs.items():
            if stream not in self:
                raise SourceError(
                    f"the source has no stream {str(stream)!r} to feed {getattr(key, 'name', key)!r}; its "
                    f"streams are {', '.join(map(str, self))}"
                )
        return Minibatch(
            {key: self[stream] for key, stream in inputs.items()},
            self.num_samples,
            end_of_sweep=self.end_of_sweep,
            total_samples=self.total_samples,
        )


class MinibatchSource(ABC):
    """Base class of sources. A subclass defines :attr:`streams`, :meth:`read` and its state.

    Raises
    ------
    TypeError
        A subclass does not define one of these.

    >>> import numpy as np
    >>> from paddlelike import training
    >>> source = training.MinibatchSourceFromData({"x": np.ones((8, 4), "float32")})
    >>> isinstance(source, training.UserMinibatchSource), source.next_minibatch(3).num_samples
    (True, 3)
    """

    @property
    @abstractmethod
    def streams(self) -> Streams:
        """The streams."""

    @abstractmethod
    def read(self, num_samples: int, number_of_workers: int, worker_rank: int) -> Minibatch:
        """Return this worker's share of the next ``num_samples`` samples; empty at the end of the data."""

    @abstractmethod
    def get_checkpoint_state(self) -> dict[str, Any]:
        """Return the position, from which :meth:`restore_from_checkpoint` continues with the same
        minibatches.
        """

    @abstractmethod
    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Return to a saved position.

        Raises
        ------
        SourceError
            The position belongs to other data.
        """

    def is_infinite(self) -> bool:
        """Return whether minibatches never end."""
        return False

    def next_minibatch(
        self,
        minibatch_size_in_samples: int,
        input_map: Mapping[Variable | str, str] | None = None,
        *,
        number_of_workers: int = 1,
        worker_rank: int = 0,
    ) -> Minibatch:
        """Return the next minibatch, empty at the end of the data.

        Parameters
        ----------
        minibatch_size_in_samples
            The largest number of samples in the minibatch, over all workers.
        input_map
            The stream that each variable is fed from; None to return the minibatch by stream.
        number_of_workers, worker_rank
            The share of this process.

        Raises
        ------
        ValueError
            The size or the share is not valid.
        """
        if minibatch_size_in_samples < 1:
            raise ValueError(f"a minibatch has 1 sample or more, not {minibatch_size_in_samples}")
        if not 0 <= worker_rank < number_of_workers:
            raise ValueError(
                f"worker {worker_rank} is not one of {number_of_workers} workers, counted from 0"
            )
        minibatch = self.read(int(minibatch_size_in_samples), number_of_workers, worker_rank)
        return minibatch if input_map is None else minibatch.map_to(input_map)

    def __getitem__(self, name: str) -> StreamInformation:
        return self.streams[name]


def count_samples(value: LoDTensor | ArrayLike) -> int:
    """Return the number of samples of an array or a LoDTensor: rows, or sequences.

    >>> count_samples([[1.0, 2.0]] * 3)
    3
    """
    lengths = value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else []
    return len(lengths[0]) if lengths else len(np.atleast_1d(np.asarray(value)))


def share_of(count: int, number_of_workers: int, worker_rank: int) -> range:
    """Return the indexes of one worker's share of ``count`` samples.

    >>> [list(share_of(5, 2, rank)) for rank in range(2)]
    [[0, 1], [2, 3, 4]]
    """
    return range(count * worker_rank // number_of_workers, count * (worker_rank + 1) // number_of_workers)
