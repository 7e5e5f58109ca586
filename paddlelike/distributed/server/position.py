"""The training position of servers: read from the manifest of a saved directory.

``"servers"`` in the manifest's state holds each server's report by endpoint, in the form that its state
machine reads: ``{"round": 120, "completed": [...], "updates": [...]}``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from paddlelike.core import Scope
from paddlelike.storage.location import locate
from paddlelike.storage.manifest import Manifest

#: The directory that a server without variables was to load, by its scope: no variable remembers it.
_empty_loads: WeakKeyDictionary[Scope, str] = WeakKeyDictionary()


def read_position(dirname: str | os.PathLike[str], endpoint: str | None = None) -> Mapping[str, Any] | None:
    """Return the position of a server when a directory was saved; None if the manifest has none.

    A server that did not take part in the save, because the number of servers has changed, begins with the
    common round.
    """
    return find_position(locate(dirname).manifest(), endpoint)


def find_position(manifest: Manifest | None, endpoint: str | None = None) -> Mapping[str, Any] | None:
    """Return the position in a manifest; see :func:`read_position`."""
    state = None if manifest is None else manifest.state
    positions = state.get("servers") if isinstance(state, Mapping) else None
    if not isinstance(positions, Mapping) or not positions:
        return None
    if endpoint in positions:
        found = positions[endpoint]
        return found if isinstance(found, Mapping) else None
    rounds = [one.get("round") for one in positions.values() if isinstance(one, Mapping)]
    known = [round for round in rounds if isinstance(round, int)]
    return {"round": min(known)} if known else None


def note_empty_load(scope: Scope, dirname: str) -> None:
    """Record the directory that a server without variables should load."""
    _empty_loads[scope] = dirname


def empty_load(scope: Scope) -> str | None:
    """Return the directory that a server without variables should load, or None without such a load."""
    return _empty_loads.get(scope)
