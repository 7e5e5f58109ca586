"""Parts: what is saved together, so that the next save of it knows which files it leaves behind.

Several saves may share a directory: parameters and what the optimizer has, an exported model, other people's
files. So the manifest says of every file which parts it belongs to, and a save of a part removes the files
of that part that it does not write again, unless they belong to another part as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from paddlelike.storage.manifest import Record

__all__ = ["Part", "joined", "outdated", "remaining"]


def _nothing(facts: Mapping[str, Any]) -> bool:
    return False


class Part(NamedTuple):
    """What a save is of: ``"persistables"``, or the file of an exported program."""

    name: str
    in_use: Callable[[Mapping[str, Any]], bool] = _nothing  # by the facts of a file: it stays in any case


def outdated(before: Mapping[str, Record], names: Collection[str], part: Part | None) -> Iterator[str]:
    """The files of an earlier save of a part that are not among ``names`` and that nobody needs."""
    for path, record in before.items():
        alone = part is not None and record.parts == (part.name,) and path not in names
        if part is not None and alone and not part.in_use(record.facts):
            yield path


def remaining(
    before: Mapping[str, Record], names: Collection[str], part: Part | None
) -> Iterator[tuple[str, Record]]:
    """The files of earlier saves that are not among ``names``, with the parts that they belong to now."""
    for path, record in before.items():
        if path in names:
            continue
        parts = record.parts or ()
        if part is not None and len(parts) > 1 and part.name in parts and not part.in_use(record.facts):
            parts = tuple(name for name in parts if name != part.name)
        yield path, record._replace(parts=parts)


def joined(
    records: Mapping[str, Record], before: Mapping[str, Record], part: Part | None
) -> Iterator[tuple[str, Record]]:
    """The files of a save, which belong to its part and to those that they belonged to before."""
    own = () if part is None else (part.name,)
    for path, record in records.items():
        found = before.get(path)
        parts = tuple(sorted({*own, *(found.parts or ())})) if found is not None else own
        if parts != own:
            yield path, record._replace(parts=parts)
        else:
            yield path, record if record.parts is None else record._replace(parts=None)
