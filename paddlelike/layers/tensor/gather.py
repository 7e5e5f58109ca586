"""Select rows and elements by index, and turn ids into one-hot rows.

Parameters
----------
input, x
    A variable of any shape.
index
    Indices (..., K), int32 or int64: each row selects an element or a slice by the first K dims.
updates
    The values to add: for each row of ``index``, an element or a slice of the result.
hash_size
    The bound of the hashes, excluded.
num_hash
    The number of hashes that each row gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import INTEGERS, check_variable, emit
from paddlelike.layers.tensor.constant import zeros
from paddlelike.layers.tensor.slice import slice

__all__ = [
    "gather",
    "gather_nd",
    "hash",
    "index_sample",
    "index_select",
    "nonzero",
    "one_hot",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "shard_index",
    "where",
]


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Return the rows of ``input`` at the integers of ``index`` (N,) (operator ``gather``).

    Parameters
    ----------
    index
        The rows to return, (N,), int32 or int64.
    overwrite
        Whether the gradient of a row that is gathered twice is the last one instead of the sum.

    Returns
    -------
    Variable
        (N, ...) for ``input`` (R, ...), in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable, or ``index`` is not a variable of int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4], [5, 6]], "float32"))
    >>> y = fluid.layers.assign(np.array([2, 0], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.gather(x, y)])
    >>> print(out)
    [[5. 6.]
     [1. 2.]]
    """
    check_variable("gather", "input", input)
    check_variable("gather", "index", index, INTEGERS)
    return emit("gather", {"X": input, "Index": index}, {"overwrite": overwrite})


def gather_nd(input: Variable, index: Variable, name: str | None = None) -> Variable:
    """Return the slices of ``input`` that the rows of ``index`` (..., K) select in its first K dims.

    Operator ``gather_nd``.

    Returns
    -------
    Variable
        The dims of ``index`` except the last, then the dims of ``input`` from dim K on; in the dtype of
        ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable, or ``index`` is not a variable of int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 0]], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.gather_nd(x, y)])
    >>> print(out)
    [3.]
    """
    check_variable("gather_nd", "input", input)
    check_variable("gather_nd", "index", index, INTEGERS)
    return emit("gather_nd", {"X": input, "Index": index}, name=name)


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """Return the slices of ``input`` along ``dim`` at the indices of ``index`` (``index_select``).

    Parameters
    ----------
    index
        The indices along ``dim``, (N,), int32 or int64.
    dim
        The dim along which slices are chosen.

    Returns
    -------
    Variable
        ``input`` with N in place of dim ``dim``, in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable, or ``index`` is not a variable of int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> y = fluid.layers.assign(np.array([2, 0], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.index_select(x, y, dim=1)])
    >>> print(out)
    [[3. 1.]
     [6. 4.]]
    """
    check_variable("index_select", "input", input)
    check_variable("index_select", "index", index, INTEGERS)
    return emit("index_select", {"X": input, "Index": index}, {"dim": dim})


def index_sample(x: Variable, index: Variable) -> Variable:
    """Return ``out[i, j] = x[i, index[i, j]]`` (operator ``index_sample``).

    Parameters
    ----------
    x
        A variable (N, D).
    index
        Columns (N, K), int32 or int64.

    Returns
    -------
    Variable
        In the shape of ``index``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable, or ``index`` is not a variable of int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0, 2], [1, 1]], "int64"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.index_sample(x, y)])
    >>> print(out)
    [[1. 3.]
     [5. 5.]]
    """
    check_variable("index_sample", "x", x)
    check_variable("index_sample", "index", index, INTEGERS)
    return emit("index_sample", {"X": x, "Index": index})


def scatter(
    input: Variable, index: Variable, updates: Variable, name: str | None = None, overwrite: bool = True
) -> Variable:
    """Return ``input`` with its rows at ``index`` (N,) replaced by ``updates`` (operator ``scatter``).

    Parameters
    ----------
    index
        The rows to replace, (N,), int32 or int64.
    updates
        The new rows, (N, ...).
    overwrite
        Whether a row is replaced. Otherwise it is set to zero, then all its updates are added.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` or ``updates`` is not a variable, or ``index`` is not a variable of int32 or int64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 1], [2, 2]], "float32"))
    >>> y = fluid.layers.assign(np.array([1], "int64"))
    >>> z = fluid.layers.assign(np.array([[5, 6]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.scatter(x, y, z)])
    >>> print(out)
    [[1. 1.]
     [5. 6.]]
    """
    check_variable("scatter", "input", input)
    check_variable("scatter", "index", index, INTEGERS)
    check_variable("scatter", "updates", updates)
    inputs = {"X": input, "Ids": index, "Updates": updates}
    return emit("scatter", inputs, {"overwrite": overwrite}, name=name)


