"""Translate a program into one of Paddle 3: the values of variables, and operators by the table.

The reader's table of operators is used in reverse.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from paddlelike.core import VarType
from paddlelike.errors import UnsupportedError
from paddlelike.framework import Block, Operator, Program, Variable
from paddlelike.framework.environment import PADDLE2_VERSION, PADDLE3_VERSION
from paddlelike.framework.opdef import registry
from paddlelike.framework.opdef.attributes import COMMON_ATTRS
from paddlelike.interop.exporting import name_damage
from paddlelike.interop.paddle3.json_values import ARRAY, DTYPES, TENSOR, TYPES
from paddlelike.interop.paddle3.operators import ANY, Attribute, Row, find_rows

NAMES: Final = {int(value): name for name, value in DTYPES.items()}
ELEMENTS: Final = {value: name for name, value in TYPES.items()}
_KINDS: Final = {"f32": "float32", "f64": "float64", "ui8": "uint8", "i32": "int32", "i64": "int64"}
_PLACE: Final = {"#": "1.a_place", "D": [0, 0, ""]}
_VALUES: Final = ("bool_values", "fp32_values", "fp64_values", "int32_values", "int64_values")

#: Attributes that change no number where the table has no place for them.
_NO_NUMBER: Final = ("infer_flags", "unpooling_type", "is_test", "workspace_size_MB", "exhaustive_search")
_SCALARS: Final = {1: "b", 2: "i", 3: "r"}  # fields of a Scalar message
#: Operators that Paddle 2 appends to the results of a model; the result has the type of X.
_KEEPS_TYPE: Final = frozenset(("scale", "assign"))
#: Operators replaced by another one that computes the same.
_SAME: Final = {"deformable_conv_v1": "deformable_conv"}
#: Operators whose later form takes more than Fluid's, rounds elsewhere, or draws other numbers, and is
#: otherwise equal.
_WIDENED: Final = frozenset(
    {"clip", "exp", "gaussian_random", "linspace", "log", "log1p", "squeeze2", "uniform_random"}
)
_FAR: Final = 16.0  # beyond it, Fluid's two formulas of mish differ by less than rounding

Node = dict[str, Any]
Write = Callable[["Writer", Operator], None]


class Writer:
    """The written blocks, and the current value of each variable."""

    def __init__(self, program: Program, special: Mapping[str, Write]) -> None:
        self.special = special  # writers of operators that are not rows of the table, by type
        self.block = program.global_block()
        self.is_later = program.paddle_version >= PADDLE2_VERSION
        self.is_latest = program.paddle_version >= PADDLE3_VERSION
        self.ops: list[Node] = []  # of the block that is being written
        self.values: ChainMap[str, int] = ChainMap()  # the block's own first
        self.kinds: dict[str, tuple[VarType, list[int]]] = {}  # of variables that a program declares wrongly
        self.count = self.arguments = self.blocks = 0
        for var in sorted(program.list_vars(), key=lambda one: one.name):
            if var.persistable and var.type == VarType.LOD_TENSOR:
                node = {
                    "#": "p",
                    "A": [0, 1, 0, var.name],
                    "DA": [],
                    "O": self.make(var.name),
                    "OA": [1, 0, 1],
                }
                self.ops.append(node)

    def write(self, op: Operator) -> None:
        with name_damage(op):
            self.special.get(op.type, Writer.write_row)(self, op)

    def write_draft(self, block: Block, ops: Iterable[Operator]) -> None:
        """Write operators of Paddle 2, from their own block, in place of one operator of Fluid 1.8."""
        outer, self.block, self.is_later = self.block, block, True
        for op in ops:
            self.write(op)
        self.block, self.is_later = outer, False

    def write_region(
        self, ops: Iterable[Operator], block: Block, arguments: list[str], find: Callable[[], list[int]]
    ) -> Node:
        """Return a region with the operators of a block, which yields the values that ``find`` returns at its
        end. The values of the variables ``arguments`` are passed to the region.
        """
        outer = self.block, self.ops, self.values
        self.block, self.ops, self.values = block, [], self.values.new_child()
        self.blocks += 1
        number, nodes = self.blocks, []
        for name in arguments:
            self.arguments -= 1
            self.values[name] = self.arguments
            nodes.append({"#": self.arguments, "TT": self.describe(name)})
        for op in ops:
            self.write(op)
        self.append("2.yield", find(), [], [])
        blocks = [{"#": f"block_{number}", "args": nodes, "ops": self.ops}]
        self.block, self.ops, self.values = outer
        return {"#": f"region_{number}", "blocks": blocks}

    # Values

    def make(self, name: str) -> Node:
        """Create a new value for a variable, and return it."""
        node = self.make_value(name)
        self.values[name] = node["%"]
        return node

    def make_value(self, name: str) -> Node:
        return self.number(self.describe(name))

    def number(self, kind: Node) -> Node:
        self.count += 1
        return {"%": self.count, "TT": kind}

    def describe(self, name: str) -> Node:
        var = self.find_var(name)
        if var.type not in (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY) or var.dtype not in ELEMENTS:
            raise UnsupportedError(
                f"variable {name!r} of type {var.type} has no place in a program of Paddle 3"
            )
        dtype, shape = self.kinds.get(name, (var.dtype, list(var.shape)))
        element = {"#": ELEMENTS[dtype]}
        if var.type == VarType.LOD_TENSOR_ARRAY:
            return {"#": ARRAY, "D": [element, shape, "NCHW"]}
        return make_tensor(element["#"], shape)

    def find_var(self, name: str) -> Variable:
        return self.block._var_recursive(name)

    def find(self, op: Operator, name: str) -> int:
        if name not in self.values:
            raise UnsupportedError(f"operator {op.type!r} reads {name!r}, which nothing computes before")
        return self.values[name]

    def append(self, kind: str, inputs: list[int], outputs: list[Node], attrs: list[Node]) -> None:
        self.ops.append({"#": kind, "A": attrs, "I": [{"%": one} for one in inputs], "O": outputs, "OA": []})

    def combine(self, op: Operator, names: list[str]) -> int:
        node = self.number({"#": "0.t_vec", "D": [self.describe(name) for name in names]})
        self.append("0.combine", [self.find(op, name) for name in names], [node], [])
        return int(node["%"])

    def constant(self, kind: str, value: Any) -> int:
        if kind.endswith("s"):
            node = self.number(make_tensor("0.t_i64", [len(value)]))
            attrs = [make_attr("value", "i64s", value), make_dtype("int64"), {"N": "place", "AT": _PLACE}]
            self.append("1.full_int_array", [], [node], attrs)
            return int(node["%"])
        return self.fill([1], value, _KINDS[kind])

    def fill(self, shape: list[int], value: Any, dtype: str, name: str | None = None) -> int:
        node = (
            self.number(make_tensor(ELEMENTS[VarType(DTYPES[dtype])], shape))
            if name is None
            else self.make(name)
        )
        attrs = [{"N": "shape", "AT": {"#": "1.a_intarray", "D": shape}}, make_attr("value", "f64", value)]
        self.append("1.full", [], [node], [*attrs, make_dtype(dtype), {"N": "place", "AT": _PLACE}])
        return int(node["%"])

    # Operators

    def _align(self, op: Operator) -> int:
        """Return Y with its dims aligned to the dims of X by ``axis``."""
        (x,), (y,) = op.input("X"), op.input("Y")
        shape, axis = list(self.find_var(y).shape), get_attr(op, "axis")
        missing = len(self.find_var(x).shape) - axis - len(shape)
        if axis < 0 or missing <= 0:
            return self.find(op, y)
        axes = self.constant("i64s", list(range(len(shape), len(shape) + missing)))
        node = self.number(make_tensor(ELEMENTS[self.find_var(y).dtype], [*shape, *[1] * missing]))
        self.append("1.unsqueeze", [self.find(op, y), axes], [node], [])
        return int(node["%"])

    def _find_row(self, op: Operator) -> Row:
        later = registry.find_or_none(op.type + registry.LATER)
        changed = later is not None and not self.is_later and op.type not in _WIDENED
        if op.type == "yolo_box":
            changed = changed and len(set(self.find_var(op.input("X")[0]).shape[2:])) > 1
        if op.type == "mish":
            changed = changed and get_attr(op, "threshold") < _FAR
        if op.type == "round" and not self.is_latest:
            raise UnsupportedError(
                "operator 'round' cannot be written for Paddle 3: it rounds halves away from zero here, "
                "and to the even number there",
                hint="use floor(relu(x) + 0.5) - floor(relu(-x) + 0.5), which rounds halves away from zero "
                "in both",
            )
        read = {slot for slot in op.inputs if op.inputs[slot]}
        for row in () if changed else find_rows(_SAME.get(op.type, op.type)):
            slots = {one.slot for one in row.operands} | {one.many for one in row.operands}
            fixed = all(get_attr(op, one.target) == one.value for one in row.attributes if not one.name)
            if fixed and read <= slots:
                return row
        raise UnsupportedError(f"operator {op.type!r} cannot be written for Paddle 3")

    def write_row(self, op: Operator) -> None:
        """Write an operator by its row of the table. Raises UnsupportedError if there is none."""
        row = self._find_row(op)
        self._check_attrs(op, row)
        self._correct(op)
        inputs = []
        for operand in row.operands:
            one, many = op.input(operand.slot), op.input(operand.many)
            if many:
                inputs.append(self.combine(op, many))
            elif one and operand.slot == "Y" and _is_aligned(op):
                inputs.append(self._align(op))
            elif one:
                inputs.append(self.find(op, one[0]))
            elif operand.attr:
                inputs.append(self.constant(operand.kind, _get_dims(op, operand.attr)))
            else:
                inputs.append(self.fill([], 0, "uint8") if row.name == "rnn" and not operand.slot else 0)
        outputs, lists = [], []
        for result in (one for one in row.results if not one.is_added):
            names = op.output(result.slot) if result.slot else []
            if result.is_list and names:
                node = self.number({"#": "0.t_vec", "D": [self.describe(name) for name in names]})
                lists.append((node["%"], names))
            else:
                node = self.make(names[0]) if names else self.number(make_tensor("0.t_f32", []))
                if result.slot == "Indices":  # integers, whatever the program declares
                    node["TT"]["D"][0] = {"#": "0.t_i64"}
            outputs.append(node)
        attrs = [self._write_attr(op, one) for one in row.attributes if one.name]
        self.append(f"1.{row.name}", inputs, outputs, attrs)
        for index, names in lists:
            for at, name in enumerate(names):
                self.append("0.slice", [index], [self.make(name)], [make_attr("index", "i32", at)])

    def _correct(self, op: Operator) -> None:
        """Correct the types of results that Paddle 2 declares differently from Paddle 3."""
        if op.type == "viterbi_decode":
            x = self.find_var(op.input("Input")[0])
            self.kinds[op.output("Scores")[0]] = x.dtype, list(x.shape[:1])
            self.kinds[op.output("Path")[0]] = VarType.INT64, [*x.shape[:1], -1]
        elif op.type == "matrix_rank":
            out = op.output("Out")[0]
            self.kinds[out] = VarType.INT64, list(self.find_var(out).shape)
        elif op.type in _KEEPS_TYPE and op.input("X")[0] in self.kinds:
            self.kinds[op.output("Out")[0]] = self.kinds[op.input("X")[0]]

    def _check_attrs(self, op: Operator, row: Row) -> None:
        """Raise UnsupportedError for a needed attribute that cannot be written, or a missing operand."""
        if op.type in ("quantize_linear", "dequantize_linear") and not op.input("InAccum"):
            raise UnsupportedError(
                f"{op.type} of Paddle 2 has no InAccum and InState, without which Paddle 3 does not run it",
                hint="Paddle 3 runs the .pdmodel itself, with FLAGS_enable_pir_api=0 in the environment",
            )
        known = {one.attr for one in row.operands} | {one.target for one in row.attributes}
        known |= {
            "reduce_all",
            "in_dtype",
            "out_dtype",
            "dtype",
            "values",
            *COMMON_ATTRS,
            *_VALUES,
            *_NO_NUMBER,
        }
        if _is_aligned(op):
            known.add("axis")
        declared = registry.find(op.type).attrs
        for name, value in op.attrs.items():
            default = declared[name].fallback if name in declared else value
            if name in declared and name not in known and value != default and not name.startswith("use_"):
                raise UnsupportedError(
                    f"operator {op.type!r} has {name} = {value!r:.80}, for which Paddle 3 has no place"
                )

    def _write_attr(self, op: Operator, one: Attribute) -> Node:
        if one.kind == "place":
            return {"N": one.name, "AT": _PLACE}
        if one.target == "values":
            value: Any = next((op.attrs[name] for name in _VALUES if op.attrs.get(name)), None)
            value = (
                [getattr(one, _SCALARS[one.type]) for one in get_attr(op, "values") or ()]
                if value is None
                else value
            )
        elif one.target:
            value = _get_dims(op, one.target)
        else:
            value = None if one.value is ANY else one.value
        if one.kind == "dtype":
            if value is None:
                value = int(self.find_var(next(iter(op.output_arg_names))).dtype)
            return make_dtype(NAMES[int(value)], one.name)
        return make_attr(one.name, one.kind, value)


def get_attr(op: Operator, name: str) -> Any:
    """Return an attribute, or its declared default."""
    if name in op.attrs:
        return op.attrs[name]
    known = registry.find_for_version(op.type, op.block.program.paddle_version)
    return known.attrs[name].fallback if known is not None and name in known.attrs else None


def _is_aligned(op: Operator) -> bool:
    """Return whether ``axis`` aligns Y with dims of X other than the last ones."""
    known = registry.find_or_none(op.type)
    return known is not None and known.inputs == ("X", "Y") and "axis" in known.attrs


def _get_dims(op: Operator, name: str) -> Any:
    """Return the dims in an attribute, none if an operator reduces all dims.

    A slice with a negative step that includes the first element has the end -1 in a ProgramDesc, and an
    end below every dim in Paddle 3.
    """
    if name == "ends" and op.type == "strided_slice":
        pairs = zip(get_attr(op, "ends"), get_attr(op, "strides"), strict=True)
        return [-(2**31) if end == -1 and step < 0 else end for end, step in pairs]
    return [] if name == "dim" and get_attr(op, "reduce_all") else get_attr(op, name)


def make_tensor(element: str, shape: list[int]) -> Node:
    return {"#": TENSOR, "D": [{"#": element}, shape, "NCHW", [], 0]}


def make_dtype(name: str, attr: str = "dtype") -> Node:
    return {"N": attr, "AT": {"#": "1.a_dtype", "D": name}}


def make_attr(name: str, kind: str, value: Any) -> Node:
    if kind == "intarray":
        return {"N": name, "AT": {"#": "1.a_intarray", "D": list(value or ())}}
    if kind.endswith("s"):
        return {"N": name, "AT": {"#": "0.a_array", "D": [_plain(kind[:-1], one) for one in value or ()]}}
    return {"N": name, "AT": _plain(kind, value)}


def _plain(kind: str, value: Any) -> Node:
    node: Node = {"#": f"0.a_{kind}"}
    if kind.startswith("f"):
        value = float(value or 0.0)
        if not math.isfinite(value):
            return node | {"VD": "NAN" if math.isnan(value) else "INF" if value > 0 else "-INF"}
    elif kind == "bool":
        value = bool(value)
    elif kind != "str":
        value = int(value or 0)
    return node | {"D": value or "" if kind == "str" else value}
