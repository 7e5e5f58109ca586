"""Pad sequences for compiled programs, and decide how many unused rows a batch gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.compiled.values import Packed
from paddlelike.core import Array, LoD, memory

_SMALLEST: Final = 8


def are_sequences(value: Any, lod: LoD | None) -> bool:
    """Return whether a LoD fits the rows of an array.

    It does not fit, for example, after a `concat` of sequences and rows without a LoD, which keeps the LoD of
    X[0].
    """
    return bool(lod) and len(value) == lod[-1][-1]  # type: ignore[index]


def stands_for_none(value: Any, lod: LoD | None) -> bool:
    """Return whether the only row of a value stands for no rows: all sequences are empty, as after
    ``ctc_align``.
    """
    return bool(lod) and lod[-1][-1] == 0 and len(value) == 1  # type: ignore[index]


def find_bucket(count: int, *, steps: int = 4) -> int:
    """Return the padded size for ``count`` rows; beyond 64 rows it is at most a quarter more.

    ``steps`` is the number of sizes between a power of two and the next. With less than 8, small counts have
    fewer sizes, since a compilation costs more than their unused rows in a whole training.

    >>> [find_bucket(count) for count in (3, 17, 35, 100, 1000)]
    [8, 32, 48, 112, 1024]
    >>> [find_bucket(count, steps=2) for count in (3, 17, 35, 100, 1000)]
    [8, 32, 48, 128, 1024]
    >>> [find_bucket(count, steps=8) for count in (3, 17, 35, 100, 1000)]
    [8, 18, 36, 104, 1024]
    """
    if count <= _SMALLEST:
        return _SMALLEST
    if steps < 8:
        while steps > 1 and count <= 16 * steps:
            steps //= 2
    step = (1 << (int(count - 1).bit_length() - 1)) // steps
    return -(-count // step) * step


def have_one_length(lods: Sequence[LoD]) -> bool:
    """Return whether all sequences of a batch have the same length, and each part has at least two.

    >>> have_one_length([[[0, 3, 6]], [[0, 3, 6, 9]]]), have_one_length([[[0, 3]], [[0, 3]]])
    (True, False)
    """
    lengths = {int(n) for lod in lods for n in np.diff(lod[-1])}
    return len(lengths) == 1 and all(len(lod[-1]) > 2 for lod in lods)


def find_largest(parts: Iterable[tuple[Array, LoD]]) -> tuple[int, int]:
    """Return the largest number of rows and the longest sequence among values; zeros if there are none."""
    found = [(len(rows), int(np.diff(lod[-1]).max(initial=1))) for rows, lod in parts]
    return max((count for count, _ in found), default=0), max((length for _, length in found), default=0)


class Sizes(NamedTuple):
    """The sizes that several sequences with the same rows or LoD share: see :func:`pack`."""

    least: tuple[int, int]
    alike: bool


def find_sizes(
    sequences: Mapping[int, tuple[Array, LoD]], *, padded: bool, chosen: Set[int] = frozenset()
) -> dict[int, Sizes]:
    """Return the sizes of sequences; those with equally many rows or with the same LoD share them.

    ``padded`` says that the piece pads sequences to the longest. If padding takes at most twice the rows, the
    number of padded rows is used, so that each longest length needs one choice of sizes. ``chosen`` are
    sequences whose equal lengths are chance.
    """
    rows_alike: dict[Any, list[tuple[Array, LoD]]] = {}
    lod_alike: dict[Any, list[Sizes]] = {}
    for rows, lod in sequences.values():
        rows_alike.setdefault((rows.shape[1:], rows.dtype), []).append((rows, lod))
    by_chance = {(rows.shape[1:], rows.dtype) for n, (rows, _) in sequences.items() if n in chosen}
    for rows, lod in sequences.values():
        group = rows_alike[rows.shape[1:], rows.dtype]
        most, longest = find_largest(group)
        if padded:
            whole = (len(lod[-1]) - 1) * int(np.diff(lod[-1]).max(initial=0))
            most = max(most, whole) if whole <= 2 * len(rows) else most
        alike = (rows.shape[1:], rows.dtype) not in by_chance and have_one_length([lod for _, lod in group])
        found = Sizes((most, longest), alike)
        lod_alike.setdefault(tuple(lod[-1]), []).append(found)
    return {
        n: Sizes(
            (max(one.least[0] for one in group), max(one.least[1] for one in group)),
            all(one.alike for one in group),
        )
        for n, group in ((n, lod_alike[tuple(lod[-1])]) for n, (_, lod) in sequences.items())
    }


def pack(
    rows: Array,
    lod: LoD,
    *,
    is_gradient: bool = False,
    least: tuple[int, int] = (0, 0),
    alike: bool = False,
    exact: bool = False,
    unused: bool = True,
) -> Packed:
    """Return sequences padded with unused rows up to the next bucket; the unused rows of a gradient are zero.

    ``least`` are the smallest allowed sizes: the number of rows and the longest length in other parts of the
    same batch. ``alike`` says that all sequences have one length, in other batches too; then the buckets are
    narrower. ``exact`` keeps the exact ``longest``, for operators whose results have that size. Without
    ``unused``, rows are not added.
    """
    lengths = np.diff(lod[-1])
    bucket = find_bucket(max(len(rows), least[0]), steps=8 if alike else 4)
    size = bucket if unused else len(rows)
    padded = memory.empty((size, *rows.shape[1:]), rows.dtype)  # aligned, see align_feed
    padded[: len(rows)] = rows
    padded[len(rows) :] = rows[:1] if len(rows) and not is_gradient else 0
    longest = int(lengths.max(initial=0 if exact else 1))
    longest = longest if exact else find_bucket(max(longest, least[1]), steps=8 if alike else 2)
    return Packed(
        padded, tuple(np.asarray(level, np.int32) for level in lod), longest, exact=exact, full=not unused
    )


def pack_all(
    sequences: Mapping[int, tuple[Array, LoD]],
    fed: Sequence[LoD],
    gradients: Set[int],
    *,
    counts: bool,
    padded: bool,
) -> dict[int, Packed]:
    """Return sequences with padding; ``padded`` says that the operator pads them to the longest.

    Sequences with alike rows, such as the words of a question and of its answers, take the size of the
    largest; with separate sizes nearly every batch would need a compilation. Sequences of one row each, such
    as the ids of a click, are treated as an array of these rows; so are sequences of one length, such as the
    fields of a click, if results depend on the number of rows (``counts``). This holds for feeds only: for
    rows that numpy chose, such as the regions of images, equal lengths are chance.
    """
    levels = [level for lod in fed for level in lod]
    chosen = {n for n, (_, lod) in sequences.items() if lod[-1] not in levels}
    single = {
        n
        for n, (rows, lod) in sequences.items()
        if len(rows)
        and n not in chosen
        and (bool((np.diff(lod[-1]) == 1).all()) or (counts and have_one_length([lod])))
    }
    others = {n: one for n, one in sequences.items() if n not in single}
    sizes = find_sizes(others, padded=padded, chosen=chosen)
    return {
        n: pack(
            rows,
            lod,
            is_gradient=n in gradients,
            least=sizes[n].least if n in sizes else (0, 0),
            alike=n in sizes and sizes[n].alike,
            exact=padded,
            unused=n not in single,
        )
        for n, (rows, lod) in sequences.items()
    }


class LoweringError(Exception):
    """An operator with these inputs and attributes cannot be expressed in XLA; the text says why."""


class RefusedError(Exception):
    """Raised with the index of an operator in the plan, and the reason why it cannot be compiled."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason


class Uncovered(str):
    """The text of a check for values that a lowering does not support. If it fails, numpy runs the operator.

    ``step`` is the index of the operator in the plan.
    """

    step: int

    def __new__(cls, reason: str, index: int) -> Uncovered:
        """Return the text with the index of an operator."""
        text = super().__new__(cls, reason)
        text.step = index
        return text
