"""How two sets of saved values differ: added, removed, renamed and changed variables, and operators."""

from __future__ import annotations

import difflib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from paddlelike.errors import FormatError, PaddlelikeError
from paddlelike.foundation.display import Displayed
from paddlelike.framework import Program
from paddlelike.inspection.inspect import array_of, numbers_of
from paddlelike.interop.content import Content, Held, open_content
from paddlelike.lazy import dataclass
from paddlelike.storage import hashing
from paddlelike.storage.problems import raises_own_errors


class Change(NamedTuple):
    """A variable of both sides that differs in type, shape or value.

    Attributes
    ----------
    what
        "type", "shape", "sequences" (the LoD, or the row ids of SelectedRows) or "values".
    left, right
        Type and shape on each side, as text.
    norm, relative
        The 2-norm of the difference of the values, and its quotient by the norm of the left side; None if
        they cannot be subtracted, NaN if an element is NaN.
    elements
        The number of elements that differ.
    """

    name: str
    what: str
    left: str
    right: str
    norm: float | None = None
    relative: float | None = None
    largest: float | None = None
    elements: int = 0


@dataclass(frozen=True, repr=False)
class Difference(Displayed):
    """The difference of two sets of values; true when there is any.

    Attributes
    ----------
    added, removed
        Names that only the right side, or only the left side, has.
    renamed
        Pairs of names on the left and on the right with the same type, shape and bytes.
    same
        The number of variables that are equal bit for bit.
    operators
        Lines of the difference of the programs, as ``diff -u`` has them without context.
    programs
        The number of programs on each side; programs are compared if both sides have one.
    unread
        Pairs of a file and its kind, for files that could not be read. Files that the other side has with
        the same bytes are left out; the differences of the others are unknown.
    """

    left: str
    right: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    changed: tuple[Change, ...] = ()
    same: int = 0
    operators: tuple[str, ...] = ()
    programs: tuple[int, int] = (0, 0)
    unread: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.renamed or self.changed or self.operators)

    def __repr__(self) -> str:
        return (
            f"<Difference: {self.left} and {self.right}: {len(self.changed)} changed, "
            f"{len(self.added)} added, {len(self.removed)} removed, {len(self.renamed)} renamed, "
            f"{self.same} equal>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {**asdict(self), "changed": [one._asdict() for one in self.changed], "differs": bool(self)}


@raises_own_errors
def compare(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Difference:
    """Compare the values and programs in two paths of any known formats.

    Values are compared bit for bit, so NaN equals NaN with the same bits. Memory stays below twice the
    largest variable.

    Raises
    ------
    FormatError
        A file on either side is damaged, or a side holds neither values nor programs.
    MissingFileError
        There is nothing under a path.

    >>> import tempfile, numpy as np
    >>> home = tempfile.mkdtemp()
    >>> np.savez(home + "/a.npz", w=np.float32([3, 0]), b=np.zeros(1))
    >>> np.savez(home + "/b.npz", w=np.float32([3, 4]), c=np.zeros(1))
    >>> found = compare(home + "/a.npz", home + "/b.npz")
    >>> found.renamed, [(one.name, one.norm) for one in found.changed]
    ((('b', 'c'),), [('w', 4.0)])
    """
    with ExitStack() as stack:
        one, other = stack.enter_context(open_content(left)), stack.enter_context(open_content(right))
        for content in (one, other):
            _check_readable(content)
        before = {held.name: held for held in one.variables}
        after = {held.name: held for held in other.variables}
        both = [name for name in before if name in after]
        total, done, changes = sum(before[name].entry.nbytes for name in both), 0, []
        for name in both:
            change = _compare_values(name, one, before[name], other, after[name])
            if change is not None:
                changes.append(change)
            done += before[name].entry.nbytes
            if progress is not None:
                progress(done, total)
        removed = [name for name in before if name not in after]
        added = [name for name in after if name not in before]
        renamed = _find_renamed(
            one, [before[name] for name in removed], other, [after[name] for name in added]
        )
        old, new = {pair[0] for pair in renamed}, {pair[1] for pair in renamed}
        return Difference(
            one.path,
            other.path,
            tuple(sorted(set(added) - new)),
            tuple(sorted(set(removed) - old)),
            tuple(renamed),
            tuple(changes),
            len(both) - len(changes),
            tuple(_compare_programs(list(one.programs.values()), list(other.programs.values()))),
            (len(one.programs), len(other.programs)),
            tuple(_list_unread(one, other)),
        )


def _check_readable(content: Content) -> None:
    for file in content.files:
        if file.problem is not None:
            path = _locate(content, file.name)
            text = "" if file.problem.startswith(path) else f"{path} cannot be read: "
            raise FormatError(f"{text}{file.problem}", hint=file.hint)
    if content.is_empty:
        raise FormatError(
            f"{content.path} holds no values and no programs to compare", hint=content.explain_unread()
        )


def _locate(content: Content, name: str) -> str:
    """Return the path of a file in open contents."""
    return content.path if content.is_file else os.path.join(content.path, name)


def _list_unread(one: Content, other: Content) -> Iterator[tuple[str, str]]:
    """Yield the unreadable files of both sides, except those with the same bytes on both sides."""
    sides = [one.list_unread(), other.list_unread()]
    same = {name for name in sides[0].keys() & sides[1].keys() if _hash(one, name) == _hash(other, name)}
    for content, unread in zip((one, other), sides, strict=True):
        yield from ((_locate(content, name), text) for name, text in unread.items() if name not in same)


def _hash(content: Content, name: str) -> str | None:
    """Return the checksum of a file, or None for a name that cannot be opened."""
    try:
        with content.where.open_file(name) as file:
            return hashing.hash_bytes(file.read())
    except (PaddlelikeError, OSError):
        return None


def _compare_values(name: str, one: Content, left: Held, other: Content, right: Held) -> Change | None:
    """Return how a variable differs, or None if it does not."""
    texts = _describe(left), _describe(right)
    if left.entry.dtype != right.entry.dtype:
        return Change(name, "type", *texts)
    if tuple(left.entry.shape) != tuple(right.entry.shape):
        return Change(name, "shape", *texts)
    first, second = one.read(left), other.read(right)
    if _structure_of(first) != _structure_of(second):
        return Change(name, "sequences", *texts)
    a, b = array_of(first), array_of(second)
    if _bits(a) == _bits(b):
        return None
    differing = int(np.count_nonzero(a != b))
    a, b = (numbers_of(value, left.entry.dtype) for value in (first, second))
    if a.dtype.kind not in "fiub":
        return Change(name, "values", *texts, elements=differing)
    with np.errstate(all="ignore"):
        delta = b.astype(np.float64) - a.astype(np.float64)
        norm, base = float(np.linalg.norm(delta)), float(np.linalg.norm(a.astype(np.float64)))
    relative = norm / base if base else None
    return Change(name, "values", *texts, norm, relative, float(np.abs(delta).max()), differing)


def _structure_of(value: Any) -> Any:
    """Return the structure of a value: its LoD, or the rows and height of SelectedRows."""
    if hasattr(value, "height"):
        return int(value.height()), [int(row) for row in value.rows()]
    return value.lod()


def _bits(array: np.ndarray[Any, Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _describe(held: Held) -> str:
    return f"{held.entry.dtype.name}{list(held.entry.shape)}"


def _find_renamed(
    one: Content, removed: list[Held], other: Content, added: list[Held]
) -> list[tuple[str, str]]:
    """Return pairs of the same type, shape and bytes; if several fit, pairs in order."""
    facts = {(held.entry.dtype, tuple(held.entry.shape)) for held in removed}
    waiting: dict[Any, list[str]] = defaultdict(list)
    for held in added:
        if (held.entry.dtype, tuple(held.entry.shape)) in facts:
            waiting[_identify(other, held)].append(held.name)
    pairs = []
    wanted = {(held.entry.dtype, tuple(held.entry.shape)) for held in added}
    for held in removed:
        if (held.entry.dtype, tuple(held.entry.shape)) in wanted:
            names = waiting.get(_identify(one, held))
            if names:
                pairs.append((held.name, names.pop(0)))
    return pairs


def _identify(content: Content, held: Held) -> tuple[Any, ...]:
    """Return the type, shape and checksum of a value."""
    array = np.ascontiguousarray(array_of(content.read(held)))
    return held.entry.dtype, tuple(held.entry.shape), hashing.hash_bytes(_bits(array))


def _compare_programs(left: list[Program], right: list[Program]) -> list[str]:
    """Return the differing operators of the first programs of both sides, as lines."""
    if not left or not right:
        return []
    before, after = _list_operators(left[0]), _list_operators(right[0])
    found = difflib.unified_diff(before, after, lineterm="", n=0)
    return [line for line in found if not line.startswith(("---", "+++", "@@"))]


def _list_operators(program: Program) -> list[str]:
    """Return a line for each operator: outputs, type, inputs, and attributes except bookkeeping."""
    lines = []
    for block in program.blocks:
        for op in block.ops:
            attrs = {name: op.attr(name) for name in sorted(op.attr_names) if not name.startswith("op_")}
            given = ", ".join(f"{slot}={op.input(slot)}" for slot in op.input_names)
            made = ", ".join(f"{slot}={op.output(slot)}" for slot in op.output_names)
            lines.append(f"{'  ' * (block.idx > 0)}{made} = {op.type}({given}) {attrs}")
    return lines
