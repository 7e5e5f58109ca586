"""What many operators ask of their operands: an axis in range, sizes from attribute or tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Spec

__all__ = ["alike", "axis_of", "fill_box", "known", "numbers", "same_or_unknown", "size_of"]


def axis_of(op: str, axis: int, rank: int, *, name: str = "axis") -> int:
    """``axis`` counted from the front. Raises ShapeError when it is not in [-rank, rank)."""
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{op}: {name} is {axis}, but the input has {rank} dims",
            hint=f"take one of {-rank} .. {rank - 1}" if rank else None,
        )
    return axis % rank


def numbers(attr: Sequence[int], tensor: Array | None, tensors: Sequence[Array] | None) -> list[int]:
    """The numbers meant: one tensor per number comes first, then one tensor, then the attribute."""
    if tensors:
        return [int(one.reshape(-1)[0]) for one in tensors]
    if tensor is not None:
        return [int(number) for number in tensor.reshape(-1)]
    return list(attr)


def known(shape: Iterable[int]) -> bool:
    """Whether every dim is known (none is -1)."""
    return all(dim >= 0 for dim in shape)


def size_of(shape: Iterable[int]) -> int:
    """The number of elements, -1 when a dim is unknown."""
    dims = list(shape)
    return math.prod(dims) if known(dims) else -1


def same_or_unknown(a: int, b: int) -> bool:
    """Whether two dims may be equal: they are, or one is not known yet."""
    return a == b or a < 0 or b < 0


def fill_box(part: Array, whole: Array, box: tuple[slice, ...]) -> Array:
    """Zeros of the shape of ``whole``, with ``part`` in the box: the gradient of cutting out."""
    out = np.zeros(whole.shape, part.dtype)
    place = out[box]
    place[...] = part.reshape(place.shape)
    return out


def alike(op: str, **specs: Spec) -> Spec:
    """The spec of an output shaped like all inputs. Raises ShapeError when they differ."""
    (first, x), *others = specs.items()
    for name, other in others:
        if len(x.shape) != len(other.shape) or not all(map(same_or_unknown, x.shape, other.shape)):
            raise ShapeError(
                f"{op}: {first} has shape {x.shape}, {name} {other.shape}; they must be the same"
            )
    return Spec(x.shape, x.dtype)
