"""Types, shapes and attributes of values in Paddle 3's JSON. Anything else raises FormatError."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple, TypeVar

from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import FormatError

Wanted = TypeVar("Wanted")

TENSOR: Final = "0.t_dtensor"
ARRAY: Final = "1.t_dense_tensor_array"
#: Element types, by their names in types.
TYPES: Final = {
    "0.t_bool": VarType.BOOL,
    "0.t_i8": VarType.INT8,
    "0.t_ui8": VarType.UINT8,
    "0.t_i16": VarType.INT16,
    "0.t_i32": VarType.INT32,
    "0.t_i64": VarType.INT64,
    "0.t_f16": VarType.FP16,
    "0.t_bf16": VarType.BF16,
    "0.t_f32": VarType.FP32,
    "0.t_f64": VarType.FP64,
    "0.t_c64": VarType.COMPLEX64,
    "0.t_c128": VarType.COMPLEX128,
}
_NAMES: Final = "bool int8 uint8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
#: Element types, by their names in attributes.
DTYPES: Final = {
    "Undefined(ALL_DTYPE)": -1,
    **{name: convert_dtype(name) for name in _NAMES.split()},
}
_PLAIN: Final[dict[str, type | tuple[type, ...]]] = {
    "0.a_bool": bool,
    "0.a_i32": int,
    "0.a_i64": int,
    "0.a_f32": (float, int),
    "0.a_f64": (float, int),
    "0.a_str": str,
}
_SPECIAL: Final = {"INF": math.inf, "-INF": -math.inf, "NAN": math.nan}  # the numbers that JSON lacks
_MAX_ITEMS: Final = 1 << 20  # of a list in an attribute, and of a shape: real ones have a few


class Type(NamedTuple):
    """The type of a value: a tensor, or an array of tensors."""

    kind: VarType
    dtype: VarType
    shape: list[int]


def load(data: bytes) -> object:
    """Return the tree of JSON text. Raises FormatError for damage, and for nesting deeper than in any
    program.
    """
    try:
        tree: object = json.loads(data)
        return tree
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the program of Paddle 3 is damaged: {error!s:.200}") from None


def get(tree: Any, key: str | int, wanted: type[Wanted]) -> Wanted:
    """Return an item of a node. Raises FormatError unless it exists and has that type."""
    try:
        value = tree[key]
    except (LookupError, TypeError):
        raise FormatError(
            f"the program of Paddle 3 is damaged: there is no {key!r} in {tree!r:.80}"
        ) from None
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise FormatError(
            f"the program of Paddle 3 is damaged: {key!r} is {value!r:.80}, expected {wanted.__name__}"
        )
    return value


def get_operand(op: dict[str, Any], index: int) -> dict[str, Any]:
    """Return an operand of an operator."""
    return get(get(op, "I", list), index, dict)


def get_result(op: dict[str, Any]) -> dict[str, Any]:
    """Return the first result of an operator."""
    return get(get(op, "O", list), 0, dict)


def read_type(tree: Any) -> Type | list[Type] | None:
    """Return the type of a value: a list for several tensors, None for an absent value."""
    name = get(tree, "#", str)
    if name == "NULL":
        return None
    if name == "0.t_vec":
        found = [read_type(one) for one in get(tree, "D", list)]
        if any(not isinstance(one, Type) for one in found):
            raise FormatError("the program of Paddle 3 has a list that does not hold tensors")
        return found  # type: ignore[return-value]
    if name not in (TENSOR, ARRAY):
        raise FormatError(f"the program of Paddle 3 has a value of type {name!r:.80}, which is not supported")
    parts = get(tree, "D", list)
    dtype = TYPES.get(get(get(parts, 0, dict), "#", str))
    if dtype is None:
        raise FormatError(f"the program of Paddle 3 has elements {parts[0]!r:.80}, which are not supported")
    kind = VarType.LOD_TENSOR if name == TENSOR else VarType.LOD_TENSOR_ARRAY
    return Type(kind, dtype, _read_numbers(get(parts, 1, list)))


def _read_numbers(values: list[Any]) -> list[int]:
    if len(values) > _MAX_ITEMS or any(type(one) is not int or abs(one) >= 1 << 62 for one in values):
        raise FormatError(f"the program of Paddle 3 is damaged: {values!r:.80} is not a shape")
    return [max(one, -1) for one in values]  # Paddle 3 computes with the -1 of an unknown size


def read_attributes(op: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operator by name, as plain values; element types are numbers."""
    found: dict[str, Any] = {}
    for one in get(op, "A", list):
        name = get(one, "N", str)
        if name in found:
            raise FormatError(f"operator {op['#']!r:.80} of Paddle 3 has attribute {name!r:.80} twice")
        found[name] = _read_attribute(get(one, "AT", dict))
    return found


def _read_attribute(tree: dict[str, Any]) -> object:
    kind = get(tree, "#", str)
    if kind == "0.a_array":
        values = get(tree, "D", list)
        plain = [_read_attribute(one) for one in values if get(one, "#", str) in _PLAIN]
        if len(values) > _MAX_ITEMS or len(plain) < len(values):
            raise FormatError(
                f"the program of Paddle 3 has an attribute {values!r:.80}, which is not supported"
            )
        return plain
    if kind == "1.a_intarray":
        values = get(tree, "D", list)
        if len(values) > _MAX_ITEMS or any(type(one) is not int for one in values):
            raise FormatError(f"the program of Paddle 3 is damaged: {values!r:.80} are not integers")
        return values
    if kind == "1.a_dtype":
        name = get(tree, "D", str)
        if name not in DTYPES:
            raise FormatError(f"the program of Paddle 3 has elements {name!r:.80}, which are not supported")
        return int(DTYPES[name])
    if kind == "1.a_place":
        return None
    value = tree.get("D")
    wanted = _PLAIN.get(kind)
    if kind in ("0.a_f32", "0.a_f64") and isinstance(tree.get("VD"), str):
        value = _SPECIAL.get(tree["VD"])
    if wanted is None or not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise FormatError(f"the program of Paddle 3 has an attribute {tree!r:.80}, which is not supported")
    return value
