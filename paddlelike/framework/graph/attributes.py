"""Attributes of operators: their types, defaults and conversion to plain Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_float
from typing import Any, Final, TypeVar

import numpy as np

from paddlelike.core import AttrType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import ABSENT, REQUIRED, OpDef
from paddlelike.framework.opdef.attributes import COMMON_ATTRS

Item = TypeVar("Item")

_GIVEN_UNLESS_EMPTY: Final = ("op_role_var", "op_device")


def complete_attrs(op: type[OpDef], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operator: the given ones, converted to their types, and defaults for the
    rest.

    ``given`` may hold attributes of :data:`COMMON_ATTRS`; like Fluid, this drops attributes that Paddle's
    operator does not have. Both parts are in the order of Fluid's declaration. Raises EnforceNotMet for a
    wrong type and for a missing attribute without a default.
    """
    attrs, defaults = {}, {}
    for name in op.attr_order:
        kind, default = op.attrs[name]
        value = given.get(name)
        if value is not None:
            attrs[name] = convert_attr(op.type, name, kind, value)
        elif default is REQUIRED:
            raise EnforceNotMet(f"operator {op.type!r} needs the attribute {name!r} ({kind.name})")
        elif default is not ABSENT:
            defaults[name] = list(default) if isinstance(default, list | tuple) else default
    for name, kind in COMMON_ATTRS.items():
        if given.get(name) is not None:
            value = convert_attr(op.type, name, kind, given[name])
            (attrs if value or name not in _GIVEN_UNLESS_EMPTY else defaults)[name] = value
    return attrs | defaults


def convert_given_attrs(op: type[OpDef], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given attributes, converted to their types, without defaults.

    An attribute that the operator does not declare gets the type of its value. Raises EnforceNotMet for a
    wrong type.
    """
    kinds = {
        name: op.attrs[name].type if name in op.attrs else infer_attr_type(v) for name, v in given.items()
    }
    return {name: convert_attr(op.type, name, kinds[name], value) for name, value in given.items()}


def infer_attr_type(value: Any) -> AttrType:
    """Return the attribute type of a plain Python value. Raises EnforceNotMet when there is none."""
    if isinstance(value, list | tuple):
        if not value:
            return AttrType.INTS
        return {
            AttrType.INT: AttrType.INTS,
            AttrType.LONG: AttrType.LONGS,
            AttrType.FLOAT: AttrType.FLOATS,
            AttrType.STRING: AttrType.STRINGS,
            AttrType.BOOLEAN: AttrType.BOOLEANS,
        }[infer_attr_type(value[0])]
    if isinstance(value, bool | np.bool_):
        return AttrType.BOOLEAN
    if isinstance(value, int | np.integer):
        return AttrType.INT if -(2**31) <= value < 2**31 else AttrType.LONG
    if isinstance(value, float | np.floating):
        return AttrType.FLOAT
    if isinstance(value, str | bytes):
        return AttrType.STRING
    raise EnforceNotMet(
        f"{value!r} cannot be an attribute of an operator",
        hint="use a number, a string, a bool, or a list of one of these",
    )


def convert_attr(op: str, name: str, kind: AttrType, value: Any) -> Any:
    """Return ``value`` as the Python type of ``kind``; floats become the nearest float32.

    ``op`` and ``name`` are for the error: EnforceNotMet when the value is not of that kind.
    """
    try:
        return _CONVERTERS[kind](value)
    except (TypeError, ValueError, OverflowError):
        raise EnforceNotMet(
            f"operator {op!r}: attribute {name!r} is {value!r} ({value.__class__.__name__}), "
            f"expected {kind.name}"
        ) from None


def _to_int(value: Any) -> int:
    if isinstance(value, str | bytes) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    if not isinstance(value, int | float | np.generic):
        index = getattr(value, "idx", value)  # a Block stands for its index
        return int(index)
    return int(value)


def _to_float(value: Any) -> float:
    return c_float(value).value  # numpy's float32 takes strings too, and warns of infinity


def _to_string(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise TypeError
    return value


def _to_bool(value: object) -> bool:
    if not isinstance(value, bool | int | np.bool_):
        raise TypeError
    return bool(value)


def _make_list_converter(one: Callable[[Any], Item]) -> Callable[[Sequence[Any]], list[Item]]:
    def convert(values: Sequence[Any]) -> list[Item]:
        if isinstance(values, str | bytes):
            raise TypeError
        return [one(value) for value in values]

    return convert


_CONVERTERS: Final = {
    AttrType.INT: _to_int,
    AttrType.LONG: _to_int,
    AttrType.BLOCK: _to_int,
    AttrType.FLOAT: _to_float,
    AttrType.STRING: _to_string,
    AttrType.BOOLEAN: _to_bool,
    AttrType.INTS: _make_list_converter(_to_int),
    AttrType.LONGS: _make_list_converter(_to_int),
    AttrType.BLOCKS: _make_list_converter(_to_int),
    AttrType.FLOATS: _make_list_converter(_to_float),
    AttrType.STRINGS: _make_list_converter(_to_string),
    AttrType.BOOLEANS: _make_list_converter(_to_bool),
    AttrType.SCALARS: list,  # of messages
}
