"""``fluid.contrib.layers.nn``: shuffled batches, parts of columns, trees of items."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.fluid.contrib.layers.matching import (
    fused_elemwise_activation,
    fused_embedding_seq_pool,
    match_matrix_tensor,
    sequence_topk_avg_pooling,
    tree_conv,
    var_conv_2d,
)
from paddlelike.foundation.docstrings import complete_docstring, read_shared_entries
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable
from paddlelike.initializer import Constant
from paddlelike.layers.detection.suppression import multiclass_nms2
from paddlelike.layers.emit import check_variable, emit
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.tensor.reshape import reshape
from paddlelike.layers.tensor.slice import slice as take_slice
from paddlelike.left_out import make_getattr

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "fused_elemwise_activation",
    "fused_embedding_seq_pool",
    "match_matrix_tensor",
    "multiclass_nms2",
    "partial_concat",
    "partial_sum",
    "sequence_topk_avg_pooling",
    "shuffle_batch",
    "tdm_child",
    "tdm_sampler",
    "tree_conv",
    "var_conv_2d",
]

complete_docstring(multiclass_nms2, read_shared_entries(multiclass_nms2.__module__))

_WHOLES = (VarType.INT32, VarType.INT64)

if not TYPE_CHECKING:
    __getattr__ = make_getattr(__name__, "contrib.layers.nn")


def shuffle_batch(x: Variable, seed: int | Variable | None = None) -> Variable:
    """Return the rows of ``x`` in random order (operator ``shuffle_batch``).

    ``seed`` is an int64 variable of shape (1,), which every run replaces, or its initial value. The default
    is ``random_seed`` of the program or, without that, a random number.

    Parameters
    ----------
    x
        Any variable; its first dim is shuffled.
    seed
        The seed, a number or an int64 variable (1,); None for the program's or a random one.

    Returns
    -------
    Variable
        The rows in their new order, in the shape and dtype of ``x``.

    See Also
    --------
    fluid.contrib.partial_concat, fluid.contrib.partial_sum, fluid.layers.concat

    >>> from paddlelike.input import data
    >>> shuffle_batch(data("x", [None, 4]), seed=1).shape
    (-1, 4)
    """
    helper = LayerHelper("shuffle_batch")
    out = helper.create_variable_for_type_inference(x.dtype)
    order = helper.create_variable_for_type_inference(VarType.INT64)
    if seed is None:
        seed = helper.main_program.random_seed or int(np.random.randint(-65536, 65535))  # noqa: NPY002
    attrs = {}
    if isinstance(seed, int):
        attrs["startup_seed"] = seed
        name = unique_name.generate("shuffle_batch_seed")
        seed = helper.create_variable(name=name, dtype="int64", persistable=True)
    helper.append_op(
        type="shuffle_batch",
        inputs={"X": x, "Seed": seed},
        outputs={"Out": out, "ShuffleIdx": order, "SeedOut": seed},
        attrs=attrs,
    )
    return out


def partial_concat(input: list[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """Return ``length`` columns (-1: all) from ``start_index`` on of every input (N, D), side by side
    (operator ``partial_concat``).

    Parameters
    ----------
    input
        A list of variables (N, D).
    start_index
        The first column; a negative one counts from the end.
    length
        The number of columns; -1 for all that follow.

    Returns
    -------
    Variable
        (N, columns of all inputs), in their dtype.

    Raises
    ------
    TypeError
        An input is not a variable.
    ShapeError
        The inputs do not have these columns.

    See Also
    --------
    fluid.contrib.partial_sum, fluid.contrib.shuffle_batch, fluid.layers.concat

    >>> from paddlelike.input import data
    >>> partial_concat([data("x", [None, 4]), data("y", [None, 4])], 1, 2).shape
    (-1, 4)
    """
    if not isinstance(input, list):
        warn_user(f"partial_concat takes a list of variables, got {input!r}")
        input = [input]
    return _emit_partial("partial_concat", input, start_index, length)


def partial_sum(input: list[Variable], start_index: int = 0, length: int = -1) -> Variable:
    """Return the sum of ``length`` columns (-1: all) from ``start_index`` on of every input (N, D) (operator
    ``partial_sum``).

    Parameters
    ----------
    input
        A list of variables (N, D).
    start_index
        The first column.
    length
        The number of columns; -1 for all that follow.

    Returns
    -------
    Variable
        (N, length), in their dtype.

    Raises
    ------
    TypeError
        An input is not a variable.
    ShapeError
        The inputs do not have these columns.

    See Also
    --------
    fluid.contrib.partial_concat, fluid.contrib.shuffle_batch, fluid.layers.concat

    >>> from paddlelike.input import data
    >>> partial_sum([data("x", [None, 4]), data("y", [None, 4])], 1, 2).shape
    (-1, 2)
    """
    return _emit_partial("partial_sum", list(input), start_index, length)


def _emit_partial(type: str, input: list[Variable], start_index: int, length: int) -> Variable:
    dtypes = (VarType.FP16, VarType.FP32, VarType.FP64, *_WHOLES)
    for index, one in enumerate(input):
        check_variable(type, f"input[{index}]", one, dtypes)
    return emit(type, {"X": input}, {"start_index": start_index, "length": length})


def tdm_child(
    x: Variable, node_nums: int, child_nums: int, param_attr: ParamAttrLike = None, dtype: DtypeLike = "int32"
) -> tuple[Variable, Variable]:
    """Return the children of the nodes in ``x``, and 1 where a child is a leaf (operator ``tdm_child``).

    The tree is a parameter (node_nums, 3 + child_nums) of zeros: a row is item, layer, parent and
    children of a node.

    Parameters
    ----------
    x
        Ids of nodes, int32 or int64 of any shape.
    node_nums
        The number of nodes in the tree.
    child_nums
        The number of children of a node.
    param_attr
        The tree: a :class:`~paddlelike.ParamAttr`, a name, or an initializer that gives its rows.
    dtype
        "int32" or "int64", for both results.

    Returns
    -------
    tuple
        Children and leaf mask, each of the shape of ``x`` and one more dim, ``child_nums``.

    Raises
    ------
    TypeError
        ``dtype`` is another type.

    See Also
    --------
    fluid.contrib.tdm_sampler, fluid.layers.nce

    >>> from paddlelike.input import data
    >>> child, mask = tdm_child(data("x", [None, 1], "int32"), node_nums=7, child_nums=2)
    >>> child.shape
    (-1, 1, 2)
    """
    kind = _check_whole("tdm_child", "dtype", dtype)
    helper = LayerHelper("tdm_child", param_attr=param_attr)
    shape = [node_nums, 3 + child_nums]
    tree = helper.create_parameter(helper.param_attr, shape, kind, default_initializer=Constant(0))
    tree.stop_gradient = True
    child = helper.create_variable_for_type_inference(kind)
    leaf_mask = helper.create_variable_for_type_inference(kind)
    helper.append_op(
        type="tdm_child",
        inputs={"X": x, "TreeInfo": tree},
        outputs={"Child": child, "LeafMask": leaf_mask},
        attrs={"child_nums": child_nums, "dtype": int(kind)},
        stop_gradient=True,
    )
    return child, leaf_mask


def tdm_sampler(
    x: Variable,
    neg_samples_num_list: Sequence[int],
    layer_node_num_list: Sequence[int],
    leaf_node_num: int,
    tree_travel_attr: ParamAttrLike = None,
    tree_layer_attr: ParamAttrLike = None,
    output_positive: bool = True,
    output_list: bool = True,
    seed: int = 0,
    tree_dtype: DtypeLike = "int32",
    dtype: DtypeLike = "int32",
) -> tuple[Any, Any, Any]:
    """Return the nodes on the paths to the leaves in ``x`` with sampled nodes of the same layers, labels, and
    a mask.

    Operator ``tdm_sampler``. The paths, (leaf_node_num, layers), and the nodes by layer, (nodes, 1), are
    parameters of zeros.

    Parameters
    ----------
    x
        Ids of leaves, int32 or int64 (N, 1).
    neg_samples_num_list
        The number of other nodes to sample in each layer.
    layer_node_num_list
        The number of nodes in each layer.
    leaf_node_num
        The number of leaves.
    tree_travel_attr, tree_layer_attr
        The two parameters, given like ``param_attr`` of other layers.
    output_positive
        Whether the path's own nodes are among the results.
    output_list
        Whether the results are lists by layer.
    seed
        The seed of the samples; 0 for a new one each time.
    tree_dtype, dtype
        "int32" or "int64", of the parameters and of the results.

    Returns
    -------
    tuple
        Nodes, labels and mask, each (N, nodes) or a list by layer of (N, nodes of the layer, 1).

    Raises
    ------
    GraphError
        The lists differ in length, a layer has fewer nodes than samples, or leaves outnumber nodes.
    TypeError
        ``tree_dtype`` or ``dtype`` is another type.

    See Also
    --------
    fluid.contrib.tdm_child, fluid.layers.nce

    >>> from paddlelike.input import data
    >>> nodes, labels, mask = tdm_sampler(
    ...     data("x", [None, 1], "int32"), [1, 2], [2, 4], leaf_node_num=4, output_list=False
    ... )
    >>> nodes.shape
    (-1, 5)
    """
    tree_kind = _check_whole("tdm_sampler", "tree_dtype", tree_dtype)
    kind = _check_whole("tdm_sampler", "dtype", dtype)
    _check_layers(neg_samples_num_list, layer_node_num_list, leaf_node_num)
    offsets = [0, *itertools.accumulate(layer_node_num_list)]
    helper = LayerHelper("tdm_sampler")
    shapes = [leaf_node_num, len(layer_node_num_list)], [offsets[-1], 1]
    travel, layer = (
        helper.create_parameter(attr, shape, tree_kind, default_initializer=Constant(0))
        for attr, shape in zip((tree_travel_attr, tree_layer_attr), shapes, strict=True)
    )
    outputs = [helper.create_variable_for_type_inference(kind, stop_gradient=True) for _ in range(3)]
    helper.append_op(
        type="tdm_sampler",
        inputs={"X": x, "Travel": travel, "Layer": layer},
        outputs=dict(zip(("Out", "Labels", "Mask"), outputs, strict=True)),
        attrs={
            "neg_samples_num_list": list(neg_samples_num_list),
            "output_positive": output_positive,
            "layer_offset_lod": offsets,
            "seed": seed,
            "dtype": int(kind),
        },
    )
    if not output_list:
        out, labels, mask = outputs
        return out, labels, mask
    widths = [count + output_positive for count in neg_samples_num_list]
    lists = _split_by_layer(outputs, widths)
    return lists[0], lists[1], lists[2]


def _check_layers(negatives: Sequence[int], nodes: Sequence[int], leaves: int) -> None:
    if len(negatives) != len(nodes):
        raise GraphError(
            f"tdm_sampler: neg_samples_num_list has {len(negatives)} layers, layer_node_num_list {len(nodes)}"
        )
    for index, (count, total) in enumerate(zip(negatives, nodes, strict=True)):
        if count >= total:
            raise GraphError(
                f"tdm_sampler: layer {index} has {total} nodes, too few for {count} negative samples"
            )
    if leaves is None or leaves >= sum(nodes):
        raise GraphError(f"tdm_sampler: leaf_node_num is {leaves}, expected less than the {sum(nodes)} nodes")


def _split_by_layer(outputs: list[Variable], widths: list[int]) -> list[list[Variable]]:
    """Return, for each output (N, nodes), its parts by layer, (N, width, 1)."""
    lists: list[list[Variable]] = [[] for _ in outputs]
    start = 0
    for width in widths:
        parts = [take_slice(one, axes=[1], starts=[start], ends=[start + width]) for one in outputs]
        for found, part in zip(lists, parts, strict=True):
            found.append(reshape(part, [-1, width, 1]))
            found[-1].stop_gradient = True
        start += width
    return lists


def _check_whole(layer: str, what: str, dtype: DtypeLike) -> VarType:
    kind = convert_dtype(dtype)
    if kind not in _WHOLES:
        raise TypeError(f"{layer}: {what} must be int32 or int64, got {dtype!r}")
    return kind
