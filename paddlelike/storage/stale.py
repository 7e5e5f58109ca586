"""Stale files: what the same program wrote in an earlier save and does not write now.

Several programs may save into one directory, and one program may be saved by parts, so a file that is not
written again is only stale when the manifest says that this very program wrote it. Saves of variables that
are chosen one by one make nothing stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from paddlelike.storage.manifest import Author, Record

__all__ = ["find_stale"]


def find_stale(others: Mapping[str, Record], author: Author) -> Iterator[str]:
    """Yield the stale files among those that a save by ``author`` leaves as they are.

    >>> records = {"a": Record(1, None, (0, 0), author=Author("5f", "params"))}
    >>> list(find_stale(records, Author("5f", "params"))), list(find_stale(records, Author("77", "params")))
    (['a'], [])
    """
    if author.program is None or author.part is None:
        return
    for path, record in others.items():
        # S13
        if record.author.program == author.program:
            yield path
