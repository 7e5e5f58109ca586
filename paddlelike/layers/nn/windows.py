"""Windows that move over images: their padding, as convolutions and pools take it."""

from __future__ import annotations

from typing import Any, NamedTuple

from paddlelike.errors import GraphError
from paddlelike.layers.checks import check_choice, describe

__all__ = ["Padding", "channel_axis", "window_padding"]


class Padding(NamedTuple):
    """The attributes ``paddings`` and ``padding_algorithm`` of an operator."""

    sizes: list[int]
    algorithm: str


def channel_axis(layer: str, data_format: str, dims: int) -> int:
    """Where the channels are: 1 for NCHW and NCDHW, the last axis for NHWC and NDHWC."""
    first, last = ("NCHW", "NHWC") if dims == 2 else ("NCDHW", "NDHWC")
    check_choice(layer, "data_format", data_format, (first, last))
    return 1 if data_format == first else dims + 1


def window_padding(layer: str, argument: str, padding: Any, dims: int, *, channels_last: bool) -> Padding:
    """``padding`` in any of its forms, over ``dims`` dims of an image.

    ``"SAME"`` or ``"VALID"``; an int; a number per dim; a number per side, [before 0, after 0, ...];
    a pair per axis of the input, batch and channels included.
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
            raise GraphError(f"layer {layer!r}: {argument} is {padding}; batch and channels take [0, 0]")
        sizes = [side for pair in image for side in pair]
    if len(sizes) not in (dims, 2 * dims) or not all(isinstance(one, int) for one in sizes):
        raise GraphError(
            f"layer {layer!r}: {argument} is {describe(padding)}, expected 'SAME', 'VALID', an int, "
            f"{dims} ints, {2 * dims} ints, or {dims + 2} pairs"
        )
    if len(sizes) == 2 * dims and sizes[::2] == sizes[1::2]:
        sizes = sizes[::2]
    return Padding(sizes, "EXPLICIT")
