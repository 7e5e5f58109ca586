"""hsigmoid: a loss over the paths of a tree of classes.

Parameters
----------
input
    Features (N, D).
label
    The class, int64 (N, 1).
num_classes
    The count of classes, at least 2; of the inner nodes with ``is_custom``.
path_table
    With ``is_custom``: the nodes from the class to the root, int64 (N, L), padded with -1.
path_code
    With ``is_custom``: 0 or 1 at each of these nodes, padded with -1.
is_custom
    Whether ``path_table`` and ``path_code`` give the tree.
is_sparse
    Whether the gradient holds only the rows that were used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["hsigmoid"]


def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Return the loss of finding the label (N, 1) in a binary tree of classes: (N, 1).

    Operator ``hierarchical_sigmoid``. ``input`` is (N, D). The tree is complete, or, with ``is_custom``,
    given by ``path_table`` (its nodes up to the root) and ``path_code`` (left or right). Morin & Bengio
    2005. Raises TypeError unless ``input`` and ``label`` are variables of supported dtypes, GraphError for
    fewer than two classes, or a custom tree without paths.

    The tree has ``num_classes`` leaves; with ``is_sparse`` its gradients are rows.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 8])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> fluid.layers.hsigmoid(x, y, num_classes=6).shape
    (-1, 1)
    """
    check_variable("hsigmoid", "input", input, WIDE_FLOATS)
    check_variable("hsigmoid", "label", label, (VarType.INT64,))
    if not is_custom and num_classes < 2:
        raise GraphError(f"layer 'hsigmoid': num_classes is {num_classes}, expected 2 or more")
    if is_custom and (path_table is None or path_code is None):
        raise GraphError("layer 'hsigmoid': is_custom needs path_table and path_code")
    helper = LayerHelper("hierarchical_sigmoid", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    before = helper.create_variable_for_type_inference(input.dtype)
    nodes = num_classes if is_custom else num_classes - 1
    weight = helper.create_parameter(param_attr, [nodes, input.shape[1]], input.dtype)
    inputs = {"X": input, "W": weight, "Label": label}
    if path_table is not None and path_code is not None:
        inputs |= {"PathTable": path_table, "PathCode": path_code}
    bias = helper.create_parameter(bias_attr, [nodes, 1], input.dtype, is_bias=True)
    if bias is not None:
        inputs["Bias"] = bias
    helper.append_op(
        type="hierarchical_sigmoid",
        inputs=inputs,
        outputs={"Out": out, "PreOut": before, "W_Out": weight},
        attrs={
            "num_classes": num_classes,
            "is_sparse": is_sparse and is_custom,
            "remote_prefetch": is_sparse and is_custom,
        },
    )
    return out
