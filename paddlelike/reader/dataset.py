"""fluid.dataset: samples in text files, read through a command, for ``Executor.train_from_dataset``.

A line is a sample. For every variable of ``set_use_var``, in that order, it holds a count and that many
values (Paddle's MultiSlot format)::

    2 1.5 2.5 3 7 8 9 1 0

is ``[1.5, 2.5]``, then the three ids 7, 8, 9, then the one label 0. A variable with LoD takes sequences of
any length; others take as many values as their shape has elements.
"""

from __future__ import annotations

import itertools
import math
import random
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final, Protocol

import numpy as np

from paddlelike.core import Array, LoDTensor, VarType, Versioned, numpy_dtype
from paddlelike.errors import FeedError, MissingFileError, UnsupportedError
from paddlelike.framework import Variable

_HADOOP: Final = ("hdfs:", "afs:")  # files that Fluid reads by a command
#: The fields of a description in their order.
_FIELDS: Final = ("name", "batch_size", "multi_slot_desc", "pipe_command", "rank_offset", "pv_batch_size")
#: The fields at the start of a line, each only if the dataset is set to it, in this order.
_TEXTS: Final = ("instance id", "content", "log key")


class _Trainers(Protocol):
    """The methods of a fleet that ``global_shuffle`` needs."""

    def _spread(self, samples: list[Sample]) -> list[Sample]: ...
    def _add_up(self, count: int) -> int: ...


class DatasetFactory:
    """Creates datasets by the names of their classes.

    Raises
    ------
    ValueError
        ``create_dataset`` is given another name.

    >>> type(DatasetFactory().create_dataset("InMemoryDataset")).__name__
    'InMemoryDataset'
    """

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """Return a new dataset of the class of that name. Raises ValueError for another name."""
        kinds: dict[str, type[DatasetBase]] = {
            "QueueDataset": QueueDataset,
            "InMemoryDataset": InMemoryDataset,
            "BoxPSDataset": BoxPSDataset,
        }
        if datafeed_class not in kinds:
            raise ValueError(
                f"create_dataset: datafeed_class must be one of {', '.join(kinds)}, got {datafeed_class!r}"
            )
        return kinds[datafeed_class]()


