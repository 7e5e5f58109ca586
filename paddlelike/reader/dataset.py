"""fluid.dataset: samples in text files, read through a command, for ``Executor.train_from_dataset``.

A line is a sample. For every variable of ``set_use_var``, in that order, it holds a count and as many
values (Paddle's MultiSlot format)::

    2 1.5 2.5 3 7 8 9 1 0

is ``[1.5, 2.5]``, then the three ids 7, 8, 9, then the one label 0. A variable with LoD takes sequences of
any length; others take as many values as their shape has elements.
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
from paddlelike.core.versioned import Versioned
from paddlelike.errors import FeedError, MissingFileError, UnsupportedError
from paddlelike.framework.graph.variable import Variable

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

Sample = list[np.ndarray[Any, Any]]  # the values of one line, an array for each variable


class DatasetFactory:
    """Creates datasets by the names of their classes.

    >>> type(DatasetFactory().create_dataset("InMemoryDataset")).__name__
    'InMemoryDataset'
    """

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """Return a new "QueueDataset" or "InMemoryDataset". Raises ValueError for another name."""
        kinds: dict[str, type[DatasetBase]] = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
        }
        if datafeed_class not in kinds:
            raise ValueError(
                f"create_dataset: datafeed_class must be one of {', '.join(kinds)}, got {datafeed_class!r}"
            )
        return kinds[datafeed_class]()


class DatasetBase(Versioned):
    """Base of the datasets: the files, how they are read, and the variables they fill."""

    def __init__(self) -> None:
        self.filelist: list[str] = []
        self.batch_size = 1
        self.thread_num = 1
        self.pipe_command = "cat"
        self.use_var: list[Variable] = []

    def set_pipe_command(self, pipe_command: str) -> None:
        """Set the shell command that converts the text of a file into samples."""
        self.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """Set the count of samples in a batch; the last may have fewer. Raises ValueError unless positive."""
        if batch_size <= 0:
            raise ValueError(f"set_batch_size: batch_size must be a positive number, got {batch_size}")
        self.batch_size = batch_size

    def set_thread(self, thread_num: int) -> None:
        """Do nothing: here one thread reads the files in order."""
        self.thread_num = thread_num

    def set_filelist(self, filelist: Sequence[str]) -> None:
        """Set the files to read."""
        self.filelist = list(filelist)

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """Set the variables that a line fills; raises ValueError unless they are float32 or int64."""
        for variable in var_list:
            if variable.dtype not in (VarType.FP32, VarType.INT64):
                raise ValueError(
                    f"set_use_var: variable {variable.name!r} is {variable.dtype.name}, expected float32 or "
                    "int64, which lines of text are read as"
                )
        self.use_var = list(var_list)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Raise UnsupportedError: files are local."""
        raise UnsupportedError(
            f"a dataset cannot read from {fs_name}",
            hint="copy the files, or read them by the command of set_pipe_command",
        )

    def set_download_cmd(self, download_cmd: str) -> None:
        """Raise UnsupportedError: files are local."""
        raise UnsupportedError(f"a dataset does not download by {download_cmd!r}", hint="use local files")

    def desc(self) -> str:
        """Return a description of how the dataset is read."""
        lines = ['name: "MultiSlotDataFeed"', f"batch_size: {self.batch_size}", "multi_slot_desc {"]
        for variable in self.use_var:
            lines += ["  slots {", *(f"    {line}" for line in _describe(variable)), "  }"]
        lines += ["}", f'pipe_command: "{self.pipe_command}"']
        return "".join(f"{line}\n" for line in lines)

    def feeds(self) -> Iterator[dict[str, LoDTensor]]:
        """Yield the batches as feeds. Raises FeedError for a malformed line or a failed command."""
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
        """Yield the samples of all files. Raises FeedError when no variables are set."""
        if not self.use_var:
            raise FeedError(
                "dataset: no variables are set, which the lines fill",
                hint="call set_use_var([x, y]) with the data variables, in the order of the slots of a line",
            )
        for path in self.filelist:
            for number, line in enumerate(self._lines(path), 1):
                if line.strip():
                    yield self._parse(line, f"{path}, line {number}")

    def _lines(self, path: str) -> Iterator[str]:
        """Yield the lines that the command prints for a file."""
        if not Path(path).exists():
            raise MissingFileError(
                f"dataset: there is no file {path}", hint="set_filelist takes paths, relative to this process"
            )
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
                f"dataset: {path}: the command {self.pipe_command!r} ended with status {command.returncode}",
                hint=f"try it in a shell: {self.pipe_command} < {path}",
            )

    def _parse(self, line: str, where: str) -> Sample:
        """Return the values of one line."""
        words = line.split()
        sample, at = [], 0
        for variable in self.use_var:
            try:
                end = at + 1 + int(words[at])
                values = np.array(words[at + 1 : end], numpy_dtype(variable.dtype))
            except (IndexError, ValueError, OverflowError) as error:
                raise _bad_line(where, f"no count and values for {variable.name!r}: {error}") from None
            if end > len(words):
                raise _bad_line(where, f"{variable.name!r} needs {words[at]} values, {len(values)} are left")
            _check_size(variable, values, where)
            sample.append(values)
            at = end
        if at < len(words):
            raise _bad_line(where, f"{len(words) - at} values are left over")
        return sample