def scatter_nd_add(ref: Variable, index: Variable, updates: Variable, name: str | None = None) -> Variable:
    """Return ``ref`` with ``updates`` added at the rows of ``index`` (..., K) (``scatter_nd_add``).

    Parameters
    ----------
    ref
        A variable of any shape.

    Returns
    -------
    Variable
        In the shape and dtype of ``ref``.

    Raises
    ------
    TypeError
        ``index`` is not a variable of int32 or int64, or ``ref`` is not a variable.
    GraphError
        The dtypes of ``ref`` and ``updates`` differ.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 1, 1], "float32"))
    >>> y = fluid.layers.assign(np.array([[0], [0]], "int64"))
    >>> z = fluid.layers.assign(np.array([5, 6], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.scatter_nd_add(x, y, z)])
    >>> print(out)
    [12.  1.  1.]
    """
    check_variable("scatter_nd_add", "index", index, INTEGERS)
    if check_variable("scatter_nd_add", "ref", ref).dtype != updates.dtype:
        raise GraphError(
            f"layer 'scatter_nd_add': ref {ref.name!r} has dtype {ref.dtype.name}, updates "
            f"{updates.name!r} has {updates.dtype.name}"
        )
    return emit("scatter_nd_add", {"X": ref, "Index": index, "Updates": updates}, name=name)


def scatter_nd(index: Variable, updates: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
    """Return zeros of ``shape`` with ``updates`` added at the rows of ``index`` (``scatter_nd_add``).

    Parameters
    ----------
    shape
        The shape of the result.

    Returns
    -------
    Variable
        Of ``shape``, in the dtype of ``updates``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [3]], "int64"))
    >>> y = fluid.layers.assign(np.array([5, 6], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.scatter_nd(x, y, [4])])
    >>> print(out)
    [0. 5. 0. 6.]
    """
    return scatter_nd_add(zeros(shape, updates.dtype), index, updates, name)


def where(condition: Variable) -> Variable:
    """Return the int64 indices, (count, rank), where ``condition`` is true (operator ``where_index``).

    Parameters
    ----------
    condition
        A bool variable of any shape.

    Returns
    -------
    Variable
        int64 (count, rank): a row of indices for each true element.

    Raises
    ------
    TypeError
        ``condition`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([0, 1, 1], "bool"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.where(x)])
    >>> print(out)
    [[1]
     [2]]
    """
    check_variable("where", "condition", condition)
    return emit("where_index", {"Condition": condition}, dtype=VarType.INT64)


@overload
def nonzero(input: Variable, as_tuple: Literal[False] = False) -> Variable: ...


@overload
def nonzero(input: Variable, as_tuple: Literal[True]) -> tuple[Variable, ...]: ...


def nonzero(input: Variable, as_tuple: bool = False) -> Variable | tuple[Variable, ...]:
    """Return the int64 indices, (count, rank), where ``input`` is not 0, or a tuple with a column per dim.

    Operator ``where_index``.

    Parameters
    ----------
    as_tuple
        Whether the result is one variable per dim.

    Returns
    -------
    Variable or tuple
        int64 (count, rank): a row of indices for each element that is not 0. With ``as_tuple`` a variable
        (count, 1) for each dim.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 0], [0, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.nonzero(x)])
    >>> print(out)
    [[0 0]
     [1 1]]
    """
    positions = where(input)
    if not as_tuple:
        return positions
    dims = len(input.shape)
    if dims == 1:
        return (positions,)
    return tuple(slice(positions, axes=[1], starts=[i], ends=[i + 1]) for i in range(dims))


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """Return one-hot rows, 1 at the id and 0 elsewhere: ids (..., 1) give (..., depth), float32.

    Operator ``one_hot``. An id out of range is an error, or with ``allow_out_of_range`` gives zeros.

    Parameters
    ----------
    input
        Ids (..., 1), int32 or int64.
    depth
        The number of classes: an int, or a variable of shape [1].
    allow_out_of_range
        Whether an id out of range gives zeros instead of an error.

    Returns
    -------
    Variable
        float32 (..., depth) for ids (..., 1).

    Raises
    ------
    TypeError
        ``input`` is not a variable of int32 or int64.

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
    if isinstance(depth, str):
        raise TypeError(f"layer 'one_hot': depth must be an int or a variable, got {depth!r}")
    return {"X": ids}, {"depth": int(depth), **attrs}


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Convert global ids to ids within shard ``shard_id``, and all others to ``ignore_value``
    (``shard_index``).

    A shard holds ``ceil(index_num / nshards)`` ids.

    Parameters
    ----------
    input
        Ids (..., 1), int64.
    index_num
        The number of all ids.
    nshards
        The number of shards.
    shard_id
        The index of this shard, from 0.
    ignore_value
        The value that replaces ids of other shards.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of int64.
    GraphError
        There is no such shard.

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


def hash(input: Variable, hash_size: int, num_hash: int = 1, name: str | None = None) -> Variable:
    """Return ``num_hash`` hashes of each row of ids, below ``hash_size``: (T, num_hash, 1) (``hash``).

    Parameters
    ----------
    input
        Ids (T, 1) or (T, K), int64.

    Returns
    -------
    Variable
        int64 (T, num_hash, 1), with the LoD of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> fluid.layers.hash(x, hash_size=1000, num_hash=4).shape
    (-1, 4, 1)
    """
    check_variable("hash", "input", input, INTEGERS)
    attrs = {"num_hash": num_hash, "mod_by": hash_size}
    return emit("hash", {"X": input}, attrs, name=name, constant=True)
