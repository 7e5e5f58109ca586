"""Parts of tensors, and tensors with padding around them.

Parameters
----------
input, x
    A variable of any shape.
axes
    The dims that are cut.
starts
    For each of ``axes``, the first index: ints, negative ones from the end, or variables of shape [1].
ends
    For each of ``axes``, the index after the last, given like ``starts``.
strides
    The step in each of ``axes``, negative to go backwards.
shape
    The shape of the part: ints, or a variable; None for the shape of ``x``.
offsets
    The start of the part in each dim: ints, or a variable; None for 0.
pad_value
    The number that fills the padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import (
    as_list,
    check_choice,
    check_variable,
    describe,
    emit,
    has_variables,
    replace_variables,
)
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["crop", "crop_tensor", "pad", "pad2d", "pad_constant_like", "slice", "strided_slice"]


def slice(input: Variable, axes: Sequence[int], starts: ShapeLike, ends: ShapeLike) -> Variable:
    """Return ``input[..., start:end, ...]`` on each of ``axes`` (operator ``slice``).

    Negative limits count from the end; limits beyond the end mean the end. ``starts`` and ``ends`` may be
    int variables, or lists with variables of shape [1].

    Returns
    -------
    Variable
        ``input`` cut along ``axes``, in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> from paddlelike.input import data
    >>> slice(data("x", [None, 6, 4]), axes=[1, 2], starts=[-3, 0], ends=[-1, 100]).shape
    (-1, 2, 4)
    """
    return _append_slice("slice", input, axes, {"Starts": starts, "Ends": ends})


def strided_slice(
    input: Variable, axes: Sequence[int], starts: ShapeLike, ends: ShapeLike, strides: ShapeLike
) -> Variable:
    """Return ``input[..., start:end:stride, ...]`` on each of ``axes`` (operator ``strided_slice``).

    ``starts``, ``ends`` and ``strides`` hold one number for each of ``axes``. Strides below -1 take other
    elements than Python does: see ``fluid.quirks()``.

    Returns
    -------
    Variable
        ``input`` cut along ``axes``, in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2, 3, 4, 5]], "float32"))
    >>> y = fluid.layers.strided_slice(x, axes=[1], starts=[0], ends=[5], strides=[2])
    >>> (out,) = fluid.Executor().run(fetch_list=[y])
    >>> print(out)
    [[1. 3. 5.]]
    """
    limits = {"Starts": starts, "Ends": ends, "Strides": strides}
    out = _append_slice("strided_slice", input, axes, limits)
    if isinstance(strides, list | tuple) and any(isinstance(one, int) and one < -1 for one in strides):
        warn_quirk("strided_slice_backwards")
    return out


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


def crop(
    x: Variable, shape: ShapeLike | None = None, offsets: ShapeLike | None = None, name: str | None = None
) -> Variable:
    """Return the part of ``x`` that has the shape ``shape`` and begins at ``offsets`` (operator ``crop``).

    Returns
    -------
    Variable
        Of ``shape``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.
    GraphError
        ``shape`` is neither a list nor a variable.

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
    """Return the part of ``x`` that has the shape ``shape`` and begins at ``offsets`` (``crop_tensor``).

    ``shape`` and ``offsets`` may be int variables, or lists with variables of shape [1].

    Parameters
    ----------
    shape
        The shape of the part: ints, -1 to reach the end, or a variable; None for the shape of ``x``.

    Returns
    -------
    Variable
        Of ``shape``, in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

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


def pad(x: Variable, paddings: Sequence[int], pad_value: float = 0.0, name: str | None = None) -> Variable:
    """Return ``x`` padded with ``pad_value`` by [before dim 0, after dim 0, before dim 1, ...] (``pad``).

    Parameters
    ----------
    x
        A variable of any shape.
    paddings
        Two counts per dim: before and after.

    Returns
    -------
    Variable
        Each dim is as long as the dim of ``x`` plus its two counts; in the dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[1, 2]], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.pad(x, paddings=[0, 1, 1, 0], pad_value=9.0)])
    >>> print(out)
    [[9. 1. 2.]
     [9. 9. 9.]]
    """
    check_variable("pad", "x", x)
    if any(paddings) and not x.stop_gradient:
        warn_quirk("pad_gradient")
    return emit("pad", {"X": x}, {"paddings": paddings, "pad_value": float(pad_value)}, name=name)


def pad2d(
    input: Variable,
    paddings: Sequence[int] | Variable = [0, 0, 0, 0],  # noqa: B006  (Fluid's signature; never changed)
    mode: str = "constant",
    pad_value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Return images padded above, below, left and right (operator ``pad2d``).

    Parameters
    ----------
    input
        Images (N, C, H, W), or (N, H, W, C) for NHWC.
    paddings
        The counts above, below, left and right: ints, or an int variable (4,).
    mode
        ``"constant"`` fills with ``pad_value``, ``"reflect"`` mirrors without the edge, ``"edge"`` repeats
        the edge.

    Returns
    -------
    Variable
        (N, C, H + top + bottom, W + left + right), in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable.
    GraphError
        ``mode`` is neither ``"constant"``, ``"reflect"`` nor ``"edge"``.

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
    """Return ``y`` padded at the end of each dim to the shape of ``x`` (operator ``pad_constant_like``).

    Parameters
    ----------
    x
        The variable whose shape the result gets.
    y
        The variable that is padded, at most as large in each dim.

    Returns
    -------
    Variable
        In the shape of ``x``, in the dtype of ``y``.

    Raises
    ------
    TypeError
        ``x`` or ``y`` is not a variable.

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
    if not y.stop_gradient:
        warn_quirk("pad_gradient")
    attrs = {"pad_value": float(pad_value)}
    return emit("pad_constant_like", {"X": x, "Y": y}, attrs, name=name)
