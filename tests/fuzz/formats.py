"""Every registered format as a fuzzing target, made from its contract suite: mutate files of its own."""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.formats import hdf5, registry
from paddlelike.formats.base import FileFormat
from paddlelike.testing.formats import Files, FormatContract, to_array
from tests.formats.suites import suites
from tests.fuzz.guard import Fault
from tests.fuzz.makers.mutations import mutate
from tests.fuzz.readers import Target

__all__ = ["FORMATS"]

_SUITES: Final = Path(__file__).parents[1] / "formats"


@cache
def _suites() -> dict[str, type[FormatContract]]:
    """The suite of every registered format, by the format's name."""
    for path in sorted(_SUITES.rglob("test_*.py")):
        parts = path.relative_to(_SUITES.parents[1]).with_suffix("").parts
        importlib.import_module(".".join(parts))
    found = {suite.format.name: suite for suite in suites()}
    return {name: found[name] for name in registry.all_formats() if name in found}


@cache
def _samples(name: str) -> tuple[Files, ...]:
    suite = _suites()[name]
    return suite.golden_files, suite.write(suite.sample())


def _target(name: str) -> Target:
    """A target whose inputs are files of a format, one of them changed; as JSON, for a folder has several."""
    suite = _suites()[name]

    def make(rng: Random) -> bytes:
        files = dict(rng.choice(_samples(name)))
        changed = rng.choice(sorted(files))
        others = tuple(data for sample in _samples(name) for data in sample.values())
        files[changed] = mutate(rng, files[changed], others)
        return _pack(files)

    def read(data: bytes, _: Path) -> None:
        # In this process: the guard refuses forks, and watches the read itself.
        with mock.patch.object(hdf5, "try_aside", lambda check, *_: check()):
            _read(suite, _unpack(data))

    return Target(f"format_{name}", make, read, weight=4)


def _pack(files: Files) -> bytes:
    return json.dumps({name: data.decode("latin1") for name, data in files.items()}).encode()


def _unpack(data: bytes) -> Files:
    return {name: text.encode("latin1") for name, text in json.loads(data).items()}


def _read(suite: type[FormatContract], files: Files) -> None:
    """Recognize, describe and read; FormatError is the only refusal, and nothing is larger than the files."""
    form: Any = suite.format
    source = suite.source(files)
    suite.sniff(files)
    registry.sniff(source)
    str(form.describe(source))
    entries = form.entries(source)
    if isinstance(form, FileFormat) and len(entries) > sum(map(len, files.values())):
        raise Fault(f"{len(entries)} entries in {sum(map(len, files.values()))} bytes")
    for entry in entries[:50]:
        try:
            array = to_array(form.read(source, entry))
            if (array.shape, array.nbytes) != (entry.shape, entry.nbytes):
                raise Fault(f"{entry} was read as {array.dtype} {array.shape}")
            if entry.kind == VarType.LOD_TENSOR and not entry.lod and entry.shape:
                middle = entry.shape[0] // 2
                part = form.read_slice(source, entry, 0, middle)
                if part.tobytes() != array[:middle].tobytes():
                    raise Fault(f"the first {middle} rows of {entry} are others than those of the whole")
        except FormatError:
            continue


FORMATS: Final = tuple(_target(name) for name in _suites())
