"""Translate a block of Paddle 3 into a block of a ProgramDesc: values, variables and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from paddlelike.core import AttrType, VarType
from paddlelike.errors import FormatError
from paddlelike.framework.codec.fields import ATTR_FIELDS, REPEATED, TENSOR_FIELDS
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.environment import PADDLE3_VERSION
from paddlelike.framework.graph.attributes import convert_attr, infer_attr_type
from paddlelike.framework.opdef import registry
from paddlelike.interop.paddle3.json_values import Type, get, read_type
from paddlelike.interop.paddle3.operators import find_row

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

Names = str | list[str]  # of one variable, or of a list
Read = Callable[["Block", dict[str, Any]], None]


class Reader:
    """The message under construction, and the state of the whole program."""

    def __init__(self, special: Mapping[str, Read], read_row: Read) -> None:
        self.special = special  # readers of operators that are not rows of the table, by name
        self.read_row = read_row  # the reader of all others
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
    """A known value; ``shape`` is None for a list of integers."""

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
                        "the program of Paddle 3 is damaged: it yields outside loops and branches"
                    )
                return [self.find_one(one) for one in get(op, "I", list)]
            self.reader.special.get(self.kind, self.reader.read_row)(self, op)
        return []

    def _refuse_unknown(self, operators: list[Any]) -> None:
        kinds = {get(op, "#", str).partition(".")[2] or op["#"] for op in operators}
        unknown = sorted(
            kind for kind in kinds - self.reader.special.keys() - {"yield"} if find_row(kind) is None
        )
        if unknown:
            raise FormatError(
                f"the program of Paddle 3 has operators that are not supported: {', '.join(unknown)[:300]}",
                hint="export the model again with the environment variable FLAGS_enable_pir_api=0",
            )

    # Values

    def find(self, node: Any) -> Names | Constant | None:
        """Return the value of an operand, or None for a missing one."""
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
        """Return the variable of an operand; for a constant, create it."""
        value = self.find(node)
        if isinstance(value, Constant):
            value = self.values[node["%"]] = self.make_constant(value)
        if not isinstance(value, str):
            raise FormatError(
                f"operator {self.kind!r:.80} of Paddle 3 reads {value!r:.80}, where one variable is expected"
            )
        return value

    def find_target(self, node: Any) -> str:
        """Return the variable that an operator overwrites through this operand; a constant is created
        first.
        """
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
        """Return the variables of outer blocks that operators of this block write, except the given ones."""
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

    def make_results(self, node: Any, dtype: VarType | None = None) -> list[str]:
        """Declare the results of an operator and return their names; none for an unused result."""
        kind = read_type(get(node, "TT", dict)) if get(node, "%", int) else None
        if kind is None:
            return []
        kinds = kind if isinstance(kind, list) else [kind]
        names = [self.declare_new(one if dtype is None else one._replace(dtype=dtype)) for one in kinds]
        self.set_value(node, names if isinstance(kind, list) else names[0])
        return names

    def set_value(self, node: dict[str, Any], value: Names | Constant, key: str = "%") -> None:
        index = get(node, key, int)
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
        if type_ == "round" or (type_ == "cast" and attrs.get("out_dtype") == VarType.BF16):
            self.reader.message.version.version = PADDLE3_VERSION  # their results differ in Paddle 2
        for parts, slots in ((op.inputs, inputs), (op.outputs, outputs)):
            for slot in sorted(slots):
                part = parts.add()
                part.parameter = slot
                part.arguments.extend(slots[slot])
        known = registry.find_for_version(type_, self.reader.message.version.version)
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

    def find_dtype(self, name: str) -> VarType:
        return self.find_type(name).dtype

    def cast(self, name: str, out: str) -> None:
        """Append the operator that converts a variable to the type of another."""
        types = {"in_dtype": int(self.find_dtype(name)), "out_dtype": int(self.find_dtype(out))}
        self.emit("cast", {"X": [name]}, {"Out": [out]}, types)
