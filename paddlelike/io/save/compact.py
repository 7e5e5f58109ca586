"""Compaction: variables stored in chains of deltas are written whole again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paddlelike.errors import LoadError, SaveError
from paddlelike.formats.paddle.directory import encode_value
from paddlelike.formats.sources import Buffer
from paddlelike.io import asynchronous
from paddlelike.io.contents.interface import Held, Value, Want
from paddlelike.io.deltas.chain import Broken, Chain, list_chains
from paddlelike.io.deltas.contents import open_directory
from paddlelike.io.load.source import read_stamped
from paddlelike.storage.interfaces import Committed
from paddlelike.storage.location import Location, locate
from paddlelike.storage.options import SaveOptions


def compact(dirname: str | os.PathLike[str]) -> Committed:
    """Write each variable in a chain of deltas into one file, in Paddle's format.

    One transaction writes all files and removes the chains; other files do not change. The values are
    verified, and are all in memory at the same time.

    Parameters
    ----------
    dirname
        The directory of the chains.

    Returns
    -------
    Committed
        The files that were written; none if the directory has no chain.

    Raises
    ------
    LoadError
        A chain is damaged, or the directory was replaced each time it was read.
    SaveError
        The directory cannot be written, or another save changed it meanwhile; this call changes nothing.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.embedding(fluid.data("ids", [None, 1], "int64"), [2000, 16], param_attr="emb")
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.save_persistables(exe, home, main, delta=True)
    []
    >>> list(compact(home).files), sorted(os.listdir(home))
    (['emb'], ['__manifest__', 'emb'])
    """
    asynchronous.wait_for_pending()
    where = locate(dirname)
    values, stamp = read_stamped(where, lambda: _read(where))
    if not values:
        why = where.verify().problem if where.exists() and where.manifest() is None else None
        if why and not why.startswith("it has no manifest"):
            raise LoadError(f"the chains of {where.path} are not known: {why}", hint="restore it from a copy")
        return Committed(where.path, {})
    manifest = where.manifest()
    if manifest is None:
        raise LoadError(f"the manifest of {where.path} was removed meanwhile", hint="compact it again")
    writing = where.begin(
        SaveOptions(), program=manifest.author.program, part=manifest.author.part, state=manifest.state
    )
    for name, (value, chained) in values.items():
        array = value.held_array
        assert array is not None
        facts = {key: fact for key, fact in chained.items() if key != "link"} | {"shape": list(array.shape)}
        writing.add(name, _Checked(encode_value(value), where, stamp), facts)
    return writing.commit()


def _read(where: Location) -> dict[str, tuple[Value, Mapping[str, Any]]]:
    """Return the values of a directory in chains, with the facts of their first links."""
    chains = list_chains(where)
    for name, chain in chains.items():
        if isinstance(chain, Broken):
            raise LoadError(f"{name!r} of {where.path}: its chain is broken: {chain.what}", hint=chain.hint)
    if not chains:
        return {}
    manifest = where.manifest()
    contents = open_directory(where, None if manifest is None else manifest.files, complete=False)
    whole = {name: chain for name, chain in chains.items() if isinstance(chain, Chain)}
    found = [contents.look(name, chain.kind) for name, chain in whole.items()]
    wants = [Want(held) for held in found if isinstance(held, Held)]
    if len(wants) < len(chains):
        raise LoadError(f"chains of {where.path} were replaced while they were read", hint="compact it again")
    facts = [chain.records[0].facts for chain in whole.values()]
    return dict(zip(whole, zip(contents.read(wants).values, facts, strict=True), strict=True))


class _Checked:
    """The file of a value, which is written only if the directory has not changed since it was read."""

    def __init__(self, buffers: Sequence[Buffer], where: Location, stamp: object) -> None:
        self._buffers, self._where, self._stamp = buffers, where, stamp

    def __iter__(self) -> Iterator[Buffer]:
        if self._where.stamp() != self._stamp:
            raise SaveError(
                f"{self._where.path} was saved again while it was compacted; nothing was written",
                hint="compact it again",
            )
        return iter(self._buffers)
