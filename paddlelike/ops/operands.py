"""Checks and conversions of operands: an axis in range, sizes from an attribute or a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, OpDef, Spec


def check_same_dtype(op: str, first: Array, others: Iterable[Array], names: str = "X and Y") -> None:
    """Raise EnforceNotMet unless all operands hold one element type, which no kernel of Fluid converts."""
    for other in others:
        if other.dtype != first.dtype:
            raise EnforceNotMet(
                f"{op}: {names} hold {first.dtype} and {other.dtype}, expected one element type",
                hint=f'convert one of them before: layers.cast(variable, "{first.dtype}")',
            )


def normalize_axis(op: str, axis: int, rank: int, *, name: str = "axis") -> int:
    """Return ``axis`` counted from the front. Raises ShapeError when it is not in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{op}: {name} is {axis}, but the input has {rank} dims",
            hint=f"take one of {-rank} .. {rank - 1}" if rank else None,
        )
    return axis % rank


def read_numbers(attr: Sequence[int], tensor: Array | None, tensors: Sequence[Array] | None) -> list[int]:
    """Return numbers from one tensor each if there are any, else from one tensor, else from the attribute."""
    if tensors:
        return [int(one.reshape(-1)[0]) for one in tensors]
    if tensor is not None:
        return [int(number) for number in tensor.reshape(-1)]
    return list(attr)


def is_known(shape: Iterable[int]) -> bool:
    """Return whether every dim is known (none is -1)."""
    return all(dim >= 0 for dim in shape)


def count_elements(shape: Iterable[int]) -> int:
    """Return the number of elements, -1 when a dim is unknown."""
    dims = list(shape)
    return math.prod(dims) if is_known(dims) else -1


def can_be_equal(a: int, b: int) -> bool:
    """Return whether two dims may be equal: they are, or one is not known yet."""
    return a == b or a < 0 or b < 0


def keep_spec(x: Spec) -> Spec:
    """Return the spec of an output like the only input."""
    return x


def one_element(dtype: VarType | None = None) -> Any:
    """Return an ``infer`` for an output of shape [1], with the dtype of the first input by default."""

    def infer(*specs: Spec) -> Spec:
        return Spec((1,), specs[0].dtype if dtype is None else dtype)

    return staticmethod(infer)


def same_shape(*slots: str) -> Any:
    """Return an ``infer`` for inputs of one shape, which all outputs have; else it raises ShapeError."""

    def infer(cls: type[OpDef], *specs: Spec) -> Spec | tuple[Spec, ...]:
        given = {slot.name: spec for slot, spec in zip(cls.input_slots, specs, strict=True)}
        same = check_same_shape(cls.type, **{name: given[name] for name in slots})
        return same if len(cls.output_slots) == 1 else (same,) * len(cls.output_slots)

    return classmethod(infer)


def fill_box(part: Array, whole: Array, box: tuple[slice, ...]) -> Array:
    """Return zeros of the shape of ``whole``, with ``part`` in the box: the gradient of cutting out."""
    out = np.zeros(whole.shape, part.dtype)
    place = out[box]
    place[...] = part.reshape(place.shape)
    return out


def check_same_shape(op: str, **specs: Spec) -> Spec:
    """Return the spec of an output shaped like all inputs. Raises ShapeError when they differ."""
    (first, x), *others = specs.items()
    for name, other in others:
        if len(x.shape) != len(other.shape) or not all(map(can_be_equal, x.shape, other.shape)):
            raise ShapeError(
                f"{op}: {first} has shape {x.shape}, {name} {other.shape}; they must be the same"
            )
    return Spec(x.shape, x.dtype)
