"""A program for prediction as a program of Paddle 3 (PIR, written as JSON), which Paddle 3 runs.

This module writes what the table of operators does not cover: constants, branches, loops and arrays. Unknown
operators, and attributes that Paddle 3 lacks, are refused by name.
"""

from __future__ import annotations

import json
import math
from typing import Final

from paddlelike.core import VarType
from paddlelike.errors import UnsupportedError
from paddlelike.framework import Operator, Program
from paddlelike.interop.paddle3.block_writer import (
    ELEMENTS,
    NAMES,
    Write,
    Writer,
    get_attr,
    make_attr,
    make_dtype,
    make_tensor,
)
from paddlelike.interop.paddle3.upgrades import FORMS


def write_pir(program: Program) -> bytes:
    """Return a program in Paddle 3's form. Raises UnsupportedError, which names the parts that Paddle 3
    lacks.
    """
    writer = Writer(program, _SPECIAL)
    ops = program.global_block().ops
    for op in sorted(ops, key=lambda op: op.attrs["col"] if op.type == "feed" else len(ops)):
        writer.write(op)  # Paddle 3 lists feeds in the order in which they stand, Paddle 2 by their columns
    block = {"#": "block_0", "args": [], "ops": writer.ops}
    tree = {
        "base_code": {"magic": "pir", "trainable": True, "version": 4},
        "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
    }
    return json.dumps(tree, separators=(",", ":"), allow_nan=False).encode()


def _write_feed(writer: Writer, op: Operator) -> None:
    name = op.output("Out")[0]
    attrs = [make_attr("name", "str", name), make_attr("col", "i32", op.attrs["col"])]
    writer.append("1.feed", [], [writer.make(name)], attrs)


def _write_fetch(writer: Writer, op: Operator) -> None:
    name = op.input("X")[0]
    attrs = [make_attr("name", "str", name), make_attr("col", "i32", op.attrs["col"])]
    writer.append("1.fetch", [writer.find(op, name)], [writer.make_value(name)], attrs)


def _write_fill(writer: Writer, op: Operator) -> None:
    (out,) = op.output("Out")
    dtype, text = NAMES[op.attrs["dtype"]], op.attrs.get("str_value")
    value = float(text) if text else op.attrs.get("value", 0.0)
    tensors = [*op.input("ShapeTensor"), *op.input("ShapeTensorList")]
    ranks = {len(writer.find_var(name).shape) for name in tensors}
    if op.input("ValueTensor") or len(ranks) > 1:
        raise UnsupportedError("fill_constant with a computed value, or mixed sizes, cannot be written")
    if not tensors:
        writer.fill(list(op.attrs["shape"]), value, dtype, out)
        return
    sizes = writer.find(op, tensors[0])
    if op.input("ShapeTensorList"):
        element = ELEMENTS[writer.find_var(tensors[0]).dtype]
        node, listed = writer.number(make_tensor(element, [len(tensors)])), writer.combine(op, tensors)
        if ranks == {0}:
            writer.append("1.stack", [listed], [node], [make_attr("axis", "i32", 0)])
        else:
            writer.append("1.concat", [listed, writer.constant("i32", 0)], [node], [])
        sizes = node["%"]
    inputs = [writer.fill([1], value, dtype), sizes]
    writer.append("1.full_with_tensor", inputs, [writer.make(out)], [make_dtype(dtype)])


