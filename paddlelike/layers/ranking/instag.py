"""filter_by_instag: the instances whose tags are wanted.

Parameters
----------
ins
    Instances (N, D): rows, or sequences.
ins_tag
    The tags of each instance, int64 (T, 1) with LoD.
filter_tag
    The tags to look for, int64 (F,).
is_lod
    Whether instances are sequences.
out_val_if_empty
    The number of the one row that is returned when no instance is left.
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit_all

__all__ = ["filter_by_instag"]


def filter_by_instag(
    ins: Variable, ins_tag: Variable, filter_tag: Variable, is_lod: bool, out_val_if_empty: int = 0
) -> list[Variable]:
    """Return the instances that have one of the tags ``filter_tag``, and a weight of 1 for each of them.

    Operator ``filter_by_instag``. ``ins`` (N, D): instances are rows or, if ``is_lod``, sequences;
    ``ins_tag`` (T, 1) int64 has one sequence of tags for each; ``filter_tag`` is (F,) int64. When no
    instance is left the results are a row of ``out_val_if_empty`` and a weight of 0. Raises TypeError when
    an argument is not a variable.

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
