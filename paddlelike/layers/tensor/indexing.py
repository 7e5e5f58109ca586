"""Indexing of tensors: slicing, gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import (
    INTEGERS,
    check_variable,
    check_variables,
    describe,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables, zeros
from paddlelike.layers.tensor.sizes import has_variables, replace_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = [
    "gather",
    "gather_nd",
    "gather_tree",
    "index_sample",
    "index_select",
    "multiplex",
    "nonzero",
    "rank",
    "scatter",
    "scatter_nd",
    "scatter_nd_add",
    "shape",
    "shard_index",
    "size",
    "slice",
    "strided_slice",
    "where",
]


def shape(input: Variable) -> Variable:
    """Return the dims of ``input`` at run time, int32 of shape (rank,) (operator ``shape``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> dims = fluid.layers.shape(fluid.data("x", [None, 4]))
    >>> fluid.Executor().run(feed={"x": np.ones((3, 4), "float32")}, fetch_list=[dims])
    [array([3, 4], dtype=int32)]
    """
    check_variable("shape", "input", input)
    return emit("shape", {"Input": input}, dtype=VarType.INT32)


def rank(input: Variable) -> Variable:
    """Return the count of dims of ``input``, an int32 constant (operator ``assign_value``).

    Raises TypeError unless ``input`` is a variable.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8])
    >>> fluid.layers.rank(x).shape
    ()
    """
    check_variable("rank", "input", input)
    attrs = {"dtype": int(VarType.INT32), "shape": [], "int32_values": [len(input.shape)]}
    return emit("assign_value", None, attrs, layer="assign", dtype=VarType.INT32)


def size(input: Variable) -> Variable:
    """Return the count of elements of ``input``, int64 of shape [1] (operator ``size``).

    Raises TypeError unless ``input`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.size(x)])
    >>> print(out)
    [4]
    """
    check_variable("size", "input", input)
    return emit("size", {"Input": input}, dtype=VarType.INT64)


def slice(input: Variable, axes: Sequence[int], starts: ShapeLike, ends: ShapeLike) -> Variable:
    """Return ``input[..., start:end, ...]`` on each of ``axes`` (operator ``slice``).

    Negative limits count from the end; limits beyond the end mean the end. ``starts`` and ``ends`` may be
    int variables, or lists with variables of shape [1].

    >>> from paddlelike.input import data
    >>> slice(data("x", [None, 6, 4]), axes=[1, 2], starts=[-3, 0], ends=[-1, 100]).shape
    (-1, 2, 4)
    """
    return _append_slice("slice", input, axes, {"Starts": starts, "Ends": ends})


def strided_slice(
    input: Variable, axes: Sequence[int], starts: ShapeLike, ends: ShapeLike, strides: ShapeLike
) -> Variable:
    """Return ``input[..., start:end:stride, ...]`` on each of ``axes`` (operator ``strided_slice``).

    ``starts``, ``ends`` and ``strides`` hold one number for each of ``axes``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3, 4, 5]], "float32"))
    >>> y = fluid.layers.strided_slice(x, axes=[1], starts=[0], ends=[5], strides=[2])
    >>> (out,) = fluid.Executor().run(fetch_list=[y])
    >>> print(out)
    [[1. 3. 5.]]
    """
    limits = {"Starts": starts, "Ends": ends, "Strides": strides}
    return _append_slice("strided_slice", input, axes, limits)


def _append_slice(type: str, input: Variable, axes: Sequence[int], limits: dict[str, ShapeLike]) -> Variable:
    """Append either operator; ``infer_flags`` is -1 on axes whose limits are known only at run time."""
    check_variable(type, "input", input)
    helper = LayerHelper(type)
    inputs: dict[str, Any] = {"Input": input}
    attrs: dict[str, Any] = {"axes": list(axes)}
    flags = [1] * len(axes)
    for slot, values in limits.items():
        argument = slot.lower()
        if isinstance(values, Variable):
            values.stop_gradient = True
            inputs[f"{slot}Tensor"] = values
            flags = [-1] * len(axes)
            continue
        if not isinstance(values, list | tuple) or len(values) != len(axes):
            raise GraphError(
                f"layer {type!r}: {argument} is {describe(values)}, expected a variable or "
                f"{len(axes)} ints, one for each of axes {list(axes)}"
            )
        attrs[argument] = replace_variables(values)
        if has_variables(values):
            inputs[f"{slot}TensorList"] = as_variables(helper, values)
            flags = [
                -1 if isinstance(value, Variable) else flag for value, flag in zip(values, flags, strict=True)
            ]
    attrs["infer_flags"] = flags
    return emit(type, inputs, attrs, helper=helper)


def gather(input: Variable, index: Variable, overwrite: bool = True) -> Variable:
    """Return the rows of ``input`` at the integers of ``index`` (N,) (operator ``gather``).

    ``overwrite``: where a row is gathered twice, its gradient is the last one instead of the sum. Raises
    TypeError unless ``input`` and ``index`` are variables of supported dtypes.

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

    Operator ``gather_nd``. Raises TypeError unless ``input`` and ``index`` are variables of supported
    dtypes.

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


def gather_tree(ids: Variable, parents: Variable) -> Variable:
    """Return the sequences of a beam search from its ids and parents (T, N, beams) (``gather_tree``).

    Raises TypeError unless ``ids`` and ``parents`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [3, 2, 2], "int64")
    >>> y = fluid.data("y", [3, 2, 2], "int64")
    >>> fluid.layers.gather_tree(x, y).shape
    (3, 2, 2)
    """
    check_variable("gather_tree", "ids", ids, INTEGERS)
    check_variable("gather_tree", "parents", parents, INTEGERS)
    return emit("gather_tree", {"Ids": ids, "Parents": parents})


def index_select(input: Variable, index: Variable, dim: int = 0) -> Variable:
    """Return the slices of ``input`` along ``dim`` at the integers of ``index`` (N,) (``index_select``).

    Raises TypeError unless ``input`` and ``index`` are variables of supported dtypes.

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

    Raises TypeError unless ``x`` and ``index`` are variables of supported dtypes.

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
    input: Variable,
    index: Variable,
    updates: Variable,
    name: str | None = None,
    overwrite: bool = True,
) -> Variable:
    """Return ``input`` with its rows at ``index`` (N,) replaced by ``updates`` (operator ``scatter``).

    Without ``overwrite`` these rows are set to zero first, then the updates are added. Raises TypeError
    unless ``input``, ``index`` and ``updates`` are variables of supported dtypes.

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

    Raises TypeError unless ``index`` and ``ref`` are variables of supported dtypes, GraphError when their
    dtypes differ.

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

    Raises TypeError unless ``condition`` is a variable.

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

    With ``as_tuple`` there is one variable for each dim.

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


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Return rows ``i`` of ``inputs[index[i]]``; ``index`` is int32 (N, 1) (operator ``multiplex``).

    Raises TypeError unless ``inputs`` and ``index`` are variables of supported dtypes, GraphError for fewer
    than two inputs.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> y = fluid.layers.assign(np.array([[5, 6], [7, 8]], "float32"))
    >>> z = fluid.layers.assign(np.array([[1], [0]], "int32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.multiplex([x, y], z)])
    >>> print(out)
    [[5. 6.]
     [3. 4.]]
    """
    if not isinstance(inputs, list | tuple) or len(inputs) < 2:
        raise GraphError(f"layer 'multiplex': inputs is {describe(inputs)}, expected two variables or more")
    many = check_variables("multiplex", "inputs", inputs)
    check_variable("multiplex", "index", index, INTEGERS)
    return emit("multiplex", {"X": many, "Ids": index})


def shard_index(
    input: Variable, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1
) -> Variable:
    """Return ids of shard ``shard_id`` as ids within it, others as ``ignore_value`` (``shard_index``).

    A shard holds ``ceil(index_num / nshards)`` ids. Raises TypeError unless ``input`` is a variable of a
    supported dtype, GraphError when there is no such shard.

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
    attrs = {
        "index_num": index_num,
        "nshards": nshards,
        "shard_id": shard_id,
        "ignore_value": ignore_value,
    }
    return emit("shard_index", {"X": [input]}, attrs)
