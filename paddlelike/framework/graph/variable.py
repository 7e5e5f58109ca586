"""Variables of a program: parameters, other persistables, temporaries.

| kind | lives | saved by |
|---|---|---|
| parameter | as long as its scope; trained | save_params, save_persistables |
| persistable (moments, counters, learning rate) | as long as its scope | save_persistables |
| temporary (inputs, activations, gradients) | one run | nobody |
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import numpy as np

from paddlelike import unique_name
from paddlelike.core import VarType, convert_dtype
from paddlelike.errors import GraphError
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.near_names import find_same_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.graph.desc import VariableDesc
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.states import EncodedState
from paddlelike.hooks import Hook
from paddlelike.import_paddle import is_installed

if TYPE_CHECKING:
    from types import EllipsisType

    from paddlelike.core import DtypeLike
    from paddlelike.core.typing import Number
    from paddlelike.framework.graph.block import Block

__all__ = ["HOLDERS", "TENSOR_LIKE", "Parameter", "Variable", "variable_kind"]

_format_variable: Final[Hook[..., str]] = Hook("format_variable")
_cast: Final[Hook[[Variable, Any], Variable]] = Hook("cast")
_getitem: Final[Hook[[Variable, Any], Variable]] = Hook("getitem")
_negate: Final[Hook[[Variable], Variable]] = Hook("negate")
_combine: Final[Hook[..., Variable]] = Hook("combine")

#: Kinds of variables that have a shape and an element type.
TENSOR_LIKE: Final = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
#: Kinds that never count as persistable, whatever their flag says.
HOLDERS: Final = (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.READER)

#: Names that variables of the dynamic graph have, and variables of a static program do not.
_VALUES: Final = (
    "programs are static, variables have values only when they run\n"
    "  hint: fetch it, (value,) = exe.run(program, feed=..., fetch_list=[variable]); the "
    "value of a persistable is fluid.global_scope().find_var(variable.name).get_tensor()"
)
_GRADIENTS: Final = (
    "programs are static\n  hint: optimizer.minimize(loss) appends the gradients and the update, once; "
    "fluid.gradients(loss, inputs) the gradients alone; exe.run then computes them"
)
_STEPS: Final = (
    "a schedule is a part of the program\n  hint: leave the call out: each exe.run(program, feed=...) that "
    "trains counts a step of the schedule"
)
_DEVICE: Final = (
    "programs are static\n  hint: the Executor's place is the device: fluid.Executor(fluid.CPUPlace())"
)
_OF_DYNAMIC_GRAPH: Final = {
    "step": _STEPS,
    **dict.fromkeys(("cuda", "to"), _DEVICE),
    **dict.fromkeys(("clear_gradient", "cpu", "detach", "item", "numpy", "set_value", "tolist"), _VALUES),
    **dict.fromkeys(("backward", "grad", "gradient"), _GRADIENTS),
}

#: A part of a dim: one item, or several.
Index: TypeAlias = "int | slice | EllipsisType | Variable | None"


class Variable(EncodedState, Displayed):
    """A named value in a :class:`Block`; created by :meth:`Block.create_var`.

    Python's operators on a variable append operators to the current block of its program.

    Parameters
    ----------
    block
        The block that it belongs to.
    type
        The kind of the value: a tensor with a LoD, an array of tensors, ...
    name
        The name; None for a generated one.
    shape
        The shape of the value, a tuple of int. A dim of -1 is not known until a value is fed.
    dtype
        The type of the elements, a VarType.
    lod_level
        The number of levels of sequences that the rows have.
    capacity
        The number of batches in a reader's queue; None for other variables.
    persistable
        Whether the value outlives a run.
    error_clip
        A clip of its gradient; None for none.
    stop_gradient
        Whether the backward pass stops at this variable.
    is_data
        Whether it is fed.
    need_check_feed
        Whether shape and dtype of a feed are compared.
    belong_to_optimizer
        Whether it is part of an optimizer's state.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 4])
    >>> x.name, x.shape, x.persistable
    ('x', (-1, 4), False)
    """

    #: Whether the encoding holds the LoD level or the persistability even if that is the default. True for
    #: variables pickled without it.
    declares_lod_level = True
    declares_persistable = True

    def __init__(
        self,
        block: Block,
        type: VarType = VarType.LOD_TENSOR,  # noqa: A002  (Fluid's name)
        name: str | bytes | None = None,
        shape: Sequence[int] | None = None,
        dtype: DtypeLike | None = None,
        lod_level: int | None = None,
        capacity: int | None = None,
        persistable: bool | None = None,
        error_clip: object = None,
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
        self.type = type if isinstance(type, VarType) else VarType(type)
        self.shape: tuple[int, ...] = () if shape is None else tuple(map(int, shape))
        self.dtype: VarType = VarType.BOOL if dtype is None else convert_dtype(dtype)
        self.lod_level: int = 0 if lod_level is None else lod_level
        self.declares_lod_level = lod_level is not None
        self.capacity = capacity
        self.persistable = bool(persistable)
        self.declares_persistable = persistable is not None
        self.error_clip = error_clip
        self.stop_gradient = stop_gradient
        self.is_data = is_data
        self.need_check_feed = need_check_feed
        self.belong_to_optimizer = belong_to_optimizer
        self.reads: list[tuple[VarType, tuple[int, ...], int]] = []  # for a reader: dtype, shape, lod_level
        self.op: Operator | None = None  # the last operator that writes it
        self.encoded: Any = None  # the message it was read from, for fields that this class does not have

    @property
    def persistable(self) -> bool:
        """Whether the value outlives a run."""
        return self._persistable

    @persistable.setter
    def persistable(self, persistable: bool) -> None:
        self._persistable = persistable
        self.block.program._note_change()  # cached plans keep other values

    @property
    def desc(self) -> VariableDesc:
        """Fluid's C++ description of this variable."""
        return VariableDesc(self)

    @property
    def grad_name(self) -> str:
        """The name of this variable's gradient."""
        return self.name + "@GRAD"

    def _set_error_clip(self, error_clip: object) -> None:
        """Set how the gradient of this variable is clipped (see :mod:`paddlelike.clip`)."""
        self.error_clip = error_clip

    def _set_info(self, key: str, value: object) -> None:
        """Store a value with this variable, for :meth:`_get_info`. Scripts call both."""
        self._info = {**self.__dict__.get("_info", {}), key: value}

    def _get_info(self, key: str) -> Any:
        """Return the value kept by :meth:`_set_info`, or None if none was set."""
        return self.__dict__.get("_info", {}).get(key)

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """Return this variable as text; ``with_details`` adds attributes that a ProgramDesc does not hold."""
        return _format_variable.function(self, with_details=with_details)

    def __str__(self) -> str:
        return self.to_string(True)

    def __repr__(self) -> str:
        kind = variable_kind(self)
        return f"<{kind} {self.name}: {self.dtype.name.lower()}{list(self.shape)}>"

    def clone_into(self, block: Block) -> Variable:
        """Return a copy of this variable in another block."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.block, copy.op = block, None
        return copy

    # Python's operators

    __hash__ = object.__hash__  # containers compare variables by identity: == appends an operator

    def __bool__(self) -> bool:
        """Raise TypeError: a variable has no value while the program is built.

        In a script that imports ``paddle``, return True with a warning (Fluid does not warn): published
        programs test this way whether a variable exists.
        """
        if is_installed():
            warn_user(
                f"variable {self.name!r} is always true while the program is built, whatever its value. "
                "Use layers.cond for its value, `is not None` to test whether it is there"
            )
            return True
        raise TypeError(
            f"variable {self.name!r} has no truth value: it gets its value when the program runs, so that "
            "`if`, `and`, `or`, `not` and `in` cannot depend on it\n"
            "  hint: use layers.cond or layers.Switch, layers.while_loop, layers.logical_and and its kin; "
            "to ask whether there is a variable, `is not None`"
        )

    def astype(self, dtype: DtypeLike) -> Variable:
        """Append a conversion to another element type. Return its output."""
        return _cast.function(self, dtype)

    def __getitem__(self, item: Index | tuple[Index, ...]) -> Variable:
        return _getitem.function(self, item)

    def __neg__(self) -> Variable:
        return _negate.function(self)

    def __add__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_add")

    __radd__ = __add__

    def __sub__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_sub")

    def __rsub__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_sub", reverse=True)

    def __mul__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_div")

    def __rtruediv__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_div", reverse=True)

    def __pow__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_pow")

    def __rpow__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_pow", reverse=True)

    def __floordiv__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_floordiv")

    def __mod__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "elementwise_mod")

    def __eq__(self, other: object) -> Variable:  # type: ignore[override]  # an operator, not a bool
        return _combine.function(self, other, "equal")

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return _combine.function(self, other, "not_equal")

    def __lt__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "less_than")

    def __le__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "less_equal")

    def __gt__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "greater_than")

    def __ge__(self, other: Variable | Number) -> Variable:
        return _combine.function(self, other, "greater_equal")

    if not TYPE_CHECKING:  # type checkers report these names

        def __float__(self) -> NoReturn:
            raise TypeError(
                f"variable {self.name!r} is not a number: it gets its value when the program runs\n"
                f"  hint: (value,) = exe.run(program, feed=..., fetch_list=[{self.name!r}])"
            )

        __int__ = __index__ = __float__

        def __format__(self, spec: str) -> str:
            return self.__float__() if spec and spec[-1:] in "bcdeEfFgGnoxX%" else format(str(self), spec)

        __array_ufunc__ = None  # so that numpy's numbers leave arithmetic to the variable

        def __array__(self, dtype: object = None, copy: object = None) -> object:
            """Return an array of objects that holds the variable; arithmetic with it builds operators."""
            if dtype is not None and np.dtype(dtype) != object:
                self._refuse_numpy()
            held = np.empty((), object)
            held[()] = self
            return held

        def __array_function__(self, function: object, *_: object) -> object:
            """Return the shape for ``np.shape``; raise TypeError for other functions, which would treat the
            variable as one number.
            """
            return self.shape if function is np.shape else self._refuse_numpy()

        def _refuse_numpy(self) -> NoReturn:
            raise TypeError(
                f"numpy cannot compute with variable {self.name!r}: it gets its value when the program runs\n"
                f"  hint: use functions of fluid.layers, or numpy after (value,) = "
                f"exe.run(program, feed=..., fetch_list=[{self.name!r}])"
            )

        def __setitem__(self, item: Any, value: Any) -> None:
            raise TypeError(
                f"parts of variable {self.name!r} cannot be set: operators make new variables\n"
                "  hint: layers.scatter, layers.where and layers.concat make one with other values"
            )

        def __iter__(self) -> NoReturn:
            raise TypeError(
                f"variable {self.name!r} cannot be iterated over; use layers.unstack or layers.split"
            )

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError; for names of the dynamic graph the error says what static programs do."""
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _OF_DYNAMIC_GRAPH:
                text += f": {_OF_DYNAMIC_GRAPH[name]}"
            elif not name.startswith("_"):
                layers = getattr(sys.modules.get("paddlelike.layers"), "__all__", ())
                text += "".join(f"; use layers.{one}" for one in find_same_names(name, layers)[:1])
            raise AttributeError(text, name=name, obj=self)

        def __contains__(self, item: object) -> NoReturn:
            raise TypeError(
                f"variable {self.name!r} has no elements before it has a value, so that nothing is `in` it\n"
                "  hint: layers.reduce_any(variable == value); or fetch it, and look into the array"
            )

    def __len__(self) -> int:
        raise TypeError(f"variable {self.name!r} has no length before it has a value; use its shape")


