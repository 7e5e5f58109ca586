"""The objects that Fluid's attribute ``desc`` returns, with the few methods that scripts use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework.environment import PADDLE_VERSION
from paddlelike.hooks import Hook

_encode_program: Final[Hook[[Any], bytes]] = Hook("encode_program")


class _Program(Protocol):
    """The members of a program that its description uses."""

    is_versioned: bool
    has_operator_versions: bool

    @property
    def num_blocks(self) -> int: ...

    @property
    def paddle_version(self) -> int: ...

    def block(self, index: int) -> Any: ...


class _Operator(Protocol):
    """The members of an operator that its description uses."""

    type: str
    is_target: bool
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    block: Any


class _Variable(Protocol):
    """The members of a variable that its description uses."""

    name: str
    type: VarType
    dtype: VarType
    shape: tuple[int, ...]
    lod_level: int
    persistable: bool
    need_check_feed: bool


class ProgramDesc:
    """Fluid's ``program.desc``."""

    def __init__(self, program: _Program) -> None:
        self._program = program

    def serialize_to_string(self) -> bytes:
        """Return the program as a serialized ProgramDesc. Raises GraphError when it cannot be encoded."""
        return _encode_program.function(self._program)

    def flush(self) -> None:
        """Do nothing: an operator is in the program as soon as it is appended."""

    def _set_version(self) -> None:
        """Record the version of Paddle 1.8.5 in the encoding."""
        self._program.is_versioned = True

    def _version(self) -> int:
        """Return the version in the encoding."""
        return self._program.paddle_version or PADDLE_VERSION

    def add_operator_versions(self) -> None:
        """Add the table of operator versions to the encoding, as exported models have it."""
        self._program.has_operator_versions = True

    def num_blocks(self) -> int:
        """Return the number of blocks."""
        return self._program.num_blocks

    def block(self, index: int) -> BlockDesc:
        """Return the description of the block of that index. Raises IndexError."""
        return BlockDesc(self._program.block(index))


class BlockDesc:
    """Fluid's ``block.desc``; all other attributes come from the block. Names may be bytes, as in Fluid."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._block, name)

    @property
    def id(self) -> int:
        """The index of the block."""
        return int(self._block.idx)

    @property
    def parent(self) -> int:
        """The index of the block that contains it, or -1."""
        return int(self._block.parent_idx)

    def op(self, index: int) -> OperatorDesc:
        """Return the description of an operator. Raises IndexError."""
        return OperatorDesc(self._block.ops[index])

    def all_vars(self) -> list[VariableDesc]:
        """Return the descriptions of the block's variables."""
        return [VariableDesc(variable) for variable in self._block.vars.values()]

    def has_var(self, name: str | bytes) -> bool:
        """Return whether the block has that variable; outer blocks do not count."""
        return _to_text(name) in self._block.vars

    def find_var(self, name: str | bytes) -> VariableDesc | None:
        """Return the description of a variable of this block, or None if the block does not have it."""
        found = self._block.vars.get(_to_text(name))
        return None if found is None else VariableDesc(found)

    def find_var_recursive(self, name: str | bytes) -> VariableDesc | None:
        """Return the description of a variable of the block or of one around it; None when there is none."""
        found = self._block._find_var_recursive(_to_text(name))
        return None if found is None else VariableDesc(found)


def _to_text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


class OperatorDesc:
    """Fluid's ``op.desc``: properties are methods here; other attributes are taken from the operator."""

    def __init__(self, operator: _Operator) -> None:
        self._operator = operator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)

    def type(self) -> str:
        """Return the operator's type."""
        return self._operator.type

    def set_type(self, type: str) -> None:  # noqa: A002  (Fluid's name)
        """Set the operator's type."""
        self._operator.type = type
        self._operator.block.program._note_change()

    def is_target(self) -> bool:
        """Return whether pruning always keeps the operator."""
        return self._operator.is_target

    def input_names(self) -> list[str]:
        """Return the names of the input slots."""
        return list(self._operator.inputs)

    def output_names(self) -> list[str]:
        """Return the names of the output slots."""
        return list(self._operator.outputs)

    def input_arg_names(self) -> list[str]:
        """Return the names of all input variables."""
        return [name for names in self._operator.inputs.values() for name in names]

    def output_arg_names(self) -> list[str]:
        """Return the names of all output variables."""
        return [name for names in self._operator.outputs.values() for name in names]

    def attr_names(self) -> list[str]:
        """Return the names of the attributes."""
        return list(self._operator.attrs)


class VariableDesc:
    """Fluid's ``var.desc``."""

    def __init__(self, variable: _Variable) -> None:
        self._variable = variable

    def name(self) -> str:
        """Return the variable's name."""
        return self._variable.name

    def type(self) -> VarType:
        """Return the variable's type, such as LOD_TENSOR."""
        return self._variable.type

    def dtype(self) -> VarType:
        """Return the element type."""
        return self._variable.dtype

    def shape(self) -> list[int]:
        """Return the dims."""
        return list(self._variable.shape)

    get_shape = shape

    def lod_level(self) -> int:
        """Return the depth of nested sequences."""
        return self._variable.lod_level

    def set_lod_level(self, lod_level: int) -> None:
        """Set the depth of nested sequences."""
        self._variable.lod_level = lod_level

    def set_type(self, type: VarType) -> None:  # noqa: A002  (Fluid's name)
        """Set the variable's type."""
        self._variable.type = VarType(type)

    def need_check_feed(self) -> bool:
        """Return whether arrays that are fed for it are checked."""
        return self._variable.need_check_feed

    def persistable(self) -> bool:
        """Return whether the value outlives a run."""
        return self._variable.persistable

    def set_persistable(self, persistable: bool) -> None:
        """Set whether the value outlives a run. Raises GraphError for False on a parameter."""
        self._variable.persistable = persistable

    def set_shape(self, shape: Sequence[int]) -> None:
        """Set the dims."""
        self._variable.shape = tuple(shape)

    def set_dtype(self, dtype: Any) -> None:
        """Set the element type. Raises TypeError for a dtype that Paddle does not have."""
        self._variable.dtype = convert_dtype(dtype)
