"""unfold: the windows of an image as columns.

Parameters
----------
x
    (N, C, H, W).
kernel_sizes
    The height and width of a window: one int for both, or two.
strides
    The step between windows: as ``kernel_sizes``.
paddings
    Zeros around the image: an int, two (vertical, horizontal) or four (top, left, bottom, right).
dilations
    The distance between elements of a window: as ``kernel_sizes``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit
from paddlelike.layers.sizes import repeat_size

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints

__all__ = ["unfold"]


def unfold(
    x: Variable,
    kernel_sizes: Ints,
    strides: Ints = 1,
    paddings: Ints = 0,
    dilations: Ints = 1,
    name: str | None = None,
) -> Variable:
    """Return the windows of (N, C, H, W) as columns: (N, C * height * width, windows) (operator ``unfold``).

    ``paddings`` is an int, [vertical, horizontal], or [top, left, bottom, right]. Raises TypeError unless
    ``x`` is a variable of a supported dtype.

    ``kernel_sizes`` is the window's height and width, ``strides`` the distance of neighbouring
    windows, ``dilations`` that of its elements; each one int for both, or two.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> fluid.layers.unfold(x, kernel_sizes=3).shape
    (-1, 27, 36)
    """
    check_variable("unfold", "x", x, WIDE_FLOATS)
    sides = paddings if isinstance(paddings, list | tuple) and len(paddings) == 4 else (
        repeat_size("unfold", "paddings", paddings, 2) * 2
    )  # fmt: skip
    attrs = {
        "kernel_sizes": repeat_size("unfold", "kernel_sizes", kernel_sizes, 2),
        "strides": repeat_size("unfold", "strides", strides, 2),
        "paddings": list(sides),
        "dilations": repeat_size("unfold", "dilations", dilations, 2),
    }
    return emit("unfold", {"X": x}, attrs, slot="Y", name=name)
