"""Queries about a tensor: where_index, is_empty, size."""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.framework.opdef import Array, OpDef, Spec, register
from paddlelike.ops.operands import one_element


@register
class WhereIndex(OpDef):
    """``Out``: the place of every element of Condition that is not zero, (count, rank)."""

    type = "where_index"
    inputs = ("Condition",)

    @staticmethod
    def infer(condition: Spec) -> Spec:
        return Spec((-1, len(condition.shape)), VarType.INT64)

    @staticmethod
    def forward(condition: Array) -> Array:
        return np.argwhere(condition)


@register
class IsEmpty(OpDef):
    """``Out``: whether X has no element, bool of shape (1,)."""

    type = "is_empty"

    infer = one_element(VarType.BOOL)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array([x.size == 0])


@register
class Size(OpDef):
    """``Out``: the number of elements of Input, int64 of shape (1,)."""

    type = "size"
    inputs = ("Input",)

    infer = one_element(VarType.INT64)

    @staticmethod
    def forward(x: Array) -> Array:
        return np.array([x.size], np.int64)
