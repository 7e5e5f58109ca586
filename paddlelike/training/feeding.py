"""A source as the feed of a trainer: minibatches of a size, by data variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from paddlelike.errors import SourceError
from paddlelike.reader.generator_loader import GeneratorLoader
from paddlelike.reader.loader import DatasetLoader
from paddlelike.training.sources.base import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    Minibatch,
    MinibatchSource,
    count_samples,
)
from paddlelike.training.sources.generator import GeneratorSource, LoaderSource
from paddlelike.training.sources.memory import MinibatchSourceFromData
from paddlelike.training.trainer import Trainer

if TYPE_CHECKING:
    from paddlelike.core import Array
    from paddlelike.training.sources.generator import Reader


#: What a training reads: a source, a loader, a function that gives samples, or an array for each variable.
SourceLike: TypeAlias = "MinibatchSource | GeneratorLoader | DatasetLoader | Reader | Array | Sequence[Array]"


class Feeding:
    """A source, the size of its minibatches, and the variables that its streams feed.

    Parameters
    ----------
    source
        A source, a tuple of arrays or a reader of samples in the order of the data variables, or a loader.
    size
        The samples of a minibatch, or a function of the samples seen.
    inputs
        The stream of each data variable; None if the streams have the variables' names.
    repeats
        Whether arrays, readers and loaders are read again and again.

    Raises
    ------
    SourceError
        ``source`` is not a source, or the numbers of arrays and variables differ.
    """

    def __init__(
        self,
        trainer: Trainer,
        source: SourceLike,
        size: int | Callable[[int], int],
        inputs: Mapping[Any, str] | None = None,
        *,
        repeats: bool = True,
    ) -> None:
        self._trainer = trainer
        self._inputs = inputs
        self._size = size
        if isinstance(source, MinibatchSource) or hasattr(source, "next_minibatch"):
            self.source: MinibatchSource = source  # type: ignore[assignment]  # or one of the user's
            return
        sweeps = INFINITELY_REPEAT if repeats else 1
        if isinstance(source, GeneratorLoader | DatasetLoader):
            self.source = LoaderSource(source, sweeps)
            return
        if callable(source):
            self.source = GeneratorSource(source, trainer.data_variables, max_sweeps=sweeps)
            return
        names = trainer.data_names
        arrays = list(source) if isinstance(source, tuple | list) else [source]
        if source is None or len(arrays) != len(names):
            raise SourceError(
                f"the data are {'None' if source is None else f'{len(arrays)} arrays'}, expected a minibatch "
                f"source, or a tuple of {len(names)} arrays: {', '.join(names)}"
            )
        end = INFINITELY_REPEAT if repeats else FULL_DATA_SWEEP
        self.source = MinibatchSourceFromData(dict(zip(names, arrays, strict=True)), end)

    def read(self, seen: int, left: int) -> Minibatch:
        """Return the next minibatch of this process after ``seen`` samples, of at most ``left``."""
        size = min(self._size(seen) if callable(self._size) else self._size, left)
        if size <= 0:
            return Minibatch()
        workers = self._trainer.workers
        found = self.source.next_minibatch(size, number_of_workers=workers.size, worker_rank=workers.rank)
        if not isinstance(found, Minibatch):  # a source of the user's
            found = Minibatch(found, count_samples(next(iter(found.values()))) if found else 0)
        return found if self._inputs is None else found.map_to(self._inputs)


def minibatch_size_schedule(
    schedule: int | Sequence[int] | Sequence[tuple[int, int]], epoch_size: int = 1
) -> Callable[[int], int]:
    """Return a function from the number of samples seen to the size of the next minibatch.

    Each size of a list holds for one epoch; a pair (epochs, size) holds for that many epochs. The last size
    stays.

    Parameters
    ----------
    schedule
        A size, a list of sizes, or of pairs of a number of epochs and a size.
    epoch_size
        The samples of an epoch.

    Returns
    -------
    Callable
        A function of the number of samples seen that returns the size of the next minibatch.

    Raises
    ------
    ValueError
        ``schedule`` holds no size.

    >>> size = minibatch_size_schedule([(12, 32), (15, 64), (1, 128)], 100)
    >>> size(0), size(1199), size(1200), size(2699), size(2700), size(5000)
    (32, 32, 64, 64, 128, 128)
    """
    pairs = [(1, schedule)] if isinstance(schedule, int) else list(schedule)
    steps: list[tuple[int, int]] = [one if isinstance(one, tuple) else (1, one) for one in pairs]
    if not steps or any(count < 1 or size < 1 for count, size in steps):
        raise ValueError(
            f"minibatch_size_schedule takes sizes, or pairs of epochs and size; got {schedule!r}"
        )

    def size_at(seen: int) -> int:
        end = 0
        for count, size in steps:
            end += count * epoch_size
            if seen < end:
                return size
        return steps[-1][1]

    return size_at
