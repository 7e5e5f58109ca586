"""Variables of a program: parameters, other persistables, temporaries.

| kind | lives | saved by |
|---|---|---|
| parameter | as long as its scope; trained | save_params, save_persistables |
| persistable (moments, counters, learning rate) | as long as its scope | save_persistables |
| temporary (inputs, activations, gradients) | one run | nobody |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.framework.graph.overloads import Overloads

if TYPE_CHECKING:
    from paddlelike.framework.graph.block import Block
    from paddlelike.framework.graph.operator import Operator

__all__ = ["HOLDERS", "TENSOR_LIKE", "Parameter", "Variable", "VariableDesc", "variable_kind"]

#: Kinds of variables that have a shape and an element type.
TENSOR_LIKE: Final = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
#: Kinds that never count as persistable, whatever their flag says.
HOLDERS: Final = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER)


class Variable(Overloads):
    """A named place for a value in a :class:`Block`; made by :meth:`Block.create_var`.

    Attributes
    ----------
    shape : tuple of int
        A dim of -1 is not known until a value is fed.
    dtype : VarType
        Element type.
    persistable : bool
        Whether the value outlives a run.
    stop_gradient : bool
        Whether the backward pass goes no further than this variable.
    """

    def __init__(
        self,
        block: Block,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002  (Fluid's name)
        name: str | bytes | None = None,
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        lod_level: int | None = None,
        capacity: int | None = None,
        persistable: bool | None = None,
        error_clip: Any = None,
        stop_gradient: bool = False,
        is_data: bool = False,
        need_check_feed: bool = False,
        belong_to_optimizer: bool = False,
        **kwargs: Any,
    ) -> None:
        if name is None:
            name = unique_name.generate("_generated_var")
        self.block = block
        self.name: str = name.decode() if isinstance(name, bytes) else name
        self.type = VarType(type)
        self.shape: tuple[int, ...] = () if shape is None else tuple(int(dim) for dim in shape)
        self.dtype: VarType = VarType.BOOL if dtype is None else convert_dtype(dtype)
        self.lod_level: int = 0 if lod_level is None else lod_level
        self.capacity = capacity
        self.persistable = bool(persistable)
        self.error_clip = error_clip
        self.stop_gradient = stop_gradient
        self.is_data = is_data
        self.need_check_feed = need_check_feed
        self.belong_to_optimizer = belong_to_optimizer
        self.reads: list[tuple[VarType, tuple[int, ...], int]] = []  # of a reader: dtype, shape, lod_level
        self.op: Operator | None = None  # the operator that wrote it last
        self.encoded: Any = None  # the message it was read from, for fields that have no name here

    @property
    def persistable(self) -> bool:
        """Whether the value outlives a run."""
        return self._persistable

    @persistable.setter
    def persistable(self, persistable: bool) -> None:
        self._persistable = persistable
        self.block.program._changed()  # what was planned for a run keeps other values

    @property
    def desc(self) -> VariableDesc:
        """The few calls of Fluid's C++ description that scripts use."""
        return VariableDesc(self)

    @property
    def grad_name(self) -> str:
        """The name of this variable's gradient."""
        return self.name + "@GRAD"

    def _set_error_clip(self, error_clip: Any) -> None:
        """Clip this variable's gradient as soon as it is computed (see :mod:`paddlelike.clip`)."""
        self.error_clip = error_clip

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """This variable as text; ``with_details`` adds what is not part of a ProgramDesc."""
        from paddlelike.framework.codec import text  # text knows every part of a program

        return text.of_variable(self, with_details=with_details)

    def __str__(self) -> str:
        return self.to_string(True)

    def __repr__(self) -> str:
        kind = variable_kind(self)
        return f"<{kind} {self.name}: {self.dtype.name.lower()}{list(self.shape)}>"

    # Graph nodes are compared by identity; == builds an operator (see Overloads).
    __hash__ = object.__hash__

    def clone_into(self, block: Block) -> Variable:
        """A copy of this variable in another block."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.block, copy.op = block, None
        return copy


class Parameter(Variable):
    """A variable that training changes. Always persistable."""

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        dtype: Any,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002
        *,
        name: str | None = None,
        trainable: bool = True,
        optimize_attr: dict[str, Any] | None = None,
        regularizer: Any = None,
        do_model_average: bool | None = None,
        is_distributed: bool = False,
        **kwargs: Any,
    ) -> None:
        if shape is None or len(shape) == 0 or any(dim <= 0 for dim in shape):
            raise GraphError(
                f"parameter {name!r} cannot have shape {shape}",
                hint="every dim of a parameter is a positive number; only data variables have dims of -1",
            )
        if dtype is None:
            raise GraphError(f"parameter {name!r} needs a dtype, such as 'float32'")
        kwargs["persistable"] = True
        super().__init__(block, type, name, shape, dtype, **kwargs)
        self.trainable = trainable
        self.optimize_attr = {"learning_rate": 1.0} if optimize_attr is None else optimize_attr
        self.regularizer = regularizer
        self.do_model_average = do_model_average
        self.is_distributed = is_distributed
        self.gradient_clip_attr: Any = None  # set by fluid.clip.set_gradient_clip

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "persistable" and not value:
            raise GraphError(
                f"parameter {self.name!r} must stay persistable",
                hint="set trainable=False to keep an optimizer from changing it",
            )
        super().__setattr__(name, value)


class VariableDesc:
    """Fluid's ``var.desc``, as far as scripts use it."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def name(self) -> str:
        """The variable's name."""
        return self._variable.name

    def type(self) -> VarType:
        """The variable's kind."""
        return self._variable.type

    def dtype(self) -> VarType:
        """The element type."""
        return self._variable.dtype

    def shape(self) -> list[int]:
        """The dims."""
        return list(self._variable.shape)

    def persistable(self) -> bool:
        """Whether the value outlives a run."""
        return self._variable.persistable

    def set_persistable(self, persistable: bool) -> None:
        """Set whether the value outlives a run."""
        self._variable.persistable = persistable

    def set_shape(self, shape: Sequence[int]) -> None:
        """Declare another shape."""
        self._variable.shape = tuple(shape)

    def set_dtype(self, dtype: Any) -> None:
        """Declare another element type."""
        self._variable.dtype = convert_dtype(dtype)


def variable_kind(variable: Variable) -> str:
    """``"parameter"``, ``"persistable"`` or ``"temporary"``: who keeps and saves this variable's value."""
    if isinstance(variable, Parameter):
        return "parameter"
    if variable.persistable and variable.type not in HOLDERS:
        return "persistable"
    return "temporary"
