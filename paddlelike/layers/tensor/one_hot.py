"""Ids as rows with a single one, and ids of one shard."""

from __future__ import annotations

from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["one_hot", "shard_index"]


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Return a 1 at each id, else zeros; ids of shape (..., 1) give (..., depth), float32.

    Operator ``one_hot``. An id out of range is an error, or with ``allow_out_of_range`` gives zeros. Raises
    TypeError unless ``input`` is a variable of a supported dtype.

    Parameters
    ----------
    input
        Ids (..., 1), int32 or int64.
    depth
        The count of classes: an int, or a variable of shape [1].
    allow_out_of_range
        Whether an id out of range gives zeros instead of an error.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> ids = fluid.layers.assign(np.array([[2], [0]], "int64"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.one_hot(ids, depth=3)])
    [array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)]
    """
    check_variable("one_hot", "input", input, INTEGERS)
    inputs, attrs = prepare_one_hot(input, depth, allow_out_of_range)
    return emit("one_hot", inputs, attrs, dtype="float32", constant=True)


def prepare_one_hot(
    ids: Variable, depth: int | Variable, allow_out_of_range: bool
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Return the inputs and attributes of both one-hot operators; a depth may be a variable."""
    attrs: dict[str, Any] = {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, Variable):
        depth.stop_gradient = True
        return {"X": ids, "depth_tensor": depth}, attrs
    return {"X": ids}, {"depth": int(depth), **attrs}


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Return ids of shard ``shard_id`` as ids within it, others as ``ignore_value`` (``shard_index``).

    A shard holds ``ceil(index_num / nshards)`` ids. Raises TypeError unless ``input`` is a variable of a
    supported dtype, GraphError when there is no such shard.

    Parameters
    ----------
    input
        Ids (..., 1), int64.
    index_num
        The count of all ids.
    nshards
        The count of shards.
    shard_id
        The index of this shard, from 0.
    ignore_value
        What ids of other shards become.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [6], [12]], "int64"))
    >>> y = fluid.layers.shard_index(x, index_num=20, nshards=2, shard_id=0)
    >>> (out,) = fluid.Executor().run(fetch_list=[y])
    >>> print(out)
    [[ 1]
     [ 6]
     [-1]]
    """
    check_variable("shard_index", "input", input, (VarType.INT64,))
    if not 0 <= shard_id < nshards:
        raise GraphError(f"layer 'shard_index': shard_id is {shard_id}, expected 0 .. {nshards - 1}")
    attrs = {"index_num": index_num, "nshards": nshards, "shard_id": shard_id, "ignore_value": ignore_value}
    return emit("shard_index", {"X": [input]}, attrs)
