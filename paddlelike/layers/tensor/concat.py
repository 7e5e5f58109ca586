"""Join, split and repeat tensors.

Parameters
----------
x, input
    A variable of any shape.

Raises
------
TypeError
    An input is not a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import (
    INTEGERS,
    as_list,
    check_variable,
    check_variables,
    describe,
    emit,
    has_variables,
    is_whole,
    replace_variables,
)
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.assign import create_named
from paddlelike.layers.tensor.constant import as_variables
from paddlelike.layers.tensor.reshape import reshape

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike, Size

__all__ = [
    "concat",
    "expand",
    "expand_as",
    "flip",
    "meshgrid",
    "multiplex",
    "reverse",
    "roll",
    "split",
    "stack",
    "unstack",
]


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Return row ``i`` of ``inputs[index[i]]`` for every i; ``index`` is int32 (N, 1) (operator
    ``multiplex``).

    Parameters
    ----------
    inputs
        A list of variables (N, ...) of one shape.
    index
        int32 (N, 1): the index of the input that each row is taken from.

    Returns
    -------
    Variable
        In the shape and dtype of each of ``inputs``.

    Raises
    ------
    TypeError
        An element of ``inputs`` is not a variable, or ``index`` is not a variable of int32 or int64.
    GraphError
        There are fewer than two inputs.

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


def concat(
    input: Variable | Sequence[Variable], axis: int | Variable = 0, name: str | None = None
) -> Variable:
    """Return variables concatenated along ``axis``; their other dims are equal (operator ``concat``).

    Parameters
    ----------
    input
        A list of variables whose dims are equal except ``axis``.
    axis
        The dim along which they are joined: an int, or a variable of shape [1].

    Returns
    -------
    Variable
        In the dtype of the inputs; the length of dim ``axis`` is the sum of the inputs' lengths.

    Raises
    ------
    TypeError
        ``input``, or an element of it, is not a variable.
    GraphError
        The dtypes of the inputs differ.

    >>> from paddlelike.input import data
    >>> concat([data("a", [None, 3]), data("b", [None, 5])], axis=1).shape
    (-1, 8)
    """
    many = check_variables("concat", "input", input)
    differ = [one for one in many if one.dtype != many[0].dtype]
    if differ:
        raise GraphError(
            f"layer 'concat': input holds {many[0].name!r} of dtype {many[0].dtype.name} and "
            f"{differ[0].name!r} of dtype {differ[0].dtype.name}",
            hint="convert one of them with layers.cast",
        )
    inputs: dict[str, Any] = {"X": many}
    if isinstance(axis, Variable):
        if axis.dtype not in INTEGERS:
            raise TypeError(
                f"layer 'concat': axis is variable {axis.name!r} of dtype {axis.dtype.name}, expected an int "
                "or a variable of ints\n  hint: variables to be joined are one list: concat([a, b], axis=1)"
            )
        axis.stop_gradient = True
        return emit("concat", {**inputs, "AxisTensor": axis}, name=name)
    return emit("concat", inputs, {"axis": axis}, name=name)


def split(
    input: Variable, num_or_sections: int | Sequence[Size], dim: int | Variable = -1, name: str | None = None
) -> list[Variable]:
    """Return ``input`` split along ``dim`` into equal parts, or into parts of the given lengths.

    Operator ``split``. One length may be -1, which means the rest. Lengths and ``dim`` may be variables.

    Parameters
    ----------
    input
        A variable of any shape.
    num_or_sections
        The number of equal parts, or the list of their lengths; one of them may be -1.
    dim
        The dim that is cut: an int, or a variable of shape [1].

    Returns
    -------
    list
        Variables in the dtype of ``input``; the lengths of their dims ``dim`` add up to the length of that
        dim of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        The dim cannot be cut into that many equal parts.

    >>> from paddlelike.input import data
    >>> [part.shape for part in split(data("x", [None, 6]), [2, -1], dim=1)]
    [(-1, 2), (-1, 4)]
    """
    check_variable("split", "input", input)
    helper = LayerHelper("split", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {"num": 0}
    length = -1
    if isinstance(dim, Variable):
        dim.stop_gradient = True
        inputs["AxisTensor"] = dim
    else:
        attrs["axis"] = dim + len(input.shape) if dim < 0 else dim
        length = input.shape[attrs["axis"]]
    if is_whole(num_or_sections):
        count = int(num_or_sections)
        if count <= 1 or (length > 0 and length % count):
            raise GraphError(
                f"layer 'split': num_or_sections is {count}, which does not divide dim {dim} of input "
                f"{input.name!r} of shape {list(input.shape)} into equal parts",
                hint="pass a list of lengths for unequal parts",
            )
        attrs["num"] = count
    else:
        sections = as_list("split", "num_or_sections", num_or_sections)
        count = len(sections)
        attrs["sections"] = replace_variables(sections)
        if has_variables(sections):
            inputs["SectionsTensorList"] = as_variables(helper, sections)
    outs = [helper.create_variable_for_type_inference(input.dtype) for _ in range(count)]
    helper.append_op(type="split", inputs=inputs, outputs={"Out": outs}, attrs=attrs)
    return outs


def stack(x: Variable | Sequence[Variable], axis: int = 0) -> Variable:
    """Return variables of one shape stacked along a new dim ``axis`` (operator ``stack``).

    Parameters
    ----------
    x
        A list of variables of one shape.
    axis
        The position of the new dim in the result.

    Returns
    -------
    Variable
        The shape of each of ``x``, with the number of variables as dim ``axis``, in their dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.stack([x, y])])
    >>> print(out)
    [[1. 2.]
     [3. 4.]]
    """
    many = check_variables("stack", "x", x)
    return emit("stack", {"X": many}, {"axis": axis}, slot="Y")


def unstack(x: Variable, axis: int = 0, num: int | None = None) -> list[Variable]:
    """Return the slices of ``x`` along dim ``axis``, without that dim (operator ``unstack``).

    Parameters
    ----------
    x
        A variable of any shape.
    axis
        The dim along which ``x`` is cut.
    num
        The length of that dim; None if the program knows it.

    Returns
    -------
    list
        A variable for each index of dim ``axis``, in the shape of ``x`` without this dim, and in its dtype.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        ``num`` is None, and the dim is unknown.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [2, 3])
    >>> [one.shape for one in fluid.layers.unstack(x)]
    [(3,), (3,)]
    """
    check_variable("unstack", "x", x)
    count = x.shape[axis] if num is None else num
    if count <= 0:
        raise GraphError(
            f"layer 'unstack': dim {axis} of x {x.name!r} of shape {list(x.shape)} is unknown",
            hint="pass num",
        )
    helper = LayerHelper("unstack")
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(count)]
    attrs = {"axis": axis, "num": count}
    helper.append_op(type="unstack", inputs={"X": [x]}, outputs={"Y": outs}, attrs=attrs)
    return outs


def expand(x: Variable, expand_times: ShapeLike, name: str | None = None) -> Variable:
    """Return ``x`` repeated ``expand_times[i]`` times along each dim ``i`` (operator ``expand``).

    The counts may be variables.

    Parameters
    ----------
    expand_times
        The number of repetitions of each dim: ints, or variables of shape [1], or one int variable.

    Returns
    -------
    Variable
        Dim i is ``expand_times[i]`` times as long as dim i of ``x``; in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        A count is negative.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.expand(x, [2, 3])])
    [array([[1., 2., 1., 2., 1., 2.],
           [1., 2., 1., 2., 1., 2.]], dtype=float32)]
    """
    check_variable("expand", "x", x)
    helper = LayerHelper("expand", name=name, input=x)
    inputs: dict[str, Any] = {"X": [x]}
    attrs: dict[str, Any] = {}
    if isinstance(expand_times, Variable):
        expand_times.stop_gradient = True
        inputs["ExpandTimes"] = expand_times
    else:
        times = as_list("expand", "expand_times", expand_times)
        negative = [one for one in times if not isinstance(one, Variable) and one < 0]
        if negative:
            raise GraphError(
                f"layer 'expand': expand_times is {times} for x {x.name!r} of shape {list(x.shape)}; "
                "expected no negative count"
            )
        attrs["expand_times"] = replace_variables(times)
        if has_variables(times):
            inputs["expand_times_tensor"] = as_variables(helper, times)
    return emit("expand", inputs, attrs, helper=helper)


def expand_as(x: Variable, target_tensor: Variable, name: str | None = None) -> Variable:
    """Return ``x`` repeated to the shape of ``target_tensor``, whose dims are multiples of the dims of ``x``.

    Operator ``expand_as``.

    Parameters
    ----------
    target_tensor
        The variable whose shape the result gets.

    Returns
    -------
    Variable
        In the shape of ``target_tensor``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` or ``target_tensor`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1], [2]], "float32"))
    >>> y = fluid.layers.assign(np.array([[0, 0], [0, 0]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.expand_as(x, y)])
    >>> print(out)
    [[1. 1.]
     [2. 2.]]
    """
    check_variable("expand_as", "x", x)
    check_variable("expand_as", "target_tensor", target_tensor)
    return emit("expand_as", {"X": x, "target_tensor": target_tensor}, name=name)


def meshgrid(input: Variable | Sequence[Variable], name: str | None = None) -> list[Variable]:
    """Expand vectors of lengths A, B, ... to tensors (A, B, ...), each along its own dim (``meshgrid``).

    Parameters
    ----------
    input
        A list of variables (N,).

    Returns
    -------
    list
        A variable of shape (A, B, ...) for each input, in its dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2], "float32"))
    >>> y = fluid.layers.assign(np.array([3, 4, 5], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.meshgrid([x, y])[0]])
    >>> print(out)
    [[1. 1. 1.]
     [2. 2. 2.]]
    """
    many = check_variables("meshgrid", "input", input)
    helper = LayerHelper("meshgrid", name=name)
    outs = [helper.create_variable_for_type_inference(one.dtype) for one in many]
    helper.append_op(type="meshgrid", inputs={"X": many}, outputs={"Out": outs})
    return outs


def reverse(x: Variable, axis: int | Sequence[int]) -> Variable:
    """Return ``x`` reversed along one or several dims (operator ``reverse``).

    Parameters
    ----------
    axis
        The dim or dims that are reversed.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.reverse(x, axis=0)])
    >>> print(out)
    [[3. 4.]
     [1. 2.]]
    """
    check_variable("reverse", "x", x)
    axes = [axis] if isinstance(axis, int) else list(axis)
    return emit("reverse", {"X": x}, {"axis": axes})


def flip(input: Variable, dims: Sequence[int], name: str | None = None) -> Variable:
    """Return ``input`` reversed along ``dims`` (operator ``flip``).

    Parameters
    ----------
    dims
        The dims that are reversed.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2], [3, 4]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.flip(x, dims=[1])])
    >>> print(out)
    [[2. 1.]
     [4. 3.]]
    """
    check_variable("flip", "input", input)
    return emit("flip", {"X": input}, {"dims": list(dims)}, name=name, out=create_named(name, input.dtype))


def roll(input: Variable, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Variable:
    """Return ``input`` rotated by ``shifts`` along ``dims`` (operator ``roll``).

    Without ``dims`` the elements are rotated as one row.

    Parameters
    ----------
    shifts
        The number of places: an int, or one per dim.
    dims
        The dims that are rotated; None to rotate all elements as one row.

    Returns
    -------
    Variable
        In the shape and dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        ``shifts`` and ``dims`` have different lengths.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.roll(x, shifts=1)])
    >>> print(out)
    [3. 1. 2.]
    """
    check_variable("roll", "input", input)
    helper = LayerHelper("roll")
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    axes = [dims] if isinstance(dims, int) else [0] if dims is None else list(dims)
    if dims is not None and len(moves) != len(axes):
        raise GraphError(
            f"layer 'roll': {len(moves)} shifts {moves} for {len(axes)} dims {axes}, expected one for each"
        )
    out = helper.create_variable_for_type_inference(input.dtype)
    shape = input.shape
    if dims is None:
        input = reshape(input, [-1, 1])
    attrs = {"dims": axes, "shifts": moves}
    helper.append_op(type="roll", inputs={"X": input}, outputs={"Out": out}, attrs=attrs)
    return reshape(out, list(shape), inplace=True)
