"""Images as sequences of windows.

Parameters
----------
input
    Images (N, C, H, W).
filter_size
    The height and width of a window: one int for both, or two.
stride
    The step between windows: as ``filter_size``.
padding
    Zeros around the image: an int, two (vertical, horizontal) or four (top, left, bottom, right).
input_image_size
    The real sizes of the images, (N, 2); None for that of ``input``.
out_stride
    How many times the images were scaled down: an int, or two.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import FLOATS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["im2sequence"]


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """Return each image (N, C, H, W) as the sequence of its windows: (windows, C kh kw) (``im2sequence``).

    ``padding`` is one number, (height, width), or (top, left, bottom, right). ``input_image_size`` (N, 2)
    holds the real sizes of images that were scaled down ``out_stride`` times. Raises TypeError unless
    ``input`` is a variable of a supported dtype.

    ``filter_size`` and ``stride`` are one int for both dims, or two.

    >>> from paddlelike.input import data
    >>> im2sequence(data("x", [None, 3, 8, 8]), filter_size=2, stride=2).shape
    (-1, 12)
    """
    check_variable("im2sequence", "input", input, FLOATS)
    paddings = _pair("padding", padding)
    attrs = {
        "kernels": _pair("filter_size", filter_size),
        "strides": _pair("stride", stride),
        "paddings": paddings * 2 if len(paddings) == 2 else paddings,
    }
    inputs = {"X": input}
    if input_image_size is not None:
        inputs["Y"] = input_image_size
        attrs["out_stride"] = _pair("out_stride", out_stride)
    return emit("im2sequence", inputs, attrs, name=name)


def _pair(argument: str, value: int | Sequence[int]) -> list[int]:
    numbers = [value, value] if isinstance(value, int) else list(value)
    if len(numbers) != 2 and (argument != "padding" or len(numbers) != 4):
        raise GraphError(f"layer 'im2sequence': {argument} is {value!r}, expected one or two ints")
    return numbers
