"""Images sampled at places of a grid.

Parameters
----------
theta
    Affine maps (N, 2, 3).
out_shape
    (N, C, H, W): four ints, or an int32 variable (4,).
x
    Images (N, C, H, W).
grid
    Coordinates (N, H, W, 2): x and y in [-1, 1].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit

if TYPE_CHECKING:
    from paddlelike.framework.typing import ShapeLike

__all__ = ["affine_grid", "grid_sampler"]


def affine_grid(theta: Variable, out_shape: ShapeLike, name: str | None = None) -> Variable:
    """Return the coordinates of pixels of ``out_shape`` (N, C, H, W) under the maps ``theta`` (N, 2, 3).

    They are (N, H, W, 2) in [-1, 1], for :func:`grid_sampler` (operator ``affine_grid``). Raises TypeError
    unless ``theta`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> mirror = fluid.layers.assign(np.array([[[-1, 0, 0], [0, 1, 0]]], "float32"))
    >>> grid = fluid.layers.affine_grid(mirror, out_shape=[1, 1, 2, 2])
    >>> fluid.Executor().run(fetch_list=[grid])
    [array([[[[ 1., -1.],
             [-1., -1.]],
    <BLANKLINE>
            [[ 1.,  1.],
             [-1.,  1.]]]], dtype=float32)]
    """
    check_variable("affine_grid", "theta", theta, WIDE_FLOATS)
    inputs, attrs = {"Theta": theta}, {}
    if isinstance(out_shape, Variable):
        inputs["OutputShape"] = out_shape
    else:
        attrs["output_shape"] = list(out_shape)
    return emit("affine_grid", inputs, attrs, slot="Output")


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """Return ``x`` (N, C, H, W) at the coordinates of ``grid`` (N, H, W, 2), interpolated bilinearly.

    Operator ``grid_sampler``. Raises TypeError unless ``x`` and ``grid`` are variables of supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> y = fluid.data("y", [None, 8, 8, 2])
    >>> fluid.layers.grid_sampler(x, y).shape
    (-1, 3, 8, 8)
    """
    check_variable("grid_sampler", "x", x, WIDE_FLOATS)
    check_variable("grid_sampler", "grid", grid, WIDE_FLOATS)
    return emit("grid_sampler", {"X": x, "Grid": grid}, slot="Output", name=name)
