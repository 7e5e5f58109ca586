"""Fluid's helpers around feeds and fetches, which tools call: ``fluid.executor.has_feed_operators``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np

from paddlelike.core import LoDTensor, numpy_dtype
from paddlelike.errors import GraphError
from paddlelike.framework import Block, Variable

if TYPE_CHECKING:
    from paddlelike.core import Place, VarType


def has_feed_operators(block: Block, feed_targets: Collection[str], feed_holder_name: str) -> bool:
    """Return whether ``block`` begins with feed operators.

    Raises GraphError unless they feed ``feed_targets`` from the variable ``feed_holder_name``.
    """
    found = [(op.input("X")[0], op.output("Out")[0]) for op in block.ops if op.type == "feed"]
    return _compare("feed", found, list(feed_targets), feed_holder_name)


def has_fetch_operators(block: Block, fetch_targets: Iterable[Variable], fetch_holder_name: str) -> bool:
    """Return whether ``block`` ends with fetch operators.

    Raises GraphError unless they fetch ``fetch_targets`` into the variable ``fetch_holder_name``.
    """
    found = [(op.output("Out")[0], op.input("X")[0]) for op in block.ops if op.type == "fetch"]
    return _compare("fetch", found, [target.name for target in fetch_targets], fetch_holder_name)


def _compare(kind: str, found: list[tuple[str, str]], targets: list[str], holder: str) -> bool:
    names = [name for _, name in found]
    if found and (sorted(names) != sorted(targets) or {one for one, _ in found} != {holder}):
        raise GraphError(
            f"the block has {kind} operators of {names}, expected {kind} operators of {targets} at {holder!r}"
        )
    return bool(found)


def _as_lodtensor(data: object, place: Place, dtype: VarType | str | None = None) -> LoDTensor:
    """Return an array, or a number of ``dtype``, as a tensor. Raises TypeError for lists and bare numbers."""
    if not isinstance(data, np.ndarray):
        if isinstance(data, list) or dtype is None:
            raise TypeError(f"_as_lodtensor takes an array, or a number with its dtype, got {data!r}")
        data = np.array([data], dtype if isinstance(dtype, str) else numpy_dtype(dtype))
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor
