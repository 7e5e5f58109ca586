"""Cut a fed batch into the parts of several copies of a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core.tensor import LoD, LoDTensor
from paddlelike.errors import EnforceNotMet


def split_batch(name: str, value: Any, copies: int) -> list[Any]:
    """Return the parts of a fed batch for the copies, as Fluid cuts it.

    All parts but the last have equally many rows, or sequences of the first level of a LoD; there are fewer
    parts than copies when these use up the batch. Raises EnforceNotMet for an empty batch.
    """
    lod = value._lod if isinstance(value, LoDTensor) else []
    array = np.asarray(value)
    count = len(lod[0]) - 1 if lod else len(array)
    if count < 1:
        raise EnforceNotMet(f"the batch fed to {name!r} has no rows")
    size = -(-count // copies)
    spans = [(start, min(start + size, count)) for start in range(0, count, size)]
    if not lod:
        return [array[start:stop] for start, stop in spans]
    return [_cut_sequences(array, lod, start, stop) for start, stop in spans]


def _cut_sequences(array: Any, lod: LoD, start: int, stop: int) -> LoDTensor:
    """Return some sequences of the first level, with all levels below."""
    levels = []
    for level in lod:
        levels.append([offset - level[start] for offset in level[start : stop + 1]])
        start, stop = level[start], level[stop]
    return LoDTensor(array[start:stop], levels)
