"""fluid.data_generator: scripts that convert text into the lines of a dataset (``set_pipe_command``).

Subclass :class:`MultiSlotDataGenerator`, define ``generate_sample``, and call ``run_from_stdin``; a dataset
runs the script by ``set_pipe_command("python my_script.py")`` and reads what it prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from paddlelike.framework import warn_quirk

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Slots = Sequence[tuple[str, Sequence[Any]]]  # a sample: the name and the values of each slot


class DataGenerator:
    """Base class of the generators; subclasses define the form of a line.

    See Also
    --------
    fluid.DataFeedDesc, fluid.DatasetFactory, fluid.data_feeder.data_generator.MultiSlotDataGenerator
    fluid.data_feeder.data_generator.MultiSlotStringDataGenerator

    >>> DataGenerator().batch_size_
    32
    """

    def __init__(self) -> None:
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """Set how many samples ``generate_batch`` gets at once."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Callable[[], Iterable[Slots]]:
        """Return a function that returns the samples of a line, or of no input if ``line`` is None.

        Raises NotImplementedError unless defined.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define generate_sample(line), which returns a function that returns "
            "samples"
        )

    def generate_batch(self, samples: list[Slots]) -> Callable[[], Iterable[Slots]]:
        """Return a function that returns the samples to write for a batch, by default unchanged."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Print the samples of the lines of standard input."""
        self._print(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def run_from_memory(self) -> None:
        """Print the samples of ``generate_sample(None)``."""
        self._print(self.generate_sample(None)())

    def _print(self, samples: Iterable[Slots | None]) -> None:
        batch: list[Slots] = []
        for sample in samples:
            if sample is None:
                continue
            batch.append(sample)
            if len(batch) == self.batch_size_:
                self._print_batch(batch)
                batch = []
        if batch:
            self._print_batch(batch)

    def _print_batch(self, batch: list[Slots]) -> None:
        for sample in self.generate_batch(batch)():
            sys.stdout.write(self._gen_str(sample))

    def _gen_str(self, line: Slots) -> str:
        raise NotImplementedError(
            f"{type(self).__name__} must derive from MultiSlotDataGenerator or MultiSlotStringDataGenerator, "
            "which write lines"
        )


class MultiSlotStringDataGenerator(DataGenerator):
    r"""Writes samples whose values are strings. A slot given as one string is split into characters, as in
    Fluid.

    See Also
    --------
    fluid.DataFeedDesc, fluid.DatasetFactory, fluid.data_feeder.data_generator.DataGenerator
    fluid.data_feeder.data_generator.MultiSlotDataGenerator

    Raises
    ------
    ValueError
        A sample is not a list of pairs, a name and its strings.

    >>> MultiSlotStringDataGenerator()._gen_str([("words", ["7", "8"]), ("label", "1")])
    '2 7 8 1 1\n'
    """

    def _gen_str(self, line: Slots) -> str:
        slots = [
            (name, _split_string(values) if isinstance(values, str) else values)
            for name, values in _check_slots(line, (list, tuple, str))
        ]
        return " ".join(word for _, values in slots for word in (str(len(values)), *values)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    r"""Writes samples of numbers, one per line.

    Raises
    ------
    ValueError
        A sample has other slots than the first (raised by ``run_from_stdin`` and ``run_from_memory``).

    See Also
    --------
    fluid.DataFeedDesc, fluid.DatasetFactory, fluid.data_feeder.data_generator.DataGenerator
    fluid.data_feeder.data_generator.MultiSlotStringDataGenerator

    >>> MultiSlotDataGenerator()._gen_str([("words", [7, 8]), ("label", [1])])
    '2 7 8 1 1\n'
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] | None = None

    def _gen_str(self, line: Slots) -> str:
        slots = list(_check_slots(line))
        names = [name for name, _ in slots]
        if self._names is None:
            self._names = names
        elif names != self._names:
            raise ValueError(
                f"generate_sample: a sample has the slots {names}, the first sample has {self._names}"
            )
        for name, values in slots:
            if not values:
                raise ValueError(
                    f"generate_sample: slot {name!r} is empty, expected at least one value\n"
                    "  hint: write a padding value, such as 0"
                )
        return " ".join(str(word) for _, values in slots for word in (len(values), *values)) + "\n"


def _split_string(value: str) -> list[str]:
    """Return the values of a slot that is a string, by default its characters, as in Fluid."""
    return list(value) if len(value) != 1 and warn_quirk("string_slots") else [value]


def _check_slots(line: Slots, kinds: Any = (list, tuple)) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the slots of a sample: a list, a tuple, or ``zip(names, values)``, a list in Python 2."""
    if not isinstance(line, list | tuple | zip):
        raise ValueError(
            f"generate_sample: a sample must be a list of slots like ('words', [7, 8]), got {line!r}"
        )
    for name, values in line:
        if not isinstance(name, str) or not isinstance(values, kinds):
            raise ValueError(
                f"generate_sample: a slot must be a name and a list of values, got ({name!r}, {values!r})"
            )
        yield name, values
