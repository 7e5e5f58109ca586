"""A program of Paddle 3 -> ProgramDesc, as Paddle 2.6 would have written it.

Paddle 3 numbers values, while a ProgramDesc names variables; sizes and axes are values too. A constant that
is an attribute in a ProgramDesc is folded into its operator; other constants become operators before their
first use. Anything else is an error that names it. Format: ``paddle/fluid/pir/serialize_deserialize`` of
Paddle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.core import AttrType, VarType
from paddlelike.errors import EnforceNotMet, FormatError
from paddlelike.interop.paddle3.block_reader import IGNORED, VALUES, Block, Constant, Read, Reader
from paddlelike.interop.paddle3.composed import COMPOSED
from paddlelike.interop.paddle3.json_values import (
    Type,
    get,
    get_operand,
    get_result,
    load,
    read_attributes,
    read_type,
)
from paddlelike.interop.paddle3.row_reader import fold, read_row

_MAGIC: Final = "pir"
_WIDE: Final = (VarType.FP64, VarType.FP16, VarType.BF16)


def read_pir(data: bytes) -> Any:
    """Return the ProgramDesc of a Paddle 3 program. Raises FormatError for damage, and names each operator,
    type or attribute that is not understood.
    """
    tree = load(data)
    base = get(tree, "base_code", dict)
    if base.get("magic") != _MAGIC:
        raise FormatError(f"the program of Paddle 3 is damaged: its magic is {base.get('magic')!r:.80}")
    try:
        reader = Reader(_SPECIAL, read_row)
        Block(reader, None).read(_find_only_block(get(get(tree, "program", dict), "regions", list)))
        return reader.message
    except FormatError:
        raise
    except (
        AttributeError,
        EnforceNotMet,
        LookupError,
        OverflowError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:  # of attributes and of protobuf; items of lists may be of any type
        raise FormatError(f"the program of Paddle 3 is damaged: {error!s:.300}") from None


def _find_only_block(regions: list[Any]) -> dict[str, Any]:
    if len(regions) != 1 or len(get(get(regions, 0, dict), "blocks", list)) != 1:
        raise FormatError("the program of Paddle 3 is damaged: one region with one block is expected")
    return get(regions[0]["blocks"], 0, dict)


# Operators that are not rows of the table


def _read_parameter(block: Block, op: dict[str, Any]) -> None:
    node = get(op, "O", dict)
    kind = read_type(get(node, "TT", dict))
    if not isinstance(kind, Type) or block.outer is not None:
        raise FormatError(
            "the program of Paddle 3 is damaged: a parameter is not a tensor, or is in an inner block"
        )
    flags = op.get("OA")  # of a program that trains on: persistable, stop_gradient, trainable
    kept = not isinstance(flags, list) or not flags or flags[0] != 0
    name = block.declare(get(get(op, "A", list), 3, str), kind, persistable=kept)
    block.set_value(node, name)


def _read_feed(block: Block, op: dict[str, Any]) -> None:
    attrs, node = read_attributes(op), get_result(op)
    kind = read_type(get(node, "TT", dict))
    if not isinstance(kind, Type) or block.outer is not None:
        raise FormatError(
            "the program of Paddle 3 is damaged: a feed is not a tensor, or is in an inner block"
        )
    name = block.declare(get(attrs, "name", str), kind, need_check_feed=True)
    block.set_value(node, name)
    _make_port(block, "feed", VarType.FEED_MINIBATCH, name, attrs)


def _read_fetch(block: Block, op: dict[str, Any]) -> None:
    name = block.find_one(get_operand(op, 0))
    if block.outer is not None:
        raise FormatError("the program of Paddle 3 is damaged: an inner block fetches")
    _make_port(block, "fetch", VarType.FETCH_LIST, name, read_attributes(op))


def _make_port(block: Block, kind: str, holder: VarType, name: str, attrs: dict[str, Any]) -> None:
    if kind not in block.reader.names:
        var = block.message.vars.add()
        var.name, var.type.type, var.persistable = block.reader.take_name(kind), int(holder), True
    column = get(attrs, "col", int) if "col" in attrs else block.reader.columns[kind]
    block.reader.columns[kind] += 1
    ends = ({"X": ["feed"]}, {"Out": [name]}) if kind == "feed" else ({"X": [name]}, {"Out": ["fetch"]})
    block.emit(kind, *ends, {"col": column})


def _read_full(block: Block, op: dict[str, Any]) -> None:
    attrs, node = read_attributes(op), get_result(op)
    value = attrs.get("value")
    if block.kind == "full_int_array":
        value, shape = get(attrs, "value", list), None
        if any(type(one) is not int for one in value):
            raise FormatError(f"the program of Paddle 3 is damaged: {value!r:.80} are not integers")
        if attrs.get("dtype") not in (VarType.INT32, VarType.INT64):
            raise FormatError("the program of Paddle 3 is damaged: the dtype of sizes is not int32 or int64")
    else:
        shape = get(attrs, "shape", list)
        if not isinstance(value, float | int) or any(one < 0 for one in shape) or attrs.get("dtype") == -1:
            raise FormatError(
                f"the program of Paddle 3 is damaged: {shape!r:.80} cannot be filled with {value!r:.80}"
            )
    block.set_value(node, Constant(value, shape, get(attrs, "dtype", int)))


def _read_full_with_tensor(block: Block, op: dict[str, Any]) -> None:
    nodes, attrs = get(op, "I", list), read_attributes(op)
    value, sizes = block.find(get(nodes, 0, dict)), block.find_list(get(nodes, 1, dict))
    inputs = {"ShapeTensor" if len(sizes) == 1 else "ShapeTensorList": sizes}
    found = {"dtype": get(attrs, "dtype", int), "shape": []}
    if isinstance(value, Constant):
        found |= {"value": fold(value, "f64"), "str_value": repr(fold(value, "f64"))}
    else:
        inputs["ValueTensor"] = [block.find_one(nodes[0])]
    block.emit("fill_constant", inputs, {"Out": block.make_results(get_result(op))}, found)


def _read_empty(block: Block, op: dict[str, Any]) -> None:
    """Read an uninitialized tensor as zeros."""
    sizes = block.find(get_operand(op, 0))
    dtype, node = get(read_attributes(op), "dtype", int), get_result(op)
    if isinstance(sizes, Constant):
        shape = fold(sizes, "i64s")
        if any(one < 0 for one in shape):
            raise FormatError(f"the program of Paddle 3 is damaged: {shape!r:.80} is not a shape")
        block.set_value(node, Constant(0.0, shape, dtype))
        return
    names = block.find_list(op["I"][0])
    inputs = {"ShapeTensor" if len(names) == 1 else "ShapeTensorList": names}
    block.emit(
        "fill_constant",
        inputs,
        {"Out": block.make_results(node)},
        {"dtype": dtype, "shape": [], "value": 0.0},
    )


def _read_assign_out(block: Block, op: dict[str, Any]) -> None:
    nodes = get(op, "I", list)
    _assign_to(
        block,
        op,
        get(nodes, 1, dict),
        lambda out: block.emit("assign", {"X": [block.find_one(get(nodes, 0, dict))]}, {"Out": [out]}, {}),
    )


def _read_assign_value(block: Block, op: dict[str, Any]) -> None:
    """Read constant values; types that assign_value does not know are cast."""
    attrs = read_attributes(op)
    dtype, shape, values = VarType(attrs["dtype"]), get(attrs, "shape", list), get(attrs, "values", list)
    own = dtype if dtype in VALUES else VarType.FP32 if dtype in _WIDE else VarType.INT32
    if dtype == VarType.FP64 and any(one != np.float32(one) for one in values):
        raise FormatError(f"operator {block.kind!r} of Paddle 3 has values {values!r:.80} of float64")

    def emit(out: str) -> None:
        given = {"shape": shape, "dtype": int(own)}
        given[VALUES[own]] = values if own == VarType.FP32 else [int(one) for one in values]
        made = out if own == dtype else block.declare_new(block.find_type(out)._replace(dtype=own))
        block.emit("assign_value", {}, {"Out": [made]}, given)
        if made != out:
            block.cast(made, out)

    _assign_to(block, op, get_operand(op, 0) if block.kind.endswith("_") else None, emit)


def _assign_to(block: Block, op: dict[str, Any], target: Any, emit: Callable[[str], None]) -> None:
    """Emit an operator that writes its result to the variable of an operand, for all later readers."""
    node = get_result(op)
    if target is None or isinstance(block.values.get(get(target, "%", int)), Constant):
        (name,) = block.make_results(node) or [""]
        if target is not None:
            block.values[target["%"]] = name
    else:
        name = block.find_target(target)
        block.set_value(node, name)
    if name:
        emit(name)


def _read_combine(block: Block, op: dict[str, Any]) -> None:
    names = [block.find_one(one) for one in get(op, "I", list)]
    block.set_value(get_result(op), names)


def _read_slice(block: Block, op: dict[str, Any]) -> None:
    if op["#"] != "0.slice":
        read_row(block, op)
        return
    names = block.find_list(get_operand(op, 0))
    index = get(read_attributes(op), "index", int)
    if not 0 <= index < len(names):
        raise FormatError(
            f"the program of Paddle 3 is damaged: it reads item {index} of a list of {len(names)}"
        )
    block.set_value(get_result(op), names[index])


def _read_split(block: Block, op: dict[str, Any]) -> None:
    if op["#"] != "0.split":
        read_row(block, op)
        return
    names, results = block.find_list(get_operand(op, 0)), get(op, "O", list)
    if len(names) != len(results):
        raise FormatError(
            f"the program of Paddle 3 is damaged: a list has {len(results)} items, expected {len(names)}"
        )
    for name, node in zip(names, results, strict=True):
        block.set_value(node, name)


def _read_reshape(block: Block, op: dict[str, Any]) -> None:
    """Read a reshape; a reshape to no dims, as in medians of Paddle 3.0 and 3.1, is a squeeze."""
    x, sizes = (block.find(get_operand(op, at)) for at in range(2))
    if not isinstance(sizes, Constant) or sizes.value != [] or not isinstance(x, str):
        read_row(block, op)
        return
    (out,) = block.make_results(get_result(op)) or [""]
    axes = list(range(len(block.find_type(x).shape)))
    block.emit("squeeze2", {"X": [x]}, {"Out": [out]}, {"axes": axes})


def _read_shape64(block: Block, op: dict[str, Any]) -> None:
    (out,) = block.make_results(get_result(op)) or [""]
    kind = block.find_type(out)
    small = block.declare_new(kind._replace(dtype=VarType.INT32))
    block.emit("shape", {"Input": [block.find_one(get_operand(op, 0))]}, {"Out": [small]}, {})
    block.emit(
        "cast", {"X": [small]}, {"Out": [out]}, {"in_dtype": int(VarType.INT32), "out_dtype": int(kind.dtype)}
    )


def _read_create_array(block: Block, op: dict[str, Any]) -> None:
    block.make_results(get_result(op))


def _read_array_write(block: Block, op: dict[str, Any]) -> None:
    array, x, index = (block.find_one(get_operand(op, at)) for at in range(3))
    block.emit("write_to_array", {"X": [x], "I": [index]}, {"Out": [array]}, {})
    block.set_value(get_result(op), array)


# Control flow


def _read_select(block: Block, op: dict[str, Any]) -> None:
    mask, *names = [block.find_one(one) for one in get(op, "I", list)]
    outputs = {"Out": block.make_results(get_result(op))}
    block.emit("select_input", {"X": names, "Mask": [mask]}, outputs, {})


def _read_if(block: Block, op: dict[str, Any]) -> None:
    """Read a branch in Fluid's form: a block for each case, and operators that select the results."""
    if set(read_attributes(op)) - IGNORED - {"fake_false_branch"}:
        raise FormatError(f"operator 'if' of Paddle 3 has attributes {sorted(read_attributes(op))!r:.200}")
    regions = get(op, "regions", list)
    condition = block.find_one(get_operand(op, 0))
    if len(regions) != 2:
        raise FormatError("the program of Paddle 3 is damaged: a branch must have two cases")
    results = [name for node in get(op, "O", list) for name in _make_only(block, node)]
    inverse = block.declare_new(block.find_type(condition))
    block.emit("logical_not", {"X": [condition]}, {"Out": [inverse]}, {})
    sides = [
        _read_side(block, region, test, results)
        for region, test in zip(regions, (condition, inverse), strict=True)
    ]
    mask = block.declare_new(block.find_type(condition)._replace(dtype=VarType.INT32))
    attrs = {"in_dtype": int(VarType.BOOL), "out_dtype": int(VarType.INT32)}
    block.emit("cast", {"X": [condition]}, {"Out": [mask]}, attrs)
    for name, yes, no in zip(results, *sides, strict=True):
        block.emit("select_input", {"X": [no, yes], "Mask": [mask]}, {"Out": [name]}, {})


