"""The same elements in another shape or order: reshape, transpose, squeeze; and shapes as tensors.

Parameters
----------
x, input
    A variable of any shape.

Raises
------
TypeError
    ``input`` is not a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import as_list, check_variable, emit, has_variables, is_whole, replace_variables
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["flatten", "rank", "reshape", "shape", "squeeze", "t", "transpose", "unsqueeze"]


def shape(input: Variable) -> Variable:
    """Return the dims of ``input`` at run time, int32 of shape (rank,) (operator ``shape``).

    Returns
    -------
    Variable
        int32 (rank,): the shape of the value in this run.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> dims = fluid.layers.shape(fluid.data("x", [None, 4]))
    >>> fluid.Executor().run(feed={"x": np.ones((3, 4), "float32")}, fetch_list=[dims])
    [array([3, 4], dtype=int32)]
    """
    check_variable("shape", "input", input)
    return emit("shape", {"Input": input}, dtype=VarType.INT32)


def rank(input: Variable) -> Variable:
    """Return the number of dims of ``input``, an int32 constant (operator ``assign_value``).

    Returns
    -------
    Variable
        int32, of shape () in the program.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8])
    >>> fluid.layers.rank(x).shape
    ()
    """
    check_variable("rank", "input", input)
    attrs = {"dtype": int(VarType.INT32), "shape": [], "int32_values": [len(input.shape)]}
    return emit("assign_value", None, attrs, layer="assign", dtype=VarType.INT32)


def reshape(
    x: Variable,
    shape: ShapeLike,
    actual_shape: Variable | None = None,
    act: str | None = None,
    inplace: bool = False,
    name: str | None = None,
) -> Variable:
    """Return the elements of ``x``, in the same order, in another ``shape`` (operator ``reshape2``).

    ``act`` is applied to the result.

    Parameters
    ----------
    shape
        Ints; one may be -1 (inferred), and 0 means the dim of ``x`` at that index; or variables of
        shape [1], or one int variable.
    actual_shape
        An int variable that replaces ``shape`` at run time; None for none.
    inplace
        Whether the result is ``x`` itself.

    Returns
    -------
    Variable
        Of ``shape``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        ``shape`` does not fit the elements, or more than one dim is -1.

    >>> from paddlelike.input import data
    >>> reshape(data("x", [None, 6, 4]), [0, 3, 8]).shape
    (-1, 3, 8)
    """
    check_variable("reshape", "x", x)
    helper = LayerHelper("reshape2", name=name, act=act)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        shape.stop_gradient = True
        inputs["Shape"] = shape
    else:
        dims = as_list("reshape", "shape", shape)
        _check_new_shape(x, dims)
        attrs["shape"] = replace_variables(dims)
        if has_variables(dims):
            inputs["ShapeTensor"] = as_variables(helper, dims)
        elif isinstance(actual_shape, Variable):
            actual_shape.stop_gradient = True
            inputs["Shape"] = actual_shape
    out = x if inplace else helper.create_variable_for_type_inference(x.dtype)
    return helper.append_activation(_append_with_xshape(helper, "reshape2", inputs, out, attrs))


def _check_new_shape(x: Variable, dims: list[Any]) -> None:
    described = (
        f"layer 'reshape': shape is {replace_variables(dims)} for x {x.name!r} of shape {list(x.shape)}"
    )
    if not dims:
        raise GraphError(f"{described}; it cannot be empty")
    numbers = [dim for dim in dims if not isinstance(dim, Variable)]
    if numbers.count(-1) > 1:
        raise GraphError(f"{described}; only one dim can be -1")
    for i, dim in enumerate(dims):
        if not isinstance(dim, Variable) and (dim < -1 or (dim == 0 and i >= len(x.shape))):
            raise GraphError(
                f"{described}; dim {i} is {dim}",
                hint="dims are positive, -1 for the inferred one, or 0 for the dim of x at that index",
            )


def _append_with_xshape(
    helper: LayerHelper, type: str, inputs: dict[str, Any], out: Variable, attrs: dict[str, Any]
) -> Variable:
    """Append an operator that also outputs the shape of X for its gradient, and return its result."""
    xshape = helper.create_variable_for_type_inference(out.dtype)
    outputs = {"Out": out, "XShape": xshape}
    helper.append_op(type=type, inputs=inputs, outputs=outputs, attrs=attrs)
    return out


def squeeze(input: Variable, axes: Sequence[int], name: str | None = None) -> Variable:
    """Return ``input`` without its dims ``axes``, which are 1; [] means all dims of 1 (``squeeze2``).

    Parameters
    ----------
    axes
        The dims of length 1 that are left out; [] for all of them.

    Returns
    -------
    Variable
        ``input`` without these dims, in its dtype.

    >>> import paddlelike as fluid
    >>> fluid.layers.squeeze(fluid.data("x", [None, 1, 4, 1]), axes=[1]).shape
    (-1, 4, 1)
    """
    check_variable("squeeze", "input", input)
    helper = LayerHelper("squeeze", name=name)
    attrs = {"axes": as_list("squeeze", "axes", axes)}
    out = helper.create_variable_for_type_inference(input.dtype)
    return _append_with_xshape(helper, "squeeze2", {"X": input}, out, attrs)


def unsqueeze(input: Variable, axes: int | ShapeLike, name: str | None = None) -> Variable:
    """Return ``input`` with new dims of 1 at ``axes``: an int, several, or variables (``unsqueeze2``).

    Parameters
    ----------
    axes
        The positions of the new dims of length 1 in the result: an int, several, or variables.

    Returns
    -------
    Variable
        ``input`` with a dim of 1 at each of ``axes``, in its dtype.

    >>> import paddlelike as fluid
    >>> fluid.layers.unsqueeze(fluid.data("x", [None, 4]), axes=[1, 3]).shape
    (-1, 1, 4, 1)
    """
    check_variable("unsqueeze", "input", input)
    helper = LayerHelper("unsqueeze2", name=name)
    inputs: dict[str, Any] = {"X": input}
    attrs: dict[str, Any] = {}
    if isinstance(axes, Variable):
        axes.stop_gradient = True
        inputs["AxesTensor"] = axes
    else:
        many = [axes] if is_whole(axes) else as_list("unsqueeze", "axes", axes)
        if has_variables(many):
            inputs["AxesTensorList"] = as_variables(helper, many)
        else:
            attrs["axes"] = many
    out = helper.create_variable_for_type_inference(input.dtype)
    return _append_with_xshape(helper, "unsqueeze2", inputs, out, attrs)


def flatten(x: Variable, axis: int = 1, name: str | None = None) -> Variable:
    """Return ``x`` as a matrix: the dims before ``axis`` become rows, the others columns (``flatten2``).

    Parameters
    ----------
    axis
        The number of leading dims that become rows, 0 to the number of dims.

    Returns
    -------
    Variable
        (product of the dims before ``axis``, product of the others), in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        There is no such axis.

    >>> import paddlelike as fluid
    >>> fluid.layers.flatten(fluid.data("images", [None, 3, 28, 28])).shape
    (-1, 2352)
    """
    check_variable("flatten", "x", x)
    if not is_whole(axis) or not 0 <= axis <= len(x.shape):
        raise GraphError(
            f"layer 'flatten': axis is {axis!r}, expected 0 .. {len(x.shape)} for x {x.name!r} "
            f"of shape {list(x.shape)}"
        )
    helper = LayerHelper("flatten", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    return _append_with_xshape(helper, "flatten2", {"X": x}, out, {"axis": axis})


def transpose(x: Variable, perm: Sequence[int], name: str | None = None) -> Variable:
    """Return ``x`` with its dims permuted: dim ``i`` is dim ``perm[i]`` of ``x`` (operator ``transpose2``).

    Parameters
    ----------
    perm
        For each dim of the result, the index of this dim in ``x``.

    Returns
    -------
    Variable
        The dims of ``x`` in the order of ``perm``, in its dtype.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        ``perm`` is not a permutation of the dims.

    >>> from paddlelike.input import data
    >>> transpose(data("images", [None, 28, 28, 3]), [0, 3, 1, 2]).shape
    (-1, 3, 28, 28)
    """
    check_variable("transpose", "x", x)
    axes = as_list("transpose", "perm", perm)
    if sorted(axes) != [*range(len(x.shape))]:
        raise GraphError(
            f"layer 'transpose': perm is {axes}, expected a permutation of 0 .. {len(x.shape) - 1} "
            f"for x {x.name!r} of shape {list(x.shape)}"
        )
    helper = LayerHelper("transpose", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    return _append_with_xshape(helper, "transpose2", {"X": x}, out, {"axis": axes})


def t(input: Variable, name: str | None = None) -> Variable:
    """Return a matrix transposed, a vector unchanged (operator ``transpose2``).

    Returns
    -------
    Variable
        (N, M) for ``input`` (M, N), in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        ``input`` has more than two dims.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.t(x)])
    >>> print(out)
    [[1.]
     [2.]
     [3.]]
    """
    check_variable("t", "input", input)
    if len(input.shape) > 2:
        raise GraphError(
            f"layer 't': input {input.name!r} of shape {list(input.shape)} has more than two dims",
            hint="layers.transpose takes any number of dims",
        )
    helper = LayerHelper("t", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    if len(input.shape) == 1:
        helper.create_variable_for_type_inference(input.dtype)
        return input
    return _append_with_xshape(helper, "transpose2", {"X": input}, out, {"axis": [1, 0]})
