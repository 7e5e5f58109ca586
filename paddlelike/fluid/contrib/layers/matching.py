"""``fluid.contrib.layers.nn``: pairs of texts, trees, and operators fused from two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.layers.emit import check_variable, describe, emit_all, repeat_size
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.core.typing import Ints
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "match_matrix_tensor",
    "sequence_topk_avg_pooling",
    "tree_conv",
    "var_conv_2d",
]


def fused_elemwise_activation(
    x: Variable,
    y: Variable,
    functor_list: str | list[str],
    axis: int = -1,
    scale: float = 0.0,
    save_intermediate_out: bool = True,
) -> Variable:
    """Return ``b(x, u(y))`` for the names [b, u], or ``u(b(x, y))`` for [u, b]
    (``fused_elemwise_activation``).

    Parameters
    ----------
    x, y
        The operands; ``y`` has the shape of ``x`` or of some of its dims, from ``axis`` on.
    functor_list
        Two names, or one text with a comma: b is elementwise_add or elementwise_mul, u is relu, tanh,
        sigmoid or scale.
    axis
        The dim of ``x`` at which the dims of ``y`` begin; -1 for the last dims.
    scale
        The factor of ``scale``.
    save_intermediate_out
        Whether the inner result is kept for the gradient.

    Returns
    -------
    Variable
        The shape and dtype of ``x``.

    Raises
    ------
    ValueError
        There are not two names.
    ShapeError
        A name is another one, or the shapes do not fit.

    See Also
    --------
    fluid.contrib.fused_embedding_seq_pool, fluid.layers.elementwise_add, fluid.embedding

    >>> from paddlelike.input import data
    >>> fused_elemwise_activation(data("x", [None, 4]), data("y", [4]), "elementwise_add,relu").shape
    (-1, 4)
    """
    names = functor_list.split(",") if isinstance(functor_list, str) else functor_list
    if not isinstance(names, list) or len(names) != 2:
        raise ValueError(
            "layer 'fused_elemwise_activation': functor_list must be a list of two names, got "
            f"{describe(names)}"
        )
    if names[0] == "elementwise_mul" and names[1] in ("tanh", "sigmoid") and not save_intermediate_out:
        warn_quirk("fused_activation_gradient")
    out, _ = emit_all(
        "fused_elemwise_activation",
        {"X": x, "Y": y},
        {"Out": x.dtype, "IntermediateOut": x.dtype},
        {"axis": axis, "scale": scale, "save_intermediate_out": save_intermediate_out, "functor_list": names},
    )
    return out


def fused_embedding_seq_pool(
    input: Variable,
    size: Sequence[int],
    is_sparse: bool = False,
    padding_idx: int | None = None,
    combiner: str = "sum",
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
) -> Variable:
    """Return the sums of the embeddings of each sequence of ids (operator ``fused_embedding_seq_pool``).

    Parameters
    ----------
    input
        Ids, int64 (T, 1), one LoD level.
    size
        The size of the table, (V, D).
    is_sparse
        Whether the table's gradient holds only the rows that were looked up.
    padding_idx
        An id that counts as zeros, from the end if negative; None for none.
    combiner
        How a sequence becomes one row: only "sum".
    param_attr
        The table: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
    dtype
        The element type of the table.

    Returns
    -------
    Variable
        A row per sequence, (N, D).

    Raises
    ------
    ShapeError
        ``combiner`` is another text.
    TypeError
        ``size`` is not a list of ints.

    See Also
    --------
    fluid.contrib.fused_elemwise_activation, fluid.layers.elementwise_add, fluid.embedding

    >>> from paddlelike.input import data
    >>> fused_embedding_seq_pool(data("ids", [None, 1], "int64", lod_level=1), [100, 8]).shape
    (-1, 8)
    """
    helper = LayerHelper("fused_embedding_seq_pool", param_attr=param_attr)
    table = helper.create_parameter(helper.param_attr, size, dtype)
    out = helper.create_variable_for_type_inference(dtype)
    padding = -1 if padding_idx is None else padding_idx
    if padding_idx is not None and padding_idx < 0:
        padding = size[0] + padding_idx
    helper.append_op(
        type="fused_embedding_seq_pool",
        inputs={"Ids": input, "W": table},
        outputs={"Out": out},
        attrs={"is_sparse": is_sparse, "combiner": combiner, "padding_idx": padding},
    )
    return out


def match_matrix_tensor(
    x: Variable,
    y: Variable,
    channel_num: int,
    act: str | None = None,
    param_attr: ParamAttrLike = None,
    dtype: DtypeLike = "float32",
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """Return the word-by-word similarities of pairs of texts as images, and ``x`` times the weight.

    Operator ``match_matrix_tensor``. The weight is (D, channel_num, D).

    Parameters
    ----------
    x, y
        Words of the texts, (T, D) and (T', D), a sequence per text.
    channel_num
        The number of similarities of each pair of words.
    act
        The name of an activation of the images, such as "relu"; None for none.
    param_attr
        The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
    dtype
        The element type of the weight.
    name
        The layer's name; None for a generated one.

    Returns
    -------
    tuple
        The images, one column (S, 1) with a sequence of channel_num * rows * columns numbers for each pair;
        and the product (T, channel_num * D).

    Raises
    ------
    GraphError
        The widths of ``x`` and ``y`` differ, or one does not have two dims.

    See Also
    --------
    fluid.contrib.sequence_topk_avg_pooling, fluid.contrib.var_conv_2d, fluid.contrib.tree_conv

    >>> from paddlelike.input import data
    >>> x, y = (data(name, [None, 8], lod_level=1) for name in "xy")
    >>> match_matrix_tensor(x, y, channel_num=3)[0].shape
    (-1, 1)
    """
    layer = "match_matrix_tensor"
    if len(x.shape) != 2 or len(y.shape) != 2 or x.shape[1] != y.shape[1]:
        raise GraphError(
            f"layer {layer!r}: x has shape {list(x.shape)} and y {list(y.shape)}, expected (T, D) for both"
        )
    helper = LayerHelper(layer, name=name, act=act, param_attr=param_attr)
    weight = helper.create_parameter(helper.param_attr, [x.shape[1], channel_num, y.shape[1]], dtype)
    inputs = {"X": x, "Y": y, "W": weight}
    outputs = {"Out": dtype, "Tmp": dtype}
    out, projected = emit_all(
        layer, inputs, outputs, {"dim_t": channel_num}, helper=helper, constant=("Tmp",)
    )
    return helper.append_activation(out), projected


def sequence_topk_avg_pooling(
    input: Variable, row: Variable, col: Variable, topks: list[int], channel_num: int
) -> Variable:
    """Return the means of the greatest k numbers of each row of each image, for each k of ``topks``.

    Operator ``sequence_topk_avg_pooling``.

    Parameters
    ----------
    input
        Images of ``channel_num`` channels in one column, (S, 1), a sequence per image.
    row, col
        Sequences whose lengths are the heights and the widths of the images.
    topks
        The numbers k, ascending.
    channel_num
        The number of channels.

    Returns
    -------
    Variable
        (rows, channel_num * number of ``topks``).

    Raises
    ------
    TypeError
        An input is not a variable.
    ShapeError
        ``topks`` do not rise.

    See Also
    --------
    fluid.contrib.match_matrix_tensor, fluid.contrib.var_conv_2d, fluid.contrib.tree_conv

    >>> from paddlelike.input import data
    >>> x, row, col = (data(name, [None, 1], lod_level=1) for name in ("x", "row", "col"))
    >>> sequence_topk_avg_pooling(x, row, col, topks=[1, 3, 5], channel_num=2).shape
    (-1, 6)
    """
    layer = "sequence_topk_avg_pooling"
    check_variable(layer, "input", input)
    inputs = {"X": input, "ROW": row, "COLUMN": col}
    outputs = {"Out": input.dtype, "pos": input.dtype}
    attrs = {"topks": topks, "channel_num": channel_num}
    out, _ = emit_all(layer, inputs, outputs, attrs, constant=("pos",))
    return out


def var_conv_2d(
    input: Variable,
    row: Variable,
    col: Variable,
    input_channel: int,
    output_channel: int,
    filter_size: Ints,
    stride: Ints = 1,
    param_attr: ParamAttrLike = None,
    act: str | None = None,
    dtype: DtypeLike = "float32",
    name: str | None = None,
) -> Variable:
    """Return a convolution over images of different sizes, padded to keep them (operator ``var_conv_2d``).

    Parameters
    ----------
    input
        Images of ``input_channel`` channels in one column, (S, 1), a sequence per image.
    row, col
        Sequences whose lengths are the heights and the widths of the images.
    input_channel, output_channel
        The numbers of channels.
    filter_size
        The size of the filter: an int, or ``[height, width]``.
    stride
        The step of the filter, given like ``filter_size``.
    param_attr
        The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
    act
        The name of an activation, such as "relu"; None for none.
    dtype
        The element type of the weight.
    name
        The layer's name; None for a generated one.

    Returns
    -------
    Variable
        The images of ``output_channel`` channels, (S', 1).

    Raises
    ------
    GraphError
        ``input`` does not have two dims.

    See Also
    --------
    fluid.contrib.match_matrix_tensor, fluid.contrib.sequence_topk_avg_pooling
    fluid.contrib.tree_conv

    >>> from paddlelike.input import data
    >>> x, row, col = (data(name, [None, 1], lod_level=1) for name in ("x", "row", "col"))
    >>> var_conv_2d(x, row, col, input_channel=3, output_channel=5, filter_size=3).shape
    (-1, 1)
    """
    layer = "var_conv_2d"
    if len(input.shape) != 2:
        raise GraphError(f"layer {layer!r}: input has shape {list(input.shape)}, expected (S, 1)")
    window = repeat_size(layer, "filter_size", filter_size, 2)
    steps = repeat_size(layer, "stride", stride, 2)
    helper = LayerHelper(layer, name=name, act=act, param_attr=param_attr)
    weight = helper.create_parameter(
        helper.param_attr, [output_channel, input_channel * window[0] * window[1]], dtype
    )
    inputs = {"X": input, "ROW": row, "COLUMN": col, "W": weight}
    outputs = {"Out": dtype, "Col": dtype}
    attrs = {
        "InputChannel": input_channel,
        "OutputChannel": output_channel,
        "StrideH": steps[0],
        "StrideW": steps[1],
        "KernelH": window[0],
        "KernelW": window[1],
    }
    out, _ = emit_all(layer, inputs, outputs, attrs, helper=helper, constant=("Col",))
    return helper.append_activation(out)


def tree_conv(
    nodes_vector: Variable,
    edge_set: Variable,
    output_size: int,
    num_filters: int = 1,
    max_depth: int = 2,
    act: str | None = "tanh",
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> Variable:
    """Return the convolution of tree nodes with their descendants (operator ``tree_conv``; Mou et al., 2016).

    Parameters
    ----------
    nodes_vector
        The features of the nodes, (B, N, D).
    edge_set
        Pairs of parent and child, int32 (B, E, 2); nodes count from 1.
    output_size
        The number of elements of each new feature.
    num_filters
        The number of features of a node.
    max_depth
        The number of generations that a feature sees.
    act
        The name of an activation, or None.
    param_attr
        The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
    bias_attr
        The bias, given like ``param_attr``; False for no bias.
    name
        The layer's name; None for a generated one.

    Returns
    -------
    Variable
        (B, N, output_size, num_filters).

    Raises
    ------
    TypeError
        An input is not a variable.

    See Also
    --------
    fluid.contrib.match_matrix_tensor, fluid.contrib.sequence_topk_avg_pooling
    fluid.contrib.var_conv_2d

    >>> from paddlelike.input import data
    >>> tree_conv(data("nodes", [None, 10, 5]), data("edges", [None, 9, 2], "int32"), output_size=6).shape
    (-1, 10, 6, 1)
    """
    check_variable("tree_conv", "nodes_vector", nodes_vector)
    check_variable("tree_conv", "edge_set", edge_set)
    if not nodes_vector.stop_gradient:
        warn_quirk("tree_conv_gradient")
    helper = LayerHelper("tree_conv", name=name, act=act, bias_attr=bias_attr)
    weight = helper.create_parameter(
        param_attr, [nodes_vector.shape[2], 3, output_size, num_filters], nodes_vector.dtype
    )
    out = helper.create_variable_for_type_inference(nodes_vector.dtype)
    helper.append_op(
        type="tree_conv",
        inputs={"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": weight},
        outputs={"Out": out},
        attrs={"max_depth": max_depth},
    )
    return helper.append_activation(helper.append_bias_op(out))
