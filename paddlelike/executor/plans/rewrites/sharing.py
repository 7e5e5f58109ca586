"""Pass the LoDs of inputs on to outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np

from paddlelike.core.tensor import LoD
from paddlelike.executor.plans.frame import Share
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import EMPTY, GRAD, OpDef


class _Pair(NamedTuple):
    source: int  # position of the input
    target: int  # position of the output
    path: tuple[int, ...]  # indexes that lead to the output in the kernel's result


def make_lod_sharer(cls: type[OpDef], op: Operator, get_position: Callable[[str], int]) -> Share | None:
    """Return a function that copies the LoD of an input to the outputs, or None when none is declared.

    The function takes the LoDs by position and the kernel's result. Given a result, it leaves out arrays with
    another count of rows (of reshape, split, ...).
    """
    pairs = _collect_pairs(cls, op, get_position)
    if not pairs:
        return None

    def share(lods: dict[int, LoD], result: object) -> None:
        for source, target, path in pairs:
            lod = lods.get(source)
            if lod and (result is None or _has_rows(result, path, lod[-1][-1])):
                lods[target] = lod
            else:
                lods.pop(target, None)

    return share


def _collect_pairs(cls: type[OpDef], op: Operator, get_position: Callable[[str], int]) -> list[_Pair]:
    pairs = []
    single = len(cls.output_slots) == 1
    for index, slot in enumerate(cls.output_slots):
        names = op.inputs.get(cls.find_lod_source(slot.name) or "")
        if not names:
            continue
        each = slot.name.endswith(GRAD) and len(names) == len(op.outputs.get(slot.name, []))
        for item, out in enumerate(op.outputs.get(slot.name, [])):
            path = (() if single else (index,)) + ((item,) if slot.several else ())
            if out != EMPTY:
                source = names[item if each else 0]  # each gradient has that of its own variable
                pairs.append(_Pair(get_position(source), get_position(out), path))
    return pairs


def _has_rows(result: object, path: tuple[int, ...], rows: int) -> bool:
    """Return whether the value at ``path`` in a kernel's result is an array with that count of rows.

    One row stands for none, too: that is what ``ctc_align`` gives where no label is left.
    """
    for index in path:
        result = cast("Sequence[object]", result)[index]
    if not isinstance(result, np.ndarray) or not result.shape:
        return False
    is_xshape = result.shape[0] == 0 < len(result.shape) - 1  # it holds dims alone: 0, then those of X
    return result.shape[0] in (rows, rows or 1) or (is_xshape and result.shape[1] == rows)
