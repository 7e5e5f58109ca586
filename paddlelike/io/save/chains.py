"""What a save with ``delta=`` writes of each variable: nothing, the rows that changed, or all of it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.row_changes import find_written_rows, watch_rows
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.formats.paddle import selected_rows
from paddlelike.formats.paddle.directory import make_facts
from paddlelike.io.contents.interface import Array, Held, Want
from paddlelike.io.deltas.chain import Chain, describe_link, list_chains, make_path
from paddlelike.io.deltas.contents import open_directory
from paddlelike.io.incremental import Known
from paddlelike.io.save.encoded import Item, describe_item
from paddlelike.storage.location import Location, Writing

__all__ = ["ChainWriter", "Origin", "Place"]

_LEAST: Final = 64 << 10  # bytes of a table; less is written whole
_MOST_LINKS: Final = 64  # of a chain, so that a load opens few files
_SHARE: Final = 0.5  # of the whole value, that all links together may take
_BLOCK: Final = 8 << 20  # bytes that are compared at a time


class Origin(NamedTuple):
    """A directory whose chains a save may continue.

    Attributes
    ----------
    base
        Its path, if it is not the directory of the save.
    """

    known: Known
    location: Location
    base: str | None


class Place(NamedTuple):
    """Where a save puts a variable.

    Attributes
    ----------
    path
        The file that the ledger records for it: the last link.
    facts
        Of the whole value in this file, which is still to be written; None: nothing is.
    """

    path: str
    facts: dict[str, Any] | None


class ChainWriter:
    """The chains of one save.

    A chain goes on while it has at most 64 links whose bytes are at most half of the whole value's; otherwise
    the variable is written whole, as the first link of a new chain.

    Parameters
    ----------
    origins
        In the order in which they are tried.
    anew
        Begin new chains.
    """

    def __init__(self, writing: Writing, origins: Sequence[Origin], *, anew: bool) -> None:
        self._writing = writing
        self._origins = () if anew else tuple(origins)
        self._chains: dict[int, dict[str, Chain]] = {}

    def place(self, item: Item, *, shares: bool = True) -> Place | None:
        """Decide where a variable goes, and pass a link to the transaction, with a copy of its rows.

        None: it goes into a file of its own name. Without ``shares`` no chain of a base is continued.
        """
        value, array = item.value, item.array
        if type(value) is not LoDTensor or value._lod or array.ndim < 2 or array.nbytes < _LEAST:
            return None
        if not array.flags.c_contiguous or not len(array):
            return None
        head = self._continue(item, value, shares=shares)
        watch_rows(value)
        if head is not None:
            return Place(head, None)
        run = secrets.token_hex(4)
        return Place(make_path(item.name, run, 0), describe_item(item) | {"link": describe_link(run, None)})

    def _continue(self, item: Item, value: LoDTensor, *, shares: bool) -> str | None:
        """Continue a chain of the variable; return the path of its last link, or None if there is none."""
        facts = describe_item(item)
        for index, origin in enumerate(self._origins):
            if origin.base is not None and not shares:
                continue
            chain = self._list_chains(index).get(item.name)
            if chain is None or (chain.dtype, list(chain.shape)) != (facts["dtype"], facts["shape"]):
                continue
            rows = _find_rows(item, value, chain, origin)
            if rows is None or not self._is_worth(chain, rows, item.array):
                continue
            if not self._keep(chain, origin):
                continue
            if not len(rows):
                return chain.paths[-1]
            path = chain.path(len(chain.records))
            link = SelectedRows(rows, len(item.array), item.array[rows])
            described = make_facts(
                item.name, chain.dtype, (len(rows), *chain.shape[1:]), height=len(item.array)
            )
            self._writing.add(
                path, selected_rows.encode(link), described | {"link": describe_link(chain.run, chain)}
            )
            return path
        return None

    def _keep(self, chain: Chain, origin: Origin) -> bool:
        """Keep the files of a chain, or return False where it was copied, so that they are not known.

        Raises
        ------
        SaveError
            A link was replaced since.
        """
        for at, (path, record) in enumerate(zip(chain.paths, chain.records, strict=True)):
            if self._writing.keep(path, record, base=origin.base):
                continue
            if not at:
                return False
            raise SaveError(
                f"nothing was saved: link {at} of {chain.variable!r} ({origin.location.path}/{path}) is not "
                "the one that was saved",
                hint='delta="base" writes whole values and begins new chains',
            )
        return True

    def _list_chains(self, index: int) -> dict[str, Chain]:
        found = self._chains.get(index)
        if found is None:
            chains = list_chains(self._origins[index].location)
            found = {name: chain for name, chain in chains.items() if isinstance(chain, Chain)}
            self._chains[index] = found
        return found

    def _is_worth(self, chain: Chain, rows: Array, array: Array) -> bool:
        """Return whether a chain costs less than the whole value, with a link of these rows."""
        if not len(rows):
            return True
        links = sum(record.size for record in chain.records[1:])
        size = links + len(rows) * (8 + array.nbytes // len(array))
        return len(chain.records) <= _MOST_LINKS and size <= _SHARE * array.nbytes


def _find_rows(item: Item, value: LoDTensor, chain: Chain, origin: Origin) -> Array | None:
    """Return the rows in which a variable differs from its chain, in rising order; None: it is unknown."""
    state = origin.known.find_state(item.holder, chain.head)
    if state is not None and state.array() is item.array:
        past = item.holder.version - value.version
        rows = find_written_rows(value, state.version - past)
        if rows is not None:
            return rows
    saved = _read(chain, origin.location)
    return None if saved is None else _compare(item.array, saved)


def _read(chain: Chain, location: Location) -> Array | None:
    """Return the value of a chain; None where it cannot be read or is not what was saved."""
    try:
        manifest = location.manifest()
        contents = open_directory(
            location, None if manifest is None else manifest.files, complete=False, only=[chain.variable]
        )
        held = contents.look(chain.variable, VarType.LOD_TENSOR)
        if not isinstance(held, Held):
            return None
        return contents.read([Want(held)]).values[0].held_array
    except (PaddlelikeError, OSError):
        return None


def _compare(array: Array, saved: Array) -> Array:
    """Return the rows whose bytes differ."""
    size = array.nbytes // len(array)
    unit = next(unit for unit in (8, 4, 2, 1) if size % unit == 0)
    new, old = (each.reshape(len(array), -1).view(f"u{unit}") for each in (array, saved))
    step = max(_BLOCK // size, 1)
    found = [
        np.flatnonzero((new[at : at + step] != old[at : at + step]).any(axis=1)) + at
        for at in range(0, len(array), step)
    ]
    return np.concatenate(found)
