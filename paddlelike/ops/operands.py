"""Checks and conversions of operands: an axis in range, sizes from an attribute or a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attr, Bool, OpDef, Spec


def check_same_dtype(op: str, first: Array, others: Iterable[Array], names: str = "X and Y") -> None:
    """Raise EnforceNotMet unless all operands have one element type, since Fluid's kernels convert none."""
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
    """Return numbers from a list of one-element tensors, else from one tensor, else from the attribute."""
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
    """Return whether two dims are equal, or one of them is not known yet."""
    return a == b or a < 0 or b < 0


def keep_spec(x: Spec) -> Spec:
    """Return the spec of an output that has the spec of the only input."""
    return x


def one_element(dtype: VarType | None = None) -> Any:
    """Return an ``infer`` for an output of shape [1], by default with the dtype of the first input."""

    def infer(*specs: Spec) -> Spec:
        return Spec((1,), specs[0].dtype if dtype is None else dtype)

    return staticmethod(infer)


def same_shape(*slots: str) -> Any:
    """Return an ``infer`` for outputs with the common shape of the inputs. It raises ShapeError if inputs
    differ.
    """

    def infer(cls: type[OpDef], *specs: Spec) -> Spec | tuple[Spec, ...]:
        given = {slot.name: spec for slot, spec in zip(cls.input_slots, specs, strict=True)}
        same = check_same_shape(cls.type, **{name: given[name] for name in slots})
        return same if len(cls.output_slots) == 1 else (same,) * len(cls.output_slots)

    return classmethod(infer)


def fill_box(part: Array, whole: Array, box: tuple[slice, ...]) -> Array:
    """Return zeros of the shape of ``whole`` with ``part`` in the box, which is the gradient of a crop."""
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


def check_shape_attr(op: str, shape: Sequence[int], *, unknown: bool = False) -> tuple[int, ...]:
    """Return ``shape`` as a tuple. Raises ShapeError for negative dims, except -1 if ``unknown``."""
    if any(dim < (-1 if unknown else 0) for dim in shape):
        raise ShapeError(
            f"{op}: shape is {list(shape)}, expected dims of 0 or more",
            hint="the *_batch_size_like operators take a size that is known at run time only",
        )
    return tuple(shape)


def infer_sizes(
    op: str, shape: Sequence[int], tensor: Spec | None, tensors: Sequence[Spec]
) -> tuple[int, ...]:
    """Return the shape as far as it is known at build time; if tensors give it, only the rank is known.

    Raises ShapeError when nothing gives a shape.
    """
    if tensors:
        return (-1,) * len(tensors)
    if shape:
        return check_shape_attr(op, shape, unknown=True)
    if tensor is None:
        raise ShapeError(f"{op}: shape is [], expected one dim at least, or ShapeTensor")
    rank = math.prod(tensor.shape)
    if -1 in tensor.shape or rank == 0:
        raise ShapeError(
            f"{op}: ShapeTensor has shape {tensor.shape}, expected a known number of elements",
            hint="declare its size: it is the rank of the result",
        )
    return (-1,) * rank


def infer_batch_size_like(
    op: str, like: Sequence[int], shape: Sequence[int], input_dim_idx: int, output_dim_idx: int
) -> tuple[int, ...]:
    """Return ``shape`` with dim ``output_dim_idx`` replaced by dim ``input_dim_idx`` of ``like``.

    Raises ShapeError when one of the indices is out of range.
    """
    for name, index, dims in (
        ("input_dim_idx", input_dim_idx, like),
        ("output_dim_idx", output_dim_idx, shape),
    ):
        if not 0 <= index < len(dims):
            raise ShapeError(f"{op}: {name} is {index}, but there are {len(dims)} dims: {list(dims)}")
    sizes = list(shape)
    sizes[output_dim_idx] = like[input_dim_idx]
    return check_shape_attr(op, sizes, unknown=True)


MKLDNN: Final[Mapping[str, Attr]] = {"use_mkldnn": Bool(False)}
BACKENDS: Final[Mapping[str, Attr]] = {**MKLDNN, "use_cudnn": Bool(False)}
