"""Joining and splitting of tensors, and rows chosen among several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import INTEGERS, check_variable, check_variables, describe, is_whole
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import as_list, has_variables, replace_variables
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import Size

__all__ = ["concat", "multiplex", "split"]


def multiplex(inputs: Sequence[Variable], index: Variable) -> Variable:
    """Return rows ``i`` of ``inputs[index[i]]``; ``index`` is int32 (N, 1) (operator ``multiplex``).

    Raises TypeError unless ``inputs`` and ``index`` are variables of supported dtypes, GraphError for fewer
    than two inputs.

    Parameters
    ----------
    inputs
        A list of variables (N, ...) of one shape.
    index
        int32 (N, 1): for each row, which input it is taken from.

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

    Raises TypeError unless ``input`` is a variable, GraphError when their dtypes differ.

    Parameters
    ----------
    input
        A list of variables whose dims are equal but for ``axis``.
    axis
        The dim along which they are joined: an int, or a variable of shape [1].

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
    """Return ``input`` split along ``dim`` into a count of equal parts, or parts of given lengths.

    Operator ``split``. One length may be -1, which means the rest. Lengths and ``dim`` may be variables.
    Raises TypeError unless ``input`` is a variable, GraphError when equal parts are impossible.

    ``num_or_sections`` is the count, or the lengths.

    Parameters
    ----------
    input
        A variable of any shape.
    num_or_sections
        The count of equal parts, or the list of their lengths, of which one may be -1.
    dim
        The dim that is cut: an int, or a variable of shape [1].

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
