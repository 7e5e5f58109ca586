"""DataFeeder: converts a list of samples into the feed of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor, Place, Versioned, numpy_dtype
from paddlelike.core.places import cpu_places
from paddlelike.errors import FeedError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable, default_main_program


class DataFeeder(Versioned):
    """Converts samples, each a tuple with one item per variable of ``feed_list``, into a feed.

    The items of a variable with LoD are (nested) lists of elements, one list per sequence.

    Parameters
    ----------
    feed_list
        The variables that are fed, or their names, in the order of a sample.
    place
        It is not needed on a CPU.
    program
        The program of variables given by name; None for the default main program.

    Raises
    ------
    TypeError
        ``feed_list`` holds something other than variables and their names.

    >>> import paddlelike as fluid
    >>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1], "int64")
    >>> feeder = fluid.DataFeeder([x, y], fluid.CPUPlace())
    >>> feed = feeder.feed([([0.5, 1.0], [3]), ([1.5, 2.0], [4])])
    >>> [(name, value.shape()) for name, value in feed.items()]
    [('x', [2, 2]), ('y', [2, 1])]
    """

    def __init__(
        self, feed_list: Sequence[Variable | str], place: Place | None = None, program: Program | None = None
    ) -> None:
        block = (default_main_program() if program is None else program).global_block()
        self.feed_vars = [block._var_recursive(v) if isinstance(v, str) else v for v in feed_list]
        for variable in self.feed_vars:
            if not isinstance(variable, Variable):
                raise TypeError(f"DataFeeder: feed_list must hold variables or their names, got {variable!r}")
        self.feed_names = [variable.name for variable in self.feed_vars]
        self.place = place

    def feed(self, iterable: Iterable[Sequence[Any]]) -> dict[str, LoDTensor]:
        """Return the feed for one batch of samples.

        Raises
        ------
        FeedError
            A sample has another number of items, or items do not fit their variable.
        """
        columns: list[list[Any]] = [[] for _ in self.feed_vars]
        for sample in iterable:
            if not hasattr(sample, "__len__"):
                raise FeedError(
                    f"DataFeeder: a sample is {sample!r}, expected a tuple of {len(columns)} items: "
                    f"{self.feed_names}",
                    hint="a batch is a list of samples: a reader yields (item,) for one variable",
                )
            if len(sample) != len(columns):
                raise FeedError(
                    f"DataFeeder: a sample has {len(sample)} items, expected {len(columns)}: "
                    f"{self.feed_names}",
                    hint="a batch is a list of samples, a sample a tuple with one item per variable",
                )
            for column, item in zip(columns, sample, strict=True):
                column.append(item)
        return {v.name: _tensor(v, c) for v, c in zip(self.feed_vars, columns, strict=True)}

    def feed_parallel(
        self, iterable: Iterable[Iterable[Sequence[Any]]], num_places: int | None = None
    ) -> Iterator[dict[str, LoDTensor]]:
        """Yield the feeds for several batches. Raises FeedError unless there is one batch per place."""
        batches = list(iterable)
        count = len(cpu_places()) if num_places is None else num_places
        if len(batches) != count:
            raise FeedError(f"DataFeeder: got {len(batches)} batches, expected {count}, one per place")
        for batch in batches:
            yield self.feed(batch)

    def decorate_reader(
        self,
        reader: Callable[[], Iterable[Any]],
        multi_devices: bool,
        num_places: int | None = None,
        drop_last: bool = True,
    ) -> Callable[[], Iterator[Any]]:
        """Return a reader of feeds from a reader of batches; with ``multi_devices`` it yields lists of feeds.

        Iterating raises FeedError for batches that do not fit, or, without ``drop_last``, for an incomplete
        last round.
        """
        count = len(cpu_places()) if num_places is None else num_places

        def feeds() -> Iterator[Any]:
            if not multi_devices:
                for batch in reader():
                    yield self.feed(batch)
                return
            group: list[Any] = []
            for batch in reader():
                group.append(batch)
                if len(group) == count:
                    yield list(self.feed_parallel(group, count))
                    group = []
            if group and not drop_last:
                raise FeedError(
                    f"DataFeeder: {len(group)} batches are left over for {count} places",
                    hint="use drop_last=True",
                )

        return feeds


def _tensor(variable: Variable, items: list[Any]) -> LoDTensor:
    """Return one column of samples as a tensor of the variable's dtype and shape."""
    lengths: list[list[int]] = [[] for _ in range(variable.lod_level)]
    flat = _flatten(items, lengths, variable)
    try:
        array = np.asarray(flat, numpy_dtype(variable.dtype))
        if array.ndim != len(variable.shape) and sum(dim < 0 for dim in variable.shape) <= 1:
            array = array.reshape(variable.shape)
            if not variable.lod_level and variable.shape[0] < 0 and array.shape[:1] != (len(items),):
                warn_user(
                    f"DataFeeder: {len(items)} samples of {np.size(flat) // len(items)} values become "
                    f"{len(array)} rows of {variable.name!r}, of shape {list(variable.shape)}, as in "
                    "Fluid: a row takes values of several samples, or a part of one. Give every sample the "
                    "values of one row"
                )
    except (ValueError, TypeError) as error:
        raise FeedError(
            f"DataFeeder: {len(items)} samples do not form a tensor of shape {list(variable.shape)} for "
            f"{variable.name!r}: {error}"
        ) from None
    tensor = LoDTensor(array)
    if variable.lod_level:
        tensor.set_recursive_sequence_lengths(lengths)
    return tensor


def _flatten(items: list[Any], lengths: list[list[int]], variable: Variable) -> list[Any]:
    """Return the innermost elements, and append the length of every list to ``lengths``, level by level."""
    for level in lengths:
        for item in items:
            if not hasattr(item, "__len__"):
                raise FeedError(
                    f"DataFeeder: variable {variable.name!r} has lod_level {variable.lod_level}, so that its "
                    f"items are sequences; got {item!r}",
                    hint="an item is a list of elements: [7, 8]; a sequence of one is [7]",
                )
        level += [len(item) for item in items]
        items = [element for item in items for element in item]
    return items
