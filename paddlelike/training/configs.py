"""Frequencies in samples, minibatches or sweeps, and the configurations that use them."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, Unpack

from paddlelike.framework import Variable
from paddlelike.io.checkpoints.numbered import NumberedCheckpoints
from paddlelike.storage.options import SaveKeywords
from paddlelike.training.sources.base import MinibatchSource

AT_THE_END: Final = sys.maxsize


class DataUnit(enum.IntEnum):
    """The unit of a frequency.

    >>> from paddlelike import training
    >>> training.DataUnit.sample.name
    'sample'
    """

    sample = 0
    minibatch = 1
    sweep = 2


class Frequency(NamedTuple):
    """The number of units between two events. 0: never; :data:`AT_THE_END`: once, at the end of training."""

    every: int
    unit: DataUnit = DataUnit.sample


#: A number of samples, or a count and its unit; None: at the end.
FrequencyLike: TypeAlias = int | tuple[int, DataUnit] | None


def read_frequency(given: object, who: str) -> Frequency:
    """Return the frequency given to ``who``: a number of samples, or a pair of number and unit.

    Raises
    ------
    TypeError
        ``given`` is neither.
    ValueError
        The number is negative.

    >>> read_frequency((2, DataUnit.sweep), "CheckpointConfig")
    Frequency(every=2, unit=<DataUnit.sweep: 2>)
    """
    if given is None:
        return Frequency(AT_THE_END)
    count, unit = given if isinstance(given, tuple) and len(given) == 2 else (given, DataUnit.sample)
    if type(count) is not int or not isinstance(unit, DataUnit):
        raise TypeError(
            f"{who}: frequency must be a number, or (number, DataUnit.minibatch or .sweep); got {given!r}"
        )
    if count < 0:
        raise ValueError(f"{who}: frequency must be 0 or more, got {count}")
    return Frequency(count, unit)


class EarlyStopping:
    """Ends a training after ``patience`` cross validations without improvement: the callback of a
    :class:`CrossValidationConfig`.

    A resumed training counts from zero. :class:`CheckpointConfig` keeps the best (``keep_best=1``).

    Parameters
    ----------
    patience
        The number of cross validations without a better metric before the training ends.
    least
        The least improvement that counts.
    best
        Whether the best metric is the "smallest" or the "largest".

    Raises
    ------
    ValueError
        ``patience`` is less than 1, or ``best`` is another text.

    See Also
    --------
    fluid.training.CrossValidationConfig

    >>> stop = EarlyStopping(patience=2)
    >>> [stop(index, average, 8, 1) for index, average in enumerate([3.0, 2.0, 2.5, 2.0])]
    [True, True, True, False]
    """

    def __init__(
        self, patience: int = 3, least: float = 0.0, best: Literal["smallest", "largest"] = "smallest"
    ) -> None:
        if patience < 1 or best not in ("smallest", "largest"):
            raise ValueError(
                f"EarlyStopping: patience={patience} is below 1, or best={best!r} not smallest or largest"
            )
        self.patience, self.least = patience, least
        self.best_average: float | None = None
        self._sign = 1.0 if best == "smallest" else -1.0
        self._waited = 0

    def __call__(
        self, index: int, average_error: float, cv_num_samples: int, cv_num_minibatches: int
    ) -> bool:
        """Record the metric of a cross validation; return whether training continues."""
        if self.best_average is None or self._sign * (self.best_average - average_error) > self.least:
            self.best_average, self._waited = average_error, 0
        else:
            self._waited += 1
        return self._waited < self.patience


Mapped = Mapping[Variable, str]


class CheckpointConfig:
    """Settings for the checkpoints of a training session, and for continuing from the newest one.

    Parameters
    ----------
    filename
        The checkpoint, a directory or a URL; None for no checkpoints.
    frequency
        The number of samples between two checkpoints, or a pair such as ``(count, DataUnit.minibatch)``. None
        for one checkpoint, at the end; 0 for none. A checkpoint is saved after the minibatch that reaches a
        multiple, and at the end.
    restore
        Whether to continue from the newest checkpoint, if there is one.
    preserve_all
        Whether to keep all checkpoints, as ``filename.0``, ``filename.1``, ...; ``filename`` itself is the
        last one. (The real CNTK 2.7 writes these names without the dot; both forms are found.)
    frequency_unit
        The unit of a frequency that is a number: samples, minibatches or sweeps.
    keep_best
        The number of checkpoints with the best metric that are kept beside the newest, under the same names.
        The metric is the result of the last cross validation, or else the average over the training since the
        last checkpoint. Without a metric, the loss counts.
    best
        Whether the "smallest" or the "largest" metric is the best.
    options
        The fields of :class:`~paddlelike.storage.options.SaveOptions`.

    Raises
    ------
    ValueError
        There is a frequency but no file name, or a value is not valid.
    TypeError
        ``frequency`` is neither a number nor a pair of a count and a unit, or ``restore`` is not a boolean.

    >>> from paddlelike import training
    >>> config = training.CheckpointConfig("model.ckpt", frequency=1000)
    """

    def __init__(
        self,
        filename: str | os.PathLike[str] | None,
        frequency: int | tuple[int, DataUnit] | None = None,
        restore: bool = True,
        preserve_all: bool = False,
        *,
        frequency_unit: DataUnit | None = None,
        keep_best: int = 0,
        best: Literal["smallest", "largest"] = "smallest",
        **options: Unpack[SaveKeywords],
    ) -> None:
        for name, value in (("restore", restore), ("preserve_all", preserve_all)):
            if not isinstance(value, bool):
                raise TypeError(
                    f"CheckpointConfig: {name} must be True or False, got {value!r}\n  hint: the unit of a "
                    "frequency is given by frequency_unit=, or with it: frequency=(2, DataUnit.sweep)"
                )
        if filename is None and frequency not in (None, 0):
            raise ValueError("CheckpointConfig: a frequency needs a file name to save checkpoints as")
        given = (frequency, frequency_unit) if frequency_unit is not None else frequency
        self.frequency = Frequency(0) if filename is None else read_frequency(given, "CheckpointConfig")
        self.filename = filename
        self.restore = restore
        self.preserve_all = preserve_all
        self.keep_best = int(keep_best)
        self._best, self._options = best, options
        self.open()

    def open(self) -> NumberedCheckpoints | None:
        """Return the checkpoints, to list them or to find the best one; None without a file name."""
        if self.filename is None:
            return None
        limit = None if self.preserve_all else self.keep_best
        return NumberedCheckpoints(self.filename, limit, best=self._best, **self._options)


class CrossValidationConfig:
    """Settings for the cross validations of a training session: data, frequency and callback.

    Parameters
    ----------
    minibatch_source
        The data, a source or a tuple of arrays in the order of the data variables. Every cross validation
        begins where the source is now.
    frequency
        The same as in :class:`CheckpointConfig`; None for once, at the end.
    minibatch_size
        The samples of a minibatch.
    callback
        A function of the index of the cross validation, the average metric, and the numbers of samples and of
        minibatches. The training ends when it returns False. It is called even without a source.
    max_samples
        The largest number of samples to take; None for all.
    model_inputs_to_streams
        The stream of each data variable; None for the same as in the training.

    Raises
    ------
    ValueError
        There is a frequency, but neither source nor callback.

    >>> import numpy as np
    >>> from paddlelike import training
    >>> source = training.MinibatchSourceFromData({"x": np.ones((8, 4), "float32")})
    >>> config = training.CrossValidationConfig(source, frequency=100)
    """

    def __init__(
        self,
        minibatch_source: MinibatchSource | Any = None,
        frequency: int | tuple[int, DataUnit] | None = None,
        minibatch_size: int = 32,
        callback: Callable[[int, float, int, int], bool | None] | None = None,
        max_samples: int | None = None,
        model_inputs_to_streams: Mapped | None = None,
    ) -> None:
        if minibatch_source is None and callback is None and frequency not in (None, 0):
            raise ValueError("CrossValidationConfig: a frequency needs a minibatch_source or a callback")
        is_idle = minibatch_source is None and callback is None
        self.frequency = Frequency(0) if is_idle else read_frequency(frequency, "CrossValidationConfig")
        self.minibatch_source = minibatch_source
        self.minibatch_size = int(minibatch_size)
        self.callback = callback
        self.max_samples = AT_THE_END if max_samples is None else int(max_samples)
        self.model_inputs_to_streams = model_inputs_to_streams


class TestConfig:
    """The data for the test at the end of a training session; see :class:`CrossValidationConfig`.

    Parameters
    ----------
    minibatch_source
        The source of the test data.
    minibatch_size
        Samples per minibatch, or a schedule.
    model_inputs_to_streams
        Streams of the source by variable or name; None if their names are equal.

    >>> import numpy as np
    >>> from paddlelike import training
    >>> source = training.MinibatchSourceFromData({"x": np.ones((8, 4), "float32")})
    >>> config = training.TestConfig(source)
    """

    __test__ = False  # for pytest

    def __init__(
        self,
        minibatch_source: MinibatchSource | Any,
        minibatch_size: int = 32,
        model_inputs_to_streams: Mapped | None = None,
    ) -> None:
        self.minibatch_source = minibatch_source
        self.minibatch_size = int(minibatch_size)
        self.model_inputs_to_streams = model_inputs_to_streams
