"""The values that engines take and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from paddlelike.core.tensor import Array, LoD, LoDTensor

Value = tuple[Array, LoD]
Runner = Callable[[Mapping[str, Any]], list[Value]]  # the outputs of some feeds, in their order


def split_value(value: object) -> Value:
    """Return the array and the LoD of an array or a LoDTensor."""
    if not isinstance(value, LoDTensor):
        return np.asarray(value), []
    array = value.held_array
    return (np.empty(0, np.float32) if array is None else array), value.lod()
