"""The class of optimizer updates: which arrays an operator updates, by which rule, and with which numbers.

Every update writes into the arrays it is given (``inplace``) and returns them. Its rule
(:mod:`paddlelike.ops.update.rules`) is a formula for one element. It is applied to parts of large parameters,
to the rows of a sparse gradient, and to several small parameters at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Array, FlatKernel, GroupKernel, OpDef, RowUpdate, Spec
from paddlelike.ops.kernels.growing_rows import GrowingRows
from paddlelike.ops.update.groups import make_flat_kernel, make_group_kernel
from paddlelike.ops.update.rules import Rows, Step, apply, is_empty_sparse


class _Places(NamedTuple):
    """The indices of the input slots that a rule uses, and the indices of the other input slots.

    ``outputs``: for each output, its index in the list of parameter, state, other slots and all inputs.
    """

    elements: tuple[int, ...]
    others: tuple[int, ...]
    outputs: tuple[int, ...]


class Update(OpDef):
    """An operator that changes some inputs in place: its output ``<slot>Out`` is the input ``<slot>``."""

    #: The slots of arrays with an element for each of the parameter, in the order in which the rule takes
    #: them: Param, Grad, then the state. Empty: it has a ``forward`` of its own.
    elements: ClassVar[tuple[str, ...]] = ()
    rows: ClassVar[Rows] = Rows.REFUSED
    #: Return the rule with its numbers, from the arrays of the other slots and the attributes.
    read_step: ClassVar[Callable[..., Step]]

    def __init_subclass__(cls) -> None:
        if "outputs" in vars(cls) and "inplace" not in vars(cls):
            cls.inplace = {slot: slot.removesuffix("Out") for slot in cls.outputs}

    @classmethod
    def move_on(cls, *others: Any, **keywords: Any) -> tuple[Any, ...]:
        """Advance, in place, the inputs that the rule does not use to the next step, and return them."""
        return others

    @classmethod
    def list_elements(cls, keywords: Mapping[str, Any]) -> tuple[str, ...]:
        """Return those entries of ``elements`` that the rule uses with these attributes."""
        return cls.elements

    @classmethod
    def choose_rows(cls, keywords: Mapping[str, Any], *, as_dense: bool) -> Rows:
        """Return how to apply a sparse gradient: like a dense one if ``as_dense``."""
        return cls.rows

    @classmethod
    def forward(cls, *inputs: Any, **keywords: Any) -> Any:
        return cls.run(inputs, keywords)

    @classmethod
    def run(
        cls,
        inputs: Sequence[Any],
        keywords: Mapping[str, Any],
        *,
        as_dense: bool = False,
        awake: Array | None = None,
    ) -> Any:
        """Run an update. ``as_dense`` applies a sparse gradient like a dense one (to the rows ``awake``)."""
        places = _find_places(cls, cls.list_elements(keywords))  # type: ignore[arg-type] # mypy: no class is Hashable
        if isinstance(inputs[places.elements[0]], GrowingRows):
            return cls._update_table(inputs, keywords, places)
        arrays = param, grad, *state = [inputs[index] for index in places.elements]
        others: Sequence[Any] = [inputs[index] for index in places.others]
        rows = cls.choose_rows(keywords, as_dense=as_dense)
        if rows is Rows.REFUSED:
            require_dense(cls.type, grad)
        new = (param, *state)
        if not is_empty_sparse(grad):
            is_sparse = isinstance(grad, SelectedRows) and not as_dense
            step = (
                cls.read_sparse_step(*others, **keywords) if is_sparse else cls.read_step(*others, **keywords)
            )
            new = apply(step, *arrays, rows=rows, awake=awake)
            others = cls.move_on(*others, **keywords)
        results = (*new, *others, *inputs)
        found = [results[index] for index in places.outputs]
        return tuple(found) if len(found) > 1 else found[0]

    @classmethod
    def _update_table(cls, inputs: Sequence[Any], keywords: Mapping[str, Any], places: _Places) -> Any:
        """Carry out an update of the rows in a growing table."""
        table, grad, *state = [inputs[index] for index in places.elements]
        if not isinstance(grad, SelectedRows):
            raise ShapeError(
                f"{cls.type}: Param is a growing table (sparse_embedding); "
                f"Grad must be SelectedRows, got {type(grad).__name__}"
            )
        if table.is_stored and cls.choose_rows(keywords, as_dense=False) is not Rows.KEPT:
            raise UnsupportedError(
                f"{cls.type} updates every row of a table at every step, also rows that are not in memory",
                hint="SGD, Adagrad and Adam(lazy_mode=True) update only rows that were looked up; or use "
                "MemorySparseTable",
            )
        at = table.find_rows(grad.row_array)
        for one in state:
            one.follow(table)
        known = at >= 0
        rows = SelectedRows(at[known], len(table.row_array), np.asarray(grad.held_array)[known])
        arrays = list(inputs)
        for index, value in zip(places.elements, (table, rows, *state), strict=True):
            arrays[index] = rows if value is rows else value.held_array
        cls.run(arrays, keywords)  # by the sum of each id, as servers receive it
        for one in (table, *state):
            one.get_tensor().touch()
        outputs = tuple(inputs[index] for index in _find_overwritten(cls))
        return outputs if len(outputs) > 1 else outputs[0]

    @classmethod
    def read_sparse_step(cls, *others: Any, **keywords: Any) -> Step:
        """Return the result of ``read_step`` for sparse gradients."""
        return cls.read_step(*others, **keywords)

    @classmethod
    def make_group_kernel(cls, keywords: Mapping[str, Any]) -> GroupKernel | None:
        return make_group_kernel(cls, keywords) if cls.elements else None

    @classmethod
    def make_flat_kernel(cls, keywords: Mapping[str, Any]) -> FlatKernel | None:
        return make_flat_kernel(cls, keywords) if cls.elements else None

    @classmethod
    def make_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate:
        """Return the row update of an operator that also changes rows with a nonzero state, such as adam."""
        places = _find_places(cls, cls.elements).elements  # type: ignore[arg-type] # mypy: no class is Hashable

        def holds(*inputs: Any) -> bool:
            param, grad, *state = (inputs[index] for index in places)
            return not is_empty_sparse(grad) and all(is_like(param, one) for one in state)

        def update(*inputs: Any, awake: Array | None) -> Any:
            return cls.run(inputs, keywords, as_dense=True, awake=awake)

        return RowUpdate((), holds, update, places[2:])

    @classmethod
    def infer(cls, *specs: Spec | None) -> Spec | tuple[Spec | None, ...]:
        """Return the spec of each output: the spec of the input that it overwrites."""
        given = {slot.name: spec for slot, spec in zip(cls.input_slots, specs, strict=True)}
        _check_shapes(cls.type, given)
        sources = [given[cls.inplace[slot.name]] for slot in cls.output_slots]
        results = tuple(None if spec is None else Spec(spec.shape, spec.dtype) for spec in sources)
        first = results[0]
        return first if len(results) == 1 and first is not None else results


@functools.cache
def _find_places(cls: type[Update], elements: Sequence[str]) -> _Places:
    names = [slot.name for slot in cls.input_slots]
    others = [name for name in names if name not in cls.elements]
    found = [elements[0], *elements[2:], *others, *names]
    outputs = [found.index(cls.inplace[slot.name]) for slot in cls.output_slots]
    return _Places(tuple(map(names.index, elements)), tuple(map(names.index, others)), tuple(outputs))


def _find_overwritten(cls: type[Update]) -> list[int]:
    """Return the indexes of the inputs that the outputs overwrite."""
    names = [slot.name for slot in cls.input_slots]
    return [names.index(cls.inplace[slot.name]) for slot in cls.output_slots]


def _check_shapes(type: str, given: dict[str, Spec | None]) -> None:
    param, grad, rate = given.get("Param"), given.get("Grad"), given.get("LearningRate")
    if rate is not None and -1 not in rate.shape and int(np.prod(rate.shape)) != 1:
        raise ShapeError(f"{type}: LearningRate has shape {rate.shape}; it must hold one number")
    if param is None or grad is None or VarType.SELECTED_ROWS in (param.kind, grad.kind):
        return
    if len(param.shape) != len(grad.shape) or any(
        a != b and -1 not in (a, b) for a, b in zip(param.shape, grad.shape, strict=True)
    ):
        raise ShapeError(f"{type}: Param has shape {param.shape} and Grad {grad.shape}; they must be equal")


def read_scalar(array: Array) -> float:
    """Return the value of a learning rate, or of a power of beta, as a float."""
    return float(array.item())


def choose(condition: bool, value: float, other: float) -> float:
    """Return the first or the second number."""
    return value if condition else other


def is_like(param: Array, state: Any) -> bool:
    """Return whether an array has the shape and the dtype of the parameter."""
    return type(state) is np.ndarray and state.shape == param.shape and state.dtype is param.dtype


def is_plain_rate(rate: Array, param: Array) -> bool:
    """Return whether a learning rate times 0.0 is 0.0 in the dtype of the parameter, not NaN and not -0.0."""
    if rate.size != 1:
        return False
    number = param.dtype.type(rate.item())
    return bool(np.isfinite(number) and not np.signbit(number))


def require_dense(type: str, grad: Array | SelectedRows) -> Array:
    """Return the gradient; raise UnsupportedError when it is sparse."""
    if isinstance(grad, SelectedRows):
        raise UnsupportedError(
            f"{type}: Grad is sparse ({grad.row_array.size} rows of {grad.height()})",
            hint="build the embedding with is_sparse=False, or use sgd, momentum, adagrad or adam",
        )
    return grad


def norm(x: Array) -> float:
    """Return the Euclidean norm of all elements."""
    return float(np.sqrt(np.vdot(x, x)))