class Parameter(Variable):
    """A variable that training changes. It is always persistable.

    Parameters
    ----------
    block
        The block that the parameter belongs to.
    shape
        Positive dims, at least one.
    dtype
        The element type, such as "float32".
    type
        The type of variable.
    name
        The name; None for a generated one.
    trainable
        Whether optimizers change it.
    optimize_attr
        ``{"learning_rate": factor}``: the factor multiplies the learning rate of the optimizer.
    regularizer
        The penalty on this parameter, instead of the optimizer's.
    do_model_average
        Whether ``optimizer.ModelAverage`` averages it; None means yes.
    is_distributed
        Kept for scripts that read it; the look-up of a table decides whether its rows are on servers.
    **kwargs
        Further arguments of :class:`Variable`.

    Raises
    ------
    GraphError
        The shape is empty or has a dim that is not positive, or the element type is missing.

    See Also
    --------
    fluid.framework.Block, fluid.framework.Operator, fluid.Program, fluid.Variable

    >>> import paddlelike as fluid
    >>> _ = fluid.layers.fc(fluid.data("x", [None, 4]), 3, param_attr="w")
    >>> w = fluid.default_main_program().global_block().var("w")
    >>> w.shape, w.trainable, w.persistable
    ((4, 3), True, True)
    """

    def __init__(
        self,
        block: Block,
        shape: Sequence[int],
        dtype: DtypeLike,
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


def variable_kind(variable: Variable) -> str:
    """Return ``"parameter"``, ``"persistable"`` or ``"temporary"``, as in the table above.

    Parameters
    ----------
    variable
        A variable of any program.

    Returns
    -------
    str
        "parameter" for trained values, "persistable" for other saved values such as accumulators, "temporary"
        for the rest.

    See Also
    --------
    fluid.framework.grad_var_name, fluid.framework.Parameter

    >>> import paddlelike as fluid
    >>> variable_kind(fluid.data("x", [None, 4]))
    'temporary'
    """
    if isinstance(variable, Parameter):
        return "parameter"
    if variable.persistable and variable.type not in HOLDERS:
        return "persistable"
    return "temporary"
