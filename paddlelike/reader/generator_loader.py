"""Loaders over a Python generator: batches that a thread reads ahead while the program runs."""

from __future__ import annotations

import contextlib
import copy
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from paddlelike.core import LoDTensor, Versioned, convert_dtype, numpy_dtype
from paddlelike.errors import FeedError, GraphError
from paddlelike.framework import Variable, default_main_program
from paddlelike.reader.feeder import DataFeeder
from paddlelike.reader.program_reader import BatchQueue, declare_loader
from paddlelike.reader.readers import ReadAhead, Reader, batch as batch_reader

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from paddlelike.core import Array
    from paddlelike.core.typing import Places


class GeneratorLoader(Versioned):
    """Batches of a generator, read ahead by a thread. Raises GraphError for invalid arguments.

    A pickled loader keeps its source if that is a function of a module; set any other source again.
    """

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {"_iterator": lambda: None}

    def __init__(
        self,
        feed_list: Sequence[Variable] | None,
        capacity: int | None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> None:
        if feed_list is None:
            raise GraphError(
                "DataLoader: feed_list is None, expected the data variables to fill",
                hint="feed_list=[x, y] in the order in which the generator yields their values",
            )
        if capacity is None or capacity <= 0:
            raise GraphError(
                f"DataLoader: capacity is {capacity}, expected a positive number of batches to read ahead",
                hint="pass a count, such as capacity=16",
            )
        self._feed_list = list(feed_list)
        self._capacity = capacity
        self._iterable = iterable
        self._return_list = return_list
        self._drop_last = drop_last
        self._copies = 1
        self._iterator: Iterator[list[Any]] | None = None
        self._form = ""  # of what the source gives: samples, sample_lists, arrays
        self._reader: Callable[[], Iterable[Any]] | None = None  # the source
        self._batching = (1, True)  # of samples: batch_size, drop_last
        self._lost_source = ""  # the name of a source that could not be pickled
        self._queue: BatchQueue | None = None
        if not iterable:
            reader, self._queue = declare_loader(self._feed_list, capacity, use_double_buffer)
            default_main_program().current_block().append_op(
                type="read",
                inputs={"Reader": [reader]},
                outputs={"Out": self._feed_list},
                attrs={"drop_last": drop_last},
            )

    @property
    def iterable(self) -> bool:
        """Whether a script iterates over the loader; otherwise the program reads from it."""
        return self._iterable

    @property
    def queue(self) -> BatchQueue | None:
        """The queue that the program reads, or None for an iterable loader."""
        return self._queue

    def set_sample_generator(
        self,
        reader: Callable[[], Iterable[Any]],
        batch_size: int,
        drop_last: bool = True,
        places: Places = None,
    ) -> GeneratorLoader:
        """Set the source, a function that returns an iterable of samples (tuples); return the loader."""
        self._batching = (batch_size, drop_last)
        return self._set_source("samples", reader, places)

    def set_sample_list_generator(
        self, reader: Callable[[], Iterable[Any]], places: Places = None
    ) -> GeneratorLoader:
        """Set the source, a function that returns an iterable of lists of samples; return the loader.

        An iterable loader takes one batch for each of ``places`` (None for one place).
        """
        return self._set_source("sample_lists", reader, places)

    def set_batch_generator(
        self, reader: Callable[[], Iterable[Any]], places: Places = None
    ) -> GeneratorLoader:
        """Set the source, a function that returns an iterable of lists of arrays; return the loader.

        Iterating raises FeedError for a batch with another number of arrays.
        """
        return self._set_source("arrays", reader, places)

    def __iter__(self) -> Iterator[list[Any]]:
        return self.iterate()

    def iterate(self, around: Callable[[Reader], Reader] | None = None) -> Iterator[list[Any]]:
        """Return an iterator over the batches of an epoch; ``around`` wraps the source that the thread reads.

        Raises GraphError for a loader that the program reads, or one without a source.
        """
        if not self._iterable:
            raise GraphError(
                "DataLoader: this loader is read by the program, it cannot be iterated over",
                hint="create it with iterable=True; or start() it, run the program without a feed until "
                "fluid.core.EOFException, then reset() it",
            )
        source = self._source()
        return self._read(source if around is None else around(source))

    def _read(self, source: Reader) -> Iterator[list[Any]]:
        names = [variable.name for variable in self._feed_list]
        with contextlib.closing(ReadAhead(source, self._capacity)) as batches:
            feeds = (t if self._return_list else dict(zip(names, t, strict=True)) for t in batches)
            yield from group_items(feeds, self._copies, drop_last=self._drop_last)

    def __call__(self) -> GeneratorLoader:
        return self

    def __next__(self) -> list[Any]:
        if self._iterator is None:
            self._iterator = iter(self)
        try:
            return next(self._iterator)
        except BaseException:
            self._iterator = None
            raise

    def next(self) -> list[Any]:
        """Return the next batch. Raises StopIteration after the last batch of an epoch."""
        return next(self)

    def start(self) -> None:
        """Start an epoch: runs of the program read batches. Raises GraphError for an iterable loader."""
        self._program_queue().start(self._source())

    def reset(self) -> None:
        """End an epoch, whether EOFException was raised or not. Raises GraphError for an iterable loader."""
        self._program_queue().reset()

    def _program_queue(self) -> BatchQueue:
        if self._queue is None:
            raise GraphError(
                "DataLoader: start() and reset() are for loaders that the program reads (iterable=False)",
                hint="this one is iterated over: for feed in loader(): exe.run(feed=feed, ...)",
            )
        return self._queue

    def _source(self) -> Callable[[], Iterable[list[LoDTensor]]]:
        reader = self._reader
        if reader is None:
            lost = f"; its source {self._lost_source} could not be pickled" if self._lost_source else " yet"
            raise GraphError(
                f"DataLoader: there is no source of batches{lost}",
                hint="call set_sample_generator, set_sample_list_generator or set_batch_generator",
            )
        if self._form == "arrays":
            return partial(self._convert_arrays, reader)
        if self._form == "samples":
            reader = batch_reader(_make_tuples(reader), *self._batching)
        return partial(self._convert_samples, reader)

    def _set_source(self, form: str, reader: Callable[[], Iterable[Any]], places: Places) -> GeneratorLoader:
        if not callable(reader):
            raise TypeError(
                f"DataLoader: the source is a {type(reader).__name__}, expected a function that returns one\n"
                "  hint: pass the generator function itself, without calling it: every epoch calls it again"
            )
        self._copies = len(places) if isinstance(places, list | tuple) else 1
        self._form, self._reader, self._lost_source = form, reader, ""
        return self

    def _convert_samples(self, reader: Callable[[], Iterable[Any]]) -> Iterator[list[LoDTensor]]:
        feeder = DataFeeder(self._feed_list, None)
        for samples in reader():
            feed = feeder.feed(samples)
            yield [feed[variable.name] for variable in self._feed_list]

    def _convert_arrays(self, reader: Callable[[], Iterable[Any]]) -> Iterator[list[LoDTensor]]:
        names = [variable.name for variable in self._feed_list]
        for arrays in reader():
            items = arrays if isinstance(arrays, list | tuple) else [arrays]
            if len(items) != len(names):
                raise FeedError(
                    f"DataLoader: a batch has {len(items)} arrays, expected {len(names)}: {names}",
                    hint="the generator yields a list with one array for each variable of feed_list",
                )
            yield [
                item if isinstance(item, LoDTensor) else LoDTensor(_array(v, item))
                for v, item in zip(self._feed_list, items, strict=True)
            ]

    def _get_attributes(self) -> dict[str, Any]:
        attributes = super()._get_attributes()
        if not _is_importable(self._reader):
            attributes |= {"_reader": None, "_lost_source": getattr(self._reader, "__qualname__", "")}
        return attributes

    def __deepcopy__(self, memo: dict[int, Any]) -> GeneratorLoader:
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        twin._reader, twin._lost_source = self._reader, self._lost_source
        return twin


def group_items(items: Iterable[Any], size: int, *, drop_last: bool) -> Iterator[list[Any]]:
    """Yield the items in lists of ``size``; the last may be shorter unless ``drop_last``."""
    group: list[Any] = []
    for item in items:
        group.append(item)
        if len(group) == size:
            yield group
            group = []
    if group and not drop_last:
        yield group


def _make_tuples(reader: Callable[[], Iterable[Any]]) -> Callable[[], Iterator[Any]]:
    """Return a reader of tuples, from a reader of samples."""

    def read_tuples() -> Iterator[Any]:
        for sample in reader():
            yield sample if isinstance(sample, list | tuple) else (sample,)

    return read_tuples


def _is_importable(reader: object) -> bool:
    """Return whether a source can be pickled, which needs a name in its module."""
    if not isinstance(reader, types.FunctionType):
        return not isinstance(reader, types.GeneratorType)
    return getattr(sys.modules.get(reader.__module__), reader.__qualname__, None) is reader


def _array(variable: Variable, item: ArrayLike) -> Array:
    try:
        array = np.asarray(item)
    except ValueError:  # rows of different lengths
        array = np.empty((), object)
    if array.dtype == object:
        raise FeedError(
            f"DataLoader: the batch for {variable.name!r} is not an array: its rows have different lengths",
            hint="pad them to one length, or yield fluid.create_lod_tensor(rows, [lengths], place)",
        )
    want = numpy_dtype(variable.dtype)
    if (
        array.dtype != want
        and convert_dtype(array.dtype) != variable.dtype
        and not isinstance(item, np.ndarray)
    ):
        array = array.astype(want)
    return array