class QueueDataset(DatasetBase):
    """Samples read from the files in every pass, in order."""

    def local_shuffle(self) -> None:
        """Raise NotImplementedError, as in Fluid: the samples are not in memory."""
        raise NotImplementedError(
            "QueueDataset: samples that are not in memory cannot be shuffled\n"
            '  hint: fluid.DatasetFactory().create_dataset("InMemoryDataset"), then load_into_memory()'
        )

    def global_shuffle(self, fleet: Any = None) -> None:
        """Raise NotImplementedError, as in Fluid: the samples are not in memory."""
        raise NotImplementedError(
            "QueueDataset: samples that are not in memory cannot be shuffled\n"
            '  hint: fluid.DatasetFactory().create_dataset("InMemoryDataset"), then load_into_memory()'
        )


class InMemoryDataset(DatasetBase):
    """Samples that :meth:`load_into_memory` reads once, and that can be shuffled."""

    def __init__(self) -> None:
        super().__init__()
        self._memory: list[Sample] | None = None
        self._was_loaded = False  # before it was pickled: the samples are read at their first use

    def _get_attributes(self) -> dict[str, Any]:
        """Return the attributes without the samples, which are read from the files again."""
        loaded = self._was_loaded or self._memory is not None
        return super()._get_attributes() | {"_memory": None, "_was_loaded": loaded}

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set the attributes. Raises MissingFileError when a file that was loaded is gone."""
        super()._set_attributes(attributes)
        missing = [path for path in self.filelist if not Path(path).exists()] if self._was_loaded else []
        if missing:
            raise MissingFileError(
                f"this InMemoryDataset had read {', '.join(missing)}, which no longer exists",
                hint="a pickled dataset has no samples, it reads its files again: restore them",
            )

    def set_queue_num(self, queue_num: int) -> None:
        """Do nothing: the option of Fluid has no meaning here."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Do nothing: the option of Fluid has no meaning here."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Do nothing: the option of Fluid has no meaning here."""

    def load_into_memory(self) -> None:
        """Read all files."""
        self._memory, self._was_loaded = list(self._read()), False

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Do the same as :meth:`load_into_memory`."""
        self.load_into_memory()

    def wait_preload_done(self) -> None:
        """Do nothing: :meth:`preload_into_memory` has read everything."""

    def local_shuffle(self) -> None:
        """Shuffle the samples by Python's ``random``. Raises FeedError before they are loaded."""
        random.shuffle(self._take_loaded_samples())

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Do the same as :meth:`local_shuffle`. Raises UnsupportedError when a fleet is passed."""
        if fleet is not None:
            raise UnsupportedError("global_shuffle shuffles the samples of this process only; pass no fleet")
        self.local_shuffle()

    def release_memory(self) -> None:
        """Drop the samples."""
        self._memory, self._was_loaded = None, False

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """Return the count of samples in memory."""
        return len(self._take_loaded_samples() if self._was_loaded else self._memory or ())

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """Return the count of samples in memory."""
        return self.get_memory_data_size(fleet)

    def _samples(self) -> Iterable[Sample]:
        return self._take_loaded_samples()

    def _take_loaded_samples(self) -> list[Sample]:
        if self._memory is None and self._was_loaded:
            self.load_into_memory()
        if self._memory is None:
            raise FeedError("this InMemoryDataset holds no samples", hint="call its load_into_memory() first")
        return self._memory


def _describe(variable: Variable) -> list[str]:
    """Return the lines that describe one variable."""
    kind = "float" if variable.dtype == VarType.FP32 else "uint64"
    name = [f'name: "{variable.name}"', f'type: "{kind}"']
    if variable.lod_level:
        return [*name, "is_used: true"]
    return [*name, "is_dense: true", "is_used: true", *(f"shape: {dim}" for dim in variable.shape)]


def _count_elements(variable: Variable) -> int:
    """Return the count of elements of one sample of a variable without LoD."""
    return math.prod(dim for dim in variable.shape[1:] if dim > 0)


def _check_size(variable: Variable, values: np.ndarray[Any, Any], where: str) -> None:
    if not variable.lod_level and len(values) != _count_elements(variable):
        raise _bad_line(
            where, f"{variable.name!r} has shape {list(variable.shape)}, the line holds {len(values)} values"
        )


def _bad_line(where: str, what: str) -> FeedError:
    return FeedError(
        f"dataset: {where}: {what}",
        hint="a line holds, for each variable of set_use_var in order, a count and as many values",
    )


def _tensor(variable: Variable, column: list[np.ndarray[Any, Any]]) -> LoDTensor:
    """Return the values of one variable in a batch of samples."""
    if not variable.lod_level:
        return LoDTensor(np.stack(column).reshape(len(column), *variable.shape[1:]))
    tensor = LoDTensor(np.concatenate(column).reshape(-1, 1))
    tensor.set_recursive_sequence_lengths([[len(values) for values in column]])
    return tensor
