"""Slices of tensors.

Parameters
----------
input
    A variable of any shape.
axes
    The dims that are cut.
starts, ends
    Where each part begins, and the bound behind it: ints, negative ones from the end, or variables of shape
    [1].
strides
    The step in each of ``axes``, negative to go backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import check_variable, describe
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import has_variables, replace_variables
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["slice", "strided_slice"]


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

    ``starts``, ``ends`` and ``strides`` hold one number for each of ``axes``. Strides below -1 take other
    elements than Python does: see ``fluid.quirks()``.

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