def _make_only(block: Block, node: Any) -> list[str]:
    names = block.make_results(node)
    if len(names) != 1:
        raise FormatError(f"operator {block.kind!r} of Paddle 3 has a result that is not a tensor")
    return names


def _read_side(block: Block, region: Any, condition: str, results: list[str]) -> list[str]:
    kinds = [block.types[name] for name in results]
    outs = [block.declare_new(kind) for kind in kinds]
    inner = Block(block.reader, block)
    yielded = inner.read(_find_only_block([region]))
    if len(yielded) != len(outs):
        raise FormatError(
            f"the program of Paddle 3 is damaged: a case yields {len(yielded)} of {len(outs)} values"
        )
    for name, out in zip(yielded, outs, strict=True):
        inner.emit("assign", {"X": [name]}, {"Out": [out]}, {})
    scope = block.reader.message.blocks[block.message.idx].vars.add()
    scope.name, scope.type.type = block.reader.take_name(block.make_name()), int(VarType.STEP_SCOPES)
    attrs = {"is_scalar_condition": True}
    block.emit(
        "conditional_block",
        {"Cond": [condition], "Input": list(inner.taken)},
        {"Out": [*outs, *inner.list_overwritten(outs)], "Scope": [scope.name]},
        attrs,
    )
    _set_block(block, inner)
    return outs


