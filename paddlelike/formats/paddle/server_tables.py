"""The tables that Paddle 2's parameter servers save as text: ``fleet.save_persistables``, ``save_one_table``.

=======================  =======================================================================
``000/part-SSS-FFFFF``   shard FFFFF of sparse table 0, of server SSS; ``.gz`` with modes 0 and 3.
                         There are as many as its ``shard_num`` (1000); id ``i``, unsigned, is in
                         shard ``i % shard_num``
``001/part-SSS.gz``      dense table 1: a line for each element, one parameter after another
=======================  =======================================================================

A line of a sparse table (``SparseAccessor``) has an id, the slot, the days unseen, the score of the id's
changes since the last delta, shows and clicks; then the first number of the row and its optimizer state; then
the other numbers and their state. These are missing until the id's score reaches ``embedx_threshold``. The
width and the rule must be guessed from the number of values:

=======================  =====================  ===============================  ==================
rule                     of the first number    of the others                    numbers in all
=======================  =====================  ===============================  ==================
SparseAdamSGDRule        2 moments, 2 powers    2 moments of each, 2 powers      3 width + 4
SparseSharedAdamSGDRule  2 moments, 2 powers    2 moments, 2 powers              width + 8
SparseNaiveSGDRule                                                               width
SparseAdaGradSGDRule     1 sum of squares       1 sum of squares                 width + 2
StdAdaGradSGDRule        1 sum of squares       1 sum of squares of each         2 width
=======================  =====================  ===============================  ==================
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, pairwise
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FolderFormat, Value, Values
from paddlelike.formats.elements import check_total, copy_into
from paddlelike.formats.entry import Entry
from paddlelike.formats.sources import Buffer, Folder, Source
from paddlelike.lazy import dataclass

_PART: Final = re.compile(r"(?:([0-9]{3,9})/)?part-[0-9]{3,9}(-[0-9]{5,9})?(?:\.gz)?").fullmatch
_FOLDER: Final = re.compile("[0-9]{3}").fullmatch
_ANY_ID: Final = (1 << 63) - 1  # the height of a table that has none
_FRONT: Final = 5  # slot, days unseen, score, shows, clicks
_COUNTS, _STATS = [3, 4, 1], [0, 2]
_POWERS: Final = "_beta_pows"
_FLUID_POWERS: Final = ("_beta1_pow_acc_0", "_beta2_pow_acc_0")
_LONGEST_NUMBER: Final = 64


class _Rule(NamedTuple):
    """The state of an update rule: name endings of its parts; whether only the first has several columns."""

    parts: tuple[str, ...] = ()
    is_shared: bool = False

    def list_columns(self, width: int) -> dict[str, list[int]]:
        """Return the columns of the row (named "") and of each part of its state, after the first five
        columns.
        """
        firsts = [1, *(2 if part == _POWERS else 1 for part in self.parts)]
        rest = width - 1
        others = [rest, *(2 if part == _POWERS else 1 if self.is_shared else rest for part in self.parts)]
        at = np.cumsum([_FRONT, *firsts, *others])
        spans = [list(range(start, stop)) for start, stop in pairwise(at.tolist())]
        names = ("", *self.parts)
        return {name: spans[k] + spans[k + len(names)] for k, name in enumerate(names)}

    def count(self, width: int) -> int:
        return _FRONT + sum(map(len, self.list_columns(width).values()))


_RULES: Final = (
    _Rule(("_moment1_0", "_moment2_0", _POWERS)),
    _Rule(("_gsum", "_g2sum", _POWERS), is_shared=True),
    _Rule(("_g2sum",), is_shared=True),
    _Rule(("_moment_0",)),
    _Rule(),
)
_SHORT: Final = {_FRONT + 1, _FRONT + 2, _FRONT + 5}  # the numbers of a line without the others
_SQUARES: Final = {"_moment2_0", "_g2sum", "_moment_0"}


@dataclass(frozen=True)
class ServerTables(FolderFormat):
    """Tables of Paddle 2's servers. Table 000 is called ``000``, its shows, clicks and days ``000_counts``.

    Its state has the names of a growing table's state where Fluid's optimizers keep the same values
    (``000_moment1_0``, ``000_moment2_0``, ``000_moment_0``). The powers of Adam's betas, one pair per row,
    are ``000_beta_pows``; slot and score are ``000_stats``. If width and rule do not follow from the count,
    ``000_columns`` holds all numbers.

    Parameters
    ----------
    width
        The width of the rows. None means that it follows from the numbers.
    shards
        The number of files for a table: the ``shard_num`` of the servers that load it.
    """

    width: int | None = None
    shards: int = 1000

    name = "server_tables"
    title = "tables of Paddle 2's parameter servers"
    holds = Capabilities(frozenset({VarType.FP32}), selected_rows=True, order=False)

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("shards", self.shards)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}, and must be at least 1")

    def sniff(self, folder: Folder) -> bool:
        names = [name for name in folder.list_names() if name != "__manifest__"]
        return bool(names) and all(map(_PART, names))

    def is_part(self, name: str) -> bool:
        return _PART(name) is not None

    def entries(self, source: Folder) -> list[Entry]:
        parts: dict[tuple[str, bool], list[str]] = {}
        for name in source.list_names():
            if match := _PART(name):
                parts.setdefault((match[1] or "table", match[2] is not None), []).append(name)
        found = []
        for (table, is_sparse), names in sorted(parts.items()):
            lines = []
            for name in names:
                with source.open_file(name) as file:
                    lines.append(_read_lines(name, file, has_ids=is_sparse))
            widths = {numbers.shape[1]: name for name, (_, numbers) in zip(names, lines, strict=True)}
            width = max(widths)
            if odd := widths.keys() - {0, width} - (_SHORT if is_sparse else set()):
                raise FormatError(
                    f"table {table} has lines of {min(odd)} numbers in {widths[min(odd)]}, and of {width} in "
                    f"{widths[width]}"
                )
            numbers = np.concatenate([_pad(one, width or 1) for _, one in lines])
            if not is_sparse:
                found.append(_make_entry(table, LoDTensor(numbers), names[0]))
                continue
            ids = np.concatenate([one for one, _ in lines])
            if len(np.unique(ids)) < len(ids):
                raise FormatError(f"table {table} has an id twice, in {len(names)} files")
            found += [
                _make_entry(table + end, SelectedRows(ids, _ANY_ID, numbers[:, columns]), names[0])
                for end, columns in self._find_columns(table, numbers).items()
            ]
        return found

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:  # noqa: ARG002
        value = entry.payload
        assert isinstance(value, Value)
        array = value.held_array
        assert array is not None
        if into is not None:
            array = copy_into(array, into)
        return LoDTensor(array) if entry.height is None else SelectedRows(value.row_array, _ANY_ID, array)

    def write(self, values: Values) -> Mapping[str, Iterable[Buffer]]:
        self.check(values)
        tables = sorted(name for name in values if f"{name}_counts" in values)
        used: set[str] = set()
        files: dict[str, Iterable[Buffer]] = {}
        folders = {name for name in tables if _FOLDER(name)}
        free = (folder for index in count() if (folder := f"{index:03}") not in folders)
        for name in tables:
            folder = name if name in folders else next(free)
            ids, numbers, read = _gather_columns(name, values)
            used |= read
            shards = ids.view(np.uint64) % np.uint64(self.shards)
            order = np.argsort(shards, kind="stable")
            ends = np.searchsorted(shards[order], np.arange(self.shards + 1))
            for k in range(self.shards):
                rows = order[ends[k] : ends[k + 1]]
                files[f"{folder}/part-000-{k:05}.gz"] = _encode_shard(ids, numbers, rows)
        if left := sorted(values.keys() - used):
            raise FormatError(
                f"{self.title} hold growing tables of SGD, Adagrad and Adam, not {', '.join(left[:20])}",
                hint="save_one_table writes one table; rules=fluid.io.Rules().skip(...) leaves others out",
            )
        return files

    def _find_columns(self, table: str, numbers: Array) -> dict[str, list[int]]:
        """Return which columns hold the rows, their counts and each part of their state."""
        front = {"_counts": _COUNTS, "_stats": _STATS}
        count = numbers.shape[1]
        if not len(numbers):
            return {"": [0] * (self.width or 0), "_counts": [0] * 3, "_stats": [0] * 2}
        widths = range(1, count) if self.width is None else [self.width]
        fits = [
            columns
            for rule in _RULES
            for width in widths
            if rule.count(width) == count and _is_plausible(numbers, columns := rule.list_columns(width))
        ]
        if self.width is not None and not fits:
            raise FormatError(
                f"table {table} has {count} numbers per line after the id; expected "
                + " or ".join(str(rule.count(self.width)) for rule in _RULES)
                + f" for rows of width {self.width}, depending on the update rule",
                hint="the width or the accessor differs, or no id reached embedx_threshold",
            )
        # Nothing else looks like powers, and Adam's rule is the default of these servers.
        if self.width is not None or len(fits) == 1 or (fits and _POWERS in fits[0]):
            return {**fits[0], **front}
        return {"_columns": list(range(_FRONT, count)), **front}


def _is_plausible(numbers: Array, columns: dict[str, list[int]]) -> bool:
    """Return whether no square is negative, and all rows have the same two powers below 1."""
    for part, places in columns.items():
        values = numbers[:, places]
        if part in _SQUARES and (values < 0).any():
            return False
        if part == _POWERS:
            first, second = values.reshape(-1, 2).astype(np.float64).T
            known = (first > 1e-30) & (second < 1)
            if not known.any() or (first < 0).any() or (first > second).any() or (second >= 1).any():
                return False
            slopes = np.log(first[known]) / np.log(second[known])
            if np.ptp(slopes) > 0.02 * slopes.max():
                return False
    return True


def _make_entry(name: str, value: Value, file: str) -> Entry:
    array = value.held_array
    assert array is not None
    is_rows = isinstance(value, SelectedRows)
    return Entry(
        name, VarType.FP32, array.shape, nbytes=array.nbytes, file=file,
        height=_ANY_ID if is_rows else None, row_count=len(array) if is_rows else 0, payload=value,
    )  # fmt: skip


def _read_lines(name: str, file: Source, *, has_ids: bool) -> tuple[Array, Array]:
    """Return the ids of a file and the numbers in its lines; missing numbers of short lines are zero."""
    text = _unpack(name, file)
    rows = [line.split() for line in text.splitlines()]
    lengths = np.array([len(row) - has_ids for row in rows], np.int64)
    ids = np.zeros(len(rows), np.uint64)
    numbers = np.zeros((len(rows), lengths.max(initial=0)), np.float32)
    kinds = set(lengths.tolist())
    try:
        if text and not text.endswith(b"\n"):
            raise ValueError("its last line has no end")
        odd = kinds - {numbers.shape[1]} - (_SHORT if has_ids else set())
        if odd or len(kinds) > 2 or min(kinds, default=9) < 1:
            raise ValueError(f"its lines have {', '.join(map(str, sorted(kinds)[:9]))} numbers")
        check_total(numbers.nbytes, file.size)
        if any(len(word) > _LONGEST_NUMBER for row in rows for word in row):
            raise ValueError(f"a number takes more than {_LONGEST_NUMBER} characters")
        if has_ids:
            ids[:] = _parse_ids([row[0] for row in rows])
        flat = np.array([word for row in rows for word in row[has_ids:]], np.bytes_)
        numbers[np.arange(numbers.shape[1]) < lengths[:, None]] = flat.astype(np.float32)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"{name} is not a shard of a table: {error}") from error
    return ids.view(np.int64), numbers


def _parse_ids(words: list[bytes]) -> list[int]:
    """Return unsigned 64-bit integers. Raises ValueError for other texts."""
    for word in words:
        if not word.isdigit() or int(word) >> 64:
            raise ValueError(f"{word.decode(errors='replace')!r} is not an id")
    return [*map(int, words)]


def _unpack(name: str, file: Source) -> bytes:
    data = bytes(file.read_at(0, file.size))
    if data[:2] != b"\x1f\x8b":
        return data
    text = bytearray()
    try:
        while data:
            unpacker = zlib.decompressobj(31)
            rest = data
            while not unpacker.eof:
                piece = unpacker.decompress(rest, 1 << 20)
                text += piece
                check_total(len(text), file.size)
                rest = unpacker.unconsumed_tail
                if not (piece or rest or unpacker.eof):
                    raise FormatError(
                        f"{name} is cut: its last {len(data)} bytes belong to an unfinished gzip member"
                    )
            data = unpacker.unused_data
    except zlib.error as error:
        raise FormatError(f"{name} is damaged: {error}") from error
    return bytes(text)


def _pad(numbers: Array, width: int) -> Array:
    """Return rows in which zeros replace the numbers that short lines lack."""
    return np.pad(numbers, ((0, 0), (0, width - numbers.shape[1])))


def _gather_columns(name: str, values: Values) -> tuple[Array, Array, set[str]]:
    """Return a table's ids, the numbers of its lines, and the names of the values made of them."""
    table = values[name]
    if not isinstance(table, SelectedRows):
        raise FormatError(f"{name!r} is not SelectedRows: only growing tables have ids")
    ids, rows = table.row_array, np.asarray(table.held_array, np.float32)
    if rows.ndim != 2 or not rows.shape[1]:
        raise FormatError(f"{name!r} has rows of the shape {list(rows.shape[1:])}, expected (width,)")
    if len(np.unique(ids)) < len(ids):
        raise FormatError(f"{name!r} has an id twice", hint="join the rows of an id")
    read = {name}

    def take(end: str, width: int) -> Array:
        """Return the rows of a part for the table's ids; zeros for ids that the part lacks."""
        value = values[name + end]
        read.add(name + end)
        found = np.zeros((len(ids), width), np.float32)
        if isinstance(value, SelectedRows):
            places = value.find_rows(ids)
            held = np.asarray(value.held_array, np.float32)
            if held.shape[1:] != (width,):
                raise FormatError(
                    f"{name + end!r} has rows of {list(held.shape[1:])}, not of {width} numbers"
                )
            found[places >= 0] = held[places[places >= 0]]
        else:
            array = np.asarray(value.held_array if isinstance(value, LoDTensor) else value).reshape(-1)
            if array.size not in (1, width):
                raise FormatError(f"{name + end!r} has {array.size} numbers, not {width}")
            found[:] = array
        return found

    rule = next(one for one in _RULES if all(name + part in values for part in one.parts if part != _POWERS))
    columns = rule.list_columns(rows.shape[1])
    numbers = np.zeros((len(ids), rule.count(rows.shape[1])), np.float32)
    numbers[:, columns[""]] = rows
    numbers[:, _COUNTS] = take("_counts", 3)
    if f"{name}_stats" in values:
        numbers[:, _STATS] = take("_stats", 2)
    for part in rule.parts:
        if part == _POWERS and name + part not in values:
            powers = np.concatenate([take(end, 1) for end in _FLUID_POWERS], axis=1)
            numbers[:, columns[part]] = np.tile(powers, 2)
        else:
            numbers[:, columns[part]] = take(part, len(columns[part]))
    return ids, numbers, read


def _encode_shard(ids: Array, numbers: Array, rows: Array) -> Iterator[bytes]:
    """Yield a shard's file, with nine digits for each float32, from which it is restored exactly."""
    form = "%d" + " %.9g" * numbers.shape[1] + "\n"
    unsigned = ids[rows].view(np.uint64).tolist()
    lines = [form % (one, *row) for one, row in zip(unsigned, numbers[rows].tolist(), strict=True)]
    yield gzip.compress("".join(lines).encode(), mtime=0)
