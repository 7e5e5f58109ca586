"""Attributes of an operator: types, defaults, and a typed class for attributes that functions read.

An operator with up to three attributes lists them in a table, and its functions take them by keyword:

    attrs = {"axis": Int(-1)}

    @staticmethod
    def infer(x: Spec, *, axis: int) -> Spec: ...

An operator with more attributes declares them as the fields of a class; its functions take an instance as the
keyword ``attrs``. Instances are made when the operator is appended to a program and when a plan is bound:

    class PoolAttrs(Attrs):
        ksize: list[int] = Ints()
        strides: list[int] = Ints([1, 1])

    attrs = PoolAttrs.table(use_cudnn=Bool(False))  # attributes that no function reads are listed here

    @staticmethod
    def infer(x: Spec, *, attrs: PoolAttrs) -> Spec: ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, Self, dataclass_transform

import numpy as np

from paddlelike.core import AttrType


class _Marker:
    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


#: Attributes that every operator may carry, whatever its type, in Fluid's order.
COMMON_ATTRS: Final = {
    "op_role": AttrType.INT,
    "op_role_var": AttrType.STRINGS,
    "op_namescope": AttrType.STRING,
    "op_callstack": AttrType.STRINGS,
    "op_device": AttrType.STRING,
}

REQUIRED: Final = _Marker("REQUIRED")  # an operator cannot be appended without the attribute
ABSENT: Final = _Marker("ABSENT")  # without a value, functions get None


class Attr(NamedTuple):
    """An attribute's type and default."""

    type: AttrType
    default: Any

    @property
    def fallback(self) -> object:
        """The value that functions get when the attribute is missing."""
        return None if self.default is REQUIRED or self.default is ABSENT else self.default


# These read as types in a class body. They return an Attr, typed Any so that a field of an Attrs class
# can be annotated with the type of its value.


def Int(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.INT, default)


def Float(default: Any = REQUIRED) -> Any:  # noqa: N802
    """A float32, as in a program's bytes: 0.9 is 0.899999976 for operators on float64 too."""
    return Attr(AttrType.FLOAT, default if isinstance(default, _Marker) else float(np.float32(default)))


def String(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.STRING, default)


def Ints(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.INTS, default)


def Floats(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.FLOATS, default)


def Strings(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.STRINGS, default)


def Bool(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.BOOLEAN, default)


def Bools(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.BOOLEANS, default)


def Block(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.BLOCK, default)


def Blocks(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.BLOCKS, default)


def Long(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.LONG, default)


def Longs(default: Any = REQUIRED) -> Any:  # noqa: N802
    return Attr(AttrType.LONGS, default)


class AttrTable(dict[str, Attr]):
    """The attributes of an operator, whose functions get them as one instance of an Attrs class."""

    def __init__(self, fields: Mapping[str, Attr], parsed_by: type[Attrs]) -> None:
        super().__init__(fields)
        self.parsed_by = parsed_by

    def parse(self, given: Mapping[str, Any]) -> Attrs:
        """Return the attributes that functions read, with defaults for those that are not given."""
        return self.parsed_by(
            **{name: given.get(name, self[name].fallback) for name in self.parsed_by.fields}
        )


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Attrs:
    """The attributes that an operator's functions read. Subclass it, one annotated field per attribute.

    Instances are immutable and take every field by keyword; a field left out has its default.
    """

    fields: ClassVar[Mapping[str, Attr]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Attr)}
        cls.fields = {**cls.fields, **own}

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.fields.keys()
        missing = [n for n, a in self.fields.items() if a.default is REQUIRED and n not in values]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: unknown fields {sorted(unknown)}, missing {missing}")
        self.__dict__.update({name: attr.fallback for name, attr in self.fields.items()} | values)

    @classmethod
    def table(cls, **more: Attr) -> AttrTable:
        """Return the table of an operator: these fields, and attributes that no function reads.

        A field named in ``more`` gets another default, such as the strides of a pool in three dims.
        """
        return AttrTable({**cls.fields, **more}, cls)

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values in some fields."""
        return type(self)(**(vars(self) | values))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: attributes are read-only")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in self.fields)})"
