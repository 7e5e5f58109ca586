"""The canonical form of a ProgramDesc, and what differs between two of them in words.

Paddle keeps variables and attributes in hash-map order, so equal programs may have unequal bytes.
The canonical form is plain data: variables and attributes by name, operators in program order,
`op_callstack` (paths of the machine that built the program) left out:

    {"version": int | None, "blocks": [{"idx", "parent_idx", "forward_block_idx",
        "vars": {name: {"type", "persistable", "dtype", "shape", "lod_level", "need_check_feed"}},
        "ops": [{"type", "inputs": {slot: [names]}, "outputs": {slot: [names]},
                 "attrs": {name: [TYPE, value]}}]}]}

Fields that a variable does not have are absent. Some slots of control flow are sets in Paddle,
in an order that changes from run to run; a comparison takes them as sets.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from paddlelike.core import AttrType, VarType
from paddlelike.framework.codec.schema import messages

Canonical = dict[str, Any]

_FIELDS = {
    AttrType.INT: "i", AttrType.FLOAT: "f", AttrType.STRING: "s", AttrType.INTS: "ints",
    AttrType.FLOATS: "floats", AttrType.STRINGS: "strings", AttrType.BOOLEAN: "b",
    AttrType.BOOLEANS: "bools", AttrType.BLOCK: "block_idx", AttrType.LONG: "l",
    AttrType.BLOCKS: "blocks_idx", AttrType.LONGS: "longs", AttrType.FLOAT64S: "float64s",
    AttrType.VAR: "var_name", AttrType.VARS: "vars_name", AttrType.FLOAT64: "float64",
}  # fmt: skip

#: Slots that are sets, of the operators here and of their gradients.
SETS = {
    "conditional_block": {"Input", "Out"},
    "recurrent": {"parameters"},
    "while": {"X", "Out"},
}


def canonical(program: Any) -> Canonical:
    """The canonical form of a Program, or of the bytes of a ProgramDesc."""
    data = program if isinstance(program, bytes) else program.desc.serialize_to_string()
    desc = messages().ProgramDesc.FromString(data)
    return {
        "version": desc.version.version if desc.HasField("version") else None,
        "blocks": [_block(block) for block in desc.blocks],
    }


def assert_same_program(got: Canonical, want: Canonical) -> None:
    """Fail with the first differences in words: ``got`` is ours, ``want`` the real system's."""
    lines = list(differences(got, want))
    assert not lines, "\n  ".join(["the programs differ:", *lines[:12], f"({len(lines)} in all)"])


def differences(got: Canonical, want: Canonical) -> Iterator[str]:
    """What differs between two canonical programs, operators first, a line each."""
    if got["version"] != want["version"]:
        yield f"version {got['version']}, wanted {want['version']}"
    if len(got["blocks"]) != len(want["blocks"]):
        yield f"{len(got['blocks'])} blocks, wanted {len(want['blocks'])}"
    pairs = list(zip(got["blocks"], want["blocks"], strict=False))
    for mine, theirs in pairs:
        where = f"block {theirs['idx']}"
        for field in ("idx", "parent_idx", "forward_block_idx"):
            if mine[field] != theirs[field]:
                yield f"{where}: {field} {mine[field]}, wanted {theirs[field]}"
        yield from _ops_differ(where, mine["ops"], theirs["ops"])
    for mine, theirs in pairs:
        yield from _vars_differ(f"block {theirs['idx']}", mine["vars"], theirs["vars"])


def _ops_differ(where: str, got: list[Any], want: list[Any]) -> Iterator[str]:
    if [op["type"] for op in got] != [op["type"] for op in want]:
        yield f"{where}: other operators (- wanted, + got):"
        yield from (
            line
            for line in difflib.ndiff([_title(op) for op in want], [_title(op) for op in got])
            if line[0] in "+-"
        )
        return
    for index, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        place = f"{where}, operator {index} {theirs['type']}"
        for field in ("inputs", "outputs"):
            pair = (_with_sets(op["type"], op[field]) for op in (mine, theirs))
            yield from _maps_differ(f"{place}: {field}", *pair)
        yield from _maps_differ(f"{place}: attrs", mine["attrs"], theirs["attrs"])
        if mine.get("is_target") != theirs.get("is_target"):
            yield f"{place}: is_target {mine.get('is_target')}, wanted {theirs.get('is_target')}"