def _set_block(block: Block, inner: Block) -> None:
    attr = block.message.ops[-1].attrs.add()
    attr.name, attr.type, attr.block_idx = "sub_block", int(AttrType.BLOCK), inner.message.idx


def _read_while(block: Block, op: dict[str, Any]) -> None:
    """Read a loop. Its variables are copies of the operands, which every iteration overwrites."""
    nodes, regions = get(op, "I", list), get(op, "regions", list)
    if len(regions) != 1 or not nodes or set(read_attributes(op)) - IGNORED:
        raise FormatError("the program of Paddle 3 is damaged: a loop must have a condition and one block")
    given = [block.find_one(node) for node in nodes]
    carried = [_copy_carried(block, name) for name in given]
    tree = _find_only_block(regions)
    inner = Block(block.reader, block)
    arguments = get(tree, "args", list)
    if len(arguments) != len(carried) - 1 or len(get(op, "O", list)) != len(arguments):
        raise FormatError(
            f"the program of Paddle 3 is damaged: a loop over {len(carried) - 1} has {len(arguments)} values"
        )
    for node, name in zip(arguments, carried[1:], strict=True):
        inner.set_value(node, name, "#")
    inner.taken.update(dict.fromkeys(carried))
    yielded = inner.read(tree)
    if len(yielded) != len(carried):
        raise FormatError(
            f"the program of Paddle 3 is damaged: a loop yields {len(yielded)} of {len(carried)} values"
        )
    _store_carried(inner, yielded, carried)
    scopes = block.message.vars.add()
    scopes.name, scopes.type.type = block.reader.take_name(block.make_name()), int(VarType.STEP_SCOPES)
    block.emit(
        "while",
        {"X": [name for name in inner.taken if name != carried[0]], "Condition": [carried[0]]},
        {"Out": [*carried, *inner.list_overwritten(carried)], "StepScopes": [scopes.name]},
        {"is_test": True},
    )
    _set_block(block, inner)
    for node, name in zip(op["O"], carried[1:], strict=True):
        block.set_value(node, name)


