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

    Parameters
    ----------
    block
        The global block of a program.
    feed_targets
        The names of the fed variables.
    feed_holder_name
        The variable that the operators read, by default "feed".

    Returns
    -------
    bool
        True where there is a feed operator.

    Raises
    ------
    GraphError
        The operators feed other variables, or read another holder.

    See Also
    --------
    fluid.compiler.as_numpy, fluid.compiler.has_fetch_operators, fluid.Executor.run

    >>> import paddlelike as fluid
    >>> fluid.compiler.has_feed_operators(fluid.Program().global_block(), {"x": None}, "feed")
    False
    """
    found = [(op.input("X")[0], op.output("Out")[0]) for op in block.ops if op.type == "feed"]
    return _compare("feed", found, list(feed_targets), feed_holder_name)


def has_fetch_operators(block: Block, fetch_targets: Iterable[Variable], fetch_holder_name: str) -> bool:
    """Return whether ``block`` ends with fetch operators.

    Parameters
    ----------
    block
        The global block of a program.
    fetch_targets
        The fetched variables.
    fetch_holder_name
        The variable that the operators write, by default "fetch".

    Returns
    -------
    bool
        True where there is a fetch operator.

    Raises
    ------
    GraphError
        The operators fetch other variables, or write another holder.

    See Also
    --------
    fluid.compiler.as_numpy, fluid.compiler.has_feed_operators, fluid.Executor.run

    >>> import paddlelike as fluid
    >>> fluid.compiler.has_fetch_operators(fluid.Program().global_block(), [], "fetch")
    False
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
