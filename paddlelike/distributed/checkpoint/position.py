"""Where the servers stand in training, as the manifest of a save keeps it.

``"servers"`` in the manifest's state: by endpoint what each server told, as its state machine will want it
back: ``{"round": 120, "completed": [...], "updates": [...]}``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from paddlelike.core.scope import Scope
from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.errors import SaveError
from paddlelike.storage.location import locate

__all__ = ["idle_load", "note_idle_load", "standing", "standing_of"]

#: What servers without any variable were told to load: else nothing tells at which round they begin.
_idle: WeakKeyDictionary[Scope, str] = WeakKeyDictionary()


def standing(servers: Servers, is_synchronous: bool) -> dict[str, Any]:
    """Ask every server.

    Raises
    ------
    SaveError
        In synchronous training they are not at the same round: there is no one state to save.
    """
    said = {endpoint: dict(one.get("standing", {})) for endpoint, one in servers.write("", []).items()}
    rounds = {endpoint: one.get("round") for endpoint, one in said.items()}
    if is_synchronous and len(set(rounds.values())) > 1:
        each = ", ".join(f"{endpoint}: {number}" for endpoint, number in rounds.items())
        raise SaveError(f"the servers are at different rounds ({each})", hint="save between two steps")
    return said


def standing_of(dirname: str | os.PathLike[str], endpoint: str | None = None) -> Mapping[str, Any] | None:
    """Where the servers stood when a directory was saved; None: it does not tell.

    A server that is not among those that saved (their number has changed) begins with what all have in
    common: the round.
    """
    manifest = locate(dirname).manifest()
    state = None if manifest is None else manifest.state
    said = state.get("servers") if isinstance(state, Mapping) else None
    if not isinstance(said, Mapping) or not said:
        return None
    if endpoint in said:
        found = said[endpoint]
        return found if isinstance(found, Mapping) else None
    rounds = [one.get("round") for one in said.values() if isinstance(one, Mapping)]
    known = [number for number in rounds if isinstance(number, int)]
    return {"round": min(known)} if known else None


def note_idle_load(scope: Scope, where: str) -> None:
    """Remember that a server which keeps nothing was told to load a directory."""
    _idle[scope] = where


def idle_load(scope: Scope) -> str | None:
    """The directory that a server which keeps nothing was told to load, or None."""
    return _idle.get(scope)