def _with_sets(kind: str, slots: Mapping[str, Any]) -> dict[str, Any]:
    sets = SETS.get(kind.removesuffix("_grad"), set())
    return {
        slot: sorted(names) if slot.removesuffix("@GRAD") in sets else names for slot, names in slots.items()
    }


def _title(op: Mapping[str, Any]) -> str:
    return f"{op['type']} -> {', '.join(n for names in op['outputs'].values() for n in names)}"


def _vars_differ(where: str, got: Mapping[str, Any], want: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(set(got) | set(want)):
        if name not in want:
            yield f"{where}: variable {name} is surplus"
        elif name not in got:
            yield f"{where}: variable {name} is missing"
        else:
            pair = (_without_leftovers(var) for var in (got[name], want[name]))
            yield from _maps_differ(f"{where}, variable {name}:", *pair)


def _without_leftovers(var: Mapping[str, Any]) -> Mapping[str, Any]:
    """Paddle's SELECTED_ROWS may still carry the LoD level of the tensor they were declared as."""
    if var.get("type") != "SELECTED_ROWS":
        return var
    return {key: value for key, value in var.items() if key != "lod_level"}


def _maps_differ(where: str, got: Mapping[str, Any], want: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(got) | set(want)):
        mine, theirs = got.get(key, "absent"), want.get(key, "absent")
        if mine != theirs:
            yield f"{where} {key} is {mine}, wanted {theirs}"


def _block(block: Any) -> dict[str, Any]:
    return {
        "idx": block.idx,
        "parent_idx": block.parent_idx,
        "forward_block_idx": block.forward_block_idx,
        "vars": {var.name: _variable(var) for var in sorted(block.vars, key=lambda v: v.name)},
        "ops": [_operator(op) for op in block.ops],
    }


def _variable(var: Any) -> dict[str, Any]:
    kind = var.type
    result = {"type": VarType(kind.type).name, "persistable": var.persistable}
    tensor = None
    for field in ("lod_tensor", "tensor_array"):
        if kind.HasField(field):
            tensor = getattr(kind, field).tensor
            result["lod_level"] = getattr(kind, field).lod_level
    if kind.HasField("selected_rows"):
        tensor = kind.selected_rows
    if tensor is not None:
        result["dtype"] = VarType(tensor.data_type).name
        result["shape"] = list(tensor.dims)
    if kind.HasField("reader"):
        result["reader"] = [
            [VarType(t.tensor.data_type).name, list(t.tensor.dims), t.lod_level]
            for t in kind.reader.lod_tensor
        ]
    if var.need_check_feed:
        result["need_check_feed"] = True
    return result


def _operator(op: Any) -> dict[str, Any]:
    result = {
        "type": op.type,
        "inputs": {slot.parameter: list(slot.arguments) for slot in op.inputs},
        "outputs": {slot.parameter: list(slot.arguments) for slot in op.outputs},
        "attrs": {
            attr.name: _attribute(attr)
            for attr in sorted(op.attrs, key=lambda a: a.name)
            if attr.name != "op_callstack"
        },
    }
    if op.is_target:
        result["is_target"] = True
    return result


def _attribute(attr: Any) -> list[Any]:
    kind = AttrType(attr.type)
    value = getattr(attr, _FIELDS[kind])
    if kind is AttrType.FLOAT:
        value = _shortest(value)
    elif kind is AttrType.FLOATS:
        value = [_shortest(item) for item in value]
    elif not isinstance(value, bool | int | float | str):
        value = list(value)
    return [kind.name, value]


def _shortest(value: float) -> float:
    """The double that prints as the float32 does."""
    return float(str(np.float32(value)))
