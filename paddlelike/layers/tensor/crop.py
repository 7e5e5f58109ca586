"""Parts of tensors of a given size.

Parameters
----------
x
    A variable of any shape.
shape
    The shape of the part: ints, or a variable; None for that of ``x``. -1 in ``crop_tensor`` extends to the
    end.
offsets
    Where the part begins in each dim: ints, or a variable; None for 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable, describe
from paddlelike.layers.emit import emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.sizes import as_list, has_variables
from paddlelike.layers.tensor.constant import as_variables

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["crop", "crop_tensor"]


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
