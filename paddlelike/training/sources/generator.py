"""Sources over readers of Python: generators, and loaders with their threads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import xxhash

from paddlelike.core import LoDTensor
from paddlelike.errors import SourceError
from paddlelike.foundation.snapshot import try_aside
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable
from paddlelike.reader.feeder import DataFeeder
from paddlelike.reader.generator_loader import GeneratorLoader
from paddlelike.training.random_streams import SWAPPING, RandomStream
from paddlelike.training.sources.base import (
    INFINITELY_REPEAT,
    Minibatch,
    MinibatchSource,
    Streams,
    count_samples,
    share_of,
)

if TYPE_CHECKING:
    from paddlelike.reader.loader import DatasetLoader

Reader = Callable[[], Iterable[Any]]
Form = Literal["samples", "sample_lists", "batches"]

_END: Final = object()
_BEGIN: Final = 16  # items by which a sweep is recognized


class ReplayedSource(MinibatchSource):
    """A source whose items can only be read in order: a restore reads all items up to the position.

    The state holds the random generators at the beginning of the sweep, and a checksum of the items so far.
    Restoring reads the sweep again. A reader may keep data between sweeps (shuffle a list in place, say), so
    a fork of this process first tries whether the sweep begins with the same items; if not, all sweeps are
    read again. Items that differ are an error.
    """

    def __init__(self, max_sweeps: int = INFINITELY_REPEAT) -> None:
        self._max_sweeps = max_sweeps
        self._random = RandomStream()
        self._first_random: dict[str, Any] | None = None  # at the beginning of the first sweep
        self._sweep_random: dict[str, Any] | None = None  # at the beginning of this sweep
        self._sweep = 0
        self._position = 0  # items that were given in this sweep
        self._items: Iterator[Any] | None = None
        self._ahead: object = _END  # the next item
        self._checksum = xxhash.xxh3_64()
        self._begin: tuple[int, str] = (0, "")  # the number of the first items, and their checksum

    @abstractmethod
    def iterate(self) -> Iterator[Any]:
        """Return an iterator over the items of a sweep, with the random numbers of ``self._random``."""

    def is_infinite(self) -> bool:
        return self._max_sweeps >= INFINITELY_REPEAT

    def take(self, count: int) -> tuple[list[Any], bool]:
        """Return up to ``count`` items of a sweep, and whether it ends with them."""
        if self._items is None:
            self._begin_sweep()
        if self._ahead is _END and self._position:
            if self._sweep + 1 >= self._max_sweeps:
                return [], False
            self._sweep += 1
            self._begin_sweep()
        if self._ahead is _END:
            if self._sweep < self._max_sweeps:
                raise SourceError(
                    f"the reader of {type(self).__name__} gave nothing in sweep {self._sweep}",
                    hint="a reader is a function that returns a new iterator at every call",
                )
            return [], False
        assert self._items is not None
        taken = [self._ahead, *islice(self._items, count - 1)]
        self._ahead = next(self._items, _END)
        for item in taken:
            _add_to(self._checksum, item)
            self._position += 1
            if self._position <= _BEGIN:
                self._begin = self._position, self._checksum.hexdigest()
        return taken, self._ahead is _END

    def get_checkpoint_state(self) -> dict[str, Any]:
        return {
            "sweep": self._sweep,
            "position": self._position,
            "checksum": self._checksum.hexdigest(),
            "begin": list(self._begin),
            "random": self._random.capture() if self._sweep_random is None else self._sweep_random,
            "first_random": self._first_random if self._sweep else None,
        }

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        try:
            sweep, position = int(state["sweep"]), int(state["position"])
            checksum, start, first = state["checksum"], state["random"], state["first_random"]
            begin = tuple(state["begin"])
        except (LookupError, TypeError, ValueError):
            raise SourceError(
                f"{type(self).__name__} cannot continue from {dict(state)!r:.200}",
                hint="restore the state of the same kind of source",
            ) from None
        self._close()
        self._random.restore(start)
        self._sweep, self._first_random = sweep, start if first is None else first
        if sweep == position == 0:  # read again
            self._first_random = None
            return
        if sweep and try_aside(lambda: self._replay(*begin), SWAPPING.hold) is False:
            warn_user(
                f"the reader of {type(self).__name__} keeps data between sweeps: all {sweep} sweeps before "
                "this position are read again"
            )
            self._close()
            self._random.restore(self._first_random or {})
            for _ in range(sweep):
                for _ in self.iterate():
                    pass
        if self._replay(position, checksum):
            return
        self._close()
        raise SourceError(
            f"the reader of {type(self).__name__} does not repeat its earlier samples "
            f"(sweep {sweep}, position {position})",
            hint="its data changed, or it draws from a generator without a seed; restore the trainer "
            "alone to continue with other samples",
        )

    def _begin_sweep(self) -> None:
        self._sweep_random = self._random.capture()
        if self._first_random is None:
            self._first_random = self._sweep_random
        self._items = self.iterate()
        self._ahead = next(self._items, _END)
        self._position = 0
        self._checksum = xxhash.xxh3_64()

    def _replay(self, position: int, checksum: str) -> bool:
        """Read the first items of a sweep; return whether they equal the items that were used before."""
        self._begin_sweep()
        while self._position < position and self._ahead is not _END:
            self.take(min(position - self._position, _BEGIN))
        return self._position == position and self._checksum.hexdigest() == checksum

    def _close(self) -> None:
        close = getattr(self._items, "close", None)
        if close is not None:
            close()
        self._random = RandomStream()  # a thread that still reads keeps the other one
        self._items, self._sweep_random, self._ahead = None, None, _END
        self._position, self._begin = 0, (0, "")
        self._checksum = xxhash.xxh3_64()


class GeneratorSource(ReplayedSource):
    """Reads the samples or batches of a reader, again and again.

    Parameters
    ----------
    reader
        A function that returns an iterator.
    feed_list
        The data variables that its items fill, in their order.
    form
        The form of the items: "samples", tuples with one item for each variable; "sample_lists", lists of
        such tuples, as from ``fluid.io.batch``; "batches", tuples of arrays, or dicts. Minibatches are built
        from samples. In the other forms each item is one minibatch, whatever size is requested.
    max_sweeps
        The number of sweeps after which the data ends; by default it never ends.

    Raises
    ------
    SourceError
        The form is not one of these.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> x = fluid.data("x", [None, 2])
    >>> source = training.GeneratorSource(lambda: iter([(np.ones(2, "float32"),)] * 4), [x], max_sweeps=1)
    >>> source.next_minibatch(3).num_samples
    3
    """

    def __init__(
        self,
        reader: Reader,
        feed_list: Sequence[Variable],
        form: Form = "samples",
        max_sweeps: int = INFINITELY_REPEAT,
    ) -> None:
        if form not in get_args(Form):
            raise SourceError(f"GeneratorSource: form must be one of {get_args(Form)}, got {form!r}")
        super().__init__(max_sweeps)
        self._reader = reader
        self._form = form
        self._feeder = DataFeeder(feed_list)
        self._streams = Streams([variable.name for variable in feed_list])

    @property
    def streams(self) -> Streams:
        return self._streams

    def iterate(self) -> Iterator[Any]:
        return iter(self._random.follow(self._reader)())

    def read(self, num_samples: int, number_of_workers: int, worker_rank: int) -> Minibatch:
        """Return a minibatch. If fewer samples than workers are left in a sweep, these samples are
        skipped.
        """
        if self._form == "batches":
            return read_batch(self, list(self._streams), number_of_workers, worker_rank)
        while True:
            items, ends = self.take(num_samples if self._form == "samples" else 1)
            if not items:
                return Minibatch()
            samples = items if self._form == "samples" else list(items[0])
            if len(samples) >= number_of_workers:
                break
        own = share_of(len(samples), number_of_workers, worker_rank)
        samples = [one if isinstance(one, list | tuple) else (one,) for one in samples]
        feed = self._feeder.feed(samples[own.start : own.stop])
        return Minibatch(feed, len(own), end_of_sweep=ends, total_samples=len(samples))


class LoaderSource(ReplayedSource):
    """Reads the batches of a ``DataLoader`` or ``PyReader`` with its threads, again and again.

    A minibatch is a batch of the loader, whatever the requested size is. The loader's threads read ahead; the
    position counts only returned batches. Meanwhile the script itself should not draw from Python's or
    numpy's global generator.

    Parameters
    ----------
    loader
        An iterable loader, with its source.
    max_sweeps
        The number of sweeps after which the data ends; by default it never ends.

    Raises
    ------
    SourceError
        ``loader`` is not a loader that can be iterated over.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> from paddlelike import training
    >>> loader = fluid.io.DataLoader.from_generator([fluid.data("x", [None, 2])], capacity=4)
    >>> _ = loader.set_batch_generator(lambda: iter([np.ones((3, 2), "float32")] * 2), fluid.CPUPlace())
    >>> training.LoaderSource(loader, max_sweeps=1).next_minibatch(3).num_samples
    3
    """

    def __init__(self, loader: GeneratorLoader | DatasetLoader, max_sweeps: int = INFINITELY_REPEAT) -> None:
        if not isinstance(loader, Iterable) or not getattr(loader, "iterable", True):
            raise SourceError(
                f"LoaderSource iterates over a loader, got {type(loader).__name__}"
                + (" that the program reads" if isinstance(loader, GeneratorLoader) else ""),
                hint="DataLoader.from_generator(..., iterable=True)",
            )
        super().__init__(max_sweeps)
        self._loader = loader
        feed_list = loader._feed_list if isinstance(loader, GeneratorLoader) else ()
        self._names = [variable.name for variable in feed_list]

    @property
    def streams(self) -> Streams:
        return Streams(self._names)

    def iterate(self) -> Iterator[Any]:
        if isinstance(self._loader, GeneratorLoader):
            return self._loader.iterate(self._random.follow)
        return iter(self._random.follow(lambda: self._loader)())

    def read(self, num_samples: int, number_of_workers: int, worker_rank: int) -> Minibatch:
        return read_batch(self, self._names, number_of_workers, worker_rank)


def read_batch(
    source: ReplayedSource, names: Sequence[str], number_of_workers: int, worker_rank: int
) -> Minibatch:
    """Return the next item of a source as a minibatch: each worker takes every n-th item."""
    group: list[Any] = []
    while len(group) < number_of_workers:  # the rest of a sweep that is fewer than the workers is left out
        items, ends = source.take(1)
        if not items:
            return Minibatch()
        group.append(items[0])
        if ends and len(group) < number_of_workers:
            group = []
    feed = _to_feed(group[worker_rank], names)
    sizes = [count_samples(next(iter(_to_feed(one, names).values()))) for one in group]
    return Minibatch(feed, sizes[worker_rank], end_of_sweep=ends, total_samples=sum(sizes))


def _to_feed(item: object, names: Sequence[str]) -> dict[str, Any]:
    """Return an item of a reader of batches as a feed."""
    while isinstance(item, list | tuple) and len(item) == 1 and isinstance(item[0], dict | list | tuple):
        (item,) = item  # of one place
    if isinstance(item, Mapping):
        return dict(item)
    values = list(item) if isinstance(item, list | tuple) else [item]
    if len(values) != len(names) or any(isinstance(one, Mapping) for one in values):
        raise SourceError(
            f"a batch has {len(values)} items, expected {len(names)}: {', '.join(names)}",
            hint="a loader for several places gives several batches at once; use one place",
        )
    return dict(zip(names, values, strict=True))


def _add_to(checksum: Any, item: object) -> None:
    """Add a value of any type that readers yield to a checksum."""
    if isinstance(item, LoDTensor):
        checksum.update(repr(item.lod()).encode())
        item = item.array
    if isinstance(item, np.ndarray) and item.dtype != object:
        checksum.update(f"{item.dtype}{item.shape}".encode())
        checksum.update(np.ascontiguousarray(item).view(np.uint8).data if item.size else b"")
    elif isinstance(item, list | tuple):
        checksum.update(b"(%d" % len(item))
        for one in item:
            _add_to(checksum, one)
    elif isinstance(item, Mapping):
        for name, value in item.items():
            checksum.update(str(name).encode())
            _add_to(checksum, value)
    else:
        checksum.update(repr(item).encode())
