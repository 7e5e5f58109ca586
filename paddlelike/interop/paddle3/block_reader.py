"""A block of Paddle 3 on its way to a block of a ProgramDesc: its values, variables and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from paddlelike.core.dtypes import AttrType, VarType
from paddlelike.errors import FormatError
from paddlelike.framework.codec.fields import ATTR_FIELDS, REPEATED, TENSOR_FIELDS
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.graph.attributes import convert_attr, infer_attr_type
from paddlelike.framework.opdef import registry
from paddlelike.interop.paddle3.json_values import Type, get, read_attributes, read_type
from paddlelike.interop.paddle3.operators import ANY, Operand, Row, load_rows

__all__ = ["IGNORED", "VALUES", "Block", "Constant", "Read", "Reader", "fold"]

_VERSION: Final = 2_006_000  # of Paddle, whose operators the message holds
_MAX_BLOCKS: Final = 2000
_MAX_LEVELS: Final = 90
#: Attributes that change no number.
IGNORED: Final = frozenset(("stop_gradient", "persistable", "op_callstack", "struct_name", "place"))
#: The list of assign_value and set_value that holds elements of a type.
VALUES: Final = {
    VarType.BOOL: "bool_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
    VarType.FP32: "fp32_values",
}
_TO_OWN: Final = {VarType.FP64: VarType.FP32, VarType.FP16: VarType.FP32, VarType.BF16: VarType.FP32}

Names = str | list[str]  # of one variable, or of a list
Read = Callable[["Block", dict[str, Any]], None]


class Reader:
    """The message that is made, and what is known of a program as a whole."""

    def __init__(self, special: Mapping[str, Read]) -> None:
        self.special = special  # what reads an operator that is no row of the table, by its name
        self.message = messages().ProgramDesc()
        self.message.version.version = _VERSION
        self.names: set[str] = set()
        self.columns = {"feed": 0, "fetch": 0}

    def take_name(self, name: str) -> str:
        if name in self.names or not name:
            raise FormatError(
                f"the program of Paddle 3 has two variables {name!r:.80}, or one without a name"
            )
        self.names.add(name)
        return name


class Constant:
    """A value that is known; ``shape`` is None for a list of integers."""

    def __init__(self, value: Any, shape: list[int] | None, dtype: int) -> None:
        self.value, self.shape, self.dtype = value, shape, dtype


class Block:
    """One block of a program. A value is the name of a variable, a list of names, or a constant."""

    def __init__(self, reader: Reader, outer: Block | None) -> None:
        if len(reader.message.blocks) >= _MAX_BLOCKS or (outer is not None and outer.level >= _MAX_LEVELS):
            raise FormatError(
                f"the program of Paddle 3 has over {_MAX_BLOCKS} blocks, or {_MAX_LEVELS} levels"
            )
        self.reader, self.outer = reader, outer
        self.level: int = 0 if outer is None else outer.level + 1
        self.message = reader.message.blocks.add()
        self.message.idx = len(reader.message.blocks) - 1
        self.message.parent_idx = -1 if outer is None else outer.message.idx
        self.values: dict[int, Names | Constant] = {}
        self.types: dict[str, Type] = {}
        self.taken: dict[str, None] = {}  # variables of outer blocks that are read
        self.kind = ""

    def read(self, tree: dict[str, Any]) -> list[str]:
        """Read all operators of a block. Return the variables that it yields."""
        operators = get(tree, "ops", list)
        self._refuse_unknown(operators)
        for index, op in enumerate(operators):
            self.kind = get(op, "#", str).partition(".")[2] or op["#"]
            if self.kind == "yield":
                if index != len(operators) - 1 or self.outer is None:
                    raise FormatError(
                        "the program of Paddle 3 is damaged: a yield outside of loops and branches"
                    )
                return [self.find_one(one) for one in get(op, "I", list)]
            self.reader.special.get(self.kind, Block.read_row)(self, op)
        return []

    def _refuse_unknown(self, operators: list[Any]) -> None:
        kinds = {get(op, "#", str).partition(".")[2] or op["#"] for op in operators}
        unknown = sorted(
            kind for kind in kinds - self.reader.special.keys() - {"yield"} if _find_row(kind) is None
        )
        if unknown:
            raise FormatError(
                f"the program of Paddle 3 has operators that are not read here: {', '.join(unknown)[:300]}",
                hint="export the model again with the environment variable FLAGS_enable_pir_api=0",
            )

    # Values

    def find(self, node: Any) -> Names | Constant | None:
        """Return the value of an operand, None for one that is left out."""
        index = get(node, "%", int)
        if index == 0:
            return None
        block: Block | None = self
        while block is not None:
            if index in block.values:
                value = block.values[index]
                if block is not self and not isinstance(value, Constant):
                    self._take([value] if isinstance(value, str) else value)
                return value
            block = block.outer
        raise FormatError(
            f"operator {self.kind!r:.80} of Paddle 3 reads value {index}, which nothing computes"
        )

    def _take(self, names: list[str]) -> None:
        block: Block | None = self
        while block is not None:
            block.taken.update(dict.fromkeys(name for name in names if name not in block.types))
            block = block.outer

    def find_one(self, node: Any) -> str:
        """Return the variable of an operand, which for a constant is made now."""
        value = self.find(node)
        if isinstance(value, Constant):
            value = self.values[node["%"]] = self.make_constant(value)
        if not isinstance(value, str):
            raise FormatError(
                f"operator {self.kind!r:.80} of Paddle 3 reads {value!r:.80}, where one variable belongs"
            )
        return value

    def find_target(self, node: Any) -> str:
        """Return the variable of an operand that is written in place; a constant is made where it stands."""
        block: Block | None = self
        while block is not None and node["%"] not in block.values:
            block = block.outer
        if block is not None:
            block.find_one(node)
        return self.find_one(node)

    def find_list(self, node: Any) -> list[str]:
        value = self.find(node)
        return list(value) if isinstance(value, list) else [] if value is None else [self.find_one(node)]

    def find_type(self, name: str) -> Type:
        block: Block | None = self
        while block is not None:
            if name in block.types:
                return block.types[name]
            block = block.outer
        raise FormatError(f"the program of Paddle 3 is damaged: no operator computes {name!r:.80}")

    def make_constant(self, constant: Constant) -> str:
        dtype, value = VarType(constant.dtype), constant.value
        if constant.shape is not None:
            name = self.declare_new(Type(VarType.LOD_TENSOR, dtype, constant.shape))
            text = (
                str(int(value))
                if dtype in (VarType.INT32, VarType.INT64) and value == value // 1
                else repr(value)
            )
            attrs = {"shape": constant.shape, "dtype": int(dtype), "value": value, "str_value": text}
            self.emit("fill_constant", {}, {"Out": [name]}, attrs)
            return name
        name = self.declare_new(Type(VarType.LOD_TENSOR, dtype, [len(value)]))
        attrs = {"shape": [len(value)], "dtype": int(dtype), VALUES[dtype]: value}
        self.emit("assign_value", {}, {"Out": [name]}, attrs)
        return name

    def list_overwritten(self, known: list[str]) -> list[str]:
        """Return the variables of outer blocks that operators of this one write, but those."""
        written = (name for op in self.message.ops for part in op.outputs for name in part.arguments)
        return [
            name
            for name in dict.fromkeys(written)
            if name not in self.types and name not in known and self._is_outer(name)
        ]

    def _is_outer(self, name: str) -> bool:
        return self.outer is not None and (name in self.outer.types or self.outer._is_outer(name))

    # Variables and operators

    def declare(self, name: str, kind: Type, **flags: bool) -> str:
        self.reader.take_name(name)
        var = self.message.vars.add()
        var.name, var.type.type = name, int(kind.kind)
        part = getattr(var.type, TENSOR_FIELDS[kind.kind])
        part.tensor.data_type = int(kind.dtype)
        part.tensor.dims.extend(kind.shape)
        for flag, value in flags.items():
            setattr(var, flag, value)
        self.types[name] = kind
        return name

    def declare_new(self, kind: Type) -> str:
        return self.declare(self.make_name(), kind)

    def make_name(self) -> str:
        number = len(self.reader.names)
        while f"value_{number}" in self.reader.names:
            number += 1
        return f"value_{number}"

    def make_results(self, node: Any) -> list[str]:
        """Declare what an operator makes, and return the names: none where nothing takes the place of it."""
        index, kind = get(node, "%", int), read_type(get(node, "TT", dict)) if node.get("%") else None
        if kind is None:
            return []
        names = [self.declare_new(one) for one in (kind if isinstance(kind, list) else [kind])]
        self.set_value(index, names if isinstance(kind, list) else names[0])
        return names

    def set_value(self, index: int, value: Names | Constant) -> None:
        if index in self.values:
            raise FormatError(f"the program of Paddle 3 is damaged: value {index} is computed twice")
        self.values[index] = value

    def emit(
        self,
        type_: str,
        inputs: Mapping[str, list[str]],
        outputs: Mapping[str, list[str]],
        attrs: Mapping[str, Any],
    ) -> None:
        """Append an operator; its attributes get the types that the operator declares."""
        op = self.message.ops.add()
        op.type = type_
        for parts, slots in ((op.inputs, inputs), (op.outputs, outputs)):
            for slot in sorted(slots):
                part = parts.add()
                part.parameter = slot
                part.arguments.extend(slots[slot])
        known = registry.find_for_version(type_, _VERSION)
        for name, value in attrs.items():
            kind = (
                known.attrs[name].type
                if known is not None and name in known.attrs
                else infer_attr_type(value)
            )
            if kind == AttrType.STRING and isinstance(value, float):
                value = repr(value)  # rtol and atol
            value = convert_attr(type_, name, kind, value)
            part = op.attrs.add()
            part.name, part.type = name, int(kind)
            if kind in REPEATED:
                getattr(part, ATTR_FIELDS[kind]).extend(value)
            else:
                setattr(part, ATTR_FIELDS[kind], value)

    # Operators of the table

    def read_row(self, op: dict[str, Any]) -> None:
        row = _find_row(self.kind)
        if row is None:
            raise FormatError(f"operator {self.kind!r:.80} of Paddle 3 is not read here")
        attrs = self._read_attrs(row, read_attributes(op))
        nodes = get(op, "I", list)
        target = self.find_target(get(nodes, 0, dict)) if row.name != self.kind and nodes else ""
        inputs = self._read_operands(row, nodes, attrs)
        results, slots = get(op, "O", list), [one for one in row.results if not one.is_added]
        if len(results) > len(slots):
            raise FormatError(
                f"operator {self.kind!r:.80} of Paddle 3 has {len(results)} results; {len(slots)} are known"
            )
        outputs: dict[str, list[str]] = {}
        for slot, node in zip(slots, results, strict=False):
            if slot.same_as and inputs.get(slot.same_as):
                outputs[slot.slot] = inputs[slot.same_as]
                self.set_value(get(node, "%", int), outputs[slot.slot][0])
            elif target and slot is slots[0] and read_type(get(node, "TT", dict)) == self.find_type(target):
                outputs[slot.slot] = [target]  # in place: what reads the operand reads this
                self.set_value(get(node, "%", int), target)
            elif names := self.make_results(node):
                outputs[slot.slot] = names
        for slot in row.results:
            if slot.is_added:
                outputs[slot.slot] = [self.declare_new(Type(VarType.LOD_TENSOR, VarType.FP32, [0]))]
        fill = _COMPLETED.get(row.type)
        if fill is not None:
            fill(self, inputs, outputs, attrs)
        self._emit_computable(row, inputs, outputs, attrs)

    def _emit_computable(
        self, row: Row, inputs: dict[str, list[str]], outputs: dict[str, list[str]], attrs: dict[str, Any]
    ) -> None:
        """Append an operator; one of bfloat16 computes in float32, and its results are rounded."""
        names = [name for part in (inputs, outputs) for slot in part.values() for name in slot]
        if row.type in ("assign", "cast") or VarType.BF16 not in map(self._get_dtype, names):
            self.emit(row.type, inputs, outputs, attrs)
            return
        wide = {name: self._widen(name) for name in names if self._get_dtype(name) == VarType.BF16}
        for name in {name for slot in inputs.values() for name in slot} & wide.keys():
            self.cast(name, wide[name])
        for one in row.attributes:
            if one.kind == "dtype" and attrs.get(one.target) == VarType.BF16:
                attrs[one.target] = int(VarType.FP32)
        inner, outer = (
            {slot: [wide.get(name, name) for name in given] for slot, given in part.items()}
            for part in (inputs, outputs)
        )
        self.emit(row.type, inner, outer, attrs)
        for name in [name for slot in outputs.values() for name in slot if name in wide]:
            self.cast(wide[name], name)

    def _get_dtype(self, name: str) -> VarType:
        return self.find_type(name).dtype

    def _widen(self, name: str) -> str:
        return self.declare_new(self.find_type(name)._replace(dtype=VarType.FP32))

    def cast(self, name: str, out: str) -> None:
        """Append the operator that turns a variable into the type of another."""
        types = {"in_dtype": int(self._get_dtype(name)), "out_dtype": int(self._get_dtype(out))}
        self.emit("cast", {"X": [name]}, {"Out": [out]}, types)

    def _read_attrs(self, row: Row, given: dict[str, Any]) -> dict[str, Any]:
        known = {one.name: one for one in row.attributes}
        attrs = {one.target: one.value for one in row.attributes if not one.name}
        for name, value in given.items():
            one = known.get(name)
            if one is None and name not in IGNORED:
                raise FormatError(
                    f"operator {row.name!r} of Paddle 3 has attribute {name!r:.80} = {value!r:.80}, "
                    "which is not read here"
                )
            if one is not None and one.target:
                attrs[one.target] = value
            elif one is not None and one.value is not ANY and value != one.value:
                raise FormatError(
                    f"operator {row.name!r} of Paddle 3 has {name} = {value!r:.80}; "
                    f"only {one.value!r} is computed here"
                )
        return attrs

    def _read_operands(self, row: Row, nodes: list[Any], attrs: dict[str, Any]) -> dict[str, list[str]]:
        if len(nodes) > len(row.operands):
            raise FormatError(
                f"operator {row.name!r} of Paddle 3 has {len(nodes)} operands; {len(row.operands)} are known"
            )
        inputs: dict[str, list[str]] = {}
        for index, (operand, node) in enumerate(zip(row.operands, nodes, strict=False)):
            value = self.find(node)
            if value is None or operand.kind == "-":
                continue
            if not any(operand):
                raise FormatError(
                    f"operator {row.name!r} of Paddle 3 has operand {index}, which is not read here"
                )
            if operand.attr and isinstance(value, Constant):
                attrs[operand.attr] = fold(value, operand.kind)
            elif not operand.attr and operand.slot:
                inputs[operand.slot] = [self.find_one(node)]
            elif not operand.attr:
                inputs[operand.many] = self.find_list(node)
            else:
                self._read_size(row, operand, node, inputs)
        return inputs

    def _read_size(self, row: Row, operand: Operand, node: Any, inputs: dict[str, list[str]]) -> None:
        """Take a size or an axis that is computed."""
        names = self.find_list(node)
        whole = len(names) == 1 and (
            isinstance(self.find(node), str) or self.find_type(names[0]).shape not in ([], [1])
        )
        slot = operand.slot if whole or not operand.many else operand.many
        if not slot and whole and len(shape := self.find_type(names[0]).shape) == 1 and shape[0] > 0:
            slot, names = operand.many, self._divide(names[0], shape[0])
        if not slot or (slot == operand.slot and len(names) != 1):
            raise FormatError(
                f"operator {row.name!r} of Paddle 3 computes {operand.attr!r}, which is a constant here"
            )
        inputs[slot] = names

    def _divide(self, name: str, count: int) -> list[str]:
        """Return the numbers of a list as variables of their own."""
        kind = self.find_type(name)
        parts = [self.declare_new(kind._replace(shape=[1])) for _ in range(count)]
        self.emit("split", {"X": [name]}, {"Out": parts}, {"axis": 0, "num": count, "sections": []})
        return parts


def fold(constant: Constant, kind: str) -> Any:
    """Return a constant as an attribute: a list, or a number."""
    value = constant.value
    if kind.endswith("s"):
        if constant.shape is not None and constant.shape not in ([], [1]):
            raise FormatError("a list of sizes that is filled with one number is not read here")
        return value if isinstance(value, list) else [value]
    if isinstance(value, list):
        if len(value) != 1:
            raise FormatError(f"the program of Paddle 3 is damaged: {value!r:.80} is no number")
        return value[0]
    return value


def _find_row(kind: str) -> Row | None:
    rows = load_rows()
    return rows.get(kind) or rows.get(kind.removesuffix("_"))


# Attributes of a ProgramDesc that Paddle 3 tells from values

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
            f"values of type {VarType(dtype)} in operator {block.kind!r} of Paddle 3 are not read here"
        )
    attrs["dtype"] = dtype
    if values:
        attrs[name] = [int(one) if name != "fp32_values" else one for one in values]


def _complete_norm(block: Block, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
    """Make the scale and the bias that are left out."""
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
    """Cast the ends to the type of what is made, which in a ProgramDesc is theirs."""
    dtype = VarType(attrs["dtype"]) if block.kind == "linspace" else VarType(attrs.pop("dtype"))
    for slot in inputs.keys() & {"Start", "End", "Stop", "Step"}:
        kind = block.find_type(inputs[slot][0])
        if kind.dtype != dtype:
            copy = block.declare_new(kind._replace(dtype=dtype))
            types = {"in_dtype": int(kind.dtype), "out_dtype": int(dtype)}
            block.emit("cast", {"X": inputs[slot]}, {"Out": [copy]}, types)
            inputs[slot] = [copy]


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
}
