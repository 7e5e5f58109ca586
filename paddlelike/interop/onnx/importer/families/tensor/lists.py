"""ONNX sequences, which are lists of tensors, as arrays of a program. A growing list is a new array each
time.
"""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework import Variable
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.graph import Value
from paddlelike.interop.onnx.importer.node import Node, reads


def copy_array(array: Variable) -> Variable:
    """Return a new array with the elements of another one."""
    from paddlelike.layers.control.tensor_array import create_array

    copy = create_array(array.dtype)
    copy.block.append_op(type="assign", inputs={"X": [array]}, outputs={"Out": [copy]})
    return copy


def _array(node: Node, index: int = 0) -> Variable:
    variable = node.variable(index)
    if variable.type != VarType.LOD_TENSOR_ARRAY:
        node.fail(f"its input {index} is not a list of tensors")
    return variable


def _write(node: Node, values: list[Expression], array: Variable) -> None:
    """Set the output to an array with further elements."""
    from paddlelike.layers.control.tensor_array import array_length, array_write

    for value in values:
        array_write(value.variable, array_length(array), array)
    node.alias(Value(array.name))


@reads("SequenceEmpty", "SequenceConstruct")
def _read_construct(node: Node) -> None:
    from paddlelike.interop.onnx.importer.file import ELEMENT_TYPES
    from paddlelike.layers.control.tensor_array import create_array

    dtype = node.variable().dtype if node.count else ELEMENT_TYPES.get(node.attr("dtype", 1))
    if dtype is None:
        node.refuse(f"it holds elements of ONNX type {node.attr('dtype')}")
    _write(node, node.inputs(), create_array(dtype))


@reads("SequenceInsert")
def _read_insert(node: Node) -> None:
    if node.has(2):
        node.refuse("it inserts in the middle of a list")
    _write(node, [node.input(1)], copy_array(_array(node)))


@reads("SplitToSequence")
def _read_split(node: Node) -> None:
    from paddlelike.layers.control.tensor_array import create_array

    axis, given = node.axis(0), node.numbers(1)
    size = node.dims()[axis]
    if given is None or (len(given) == 1 and not node.dims(1)):
        if size < 0:
            node.refuse("it splits a dim of unknown size")
        step = given[0] if given else 1
        if step < 1:
            node.fail(f"it splits into parts of {step}")
        given = [min(step, size - start) for start in range(0, size, step)]
    ends = np.cumsum(given).tolist()
    parts = [node.input().slice(axis, end - one, end) for end, one in zip(ends, given, strict=True)]
    if not node.has(1) and not node.attr("keepdims", 1):
        parts = [part.squeeze(axis) for part in parts]
    _write(node, parts, create_array(node.variable().dtype))


@reads("SequenceAt")
def _read_at(node: Node) -> Expression:
    from paddlelike.layers.control.tensor_array import array_length

    place = node.input(1).reshape(1).cast(VarType.INT64)
    back = compare(node, "less_than", place, node.constant([0], np.int64))
    count = back.cast(VarType.INT64) * Expression(node.graph, array_length(_array(node)).name)
    place = place + count
    array = _array(node)
    return node.emit("read_from_array", {"X": array.name, "I": place}, typed=array.dtype)


@reads("SequenceLength")
def _read_length(node: Node) -> Expression:
    from paddlelike.layers.control.tensor_array import array_length

    return Expression(node.graph, array_length(_array(node)).name)


@reads("ConcatFromSequence")
def _read_concat(node: Node) -> Expression:
    attrs = {"axis": node.attr("axis"), "use_stack": bool(node.attr("new_axis", 0))}
    array = _array(node)
    return node.emit("tensor_array_to_tensor", array.name, typed=array.dtype, **attrs)
