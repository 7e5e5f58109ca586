"""DataLoader and PyReader: batches prepared by a thread while the program runs.

Iterable loaders yield feeds. Other loaders append a ``read`` operator to the program: start them, run without
a feed until EOFException, then reset them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core import LoDTensor, Versioned
from paddlelike.errors import UnsupportedError
from paddlelike.framework import Variable
from paddlelike.reader.generator_loader import GeneratorLoader, group_items

if TYPE_CHECKING:
    from paddlelike.core.typing import Places
    from paddlelike.reader.dataset import DatasetBase


class DataLoader:
    """Creates loaders, see :meth:`from_generator`.

    Raises
    ------
    UnsupportedError
        The class itself is called, not ``from_generator``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2])
    >>> loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=4)
    >>> _ = loader.set_batch_generator(lambda: ([np.full((3, 2), i, "float32")] for i in range(2)))
    >>> total = fluid.layers.reduce_sum(x)
    >>> exe = fluid.Executor()
    >>> for feed in loader():
    ...     print(exe.run(feed=feed, fetch_list=[total]))
    [array([0.], dtype=float32)]
    [array([6.], dtype=float32)]
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedError(
            "DataLoader(dataset, ...) belongs to Paddle's dynamic graph, which is not supported",
            hint="use DataLoader.from_generator",
        )

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """Return a loader over a Python generator, to be set by one of its ``set_...`` methods.

        Parameters
        ----------
        feed_list
            The data variables to fill.
        capacity
            The number of batches that are read ahead.
        iterable
            Whether a script iterates over the loader. If False, a ``read`` operator is appended to the
            program, which then runs without a feed until EOFException.
        return_list
            Whether to yield lists of tensors instead of feeds.
        drop_last
            Whether to leave out the batches of an incomplete last round over several places.
        use_double_buffer, use_multiprocess
            Accepted for Fluid; a thread reads.

        Raises
        ------
        GraphError
            ``feed_list`` is missing, or ``capacity`` is not positive.

        >>> import numpy as np
        >>> import paddlelike as fluid
        >>> x = fluid.data("x", [None, 1])
        >>> loader = fluid.io.DataLoader.from_generator(feed_list=[x], capacity=4, iterable=False)
        >>> _ = loader.set_sample_generator(lambda: iter(np.arange(4.0, dtype="float32")), batch_size=2)
        >>> total = fluid.layers.reduce_sum(x)
        >>> exe = fluid.Executor()
        >>> loader.start()
        >>> try:
        ...     while True:
        ...         print(exe.run(fetch_list=[total]))
        ... except fluid.core.EOFException:
        ...     loader.reset()
        [array([1.], dtype=float32)]
        [array([5.], dtype=float32)]
        """
        return GeneratorLoader(feed_list, capacity, use_double_buffer, iterable, return_list, drop_last)

    @staticmethod
    def from_dataset(dataset: DatasetBase, places: Places, drop_last: bool = True) -> DatasetLoader:
        """Return a loader over the batches of a dataset, one for each of ``places``."""
        return DatasetLoader(dataset, places, drop_last)


class DatasetLoader(Versioned):
    """An iterable over the batches of a dataset, in lists of one feed per place."""

    def __init__(self, dataset: DatasetBase, places: Places, drop_last: bool = True) -> None:
        from paddlelike.reader.dataset import DatasetBase  # late: few programs read datasets

        if not isinstance(dataset, DatasetBase):
            raise TypeError(
                f"DataLoader.from_dataset expected a dataset of fluid.DatasetFactory, got {dataset!r}"
            )
        self._dataset = dataset
        self._copies = len(places) if isinstance(places, list | tuple) else 1
        self._drop_last = drop_last

    def __iter__(self) -> Iterator[list[dict[str, LoDTensor]]]:
        return group_items(self._dataset.feeds(), self._copies, drop_last=self._drop_last)

    def __call__(self) -> DatasetLoader:
        return self


class PyReader(GeneratorLoader):
    """The older form of the loader, with other method names.

    Parameters
    ----------
    feed_list
        The variables that are fed, in the order of a sample.
    capacity
        The number of batches that are read ahead.
    use_double_buffer
        Whether to declare Fluid's second buffer. It has no effect.
    iterable
        Whether a script iterates over the loader; otherwise the program reads from it.
    return_list
        Whether a batch is a list instead of a dict by name.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2])
    >>> reader = fluid.io.PyReader(feed_list=[x], capacity=4)
    >>> reader.decorate_batch_generator(lambda: ([np.full((3, 2), i, "float32")] for i in range(2)))
    >>> [feed[0]["x"].shape() for feed in reader()]
    [[3, 2], [3, 2]]
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
    ) -> None:
        super().__init__(feed_list, capacity, use_double_buffer, iterable, return_list)

    def decorate_sample_generator(
        self,
        sample_generator: Callable[[], Iterable[Any]],
        batch_size: int,
        drop_last: bool = True,
        places: Places = None,
    ) -> None:
        """Call :meth:`set_sample_generator`."""
        self.set_sample_generator(sample_generator, batch_size, drop_last, places)

    def decorate_sample_list_generator(
        self, reader: Callable[[], Iterable[Any]], places: Places = None
    ) -> None:
        """Call :meth:`set_sample_list_generator`."""
        self.set_sample_list_generator(reader, places)

    def decorate_batch_generator(self, reader: Callable[[], Iterable[Any]], places: Places = None) -> None:
        """Call :meth:`set_batch_generator`."""
        self.set_batch_generator(reader, places)
