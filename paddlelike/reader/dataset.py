"""fluid.dataset: samples in text files, read through a command, for ``Executor.train_from_dataset``.

A line is a sample. For every variable of ``set_use_var``, in that order, it holds a count and so many
numbers (Paddle's MultiSlot format)::

    2 1.5 2.5 3 7 8 9 1 0

is ``[1.5, 2.5]``, then the three ids 7, 8, 9, then the one label 0. A variable with LoD takes sequences of
any length; another takes as many numbers as its shape has elements.
"""

from __future__ import annotations

import math
import random
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.core.tensor import LoDTensor
from paddlelike.errors import FeedError, UnsupportedError
from paddlelike.framework.graph.variable import Variable

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

Sample = list[np.ndarray[Any, Any]]  # the numbers of one line, an array for each variable


class DatasetFactory:
    """Makes datasets by the names of their classes.

    >>> type(DatasetFactory().create_dataset("InMemoryDataset")).__name__
    'InMemoryDataset'
    """

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """A new dataset: "QueueDataset" or "InMemoryDataset"."""
        kinds: dict[str, type[DatasetBase]] = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
        }
        if datafeed_class not in kinds:
            raise ValueError(f"a dataset is one of {', '.join(kinds)}, not {datafeed_class!r}")
        return kinds[datafeed_class]()


class DatasetBase:
    """What both kinds share: which files, read how, into which variables."""

    def __init__(self) -> None:
        self.filelist: list[str] = []
        self.batch_size = 1
        self.thread_num = 1
        self.pipe_command = "cat"
        self.use_var: list[Variable] = []

    def set_pipe_command(self, pipe_command: str) -> None:
        """The shell command every file is read through: its text comes in, samples go out."""
        self.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """The number of samples in a batch; the last one may have fewer."""
        if batch_size <= 0:
            raise ValueError(f"batch_size is a positive number, not {batch_size}")
        self.batch_size = batch_size

    def set_thread(self, thread_num: int) -> None:
        """A hint: samples come in the order of the files here, whatever it says."""
        self.thread_num = thread_num

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """The files to read."""
        self.filelist = list(filelist)

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The variables that a line holds numbers for, in order; float32 and int64 ones."""
        for variable in var_list:
            if variable.dtype not in (VarType.FP32, VarType.INT64):
                raise ValueError(
                    f"a dataset fills float32 and int64 variables; {variable.name!r} is {variable.dtype.name}"
                )
        self.use_var = list(var_list)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Not here: files are local."""
        raise UnsupportedError(
            f"a dataset cannot read from {fs_name}",
            hint="copy the files, or read them by the command of set_pipe_command",
        )

    def set_download_cmd(self, download_cmd: str) -> None:
        """Not here: files are local."""
        raise UnsupportedError(f"a dataset does not download by {download_cmd!r}", hint="use local files")

    def desc(self) -> str:
        """How the dataset is read, as text."""
        lines = ['name: "MultiSlotDataFeed"', f"batch_size: {self.batch_size}", "multi_slot_desc {"]
        for variable in self.use_var:
            lines += ["  slots {", *(f"    {line}" for line in _described(variable)), "  }"]
        lines += ["}", f'pipe_command: "{self.pipe_command}"']
        return "".join(f"{line}\n" for line in lines)

    def feeds(self) -> Iterator[dict[str, LoDTensor]]:
        """The batches as feeds."""
        batch: list[Sample] = []
        for sample in self._samples():
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self._feed(batch)
                batch = []
        if batch:
            yield self._feed(batch)

    def _samples(self) -> Iterable[Sample]:
        return self._read()

    def _feed(self, batch: list[Sample]) -> dict[str, LoDTensor]:
        columns = zip(*batch, strict=True)
        return {v.name: _tensor(v, list(c)) for v, c in zip(self.use_var, columns, strict=True)}

    def _read(self) -> Iterator[Sample]:
        """The samples of all files."""
        for path in self.filelist:
            for number, line in enumerate(self._lines(path), 1):
                if line.strip():
                    yield self._parse(line, f"{path}, line {number}")

    def _lines(self, path: str) -> Iterator[str]:
        """What the command makes of a file, line by line."""
        with Path(path).open("rb") as file:
            command = subprocess.Popen(  # noqa: S602  (the user's own command)
                self.pipe_command, shell=True, stdin=file, stdout=subprocess.PIPE, text=True
            )
        with command:
            assert command.stdout is not None
            try:
                yield from command.stdout
            finally:
                command.stdout.close()
        if command.returncode:
            raise FeedError(
                f"dataset: {path}: the command {self.pipe_command!r} ended with status {command.returncode}"
            )

    def _parse(self, line: str, where: str) -> Sample:
        """The numbers of one line."""
        words = line.split()
        sample, at = [], 0
        for variable in self.use_var:
            try:
                end = at + 1 + int(words[at])
                values = np.array(words[at + 1 : end], numpy_dtype(variable.dtype))
            except (IndexError, ValueError, OverflowError) as error:
                raise _bad_line(where, f"no count and numbers for {variable.name!r}: {error}") from error
            if end > len(words):
                raise _bad_line(where, f"{variable.name!r} wants {words[at]} numbers, {len(values)} are left")
            _check_size(variable, values, where)
            sample.append(values)
            at = end
        if at < len(words):
            raise _bad_line(where, f"{len(words) - at} numbers are left over")
        return sample


