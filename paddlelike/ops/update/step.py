"""The class of optimizer updates, and pieces of their formulas.

Every update writes into the arrays it is given (``inplace``) and returns them. A rule is written
once, ``update``, for one block of elements: of a part of a large parameter, of the rows of a sparse gradient,
or of several small parameters one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Array, FlatKernel, GroupKernel, Kernel, OpDef, Spec
from paddlelike.ops.kernels.fast.updates import Rule
from paddlelike.ops.update.groups import make_flat_kernel, make_group_kernel

__all__ = [
    "Update",
    "average",
    "is_like",
    "is_plain_rate",
    "norm",
    "quotient",
    "read_scalar",
    "require_dense",
    "shrink",
]


class Update(OpDef):
    """An operator whose outputs are some of its inputs, changed in place."""

    #: The slots of arrays with an element for each of the parameter, in the order in which ``update`` takes
    #: them: Param, Grad, then the state. Empty: parameters are not updated several at a time.
    elements: ClassVar[tuple[str, ...]] = ()
    #: The numbers of the formula meet arrays only, so that they may be arrays without dims: numpy takes 0.3
    #: microseconds for such an operand, 0.6 for a float.
    operands: ClassVar[bool] = False
    #: Return the numbers of the formula from the arrays of the other slots; move powers on to the next step.
    read_numbers: ClassVar[Kernel]
    #: The formula: takes the numbers and arrays of one shape, writes into all of them but Grad.
    update: ClassVar[Kernel]

    @staticmethod
    def make_rule(numbers: Any) -> Rule | None:
        """Return the formula in one compiled pass, with the numbers of ``read_numbers``, if there is one."""
        return None

    @classmethod
    def list_elements(cls, keywords: Mapping[str, Any]) -> tuple[str, ...]:
        """Return those of ``elements`` that the formula uses with these attributes."""
        return cls.elements

    @classmethod
    def make_group_kernel(cls, keywords: Mapping[str, Any]) -> GroupKernel | None:
        return make_group_kernel(cls, keywords) if cls.elements else None

    @classmethod
    def make_flat_kernel(cls, keywords: Mapping[str, Any]) -> FlatKernel | None:
        return make_flat_kernel(cls, keywords) if cls.elements else None

    @classmethod
    def infer(cls, *specs: Spec | None) -> Spec | tuple[Spec | None, ...]:
        """Return the spec of each output: that of the input it overwrites."""
        given = {slot.name: spec for slot, spec in zip(cls.input_slots, specs, strict=True)}
        _check_shapes(cls.type, given)
        sources = [given[cls.inplace[slot.name]] for slot in cls.output_slots]
        results = tuple(None if spec is None else Spec(spec.shape, spec.dtype) for spec in sources)
        first = results[0]
        return first if len(results) == 1 and first is not None else results


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


def is_like(param: Array, state: Any) -> bool:
    """Return whether an array has the shape and the dtype of the parameter."""
    return type(state) is np.ndarray and state.shape == param.shape and state.dtype is param.dtype


def is_plain_rate(rate: Array, param: Array) -> bool:
    """Return whether a learning rate times 0.0 is 0.0 in the dtype of the parameter: not NaN, not -0.0."""
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


def shrink(p: Array, l1: float, l2: float) -> None:
    """``p = sign(p) max(|p| - l1, 0) / (1 + l2)``, in place."""
    if l1 > 0:
        np.copysign(np.maximum(np.abs(p) - l1, 0), p, out=p)
    p /= 1 + l2


def average(mean: Array, decay: float, x: Array) -> None:
    """``mean = decay mean + (1 - decay) x``, in place."""
    mean *= decay
    mean += (1 - decay) * x


def quotient(x: Array, square: Array, epsilon: float) -> Array:
    """``x / (sqrt(square) + epsilon)``, a new array."""
    root = np.sqrt(square)
    root += epsilon
    return np.divide(x, root, out=root)
