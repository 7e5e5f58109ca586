"""Fields of ProgramDesc messages, for both encoding and decoding."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from paddlelike.core import AttrType, VarType

#: Field of OpDesc.Attr that holds a value of that type.
ATTR_FIELDS: Final = {
    AttrType.INT: "i",
    AttrType.FLOAT: "f",
    AttrType.STRING: "s",
    AttrType.INTS: "ints",
    AttrType.FLOATS: "floats",
    AttrType.STRINGS: "strings",
    AttrType.BOOLEAN: "b",
    AttrType.BOOLEANS: "bools",
    AttrType.BLOCK: "block_idx",
    AttrType.LONG: "l",
    AttrType.BLOCKS: "blocks_idx",
    AttrType.LONGS: "longs",
    AttrType.FLOAT64S: "float64s",
    AttrType.VAR: "var_name",
    AttrType.VARS: "vars_name",
    AttrType.FLOAT64: "float64",
    AttrType.SCALAR: "scalar",
    AttrType.SCALARS: "scalars",
}
REPEATED: Final = frozenset(kind for kind in AttrType if kind.name.endswith("S"))
#: Field of VarType that describes the tensor in a variable of that kind.
TENSOR_FIELDS: Final = {
    VarType.LOD_TENSOR: "lod_tensor",
    VarType.LOD_TENSOR_ARRAY: "tensor_array",
    VarType.SELECTED_ROWS: "selected_rows",
}


_ATTR_TYPES: Final = {int(kind): kind for kind in AttrType}  # calling an enum takes ten times as long


class VariableFields(NamedTuple):
    """The fields of a VarDesc that a variable of the graph has attributes for."""

    name: str
    type: int
    dtype: int
    shape: tuple[int, ...]
    lod_level: int
    persistable: bool
    need_check_feed: bool


def find_attr_type(number: int) -> AttrType:
    """Return the type of an attribute by its number in a message. Raises ValueError for an unknown one."""
    found = _ATTR_TYPES.get(number)
    return AttrType(number) if found is None else found


def read_attr(attr: Any) -> object:
    """Return the value of an OpDesc.Attr."""
    kind = find_attr_type(attr.type)
    value = getattr(attr, ATTR_FIELDS[kind])
    return list(value) if kind in REPEATED else value


def read_variable(message: Any) -> VariableFields:
    """Return the fields of a VarDesc."""
    field = TENSOR_FIELDS.get(message.type.type)  # an IntEnum hashes as its integer
    dtype, shape, lod_level = 0, (), 0
    if field is not None and message.type.HasField(field):
        part = getattr(message.type, field)
        tensor = part if field == "selected_rows" else part.tensor
        dtype, shape = tensor.data_type, tuple(tensor.dims)
        lod_level = 0 if field == "selected_rows" else part.lod_level
    return VariableFields(
        message.name, message.type.type, dtype, shape, lod_level, message.persistable, message.need_check_feed
    )