class DatasetBase(Versioned):
    """Base class of the datasets: the files, how they are read, and the variables they fill.

    As in Fluid, a batch has 32 samples until :meth:`set_batch_size` is called.
    """

    _feed_name = "MultiSlotDataFeed"

    def __init__(self) -> None:
        self.filelist: list[str] = []
        self.batch_size = 32
        self.thread_num = 1
        self.pipe_command = "cat"
        self.use_var: list[Variable] = []
        self._described: dict[str, str] = {}  # more fields of the description
        self._hadoop: list[str] = []  # arguments of ``hadoop fs``
        self._download_cmd = ""
        self._texts: list[str] = []  # what a line begins with, before the values

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set the attributes; states of earlier releases do not have all of them."""
        super()._set_attributes(vars(type(self)()) | attributes)

    def set_pipe_command(self, pipe_command: str) -> None:
        """Set the shell command that converts the text of a file into samples."""
        self.pipe_command = pipe_command

    def set_batch_size(self, batch_size: int) -> None:
        """Set the number of samples in a batch; the last may have fewer. Raises ValueError for 0 or less."""
        if batch_size <= 0:
            raise ValueError(f"set_batch_size: batch_size must be a positive number, got {batch_size}")
        self.batch_size = batch_size
        self._described["batch_size"] = str(batch_size)

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
                    "int64, the types of values in text"
                )
        self.use_var = list(var_list)

    def set_rank_offset(self, rank_offset: str) -> None:
        """Set the name of the variable for ranks, which appears only in :meth:`desc`."""
        self._described["rank_offset"] = f'"{rank_offset}"'

    def set_pv_batch_size(self, pv_batch_size: int) -> None:
        """Set the number of page views in a batch, which appears only in :meth:`desc`."""
        self._described["pv_batch_size"] = str(pv_batch_size)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Set the file system and the user with which ``hadoop fs`` reads files named ``hdfs:`` or
        ``afs:``.
        """
        self._hadoop = ["-D", f"fs.default.name={fs_name}", "-D", f"hadoop.job.ugi={fs_ugi}"]

    def set_download_cmd(self, download_cmd: str) -> None:
        """Set the command that prints a file named ``hdfs:`` or ``afs:``, in place of ``hadoop fs``."""
        self._download_cmd = download_cmd

    def desc(self) -> str:
        """Return a description of how the dataset is read."""
        fields = {name: [f"{name}: {value}"] for name, value in self._described.items()}
        fields["name"] = [f'name: "{self._feed_name}"']
        fields["pipe_command"] = [f'pipe_command: "{self.pipe_command}"']
        slots = [
            ["  slots {", *(f"    {line}" for line in describe_slot(one)), "  }"] for one in self.use_var
        ]
        if slots:
            fields["multi_slot_desc"] = ["multi_slot_desc {", *itertools.chain(*slots), "}"]
        return "".join(f"{line}\n" for name in _FIELDS for line in fields.get(name, ()))

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
        return {v.name: stack_slot(v, list(c)) for v, c in zip(self.use_var, columns, strict=True)}

    def _read(self) -> Iterator[Sample]:
        """Yield the samples of all files. Raises FeedError when no variables are set."""
        if not self.use_var:
            raise FeedError(
                "dataset: no variables are set for the values in the lines",
                hint="call set_use_var([x, y]) with the data variables, in the order of the slots of a line",
            )
        for path in self.filelist:
            for number, line in enumerate(self._lines(path), 1):
                if line.strip():
                    yield parse_sample(line, self.use_var, self._texts, f"{path}, line {number}")

    def _lines(self, path: str) -> Iterator[str]:
        """Yield the lines that the command prints for a file."""
        if path.startswith(_HADOOP):
            show = "-text" if path.endswith(".gz") else "-cat"
            words = shlex.split(self._download_cmd) or ["hadoop", "fs", *self._hadoop, show]
            text = f"{shlex.join([*words, path])} | {self.pipe_command}"
            command = self._start(text, None)
        elif Path(path).exists():
            with Path(path).open("rb") as file:
                command = self._start(self.pipe_command, file)
        else:
            raise MissingFileError(
                f"dataset: no such file: {path}", hint="set_filelist takes paths, relative to this process"
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

    def _start(self, command: str, file: IO[bytes] | None) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S602  (the user's own command)
            command, shell=True, stdin=file, stdout=subprocess.PIPE, text=True
        )


class QueueDataset(DatasetBase):
    """Samples read from the files in every pass, in order.

    Raises
    ------
    ValueError
        A file does not exist, or a variable has no type that files can hold.
    FeedError
        A line does not fit the variables.

    >>> import paddlelike as fluid
    >>> data = fluid.DatasetFactory().create_dataset("QueueDataset")
    >>> data.set_batch_size(32)
    >>> data.set_filelist(["part-0", "part-1"])
    """

    def local_shuffle(self) -> None:
        """Raise NotImplementedError, as in Fluid: the samples are not in memory."""
        raise NotImplementedError(
            "QueueDataset: samples are not in memory, so they cannot be shuffled\n"
            '  hint: fluid.DatasetFactory().create_dataset("InMemoryDataset"), then load_into_memory()'
        )

    def global_shuffle(self, fleet: object = None) -> None:
        """Raise NotImplementedError, as in Fluid: the samples are not in memory."""
        self.local_shuffle()


class InMemoryDataset(DatasetBase):
    """Samples that :meth:`load_into_memory` reads once, and that can be shuffled.

    As in Fluid, zeros are removed from the values of variables with LoD; if all values are zeros, one zero
    stays.

    >>> import paddlelike as fluid
    >>> data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    >>> data.set_batch_size(32)
    >>> data.set_filelist(["part-0", "part-1"])
    """

    _feed_name = "MultiSlotInMemoryDataFeed"

    def __init__(self) -> None:
        super().__init__()
        self._merges = ""  # what is to be merged
        self._memory: list[Sample] | None = None
        self._was_loaded = False  # before it was pickled: the samples are read at their first use

    def _get_attributes(self) -> dict[str, Any]:
        """Return the attributes without the samples, which are read from the files again."""
        loaded = self._was_loaded or self._memory is not None
        return super()._get_attributes() | {"_memory": None, "_was_loaded": loaded}

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set the attributes. Raises MissingFileError when a loaded file no longer exists."""
        super()._set_attributes(attributes)
        missing = [path for path in self.filelist if not Path(path).exists()] if self._was_loaded else []
        if missing:
            raise MissingFileError(
                f"this InMemoryDataset had read {', '.join(missing)}, which no longer exists",
                hint="a pickled dataset has no samples, it reads its files again: restore them",
            )

    def set_queue_num(self, queue_num: int) -> None:
        """Do nothing: this option of Fluid has no meaning here."""

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Do nothing: this option of Fluid has no meaning here."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Do nothing: this option of Fluid has no meaning here."""

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Set whether a line begins with ``1 ID``; the id is not used here."""
        self._set_text("instance id", parse_ins_id)

    def set_parse_content(self, parse_content: bool) -> None:
        """Set whether ``1 TEXT`` comes before the values of a line; it is not used here."""
        self._set_text("content", parse_content)

    def set_parse_logkey(self, parse_logkey: bool) -> None:
        """Set whether ``1 KEY`` comes before the values of a line; it is not used here."""
        self._set_text("log key", parse_logkey)

    def set_merge_by_sid(self, merge_by_sid: bool) -> None:
        """Do nothing: it has an effect only on page views (:meth:`set_enable_pv_merge`)."""

    def set_enable_pv_merge(self, enable_pv_merge: bool) -> None:
        """Set whether samples become page views; :meth:`load_into_memory` then raises an error."""
        self._merges = "page views (set_enable_pv_merge)" if enable_pv_merge else ""

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """Merge lines of one instance id; :meth:`load_into_memory` then raises an error."""
        self._set_text("instance id", True)
        self._merges = "lines of one id (set_merge_by_lineid)"

    def _set_text(self, name: str, present: bool) -> None:
        chosen = {*self._texts, name} if present else {*self._texts} - {name}
        self._texts = [text for text in _TEXTS if text in chosen]

    def load_into_memory(self) -> None:
        """Read all files. Raises UnsupportedError for a dataset that is set to merge samples."""
        if self._merges:
            raise UnsupportedError(
                f"InMemoryDataset: {self._merges} are not merged here",
                hint="merge them by the command of set_pipe_command",
            )
        self._memory = [[drop_zeros(*p) for p in zip(self.use_var, one, strict=True)] for one in self._read()]
        self._was_loaded = False

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Read all files, as :meth:`load_into_memory` does."""
        self.load_into_memory()

    def wait_preload_done(self) -> None:
        """Do nothing: :meth:`preload_into_memory` has read everything."""

    def local_shuffle(self) -> None:
        """Shuffle the samples by Python's ``random``. Raises FeedError before they are loaded."""
        random.shuffle(self._take_loaded_samples())

    def global_shuffle(self, fleet: _Trainers | None = None, thread_num: int = 12) -> None:
        """Shuffle the samples of all trainers of ``fleet``; without it, the samples of this process.

        All trainers must call this. Python's ``random`` chooses a trainer for every sample. All samples
        travel over the servers to every trainer, so they must fit into the memory of each. Raises FeedError
        if samples are not loaded.
        """
        if fleet is not None:
            self._memory = fleet._spread(self._take_loaded_samples())
        self.local_shuffle()

    def release_memory(self) -> None:
        """Drop the samples."""
        self._memory, self._was_loaded = None, False

    def get_memory_data_size(self, fleet: _Trainers | None = None) -> int:
        """Return the number of samples in memory; with ``fleet``, the sum over its trainers.

        All trainers of ``fleet`` must call this.
        """
        count = len(self._take_loaded_samples() if self._was_loaded else self._memory or ())
        return count if fleet is None else fleet._add_up(count)

    def get_shuffle_data_size(self, fleet: _Trainers | None = None) -> int:
        """Return the number of samples, as :meth:`get_memory_data_size` does."""
        return self.get_memory_data_size(fleet)

    def _samples(self) -> Iterable[Sample]:
        return self._take_loaded_samples()

    def _take_loaded_samples(self) -> list[Sample]:
        if self._memory is None and self._was_loaded:
            self.load_into_memory()
        if self._memory is None:
            raise FeedError("this InMemoryDataset holds no samples", hint="call its load_into_memory() first")
        return self._memory


class BoxPSDataset(InMemoryDataset):
    """Samples in memory. BoxPS would move their sparse parameters to a GPU; here they stay in memory."""

    _feed_name = "PaddleBoxDataFeed"

    def set_date(self, date: str) -> None:
        """Check a date such as "20200131". Raises ValueError for another form."""
        int(date[:4]), int(date[4:6]), int(date[6:])

    def begin_pass(self) -> None:
        """Do nothing: there are no parameters to move, as in Fluid's own build for processors."""

    def end_pass(self, need_save_delta: bool) -> None:
        """Do nothing: there are no parameters to move, as in Fluid's own build for processors."""


Sample = list[Array]  # the values of one line, an array for each variable


def parse_sample(line: str, variables: Sequence[Variable], texts: Sequence[str], where: str) -> Sample:
    """Return the values of one line.

    ``texts`` names leading text values, each given as a count of 1 and one word. Raises FeedError for a line
    that does not fit; ``where`` is for its message.
    """
    words = line.split()
    sample, at = [], 0
    for text in texts:
        if words[at : at + 1] != ["1"] or len(words) < at + 2:
            raise _bad_line(where, f"expected 1, then the {text}, then the values")
        at += 2
    for variable in variables:
        try:
            end = at + 1 + int(words[at])
            values = _parse_values(words[at + 1 : end], numpy_dtype(variable.dtype))
        except (IndexError, ValueError, OverflowError) as error:
            raise _bad_line(where, f"expected a count and values for {variable.name!r}: {error}") from None
        if end > len(words):
            raise _bad_line(where, f"{variable.name!r} needs {words[at]} values, {len(values)} are left")
        _check_size(variable, values, where)
        sample.append(values)
        at = end
    if at < len(words):
        raise _bad_line(where, f"{len(words) - at} values are left over")
    return sample


def _parse_values(words: list[str], dtype: np.dtype[Any]) -> Array:
    """Return numbers; 64-bit ids from 2^63 on become negative int64 with the same bits, as in Paddle."""
    try:
        return np.array(words, dtype)
    except OverflowError:
        numbers = list(map(int, words))
        if dtype != np.int64 or min(numbers) < -(1 << 63):
            raise
        return np.array([one + (one < 0) * (1 << 64) for one in numbers], np.uint64).view(dtype)


def drop_zeros(variable: Variable, values: Array) -> Array:
    """Drop the zeros of a variable with a LoD, but keep one value; return other variables unchanged."""
    kept = values[(values >= 1e-6) | (values <= -1e-6)]
    return values if not variable.lod_level else kept if len(kept) else values[:1] * 0


def describe_slot(variable: Variable) -> list[str]:
    """Return the lines that describe one variable."""
    kind = "float" if variable.dtype == VarType.FP32 else "uint64"
    name = [f'name: "{variable.name}"', f'type: "{kind}"']
    if variable.lod_level:
        return [*name, "is_used: true"]
    return [*name, "is_dense: true", "is_used: true", *(f"shape: {dim}" for dim in variable.shape)]


def _count_elements(variable: Variable) -> int:
    """Return the number of elements of one sample of a variable without LoD."""
    return math.prod(dim for dim in variable.shape[1:] if dim > 0)


def _check_size(variable: Variable, values: Array, where: str) -> None:
    if not variable.lod_level and len(values) != _count_elements(variable):
        raise _bad_line(
            where, f"{variable.name!r} has shape {list(variable.shape)}, the line holds {len(values)} values"
        )


def _bad_line(where: str, what: str) -> FeedError:
    return FeedError(
        f"dataset: {where}: {what}",
        hint="a line holds, for each variable of set_use_var in order, a count and as many values",
    )


def stack_slot(variable: Variable, column: list[Array]) -> LoDTensor:
    """Return the values of one variable in a batch of samples."""
    if not variable.lod_level:
        return LoDTensor(np.stack(column).reshape(len(column), *variable.shape[1:]))
    tensor = LoDTensor(np.concatenate(column).reshape(-1, 1))
    tensor.set_recursive_sequence_lengths([[len(values) for values in column]])
    return tensor
