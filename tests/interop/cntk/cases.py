"""The cases of the operator tests as programs for CNTK: their inputs with samples, or without."""

from __future__ import annotations

from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.interop.cntk.writing.graph import load_writers
from tests.helpers import single_operators
from tests.helpers.single_operators import Arrays
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case

#: Slots whose first dim is the samples.
_SAMPLES = {"X", "Input", "Ids", "Logits", "Label", "Labels", "Predicted", "Condition"}


def _list_values(case: Case) -> list[Any]:
    values = case.inputs.values()
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


WRITTEN = [
    case
    for case in CASES
    if case.type in load_writers() and not any(isinstance(one, SelectedRows) for one in _list_values(case))
]


def _has_samples(case: Case, slot: str, array: np.ndarray) -> bool:
    first = np.asarray(next(iter(_list_values(case))))
    if slot == "X" and case.type == "gather":
        return False
    if slot in ("Y", "Index"):
        return array.ndim == first.ndim and array.shape[:1] == first.shape[:1] and "mul" not in case.type[:4]
    return slot in _SAMPLES and array.ndim > 0


def build(case: Case, *, samples: bool) -> tuple[fluid.Program, Arrays, list[str]]:
    """Return a program of one operator, its slots with samples as CNTK has them, its feed and its outputs."""
    return single_operators.build(case, lambda slot, array: samples and _has_samples(case, slot, array))
