"""CNTK's text format: lines of ``[sequence id] |stream values |stream values``, read at any position.

Values are numbers (dense), or ``index:value`` (sparse); ``|#`` begins a comment. Consecutive lines with the
same sequence id are one sequence; without ids, each line is one. The file is indexed once; samples are read
when they are needed, so that it may be larger than the memory.

Source: CNTK's manual, "CNTK Text Format Reader"; the results of CNTK 2.7 with such files.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.errors import FormatError, SourceError
from paddlelike.lazy import dataclass
from paddlelike.training.sources.base import INFINITELY_REPEAT, Streams
from paddlelike.training.sources.indexed import IndexedSource, Indexes
from paddlelike.training.sources.memory import join_sequences

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StreamDef:
    """The definition of a stream: its name in the file, its width and its dtype.

    Attributes
    ----------
    field
        The name after ``|`` in the file; None for the name of the stream.
    shape
        The number of values of one row.
    is_sparse
        Whether the values are ``index:value``. The arrays are dense in any case.
    ids
        For one-hot rows, dense or sparse: whether to return the index of the one, int64 of shape (1,),
        instead of ``shape`` values. Embeddings and labels of Fluid take such indices.
    dtype
        The dtype of the arrays.

    >>> from paddlelike import training
    >>> training.StreamDef(field="x", shape=4, is_sparse=False)
    StreamDef(field='x', shape=4, is_sparse=False, ids=False, dtype='float32')
    """

    field: str | None = None
    shape: int | None = None
    is_sparse: bool = False
    ids: bool = False
    dtype: str = "float32"


class StreamDefs(dict[str, StreamDef]):
    """The streams of a file by name: ``StreamDefs(x=StreamDef("x", 2))``.

    >>> from paddlelike import training
    >>> sorted(training.StreamDefs(x=training.StreamDef("x", 2), y=training.StreamDef("y", 1)))
    ['x', 'y']
    """


class CTFDeserializer:
    """A file in CNTK's text format.

    Parameters
    ----------
    filename
        The path of the file.
    streams
        The streams to read from the file.

    Raises
    ------
    SourceError
        A stream has no shape.
    FormatError
        The file is empty, or only some of its lines have a sequence id.
    FileNotFoundError
        The file does not exist.

    >>> import pathlib, tempfile
    >>> from paddlelike import training
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.ctf")
    >>> _ = path.write_text("".join(f"|x {i} {i} |y {i}" + chr(10) for i in range(4)))
    >>> streams = training.StreamDefs(x=training.StreamDef("x", 2), y=training.StreamDef("y", 1))
    >>> source = training.MinibatchSource(training.CTFDeserializer(path, streams), randomize=False)
    >>> source.next_minibatch(2)["x"].shape
    (2, 2)
    """

    def __init__(self, filename: str | os.PathLike[str], streams: Mapping[str, StreamDef]) -> None:
        self.path = os.fspath(filename)
        self.streams = dict(streams)
        for name, stream in self.streams.items():
            if stream.shape is None or int(stream.shape) < 1:
                raise SourceError(
                    f"stream {name!r} of {self.path} has the shape {stream.shape!r}, expected the number of "
                    "values of a row"
                )
        self._fields = {(stream.field or name).encode(): name for name, stream in self.streams.items()}
        with open(self.path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise FormatError(f"{self.path} is empty, expected lines such as '|x 1 2 |y 3'")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.has_ids, self._starts = self._find_sequences()

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self._starts) - 1

    def read_sequences(self, indexes: Sequence[int] | Indexes) -> dict[str, Any]:
        """Return sequences by stream: tensors with LoD, or arrays if the file has no sequence ids.

        Raises
        ------
        FormatError
            A value cannot be read; the error names the file and the line.
        """
        columns: dict[str, list[Array]] = {name: [] for name in self.streams}
        for index in indexes:
            start, stop = int(self._starts[index]), int(self._starts[index + 1])
            rows: dict[str, list[Array]] = {name: [] for name in self.streams}
            for line in self._bytes[start:stop].splitlines(keepends=True):
                self._read_line(line, start, rows)
                start += len(line)
            for name, found in rows.items():
                if not found:
                    raise self._error(start - 1, f"the sequence that ends here has no stream {name!r}")
                columns[name].append(np.stack(found))
        if self.has_ids:
            return {name: join_sequences(column) for name, column in columns.items()}
        return {name: np.concatenate(column) for name, column in columns.items()}

    def _find_sequences(self) -> tuple[bool, Indexes]:
        """Return whether lines have sequence ids, and the offsets of the sequences followed by the end."""
        starts: list[int] = []
        last: bytes | None = None
        has_ids = None
        position = 0
        for line in iter(self._bytes.readline, b""):
            text = line.lstrip()
            if text:
                sequence = text.partition(b"|")[0].strip()
                if has_ids is None:
                    has_ids = bool(sequence)
                if bool(sequence) != has_ids or (sequence and not sequence.isdigit()):
                    found = f"{sequence!r:.40}" if sequence else "none"
                    raise self._error(
                        position,
                        f"expected {'a sequence id' if has_ids else 'a stream, which begins with |'}; "
                        f"there is {found}",
                    )
                if not has_ids or sequence != last:
                    starts.append(position)
                last = sequence
            position += len(line)
        if not starts:
            raise FormatError(f"{self.path} holds no line")
        return bool(has_ids), np.array([*starts, position], np.int64)

    def _read_line(self, line: bytes, start: int, rows: dict[str, list[Array]]) -> None:
        """Add the values of a line, which begins at ``start`` in the file, to the rows of their streams."""
        for part in line.split(b"|")[1:]:
            words = part.split()
            if not words or words[0].startswith(b"#"):
                continue
            name = self._fields.get(words[0])
            if name is not None:
                try:
                    rows[name].append(_read_row(self.streams[name], words[1:]))
                except ValueError as error:
                    raise self._error(start, f"stream {name!r}: {error}") from error

    def _error(self, position: int, text: str) -> FormatError:
        number = self._bytes[: position + 1].count(b"\n", 0, position) + 1
        return FormatError(f"{self.path}, line {number}: {text}")


class MinibatchSource(IndexedSource):
    """Reads a file in CNTK's text format again and again, shuffled by default; a minibatch may cross sweeps.

    CNTK shuffles within windows of the file; here a sweep is shuffled as a whole. A sequence counts as one
    sample.

    Parameters
    ----------
    deserializers
        A :class:`CTFDeserializer`.
    max_samples, max_sweeps
        The number of samples or sweeps after which the data ends; by default it never ends.
    randomize, randomization_seed
        Whether to shuffle each sweep, and the seed.

    Raises
    ------
    SourceError
        There are several deserializers.

    >>> import pathlib, tempfile
    >>> from paddlelike import training
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.ctf")
    >>> _ = path.write_text("".join(f"|x {i} {i}" + chr(10) for i in range(4)))
    >>> streams = training.StreamDefs(x=training.StreamDef("x", 2))
    >>> source = training.MinibatchSource(training.CTFDeserializer(path, streams), max_sweeps=1)
    >>> source.next_minibatch(3).num_samples
    3
    """

    position_key = "minibatchSourcePosition"
    crosses_sweeps = True

    def __init__(
        self,
        deserializers: CTFDeserializer | Sequence[CTFDeserializer],
        max_samples: int = INFINITELY_REPEAT,
        max_sweeps: int = INFINITELY_REPEAT,
        *,
        randomize: bool = True,
        randomization_seed: int = 0,
    ) -> None:
        given = [deserializers] if isinstance(deserializers, CTFDeserializer) else list(deserializers)
        if len(given) != 1 or not isinstance(given[0], CTFDeserializer):
            raise SourceError(
                f"MinibatchSource takes one CTFDeserializer, got {given!r:.200}",
                hint="images and HTK features are read by a reader: GeneratorSource",
            )
        self._file = given[0]
        self._streams = Streams(list(self._file.streams))
        super().__init__(
            len(self._file),
            max_samples=max_samples,
            max_sweeps=max_sweeps,
            randomize=randomize,
            seed=randomization_seed,
        )

    @property
    def streams(self) -> Streams:
        return self._streams

    @property
    def current_position(self) -> dict[str, Any]:
        """The position, as in a checkpoint."""
        return self.get_checkpoint_state()

    @current_position.setter
    def current_position(self, state: Mapping[str, Any]) -> None:
        self.restore_from_checkpoint(state)

    def collect(self, indexes: Indexes) -> dict[str, Any]:
        return self._file.read_sequences(indexes)


def _read_row(stream: StreamDef, words: Sequence[bytes]) -> Array:
    """Return one row. Raises ValueError unless the words are its values."""
    size = int(stream.shape or 0)
    if stream.is_sparse:
        pairs = [word.split(b":") for word in words]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"expected index:value, got {b' '.join(words)!r:.80}")
        indexes = np.array([int(index) for index, _ in pairs], np.int64)
        values = np.array([float(value) for _, value in pairs], stream.dtype)
        if indexes.size and not 0 <= indexes.min() <= indexes.max() < size:
            raise ValueError(f"an index of {indexes.tolist()} is outside of 0 .. {size - 1}")
    else:
        values = np.array([float(word) for word in words], stream.dtype)
        if len(values) > size:
            raise ValueError(f"{len(values)} values, expected {size}")
        indexes = np.arange(len(values))
    if stream.ids:
        (found,) = np.nonzero(values)
        if len(found) != 1:
            raise ValueError(f"expected one nonzero value (ids=True), got {len(found)}")
        return indexes[found].astype(np.int64)
    row = np.zeros(size, values.dtype)  # CNTK, too, takes missing values at the end for 0
    row[indexes] = values
    return row
