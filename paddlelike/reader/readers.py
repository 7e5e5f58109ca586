"""Readers and their combinators. A reader is a function that returns an iterator over samples."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, Final

from paddlelike.foundation.locks import Event
from paddlelike.foundation.threads import Pool, Task, Thread

Reader = Callable[[], Iterable[Any]]

#: How the names of threads begin: of those that map samples, and that read them, for the thread with the id.
MAPPING: Final = "paddlelike-map"
READING: Final = "paddlelike-reader for "
_END = object()


class ComposeNotAligned(ValueError):  # noqa: N818  (Fluid's name)
    """Composed readers have different lengths.

    >>> import paddlelike as fluid
    >>> short, long = (lambda: iter([1])), (lambda: iter([1, 2]))
    >>> list(fluid.io.compose(short, long, check_alignment=False)())
    [(1, 1)]
    """


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """Return a reader of lists of ``batch_size`` samples; the last may be shorter unless ``drop_last``.

    Parameters
    ----------
    reader
        A function without parameters that returns an iterator of samples.
    batch_size
        The number of samples that a batch holds.
    drop_last
        Whether a last batch with fewer samples is left out.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over lists of
        samples.

    Raises
    ------
    ValueError
        ``batch_size`` is not positive.
    TypeError
        ``reader`` is not a function.

    >>> list(batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    if int(batch_size) <= 0:
        raise ValueError(f"batch: batch_size must be a positive integer, got {batch_size}")
    if not callable(reader):
        raise TypeError(
            f"batch: reader is a {type(reader).__name__}, expected a function that returns the samples\n"
            "  hint: pass the reader itself, without calling it; lambda: iter(samples) for a list"
        )

    def batches() -> Iterator[list[Any]]:
        samples = iter(reader())
        while one := list(itertools.islice(samples, int(batch_size))):
            if len(one) == batch_size or not drop_last:
                yield one

    return batches


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Return a reader that shuffles samples within windows of ``buf_size`` by Python's ``random``.

    Parameters
    ----------
    reader
        A function without parameters that returns an iterator of samples.
    buf_size
        The number of samples that are shuffled at a time.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the samples of
        ``reader``, shuffled.

    >>> import paddlelike as fluid
    >>> sorted(fluid.io.shuffle(lambda: iter(range(6)), buf_size=3)())
    [0, 1, 2, 3, 4, 5]
    """

    def shuffle_windows() -> Iterator[Any]:
        import random  # late: it takes long

        samples = iter(reader())
        while window := list(itertools.islice(samples, buf_size)):
            random.shuffle(window)
            yield from window

    return shuffle_windows


def cache(reader: Reader) -> Reader:
    """Read all samples into memory at once, and return a reader of them.

    Parameters
    ----------
    reader
        A function without parameters that returns an iterator of samples.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the samples
        that were read.

    >>> import paddlelike as fluid
    >>> source = iter([1, 2])
    >>> read = fluid.io.cache(lambda: source)
    >>> list(read()), list(read())
    ([1, 2], [1, 2])
    """
    kept = tuple(reader())
    return lambda: iter(kept)


def chain(*readers: Reader) -> Reader:
    """Return a reader of the samples of all readers, one reader after another.

    Parameters
    ----------
    readers
        Readers, one after the other.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the samples of
        all ``readers``.

    >>> import paddlelike as fluid
    >>> list(fluid.io.chain(lambda: iter("ab"), lambda: iter("c"))())
    ['a', 'b', 'c']
    """
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader, **kwargs: Any) -> Reader:
    """Return a reader that joins one sample of each of ``readers`` into a flat tuple.

    Parameters
    ----------
    readers
        The readers; a sample has the fields of all of them, in this order.
    check_alignment : bool
        Whether readers of different lengths are an error, the default; False to end with the shortest.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over flat tuples.

    Raises
    ------
    TypeError
        A keyword other than ``check_alignment`` is given.
    ComposeNotAligned
        A reader ends before the others, and ``check_alignment`` is not False.

    >>> import paddlelike as fluid
    >>> list(fluid.io.compose(lambda: iter("ab"), lambda: iter([(1, 2), (3, 4)]))())
    [('a', 1, 2), ('b', 3, 4)]
    """
    aligned = kwargs.pop("check_alignment", True)
    if kwargs:
        raise TypeError(f"compose has no option {sorted(kwargs)}; it has check_alignment")

    def flat(samples: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(itertools.chain.from_iterable(s if isinstance(s, tuple) else (s,) for s in samples))

    def join_samples() -> Iterator[Any]:
        if not aligned:
            yield from (flat(samples) for samples in zip(*(r() for r in readers), strict=False))
            return
        for samples in itertools.zip_longest(*(r() for r in readers), fillvalue=_END):
            if any(sample is _END for sample in samples):
                ended = [i for i, sample in enumerate(samples) if sample is _END]
                raise ComposeNotAligned(
                    f"compose: the reader at index {ended[0]} of {len(samples)} ended before the others\n"
                    "  hint: check_alignment=False ends with the shortest"
                )
            yield flat(samples)

    return join_samples


def firstn(reader: Reader, n: int) -> Reader:
    """Return a reader of the first ``n`` samples.

    Parameters
    ----------
    reader
        A function without parameters that returns an iterator of samples.
    n
        The number of samples that are kept.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over at most ``n``
        samples.

    >>> import paddlelike as fluid
    >>> list(fluid.io.firstn(lambda: iter(range(100)), 3)())
    [0, 1, 2]
    """
    return lambda: itertools.islice(reader(), n)


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """Return a reader of ``func`` applied to one sample of each of ``readers``.

    Parameters
    ----------
    func
        A function of one sample of each reader.
    readers
        Readers, side by side.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the results of
        ``func``.

    >>> import paddlelike as fluid
    >>> list(fluid.io.map_readers(max, lambda: iter([1, 5]), lambda: iter([3, 4]))())
    [3, 5]
    """
    return lambda: map(func, *(reader() for reader in readers))


def buffered(reader: Reader, size: int) -> Reader:
    """Return a reader whose samples a thread reads ahead, up to ``size``.

    Parameters
    ----------
    reader
        A function without parameters that returns an iterator of samples.
    size
        The number of samples that are read ahead, in a thread.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the samples of
        ``reader``, in their order.

    >>> import paddlelike as fluid
    >>> list(fluid.io.buffered(lambda: iter(range(3)), size=2)())
    [0, 1, 2]
    """
    return lambda: ReadAhead(reader, size)


class ReadAhead(Iterator[Any]):
    """The samples of ``reader()``, of which a thread reads up to ``size`` ahead, starting at once.

    An exception of the reader is raised after the samples before it. :meth:`close` ends the thread, and so
    does the end of this object.
    """

    def __init__(self, reader: Reader, size: int) -> None:
        self._samples = _Samples(max(1, size))
        name = READING + str(threading.get_ident())
        self.thread = Thread(partial(_read, reader, self._samples), name)
        self._has_ended = False
        try:
            self.thread.start()
        except BaseException:  # Ctrl-C: the thread may run
            self.close()
            raise

    def __next__(self) -> Any:
        if self._has_ended:
            raise StopIteration
        sample, error = self._samples.get()
        if error is None and sample is not _END:
            return sample
        self.close()
        raise StopIteration if error is None else error

    def count_ready(self) -> int:
        """Return the number of samples that were read ahead."""
        return 0 if self._has_ended else self._samples.count()

    def close(self) -> None:
        """Let the thread read no more."""
        self._has_ended = True
        self._samples.stop.set()

    def __del__(self) -> None:
        if hasattr(self, "_samples"):  # else an interrupt ended the constructor
            self._samples.stop.set()


class _Samples:
    """Up to ``size`` samples that were read ahead, each with None, or an exception in place of a sample.

    ``queue.Queue`` waits inside a lock that an interrupt leaves taken.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._freed, self.stop, self._is_last = Event(), Event(), False

    def get(self) -> tuple[Any, BaseException | None]:
        item = self._items.get()
        self._freed.set()
        return item

    def put(self, item: tuple[Any, BaseException | None]) -> bool:
        """Wait for room in the queue. Return False if it is no longer read."""
        while not self.stop.is_set():
            self._freed.clear()
            if self._items.qsize() < self._size:
                self._is_last = item[0] is _END
                self._items.put(item)
                return True
            self._freed.wait(0.1)
        return False

    def count(self) -> int:
        return max(self._items.qsize() - self._is_last, 0)


def _read(reader: Reader, samples: _Samples) -> None:
    try:
        for sample in reader():
            if not samples.put((sample, None)):
                return
        samples.put((_END, None))
    except BaseException as error:  # raised in the iterating thread
        samples.put((_END, error))


def xmap_readers(
    mapper: Callable[[Any], Any], reader: Reader, process_num: int, buffer_size: int, order: bool = False
) -> Reader:
    """Return a reader that maps samples by ``mapper``, in ``process_num`` threads.

    At most ``buffer_size`` samples are processed at a time. The order of ``reader`` is kept even without
    ``order``, so that two runs have the same bits.

    Parameters
    ----------
    mapper
        A function of a sample.
    reader
        A function without parameters that returns an iterator of samples.
    process_num
        The number of threads that call ``mapper``.
    buffer_size
        The number of samples that are read ahead.
    order
        Accepted for Fluid: the order of the samples is kept anyway.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the results of
        ``mapper``, in the order of ``reader``.

    Raises
    ------
    Exception
        ``reader`` or ``mapper`` raised it; reading raises it again after the samples before it.

    >>> import paddlelike as fluid
    >>> upper = fluid.io.xmap_readers(str.upper, lambda: iter("abc"), 2, buffer_size=4)
    >>> list(upper())
    ['A', 'B', 'C']
    """

    def map_samples() -> Iterator[Any]:
        samples = iter(reader())
        with Pool(process_num, MAPPING) as pool:
            waiting: deque[Task[Any]] = deque()
            error = None
            while True:
                try:
                    sample = next(samples)
                except StopIteration:
                    break
                except Exception as caught:  # raised after the samples before it
                    error = caught
                    break
                waiting.append(pool.submit(mapper, sample))
                if len(waiting) >= max(buffer_size, process_num):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            if error is not None:
                raise error

    return map_samples


def multiprocess_reader(readers: Sequence[Reader], use_pipe: bool = True, queue_size: int = 1000) -> Reader:
    """Return a reader that reads each of several readers in a thread, and returns samples as they arrive.

    Together the threads read up to ``queue_size`` samples ahead.

    Parameters
    ----------
    readers
        Readers; each one runs in a thread of its own.
    use_pipe
        Accepted for Fluid; it has no effect.
    queue_size
        The number of samples that the queue holds.

    Returns
    -------
    Reader
        A function without arguments; each call begins a new pass, and returns an iterator over the samples,
        in the order in which they arrive.

    >>> import paddlelike as fluid
    >>> sorted(fluid.io.multiprocess_reader([lambda: iter("ab"), lambda: iter("c")])())
    ['a', 'b', 'c']
    """

    def read() -> Iterator[Any]:
        streams = [ReadAhead(reader, max(1, queue_size // len(readers))) for reader in readers]
        while streams:
            for stream in list(streams):
                sample = next(stream, _END)
                if sample is _END:
                    streams.remove(stream)
                else:
                    yield sample

    return read
