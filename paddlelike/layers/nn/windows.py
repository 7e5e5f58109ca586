"""Windows of convolutions and pools: their padding and their channel axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from paddlelike.errors import GraphError
from paddlelike.layers.emit import check_choice, describe

if TYPE_CHECKING:
    from paddlelike.core.typing import PaddingLike


class Padding(NamedTuple):
    """The attributes ``paddings`` and ``padding_algorithm`` of an operator."""

    sizes: list[int]
    algorithm: str


def channel_axis(layer: str, data_format: str, dims: int) -> int:
    """Return the axis of the channels: 1 for NCHW and NCDHW, the last for NHWC and NDHWC.

    Raises GraphError for any other ``data_format``.
    """
    first, last = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    check_choice(layer, "data_format", data_format, (first, last))
    return 1 if data_format == first else dims + 1


def parse_padding(
    layer: str, argument: str, padding: PaddingLike, dims: int, *, channels_last: bool
) -> Padding:
    """Return the attributes for ``padding`` over ``dims`` dims of an image.

    ``padding`` is ``"SAME"`` or ``"VALID"``, an int, an int per dim, an int per side ([before 0, after 0,
    ...]), or a pair per axis of the input, batch and channels included. Raises GraphError for anything else.
    """
    if isinstance(padding, str):
        check_choice(layer, argument, padding.upper(), ("SAME", "VALID"))
        return Padding([0] * dims, padding.upper())
    if isinstance(padding, int):
        return Padding([padding] * dims, "EXPLICIT")
    sizes = list(padding) if isinstance(padding, list | tuple) else []
    if len(sizes) == dims + 2 and all(isinstance(pair, list | tuple) for pair in sizes):
        image = sizes[1:-1] if channels_last else sizes[2:]
        others = [sizes[0], sizes[-1] if channels_last else sizes[1]]
        if any(list(pair) != [0, 0] for pair in others):
            raise GraphError(
                f"layer {layer!r}: {argument} is {padding}; expected [0, 0] for batch and channels"
            )
        sizes = [side for pair in image for side in pair]
    if len(sizes) not in (dims, 2 * dims) or not all(isinstance(one, int) for one in sizes):
        raise GraphError(
            f"layer {layer!r}: {argument} is {describe(padding)}, expected 'SAME', 'VALID', an int, "
            f"{dims} ints, {2 * dims} ints, or {dims + 2} pairs"
        )
    if len(sizes) == 2 * dims and sizes[::2] == sizes[1::2]:
        sizes = sizes[::2]
    return Padding(sizes, "EXPLICIT")
