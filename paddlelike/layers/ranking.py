"""Inputs of ranking models: clicks and shows, and rows with tags.

Parameters
----------
input
    (N, D), whose first two columns count shows and clicks.
cvm
    The counts, (N, 2), which become the gradient of these two columns.
use_cvm
    Whether the result keeps the two columns, as logarithms.
ins
    Instances (N, D): rows, or sequences.
ins_tag
    The tags of each instance, int64 (T, 1) with LoD.
filter_tag
    The tags to look for, int64 (F,).
is_lod
    Whether instances are sequences.
out_val_if_empty
    The value of the single row that is returned when no instance remains.
"""

from __future__ import annotations

from paddlelike.framework import Variable
from paddlelike.layers.emit import FLOATS, check_variable, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = ["continuous_value_model", "filter_by_instag"]


def continuous_value_model(input: Variable, cvm: Variable, use_cvm: bool = True) -> Variable:
    """Return ``input`` with its counts of shows and clicks as logarithms, or without them.

    Operator ``cvm``. The first two columns of ``input`` (N, D) are the counts; with ``use_cvm`` they become
    log(show + 1) and log(click + 1) - log(show + 1), else the result is (N, D - 2). The gradient of the
    counts is ``cvm``, by which parameter servers count.

    Returns
    -------
    Variable
        (N, D), or (N, D - 2) without ``use_cvm``; in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``input`` is not a variable of floats.

    >>> from paddlelike.input import data
    >>> continuous_value_model(data("x", [None, 11]), data("cvm", [None, 2]), use_cvm=False).shape
    (-1, 9)
    """
    check_variable("cvm", "input", input, FLOATS)
    helper = LayerHelper("cvm")
    out = helper.create_variable(dtype=input.dtype)
    helper.append_op(
        type="cvm", inputs={"X": [input], "CVM": [cvm]}, outputs={"Y": [out]}, attrs={"use_cvm": use_cvm}
    )
    return out


def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Variable]:
    """Return the instances that have one of the tags ``filter_tag``, and a weight of 1 for each of them.

    Operator ``filter_by_instag``. ``ins_tag`` has one sequence of tags for each instance. When no instance
    remains, the results are a row of ``out_val_if_empty`` and a weight of 0.

    Returns
    -------
    out : Variable
        The rows of ``ins`` that remain, (N', D), with their LoD.
    weight : Variable
        (N', 1): 1 for each instance, 0 for the row of an empty result; float32 in a run, declared as float64.

    Raises
    ------
    TypeError
        An argument is not a variable.

    >>> from paddlelike.input import data
    >>> tags = data("tags", [None, 1], "int64", lod_level=1)
    >>> out, weight = filter_by_instag(data("ins", [None, 8]), tags, data("wanted", [None], "int64"), False)
    >>> out.shape, weight.shape
    ((-1, 8), (-1, 1))
    """
    layer = "filter_by_instag"
    for argument, value in (("ins", ins), ("ins_tag", ins_tag), ("filter_tag", filter_tag)):
        check_variable(layer, argument, value)
    inputs = {"Ins": ins, "Ins_tag": ins_tag, "Filter_tag": filter_tag}
    outputs = {"Out": ins.dtype, "LossWeight": "float64", "IndexMap": ins_tag.dtype}
    attrs = {"is_lod": is_lod, "out_val_if_empty": out_val_if_empty}
    out, weight, _ = emit_all(layer, inputs, outputs, attrs)
    return [out, weight]
