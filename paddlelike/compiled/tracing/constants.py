"""Values that are known while a program is traced: results of numpy's kernels for small constants.

Examples are the number of a loop's steps, the indices of an array's elements and sizes that a program
computes. In a trace they are numpy arrays; all other values are JAX arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import jax
import numpy as np

from paddlelike.core import AttrType, LoD
from paddlelike.framework import Operator
from paddlelike.framework.opdef import OpDef

_LARGEST: Final = 64  # elements; larger constants belong to the device
#: Operators without inputs whose result is a constant of the program.
_SOURCES: Final = ("fill_constant", "assign_value")


class _WithoutLods:
    """A run in which no value has a LoD, for kernels with ``lods_only``; constants have none."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def lod(self, slot: str, index: int = 0) -> LoD:
        return []

    read_lod = lod

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        pass


def evaluate(op: Operator, cls: type[OpDef], args: list[Any]) -> object:
    """Return the results of an operator if its inputs are small constants, else None."""
    leaves = jax.tree_util.tree_leaves(args)
    if not leaves and (op.type not in _SOURCES or math.prod(op.attrs.get("shape") or [1]) > _LARGEST):
        return None
    if not has_plain_kernel(cls) or op.type.endswith("_grad"):
        return None
    if any(not isinstance(leaf, np.ndarray) or leaf.size > _LARGEST for leaf in leaves):
        return None
    results = run_kernel(op, cls, args)
    is_large = op.type in _SOURCES and isinstance(results, np.ndarray) and results.size > _LARGEST
    return None if is_large else results


def runs_block(cls: type[OpDef]) -> bool:
    """Return whether operators of a class run a block."""
    return any(attr.type == AttrType.BLOCK for attr in cls.attrs.values())


def has_plain_kernel(cls: type[OpDef]) -> bool:
    """Return whether a kernel computes results of the inputs and attributes of an operator alone."""
    return not (cls.external or runs_block(cls)) and (not cls.context or cls.lods_only)


def run_kernel(op: Operator, cls: type[OpDef], args: list[Any]) -> Any:
    """Return the results of numpy's kernel, or None if the kernel needs a run."""
    if not has_plain_kernel(cls):
        return None
    args = jax.tree_util.tree_map(np.copy, args)
    keywords: Mapping[str, Any] = cls.make_forward_keywords(op.attrs, op.outputs)
    with np.errstate(all="ignore"):
        return cls.forward(*[_WithoutLods(op)] * cls.context, *args, **keywords)
