"""Stale files: written by an earlier save of the same program, but not by this one. And superseded files.

Several programs may save into one directory, and one program may be saved by parts, so a file that is not
written again is only stale when the manifest says that this very program wrote it. Saves of variables that
are chosen one by one make nothing stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paddlelike.storage.manifest import Author, Record


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


def find_superseded(others: Mapping[str, Record], saved: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files that a save replaces by others of the same variable, under another name.

    A variable lies in a file of its name or in a chain of links, whose facts have ``link``. The save of one
    ends the other, and of a chain the links that are not in the save. ``saved`` are the facts of its files.

    >>> whole, link = {"variable": "w"}, {"variable": "w", "link": {}}
    >>> records = {"w": Record(1, None, (0, 0), whole), "w.0": Record(1, None, (0, 0), link)}
    >>> find_superseded({"w": records["w"]}, [link]), find_superseded({"w.0": records["w.0"]}, [whole])
    (['w'], ['w.0'])
    >>> find_superseded({"again/w": records["w"]}, [whole])
    []
    """
    chained = {str(facts["variable"]): "link" in facts for facts in saved if "variable" in facts}
    found = []
    for path, record in others.items():
        variable = str(record.facts.get("variable"))
        if variable in chained and (chained[variable] or "link" in record.facts):
            found.append(path)
    return found
