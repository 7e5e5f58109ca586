"""How often something is done: every so many samples, minibatches or sweeps."""

from __future__ import annotations

import enum
import sys
from typing import Final, NamedTuple, TypeAlias

AT_THE_END: Final = sys.maxsize


class DataUnit(enum.IntEnum):
    """What a frequency counts.

    >>> from paddlelike import training
    >>> training.DataUnit.sample.name
    'sample'
    """

    sample = 0
    minibatch = 1
    sweep = 2


class Frequency(NamedTuple):
    """Every so many units; 0: never, :data:`AT_THE_END`: once, at the end of the training."""

    every: int
    unit: DataUnit = DataUnit.sample


#: A count of samples, or a count and its unit; None: at the end.
FrequencyLike: TypeAlias = int | tuple[int, DataUnit] | None


def read_frequency(given: object, who: str) -> Frequency:
    """Return the frequency that was given to ``who``: a count of samples, or a pair of count and unit.

    Raises
    ------
    TypeError
        It is neither.
    ValueError
        It is negative.

    >>> read_frequency((2, DataUnit.sweep), "CheckpointConfig")
    Frequency(every=2, unit=<DataUnit.sweep: 2>)
    """
    if given is None:
        return Frequency(AT_THE_END)
    count, unit = given if isinstance(given, tuple) and len(given) == 2 else (given, DataUnit.sample)
    if type(count) is not int or not isinstance(unit, DataUnit):
        raise TypeError(
            f"{who}: frequency is a count of samples, or (count, DataUnit.minibatch or .sweep); got {given!r}"
        )
    if count < 0:
        raise ValueError(f"{who}: frequency is 0 or more, got {count}")
    return Frequency(count, unit)
