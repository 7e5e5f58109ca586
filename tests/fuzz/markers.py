"""Markers of directories behind URLs as a fuzzing target, in fsspec's memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, Final

import paddlelike as fluid
from paddlelike.core import Scope, scope_guard
from paddlelike.storage import manifest
from tests.fuzz.guard import Fault
from tests.fuzz.loaders import ROOM, executor, program_of, watched_scope
from tests.fuzz.makers.control_files import change_json
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target, attempt
from tests.helpers.golden_data import GOLDEN

__all__ = ["MARKERS"]

_FILES: Final = sorted((GOLDEN / "fit_a_line" / "persistables").iterdir())
_OTHER: Final = b"somebody else's"


def _memory() -> Any:
    import fsspec

    return fsspec.filesystem("memory")


def _marker() -> bytes:
    """One of a save that was killed: some of its files are not in their places yet, others are to go."""
    records = {path.name: manifest.Record(path.stat().st_size, None, (0, 0), {}) for path in _FILES}
    first = _FILES[0].name
    records[first] = records[first]._replace(facts={"at": "/model.saving-3-ab"})
    records["old"] = manifest.Record(0, None, (0, 0), {"gone": True})
    return manifest.encode_json(records, author=manifest.Author(None, "persistables"))


def _make(rng: Random) -> bytes:
    body = _marker()[: -manifest._TAIL] + b"}"
    kind = rng.random()
    if kind < 0.2:
        return mutate(rng, _marker(), ())
    made = (change_json(rng, body) if kind < 0.8 else mutate(rng, body, ()))[:-1]
    return made + manifest._tail(made)


def _put(data: bytes, root: Path) -> None:
    store = _memory()
    store.store.clear()
    for path in _FILES:
        for folder in ("/model", "/model.saving-3-ab"):
            store.pipe_file(f"{folder}/{path.name}", path.read_bytes())
    store.pipe_file("/model/old", b"old")
    store.pipe_file("/theirs", _OTHER)
    store.pipe_file("/other/w", _OTHER)
    store.pipe_file("/model.manifest.json.3", data)


def _read(data: bytes, root: Path) -> None:
    where, program = "memory://model", program_of("fit_a_line")
    attempt(lambda: str(fluid.io.verify(where)))
    attempt(lambda: fluid.io.load_program_state(where))
    try:
        with watched_scope(program):
            fluid.io.load_persistables(executor(), where, program)
        with scope_guard(Scope()):
            fluid.io.load_persistables(executor(), where, program)
            fluid.io.save_persistables(executor(), where, program)
            fluid.io.load_persistables(executor(), where, program)
    finally:
        store = _memory()
        if store.cat("/theirs") != _OTHER or store.cat("/other/w") != _OTHER:
            raise Fault("a file elsewhere was changed")


MARKERS: Final = (Target("marker", _make, _read, prepare=_put, **ROOM),)
