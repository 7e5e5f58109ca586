"""The shape of a new tensor: from an attribute, from tensors, or like another tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Spec


def check_shape_attr(op: str, shape: Sequence[int], *, unknown: bool = False) -> tuple[int, ...]:
    """Return ``shape`` as a tuple. Raises ShapeError when a dim is negative, but for -1 if ``unknown``."""
    if any(dim < (-1 if unknown else 0) for dim in shape):
        raise ShapeError(
            f"{op}: shape is {list(shape)}, expected dims of 0 or more",
            hint="the *_batch_size_like operators take a size that is known at run time only",
        )
    return tuple(shape)


def infer_sizes(
    op: str, shape: Sequence[int], tensor: Spec | None, tensors: Sequence[Spec]
) -> tuple[int, ...]:
    """Return the shape as far as it is known at build time; from tensors only its rank is.

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
            hint="the number of elements is the rank of the result, which a program must know",
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
