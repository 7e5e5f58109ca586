"""Access to the golden files of the real systems (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.canonical import Canonical, canonical

GOLDEN = Path(__file__).parents[1] / "golden"

Arrays = dict[str, np.ndarray[Any, Any]]


@cache
def table(name: str) -> dict[str, Any]:
    """A gzipped JSON table: ``layers``, ``optimizers``, ``operators185``."""
    with gzip.open(GOLDEN / f"{name}.json.gz") as file:
        return json.load(file)


def manifest(network: str) -> dict[str, Any]:
    """What the real run of a network returned and wrote."""
    return json.loads((GOLDEN / network / "manifest.json").read_text())


def program(network: str, name: str) -> Canonical:
    """A real program of a network in canonical form."""
    return canonical((GOLDEN / network / "programs" / f"{name}.pb").read_bytes())


def arrays(network: str, name: str, prefix: str = "") -> Arrays:
    """The arrays of an npz file whose names begin with ``prefix``, without it."""
    with np.load(GOLDEN / network / f"{name}.npz") as file:
        return {key.removeprefix(prefix): file[key] for key in file if key.startswith(prefix)}


def with_lod(fluid: Any, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded arrays as a feed; those with offsets beside them (``<name>@lod0``) as LoDTensors."""
    feed = {}
    for name, array in recorded.items():
        if "@lod" in name:
            continue
        levels = sorted(key for key in recorded if key.startswith(f"{name}@lod"))
        lengths = [np.diff(recorded[level]).tolist() for level in levels]
        feed[name] = fluid.create_lod_tensor(array, lengths, fluid.CPUPlace()) if lengths else array
    return feed
