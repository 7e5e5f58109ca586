"""Chains: the whole value of a variable, followed by links with the rows changed since the link before.

The links of ``emb`` are the files ``__deltas__/emb.RUN.0``, its whole value, a LoDTensor stream, and
``__deltas__/emb.RUN.1`` and so on, SelectedRows streams with unique rows in rising order. For a growing table
all links are SelectedRows streams in the order of the table. A link holds the changed and the new rows, then
the forgotten ids without values. A replay removes the forgotten rows, sets existing rows, then appends new
ones. The fact ``rows`` of a link is the number of all rows.

The file ``emb`` itself does not exist, so Paddle, which does not know chains, cannot load an old value.

In the manifest the facts of each file have ``link``::

    {"run": "5a3e77c1", "at": 2, "after": "xxh3_128:06b0..."}

``run`` is a random text that all links of a chain share; ``after`` is the checksum of the link before.
Without the manifest a chain is not read. A link into which several were folded has a ``level`` of 1 or more.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from paddlelike.core import VarType
from paddlelike.storage.location import Location
from paddlelike.storage.manifest import RESTORE, Record

FOLDER: Final = "__deltas__"
_LINK: Final = re.compile(rf"{FOLDER}/(.+)\.([0-9a-f]{{8}})\.(0|[1-9][0-9]*)", re.DOTALL).fullmatch


class Chain(NamedTuple):
    """The links of one variable, as records of the manifest; the first is the whole value."""

    variable: str
    records: tuple[Record, ...]

    @property
    def head(self) -> Record:
        """The last link."""
        return self.records[-1]

    @property
    def run(self) -> str:
        """The text that identifies this chain among the variable's chains."""
        return str(self.head.facts["link"]["run"])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole value."""
        first, *others = self.records[0].facts["shape"]
        return (self.head.facts.get("rows", first), *others)

    @property
    def kind(self) -> VarType:
        """The kind of the variable: SELECTED_ROWS for a growing table, otherwise LOD_TENSOR."""
        return VarType.LOD_TENSOR if "height" not in self.records[0].facts else VarType.SELECTED_ROWS

    @property
    def height(self) -> int:
        """The height of the whole value, which every link records."""
        return int(self.records[0].facts.get("height", self.shape[0]))

    @property
    def dtype(self) -> str:
        """The name of the element type in VarType."""
        return str(self.records[0].facts["dtype"])

    @property
    def paths(self) -> list[str]:
        """The paths of the links, in their order."""
        return [self.path(at) for at in range(len(self.records))]

    def path(self, at: int) -> str:
        """Return the path of a link."""
        return make_path(self.variable, self.run, at)


class Broken(NamedTuple):
    """The reason why the chain of a variable cannot be read."""

    what: str
    hint: str = RESTORE


def make_path(variable: str, run: str, at: int) -> str:
    """Return the path of a link.

    >>> make_path("emb", "5a3e77c1", 3), parse_path("__deltas__/emb.5a3e77c1.3"), parse_path("emb")
    ('__deltas__/emb.5a3e77c1.3', ('emb', '5a3e77c1', 3), None)
    """
    return f"{FOLDER}/{variable}.{run}.{at}"


def parse_path(path: str) -> tuple[str, str, int] | None:
    """Return the variable, the run and the index of a link from its path, or None for other paths."""
    found = _LINK(path) if "/" in path else None
    return None if found is None else (found[1], found[2], int(found[3]))


def describe_link(run: str, before: Chain | None) -> dict[str, Any]:
    """Return the manifest entry ``link`` of a new link; ``before`` is the chain that it continues."""
    if before is None:
        return {"run": run, "at": 0, "after": None}
    return {"run": run, "at": len(before.records), "after": before.head.checksum}


def find_chains(files: Mapping[str, Record] | None, present: Iterable[str]) -> dict[str, Chain | Broken]:
    """Return the chains of a directory by variable.

    Parameters
    ----------
    files
        The manifest's records, or None without a trusted manifest.
    present
        The paths of the existing files.
    """
    there = set(present)
    linked: dict[str, dict[str, Record]] = {}
    for path, record in (files or {}).items():
        if "link" in record.facts:
            linked.setdefault(str(record.facts.get("variable")), {})[path] = record
    found: dict[str, Chain | Broken] = {}
    for variable, records in linked.items():
        found[variable] = _check(variable, records, there)
    for path in sorted(there):
        link = parse_path(path)
        if link is None or path in linked.get(link[0], ()):
            continue
        variable, run, at = link
        stale = f"link {at} ({path}) is not in the manifest, which is stale, or the link is doubled"
        if files is None:
            found[variable] = Broken(
                f"it is in a chain of deltas ({FOLDER}), and no manifest that is trusted "
                "says which links belong to it",
                "copy __manifest__ with the files, or load another checkpoint",
            )
        elif variable in linked:
            chain = found[variable]
            if isinstance(chain, Chain) and chain.run == run:  # others were left behind by another run
                found[variable] = Broken(stale)
        elif variable not in files or variable not in there:
            found[variable] = Broken(stale)
    return found


def list_chains(location: Location) -> dict[str, Chain | Broken]:
    """Return the chains of a directory by variable; none where there is no directory."""
    if not location.exists():
        return {}
    manifest = location.manifest()
    return find_chains(None if manifest is None else manifest.files, location.list_names())


def _check(variable: str, records: Mapping[str, Record], there: set[str]) -> Chain | Broken:
    """Return a chain if all its links exist and follow one another."""
    chain: list[Record] = []
    run = next((link[1] for path in sorted(records) if (link := parse_path(path)) is not None), "")
    for at in range(len(records)):
        path = make_path(variable, run, at)
        record = records.get(path)
        if record is None:
            return Broken(f"the manifest has {len(records)} links of several runs, and no link {at} ({path})")
        problem = _find_problem(record, at, chain)
        if problem is not None:
            return Broken(f"link {at} ({path}) {problem}")
        if path not in there:
            return Broken(f"link {at} ({path}) is missing; the chain has {len(records)} links")
        chain.append(record)
    if variable in there:  # C1
        return Broken(
            f"there is a file {variable} beside its chain of deltas ({make_path(variable, run, 0)}): another "
            "program saved it",
            "keep one: remove the file; or move it into another directory, and load it from there by "
            "load_vars after the rest",
        )
    return Chain(variable, tuple(chain))


def _find_problem(record: Record, at: int, before: list[Record]) -> str | None:
    """Return why a link does not continue the earlier links, or None if it does."""
    facts, link = record.facts, record.facts["link"]
    try:
        run, place, after = str(link["run"]), link["at"], link["after"]
        operator.index(link.get("level", 0))
        shape, dtype, height = list(map(int, facts["shape"])), facts["dtype"], facts.get("height")
    except (KeyError, TypeError, ValueError, AttributeError):
        return "is not described as a link"
    if place != at:
        return f"says that it is link {place}: out of order"
    if record.checksum is None:
        return "has no checksum"
    if not before:
        return None if shape and after is None else "is not a whole value"
    base, last = before[0].facts, before[-1]
    if run != base["link"]["run"]:
        return f"is of run {run}, the chain of run {base['link']['run']}"
    if after != last.checksum:  # C2
        return f"follows a link {after}, link {at - 1} is {last.checksum}"
    expected = base.get("height", base["shape"][0])
    if dtype != base["dtype"] or shape[1:] != base["shape"][1:] or height != expected:
        whole = f"{base['dtype']}{base['shape']}"
        return f"holds rows of {dtype}{shape}, height {height}; the whole value is {whole}"
    return None