class QueueDataset(DatasetBase):
    """Samples read from the files at every pass, in their order."""

    def local_shuffle(self) -> None:
        """Not here, as in Fluid: the samples are not in memory."""
        raise NotImplementedError("a QueueDataset is not shuffled; use an InMemoryDataset")

    def global_shuffle(self, fleet: Any = None) -> None:
        """Not here, as in Fluid: the samples are not in memory."""
        raise NotImplementedError("a QueueDataset is not shuffled; use an InMemoryDataset")


class InMemoryDataset(DatasetBase):
    """Samples read once, by :meth:`load_into_memory`, and shuffled at will."""

    def __init__(self) -> None:
        super().__init__()
        self._memory: list[Sample] | None = None

    def set_queue_num(self, queue_num: int) -> None:
        """A hint that is not needed here."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """A hint that is not needed here."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """A hint that is not needed here."""

    def load_into_memory(self) -> None:
        """Read all files."""
        self._memory = list(self._read())

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """As :meth:`load_into_memory`."""
        self.load_into_memory()

    def wait_preload_done(self) -> None:
        """Nothing to wait for: :meth:`preload_into_memory` has read everything."""

    def local_shuffle(self) -> None:
        """Mix the samples; Python's ``random.seed`` fixes the order."""
        random.shuffle(self._loaded())

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """As :meth:`local_shuffle`: there is one trainer."""
        if fleet is not None:
            raise UnsupportedError("global_shuffle mixes the samples of this process only; pass no fleet")
        self.local_shuffle()

    def release_memory(self) -> None:
        """Let go of the samples."""
        self._memory = None

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """The number of samples in memory."""
        return len(self._memory or ())

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """The number of samples in memory."""
        return len(self._memory or ())

    def _samples(self) -> Iterable[Sample]:
        return self._loaded()

    def _loaded(self) -> list[Sample]:
        if self._memory is None:
            raise FeedError("this InMemoryDataset holds no samples", hint="call its load_into_memory() first")
        return self._memory


def _described(variable: Variable) -> list[str]:
    """The lines about one variable."""
    kind = "float" if variable.dtype == VarType.FP32 else "uint64"
    name = [f'name: "{variable.name}"', f'type: "{kind}"']
    if variable.lod_level:
        return [*name, "is_used: true"]
    return [*name, "is_dense: true", "is_used: true", *(f"shape: {dim}" for dim in variable.shape)]


def _elements(variable: Variable) -> int:
    """The elements of one sample of a variable without LoD."""
    return math.prod(dim for dim in variable.shape[1:] if dim > 0)


def _check_size(variable: Variable, values: np.ndarray[Any, Any], where: str) -> None:
    if not variable.lod_level and len(values) != _elements(variable):
        raise _bad_line(
            where, f"{variable.name!r} has shape {list(variable.shape)}, the line holds {len(values)} numbers"
        )


def _bad_line(where: str, what: str) -> FeedError:
    return FeedError(
        f"dataset: {where}: {what}",
        hint="a line holds, for each variable of set_use_var in order, a count and so many numbers",
    )


def _tensor(variable: Variable, column: list[np.ndarray[Any, Any]]) -> LoDTensor:
    """The values of one variable in a batch of samples."""
    if not variable.lod_level:
        return LoDTensor(np.stack(column).reshape(len(column), *variable.shape[1:]))
    tensor = LoDTensor(np.concatenate(column).reshape(-1, 1))
    tensor.set_recursive_sequence_lengths([[len(values) for values in column]])
    return tensor