def _copy_carried(block: Block, name: str) -> str:
    kind = block.find_type(name)
    if kind.kind == VarType.LOD_TENSOR_ARRAY:
        return name  # arrays are written in place
    copy = block.declare_new(kind)
    block.emit("assign", {"X": [name]}, {"Out": [copy]}, {})
    return copy


def _store_carried(inner: Block, yielded: list[str], carried: list[str]) -> None:
    """Write the values that an iteration yields into the loop's variables, all at once."""
    moved = [(old, new) for old, new in zip(yielded, carried, strict=True) if old != new]
    sources = []
    for old, _ in moved:
        if old in carried:  # another writes it
            copy = inner.declare_new(inner.find_type(old))
            inner.emit("assign", {"X": [old]}, {"Out": [copy]}, {})
            old = copy
        sources.append(old)
    for source, (_, new) in zip(sources, moved, strict=True):
        inner.emit("assign", {"X": [source]}, {"Out": [new]}, {})


_SPECIAL: Final[dict[str, Read]] = {
    "p": _read_parameter,
    "data": _read_feed,
    "feed": _read_feed,
    "fetch": _read_fetch,
    "full": _read_full,
    "full_int_array": _read_full,
    "full_with_tensor": _read_full_with_tensor,
    "combine": _read_combine,
    "slice": _read_slice,
    "split": _read_split,
    "reshape": _read_reshape,
    "shape64": _read_shape64,
    "empty": _read_empty,
    "assign_out_": _read_assign_out,
    "assign_value": _read_assign_value,
    "assign_value_": _read_assign_value,
    **COMPOSED,
    "create_array": _read_create_array,
    "array_write_": _read_array_write,
    "select_input": _read_select,
    "if": _read_if,
    "while": _read_while,
}