def _write_mul(writer: Writer, op: Operator) -> None:
    (x,), (y,) = op.input("X"), op.input("Y")
    (out,), left = op.output("Out"), writer.find(op, x)
    attrs = [make_attr("transpose_x", "bool", False), make_attr("transpose_y", "bool", False)]
    flattened, known = (
        list(writer.find_var(x).shape)[get_attr(op, "x_num_col_dims") :],
        writer.find_var(out).shape,
    )
    if len(writer.find_var(y).shape) != 2 or min(flattened) < 0 or (len(flattened) > 1 and len(known) != 2):
        raise UnsupportedError(f"operator 'mul' of {x!r} and {y!r} flattens them, which cannot be written")
    if len(flattened) > 1:
        shape, sizes = [-1, math.prod(flattened)], writer.constant("i64s", [-1, math.prod(flattened)])
        node = writer.number(make_tensor(ELEMENTS[writer.find_var(x).dtype], shape))
        writer.append("1.reshape", [left, sizes], [node], [])
        left = node["%"]
    writer.append("1.matmul", [left, writer.find(op, y)], [writer.make(out)], attrs)


# Arrays and control flow


def _write_to_array(writer: Writer, op: Operator) -> None:
    (array,) = op.output("Out")
    _make_array(writer, array)
    inputs = [writer.values[array], *(writer.find(op, op.input(slot)[0]) for slot in ("X", "I"))]
    writer.append("1.array_write_", inputs, [writer.make(array)], [])


def _make_array(writer: Writer, name: str) -> None:
    """Create the array of a variable, unless it exists."""
    if name not in writer.values:
        dtype = make_dtype(NAMES[writer.find_var(name).dtype])
        writer.append("1.create_array", [], [writer.make(name)], [dtype])


def _write_select(writer: Writer, op: Operator) -> None:
    inputs = [writer.find(op, name) for name in [*op.input("Mask"), *op.input("X")]]
    writer.append("1.select_input", inputs, [writer.make(op.output("Out")[0])], [])


def _write_branch(writer: Writer, op: Operator) -> None:
    """Write a block that runs on a condition. If it does not run, its results keep their values, or are zeros
    that nothing reads.
    """
    if not op.attrs.get("is_scalar_condition"):
        raise UnsupportedError(
            "a conditional_block that only tests whether its input has elements cannot be written"
        )
    (number,) = op.sub_blocks()
    block = op.block.program.block(number)
    names = list(dict.fromkeys(name for name in op.output("Out") if name))

    def find_results() -> list[int]:
        return [writer.find(op, name) for name in names]

    def keep() -> list[int]:
        return [writer.values[name] if name in writer.values else fill(name) for name in names]

    def fill(name: str) -> int:
        var = writer.find_var(name)
        return writer.fill([max(size, 1) for size in var.shape], 0.0, NAMES[var.dtype])

    for name in names:
        if writer.find_var(name).type == VarType.LOD_TENSOR_ARRAY:
            _make_array(writer, name)
    regions = [
        writer.write_region(block.ops, block, [], find_results),
        writer.write_region((), block, [], keep),
    ]
    condition = writer.find(op, op.input("Cond")[0])
    writer.append("1.if", [condition], [writer.make(name) for name in names], [])
    writer.ops[-1]["regions"] = regions


def _write_loop(writer: Writer, op: Operator) -> None:
    (number,) = op.sub_blocks()
    block, (condition,) = op.block.program.block(number), op.input("Condition")
    made = dict.fromkeys(name for name in op.output("Out") if name != condition and name not in block.vars)
    for name in [*made, *op.input("X")]:
        if writer.find_var(name).type == VarType.LOD_TENSOR_ARRAY:
            _make_array(writer, name)
    names = [name for name in made if name in writer.values]
    region = writer.write_region(
        block.ops, block, names, lambda: [writer.find(op, name) for name in [condition, *names]]
    )
    inputs = [writer.find(op, name) for name in [condition, *names]]
    writer.append("1.while", inputs, [writer.make(name) for name in names], [])
    writer.ops[-1]["regions"] = [region]


_SPECIAL: Final[dict[str, Write]] = {
    **FORMS,
    "feed": _write_feed,
    "fetch": _write_fetch,
    "fill_constant": _write_fill,
    "mul": _write_mul,
    "write_to_array": _write_to_array,
    "select_input": _write_select,
    "conditional_block": _write_branch,
    "while": _write_loop,
}
