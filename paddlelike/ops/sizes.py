"""The shape that an operator is asked to make: by attribute, by tensors, or like another tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Spec

__all__ = ["batch_size_like", "sizes_of", "wanted_sizes"]


def sizes_of(op: str, shape: Sequence[int], *, unknown: bool = False) -> tuple[int, ...]:
    """``shape`` as a tuple. Raises ShapeError when a dim is negative, but for -1 if ``unknown``."""
    if any(dim < (-1 if unknown else 0) for dim in shape):
        raise ShapeError(
            f"{op}: shape is {list(shape)}, expected dims of 0 or more",
            hint="the *_batch_size_like operators take a size that is known at run time only",
        )
    return tuple(shape)


def wanted_sizes(
    op: str, shape: Sequence[int], tensor: Spec | None, tensors: Sequence[Spec]
) -> tuple[int, ...]:
    """What is known of the shape at build time: with tensors instead of the attribute, its rank."""
    if tensors:
        return (-1,) * len(tensors)
    if shape:
        return sizes_of(op, shape, unknown=True)
    if tensor is None:
        raise ShapeError(f"{op}: shape is [], expected one dim at least, or ShapeTensor")
    rank = math.prod(tensor.shape)
    if -1 in tensor.shape or rank == 0:
        raise ShapeError(
            f"{op}: ShapeTensor has shape {tensor.shape}, expected a known number of elements",
            hint="their number is the rank of the result, which a program must know",
        )
    return (-1,) * rank


def batch_size_like(
    op: str,
    like: Sequence[int],
    shape: Sequence[int],
    input_dim_idx: int,
    output_dim_idx: int,
) -> tuple[int, ...]:
    """``shape`` with dim ``output_dim_idx`` replaced by dim ``input_dim_idx`` of ``like``."""
    for name, index, dims in (
        ("input_dim_idx", input_dim_idx, like),
        ("output_dim_idx", output_dim_idx, shape),
    ):
        if not 0 <= index < len(dims):
            raise ShapeError(f"{op}: {name} is {index}, but there are {len(dims)} dims: {list(dims)}")
    sizes = list(shape)
    sizes[output_dim_idx] = like[input_dim_idx]
    return sizes_of(op, sizes, unknown=True)
