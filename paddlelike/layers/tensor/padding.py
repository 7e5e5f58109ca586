"""Padding and cropping of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import (
    check_choice,
    check_variable,
    describe,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables
from paddlelike.layers.tensor.sizes import as_list, has_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["crop", "crop_tensor", "pad", "pad2d", "pad_constant_like"]


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """Return ``x`` padded with ``pad_value`` by [before dim 0, after dim 0, before dim 1, ...] (``pad``).

    Raises TypeError unless ``x`` is a variable.

    ``paddings`` holds two counts a dim: before and behind.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.pad(x, paddings=[0, 1, 1, 0], pad_value=9.0)])
    >>> print(out)
    [[9. 1. 2.]
     [9. 9. 9.]]
    """
    check_variable("pad", "x", x)
    return emit("pad", {"X": x}, {"paddings": paddings, "pad_value": float(pad_value)}, name=name)


def pad2d(
    input: Variable,
    paddings: Sequence[int] | Variable = [0, 0, 0, 0],  # noqa: B006  (Fluid's signature; never changed)
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Return images padded by [top, bottom, left, right], which may be an int variable (``pad2d``).

    ``mode``: ``"constant"`` fills with ``pad_value``, ``"reflect"`` mirrors without the edge, ``"edge"``
    repeats the edge. Raises TypeError unless ``input`` is a variable and GraphError for another ``mode``.

    ``paddings`` holds the counts above, below, left and right. The input has shape (N, C, H, W).

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.pad2d(x, paddings=[1, 1, 2, 2]).shape
    (-1, 3, 10, 12)
    """
    check_variable("pad2d", "input", input)
    check_choice("pad2d", "mode", mode, ("constant", "reflect", "edge"))
    inputs = {"X": input}
    attrs = {"mode": mode, "pad_value": pad_value, "data_format": data_format}
    if isinstance(paddings, Variable):
        inputs["Paddings"] = paddings
        return emit("pad2d", inputs, {**attrs, "paddings": []}, name=name)
    return emit("pad2d", inputs, {**attrs, "paddings": list(paddings)}, name=name)


def pad_constant_like(x: Variable, y: Variable, pad_value: float = 0.0, name: str | None = None) -> Variable:
    """Return ``y`` padded with ``pad_value`` after each dim to the shape of ``x`` (``pad_constant_like``).

    Raises TypeError unless ``x`` and ``y`` are variables.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[0, 0, 0], [0, 0, 0]], "float32"))
    >>> y = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.pad_constant_like(x, y)])
    >>> print(out)
    [[1. 2. 0.]
     [0. 0. 0.]]
    """
    check_variable("pad_constant_like", "x", x)
    check_variable("pad_constant_like", "y", y)
    attrs = {"pad_value": float(pad_value)}
    return emit("pad_constant_like", {"X": x, "Y": y}, attrs, name=name)


def crop(
    x: Variable, shape: ShapeLike | None = None, offsets: ShapeLike | None = None, name: str | None = None
) -> Variable:
    """Return the part of ``x`` of that shape, or of a variable's shape, from ``offsets`` on (``crop``).

    Raises TypeError unless ``x`` is a variable, GraphError unless ``shape`` is a list or a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3], [4, 5, 6]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.crop(x, shape=[2, 2], offsets=[0, 1])])
    >>> print(out)
    [[2. 3.]
     [5. 6.]]
    """
    check_variable("crop", "x", x)
    if not isinstance(shape, list | tuple | Variable):
        raise GraphError(f"layer 'crop': shape must be a list or a variable, got {describe(shape)}")
    inputs = {"X": x}
    attrs: dict[str, Any] = {}
    if isinstance(shape, Variable):
        inputs["Y"] = shape
    else:
        attrs["shape"] = list(shape)
    if isinstance(offsets, Variable):
        inputs["Offsets"] = offsets
    else:
        attrs["offsets"] = [0] * len(x.shape) if offsets is None else list(offsets)
    return emit("crop", inputs, attrs, name=name)


def crop_tensor(
    x: Variable, shape: ShapeLike | None = None, offsets: ShapeLike | None = None, name: str | None = None
) -> Variable:
    """Return the part of ``x`` of that shape from ``offsets`` on (operator ``crop_tensor``).

    A dim of -1 extends to the end. Both may be int variables, or lists with variables of shape [1]. Raises
    TypeError unless ``x`` is a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.arange(12, dtype="float32").reshape(3, 4))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.crop_tensor(x, shape=[2, -1], offsets=[0, 2])])
    [array([[2., 3.],
           [6., 7.]], dtype=float32)]
    """
    check_variable("crop_tensor", "x", x)
    helper = LayerHelper("crop_tensor", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs: dict[str, Any] = {"X": x}
    attrs: dict[str, Any] = {}
    offsets = [0] * len(x.shape) if offsets is None else offsets
    for argument, values, unknown in (("offsets", offsets, -1), ("shape", shape, 0)):
        if isinstance(values, Variable):
            values.stop_gradient = True
            inputs[argument.capitalize()] = values
            if argument == "offsets":
                attrs["offsets"] = [-1] * len(x.shape)
            continue
        many = as_list("crop_tensor", argument, values)
        if has_variables(many):
            inputs[f"{argument.capitalize()}Tensor"] = as_variables(helper, many)
        attrs[argument] = [unknown if isinstance(value, Variable) else int(value) for value in many]
    helper.append_op(type="crop_tensor", inputs=inputs, outputs={"Out": out}, attrs=attrs)
    return out
