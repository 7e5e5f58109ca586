"""Read an operator of Paddle 3 that is in the table as an operator of a ProgramDesc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.framework.codec.schema import make_scalar
from paddlelike.interop.paddle3.block_reader import IGNORED, VALUES, Block, Constant
from paddlelike.interop.paddle3.json_values import (
    Type,
    get,
    read_attributes,
    read_type,
)
from paddlelike.interop.paddle3.operators import ANY, Operand, Row, find_row

#: The types in which operators of a ProgramDesc compute, by those of Paddle 3; others bfloat16 in float32.
_COMPUTED: Final[dict[str, dict[VarType, VarType]]] = {
    "assign": {},
    "cast": {},
    "matrix_rank": {VarType.INT64: VarType.INT32},
}
#: Results whose type differs from the one in programs of Paddle 3.
_MADE: Final = {"matrix_rank": VarType.INT64}
_LARGEST: Final = 2**31 - 1
_TO_OWN: Final = {VarType.FP64: VarType.FP32, VarType.FP16: VarType.FP32, VarType.BF16: VarType.FP32}


def read_row(block: Block, op: dict[str, Any]) -> None:
    """Append an operator to a block. Raises FormatError when it, or a part of it, is not in the table."""
    row = find_row(block.kind)
    if row is None:
        raise FormatError(f"operator {block.kind!r:.80} of Paddle 3 is not supported")
    attrs = _read_attrs(row, read_attributes(op))
    nodes = get(op, "I", list)
    target = block.find_target(get(nodes, 0, dict)) if row.name != block.kind and nodes else ""
    inputs = _read_operands(block, row, nodes, attrs)
    results, slots = get(op, "O", list), [one for one in row.results if not one.is_added]
    if len(results) > len(slots):
        raise FormatError(
            f"operator {block.kind!r:.80} of Paddle 3 has {len(results)} results; {len(slots)} are known"
        )
    outputs: dict[str, list[str]] = {}
    for slot, node in zip(slots, results, strict=False):
        if slot.same_as and inputs.get(slot.same_as):
            outputs[slot.slot] = inputs[slot.same_as]
            block.set_value(node, outputs[slot.slot][0])
        elif target and slot is slots[0] and read_type(get(node, "TT", dict)) == block.find_type(target):
            outputs[slot.slot] = [target]  # in place: readers of the operand read this
            block.set_value(node, target)
        elif names := block.make_results(node, _MADE.get(row.type)):
            outputs[slot.slot] = names
    for slot in row.results:
        if slot.is_added:
            outputs[slot.slot] = [block.declare_new(Type(VarType.LOD_TENSOR, VarType.FP32, [0]))]
    if row.type == "deformable_conv" and not inputs.get("Mask"):  # Paddle 2 wants one
        row = row._replace(type="deformable_conv_v1")
    fill = _COMPLETED.get(row.type)
    if fill is not None:
        fill(block, inputs, outputs, attrs)
    _emit_computable(block, row, inputs, outputs, attrs)


def _emit_computable(
    block: Block, row: Row, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: dict[str, Any]
) -> None:
    """Append an operator. In place of bfloat16 it computes in float32, and its results are rounded."""
    names = [name for part in (inputs, outputs) for slot in part.values() for name in slot]
    computed = _COMPUTED.get(row.type, {VarType.BF16: VarType.FP32})
    kinds = {name: computed.get(block.find_dtype(name)) for name in names}
    if not any(kind is not None for kind in kinds.values()):
        block.emit(row.type, inputs, outputs, attrs)
        return
    wide = {
        name: block.declare_new(block.find_type(name)._replace(dtype=kind))
        for name, kind in kinds.items()
        if kind is not None
    }
    for name in {name for slot in inputs.values() for name in slot} & wide.keys():
        block.cast(name, wide[name])
    for one in row.attributes:
        if one.kind == "dtype" and attrs.get(one.target) == VarType.BF16:
            attrs[one.target] = int(VarType.FP32)
    inner, outer = (
        {slot: [wide.get(name, name) for name in given] for slot, given in part.items()}
        for part in (inputs, outputs)
    )
    block.emit(row.type, inner, outer, attrs)
    for name in [name for slot in outputs.values() for name in slot if name in wide]:
        block.cast(wide[name], name)


def _read_attrs(row: Row, given: dict[str, Any]) -> dict[str, Any]:
    known = {one.name: one for one in row.attributes}
    attrs = {one.target: one.value for one in row.attributes if not one.name}
    for name, value in given.items():
        one = known.get(name)
        if one is None and name not in IGNORED:
            raise FormatError(
                f"operator {row.name!r} of Paddle 3 has attribute {name!r:.80} = {value!r:.80}, "
                "which is not supported"
            )
        if one is not None and one.target:
            attrs[one.target] = value
        elif one is not None and one.value is not ANY and value != one.value:
            raise FormatError(
                f"operator {row.name!r} of Paddle 3 has {name} = {value!r:.80}; "
                f"only {one.value!r} is computed here"
            )
    return attrs


def _read_operands(block: Block, row: Row, nodes: list[Any], attrs: dict[str, Any]) -> dict[str, list[str]]:
    if len(nodes) > len(row.operands):
        raise FormatError(
            f"operator {row.name!r} of Paddle 3 has {len(nodes)} operands; {len(row.operands)} are known"
        )
    inputs: dict[str, list[str]] = {}
    for index, (operand, node) in enumerate(zip(row.operands, nodes, strict=False)):
        value = block.find(node)
        if value is None or operand.kind == "-":
            continue
        if not any(operand):
            raise FormatError(
                f"operator {row.name!r} of Paddle 3 has operand {index}, which is not supported"
            )
        if operand.attr and isinstance(value, Constant):
            attrs[operand.attr] = fold(value, operand.kind)
        elif not operand.attr and operand.slot:
            inputs[operand.slot] = [block.find_one(node)]
        elif not operand.attr:
            inputs[operand.many] = block.find_list(node)
        else:
            _read_size(block, row, operand, node, inputs)
    return inputs


def _read_size(block: Block, row: Row, operand: Operand, node: Any, inputs: dict[str, list[str]]) -> None:
    """Read a computed size or axis."""
    names = block.find_list(node)
    whole = len(names) == 1 and (
        isinstance(block.find(node), str) or block.find_type(names[0]).shape not in ([], [1])
    )
    slot = operand.slot if whole or not operand.many else operand.many
    if not slot and whole and len(shape := block.find_type(names[0]).shape) == 1 and shape[0] > 0:
        slot, names = operand.many, _divide(block, names[0], shape[0])
    if not slot or (slot == operand.slot and len(names) != 1):
        raise FormatError(
            f"operator {row.name!r} of Paddle 3 computes {operand.attr!r}, which must be a constant here"
        )
    inputs[slot] = names


def _divide(block: Block, name: str, count: int) -> list[str]:
    """Return the elements of a list as separate variables."""
    kind = block.find_type(name)
    parts = [block.declare_new(kind._replace(shape=[1])) for _ in range(count)]
    block.emit("split", {"X": [name]}, {"Out": parts}, {"axis": 0, "num": count, "sections": []})
    return parts


def fold(constant: Constant, kind: str) -> Any:
    """Return a constant as an attribute value, a list or a number."""
    value = constant.value
    if kind.endswith("s"):
        if constant.shape is not None and constant.shape not in ([], [1]):
            raise FormatError("one number stands for all sizes of a list, which is not supported")
        return value if isinstance(value, list) else [value]
    if isinstance(value, list):
        if len(value) != 1:
            raise FormatError(f"the program of Paddle 3 is damaged: {value!r:.80} is not a number")
        return value[0]
    return value


# Attributes of a ProgramDesc that follow from values in Paddle 3

Slots = dict[str, list[str]]


def _complete_reduction(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    attrs.setdefault("reduce_all", not attrs.get("dim"))
    attrs.setdefault("in_dtype", -1)
    attrs.setdefault("out_dtype", -1)
    if outputs.get("Out") and attrs["out_dtype"] == -1 and block.kind in ("sum", "prod"):
        kinds = [block.find_type(name).dtype for name in (inputs["X"][0], outputs["Out"][0])]
        if kinds[0] != kinds[1]:  # booleans are counted, and int32 is added up as int64
            attrs["in_dtype"], attrs["out_dtype"] = map(int, kinds)


def _complete_cast(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    attrs["in_dtype"] = int(block.find_type(inputs["X"][0]).dtype) if inputs.get("X") else -1


def _complete_values(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    dtype = int(block.find_type(inputs["Input"][0]).dtype)
    name = VALUES.get(_TO_OWN.get(VarType(dtype), VarType(dtype)))
    values = attrs.pop("values", [])
    if name is None:
        raise FormatError(
            f"values of type {VarType(dtype)} in operator {block.kind!r} of Paddle 3 are not supported"
        )
    attrs["dtype"] = dtype
    if values:  # Paddle 2.5 and later read no other list
        kind = {"fp32_values": float, "bool_values": bool}.get(name, int)
        attrs["values"] = [make_scalar(kind(one)) for one in values]


def _complete_norm(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    """Create the scale and the bias if they are missing."""
    channels = block.find_type(inputs["X"][0]).shape[1] if inputs.get("X") else -1
    like = Type(VarType.LOD_TENSOR, VarType.FP32, [channels])
    for slot, value in (("Scale", 1.0), ("Bias", 0.0)):
        if slot not in inputs:
            given = block.find_type(inputs["Mean"][0]) if inputs.get("Mean") else like
            if min(given.shape, default=-1) < 0:
                raise FormatError(
                    f"operator {block.kind!r} of Paddle 3 has no {slot}, and its channels are not known"
                )
            inputs[slot] = [block.make_constant(Constant(value, given.shape, given.dtype))]


def _complete_range(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    """Cast start and end to the type of the result, since a ProgramDesc has one type for all."""
    dtype = VarType(attrs["dtype"]) if block.kind == "linspace" else VarType(attrs.pop("dtype"))
    for slot in inputs.keys() & {"Start", "End", "Stop", "Step"}:
        kind = block.find_type(inputs[slot][0])
        if kind.dtype != dtype:
            copy = block.declare_new(kind._replace(dtype=dtype))
            block.cast(inputs[slot][0], copy)
            inputs[slot] = [copy]


def _complete_strides(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    """Record which bounds are known; otherwise Fluid 1.8 and Paddle 2 end with a segmentation fault.

    With a negative step, a start past the last element becomes -1, since Paddle 2 would start elsewhere. An
    end before the first element becomes -1; in Paddle 3 it is a number below every dim.
    """
    attrs["infer_flags"] = [1 if len(inputs) == 1 else -1] * len(attrs.get("axes", []))
    dims = block.find_type(inputs["Input"][0]).shape if inputs.get("Input") else []
    starts, ends = (attrs.get(name) or [] for name in ("starts", "ends"))
    for place, (axis, step) in enumerate(zip(attrs["axes"], attrs.get("strides") or [], strict=False)):
        if step < 0 and place < len(starts) and starts[place] >= _LARGEST:
            starts[place] = -1
        if step < 0 and place < len(ends):
            size = dims[axis] if dims[axis] >= 0 else _LARGEST - 1
            ends[place] = -1 if ends[place] < -size else _LARGEST if ends[place] == -1 else ends[place]


_COMPLETED: Final[dict[str, Callable[[Block, Slots, Slots, dict[str, Any]], None]]] = {
    **dict.fromkeys(
        (f"reduce_{one}" for one in ["sum", "mean", "max", "min", "prod", "any", "all", "amax", "amin"]),
        _complete_reduction,
    ),
    "cast": _complete_cast,
    "range": _complete_range,
    "linspace": _complete_range,
    "batch_norm": _complete_norm,
    "instance_norm": _complete_norm,
    "set_value": _complete_values,
    "strided_slice": _complete_strides,
}
