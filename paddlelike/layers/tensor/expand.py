"""Repeating, reversing and rolling of tensors.

Parameters
----------
x, input
    A variable of any shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable, check_variables
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import as_list, has_variables, replace_variables
from paddlelike.layers.tensor.assign import create_named
from paddlelike.layers.tensor.constant import as_variables
from paddlelike.layers.tensor.reshape import reshape

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["expand", "expand_as", "flip", "meshgrid", "reverse", "roll"]


def expand(x: Variable, expand_times: ShapeLike, name: str | None = None) -> Variable:
    """Return ``x`` repeated ``expand_times[i]`` times along each dim ``i`` (operator ``expand``).

    The counts may be variables. Raises TypeError unless ``x`` is a variable, GraphError for a negative
    count.

    Parameters
    ----------
    expand_times
        How often each dim is repeated: ints, or variables of shape [1], or one int variable.

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
    """Return ``x`` repeated to the shape of ``target_tensor``, whose dims are multiples of its own.

    Operator ``expand_as``. Raises TypeError unless ``x`` and ``target_tensor`` are variables.

    Parameters
    ----------
    target_tensor
        The variable whose shape the result gets.

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
    """Return vectors of lengths A, B, ... as tensors (A, B, ...), each along its dim (``meshgrid``).

    Raises TypeError unless ``input`` is a variable.

    Parameters
    ----------
    input
        A list of variables (N,).

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

    Raises TypeError unless ``x`` is a variable.

    ``axis`` names one axis or several.

    Parameters
    ----------
    axis
        The dim or dims that are reversed.

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

    Raises TypeError unless ``input`` is a variable.

    Parameters
    ----------
    dims
        The dims that are reversed.

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

    Without ``dims`` the elements are rotated as one row. Raises TypeError unless ``input`` is a variable,
    GraphError unless there is a shift per dim.

    Parameters
    ----------
    shifts
        By how many places: an int, or one per dim.
    dims
        The dims that are rotated; None to rotate all elements as one row.

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
