"""fluid.data_generator: scripts that make the lines of a dataset out of other text (``set_pipe_command``).

Subclass :class:`MultiSlotDataGenerator`, write ``generate_sample``, and call ``run_from_stdin``; a dataset
runs the script by ``set_pipe_command("python my_script.py")`` and reads what it prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

__all__ = ["DataGenerator", "MultiSlotDataGenerator", "MultiSlotStringDataGenerator"]

Slots = Sequence[tuple[str, Sequence[Any]]]  # of one sample: the name and the values of each slot


class DataGenerator:
    """Makes lines of samples; how a sample is written is up to subclasses."""

    def __init__(self) -> None:
        self.batch_size_ = 32

    def set_batch(self, batch_size: int) -> None:
        """The number of samples that ``generate_batch`` gets at once."""
        self.batch_size_ = batch_size

    def generate_sample(self, line: str | None) -> Callable[[], Iterable[Slots]]:
        """A function that gives the samples made of a line (None: of nothing); to be written."""
        raise NotImplementedError("write generate_sample(line): it returns a function that gives samples")

    def generate_batch(self, samples: list[Slots]) -> Callable[[], Iterable[Slots]]:
        """A function that gives the samples of a batch as they are to be written; here unchanged."""
        return lambda: iter(samples)

    def run_from_stdin(self) -> None:
        """Print the samples made of the lines of standard input."""
        self._print(sample for line in sys.stdin for sample in self.generate_sample(line)())

    def run_from_memory(self) -> None:
        """Print the samples made of nothing: ``generate_sample(None)``."""
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
        raise NotImplementedError("use MultiSlotDataGenerator or MultiSlotStringDataGenerator")


class MultiSlotStringDataGenerator(DataGenerator):
    r"""Writes samples whose values are strings already.

    >>> MultiSlotStringDataGenerator()._gen_str([("words", ["7", "8"]), ("label", ["1"])])
    '2 7 8 1 1\n'
    """

    def _gen_str(self, line: Slots) -> str:
        return " ".join(word for _, values in _checked(line) for word in (str(len(values)), *values)) + "\n"


class MultiSlotDataGenerator(DataGenerator):
    """Writes samples of numbers; every sample must have the slots of the first one."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] | None = None

    def _gen_str(self, line: Slots) -> str:
        slots = list(_checked(line))
        names = [name for name, _ in slots]
        if self._names is None:
            self._names = names
        elif names != self._names:
            raise ValueError(f"a sample has the slots {names}, the first one had {self._names}")
        for name, values in slots:
            if not values:
                raise ValueError(f"slot {name!r} is empty; write a value that stands for nothing")
        return " ".join(str(word) for _, values in slots for word in (len(values), *values)) + "\n"


def _checked(line: Slots) -> Iterator[tuple[str, Sequence[Any]]]:
    if not isinstance(line, list | tuple):
        raise ValueError(f"a sample is a list of slots like ('words', [7, 8]), not {line!r}")
    for name, values in line:
        if not isinstance(name, str) or not isinstance(values, list | tuple):
            raise ValueError(f"a slot is a name and a list of values, not ({name!r}, {values!r})")
        yield name, values
