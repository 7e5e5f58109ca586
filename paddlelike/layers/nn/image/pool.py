"""Pooling: maxima or means of windows over images (N, C, H, W) and volumes (N, C, D, H, W).

Parameters
----------
input
    Images (N, C, H, W); ``data_format`` gives the position of the channels.
pool_size
    The size of the windows: an int, or one per spatial dim.
pool_type
    ``"max"`` or ``"avg"``.
pool_stride
    The step between windows: an int, or one per spatial dim.
pool_padding
    The padding around the image: an int, one per spatial dim, or two per spatial dim (before and after);
    or ``"SAME"`` or ``"VALID"``. Maxima ignore it.
global_pooling
    Whether one window covers the whole image; ``pool_size`` and ``pool_padding`` are then ignored.
ceil_mode
    Whether windows that reach beyond the image count, so that H' is rounded up.
exclusive
    Whether means are taken over the image alone, without the padding.
require_index
    Whether the positions of the maxima are returned as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from paddlelike.errors import GraphError
from paddlelike.framework import Variable
from paddlelike.layers.emit import (
    FLOATS,
    INTEGERS,
    WIDE_FLOATS,
    check_choice,
    check_variable,
    emit,
    repeat_size,
)
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.nn.windows import channel_axis, parse_padding

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints, PaddingLike

__all__ = ["adaptive_pool2d", "adaptive_pool3d", "pool2d", "pool3d"]


def pool2d(
    input: Variable,
    pool_size: Ints = -1,
    pool_type: str = "max",
    pool_stride: Ints = 1,
    pool_padding: PaddingLike = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Return the ``"max"`` or ``"avg"`` of every window of ``pool_size`` (operator ``pool2d``).

    Returns
    -------
    Variable
        (N, C, H', W') with H' = (H + top + bottom - height) // stride + 1, and W' likewise; with ``"NHWC"``
        (N, H', W', C). In the dtype of ``input``.

    Raises
    ------
    GraphError
        ``pool_size`` is missing and ``global_pooling`` is False.
    TypeError
        ``input`` is not a variable of float16, float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.arange(16, dtype="float32").reshape(1, 1, 4, 4))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.pool2d(x, pool_size=2, pool_stride=2)])
    [array([[[[ 5.,  7.],
             [13., 15.]]]], dtype=float32)]
    """
    settings = (pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, exclusive)
    return _pool("pool2d", 2, input, pool_size, pool_type, settings, data_format, name)


def pool3d(
    input: Variable,
    pool_size: Ints = -1,
    pool_type: str = "max",
    pool_stride: Ints = 1,
    pool_padding: PaddingLike = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCDHW",
) -> Variable:
    """Return the pooling over three dims; see :func:`pool2d` (operator ``pool3d``).

    Parameters
    ----------
    input
        Volumes (N, C, D, H, W); ``data_format`` gives the position of the channels.
    data_format
        The position of the channels: ``"NCDHW"`` for dim 1, ``"NDHWC"`` for the last dim.

    Returns
    -------
    Variable
        (N, C, D', H', W') with the sizes of :func:`pool2d`, in the dtype of ``input``.

    Raises
    ------
    GraphError, TypeError
        The same as in :func:`pool2d`.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8, 8])
    >>> fluid.layers.pool3d(x, pool_size=2, pool_stride=2).shape
    (-1, 3, 4, 4, 4)
    """
    settings = (pool_stride, pool_padding, global_pooling, use_cudnn, ceil_mode, exclusive)
    return _pool("pool3d", 3, input, pool_size, pool_type, settings, data_format, name)


def _pool(
    type: str,
    dims: int,
    input: Variable,
    pool_size: Ints,
    pool_type: str,
    settings: tuple[Any, ...],
    data_format: str,
    name: str | None,
) -> Variable:
    stride, padding, everything, use_cudnn, ceil_mode, exclusive = settings
    check_variable(type, "input", input, FLOATS)
    check_choice(type, "pool_type", pool_type, ("max", "avg"))
    axis = channel_axis(type, data_format, dims)
    if not everything and pool_size == -1:
        raise GraphError(
            f"layer {type!r}: pool_size is not given",
            hint="pass the size of the windows, or global_pooling=True for one over everything",
        )
    sides = parse_padding(type, "pool_padding", padding, dims, channels_last=axis != 1)
    if sides.algorithm == "VALID" and ceil_mode:
        raise GraphError(
            f"layer {type!r}: pool_padding 'VALID' and ceil_mode exclude each other",
            hint="leave ceil_mode False, or pass the padding as numbers",
        )
    attrs = {
        "pooling_type": pool_type,
        "ksize": repeat_size(type, "pool_size", pool_size, dims),
        "global_pooling": everything,
        "strides": repeat_size(type, "pool_stride", stride, dims),
        "paddings": sides.sizes,
        "padding_algorithm": sides.algorithm,
        "use_cudnn": use_cudnn,
        "ceil_mode": ceil_mode,
        "use_mkldnn": False,
        "exclusive": exclusive,
        "data_format": data_format,
    }
    return emit(type, {"X": input}, attrs, name=name)


@overload
def adaptive_pool2d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    require_index: Literal[False] = False,
    name: str | None = None,
) -> Variable: ...
@overload
def adaptive_pool2d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    *,
    require_index: Literal[True],
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
def adaptive_pool2d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Return the ``"max"`` or ``"avg"`` of H' x W' windows of about equal size over (N, C, H, W).

    Operators ``max_pool2d_with_index`` and ``pool2d``.

    Parameters
    ----------
    input
        Images (N, C, H, W).
    pool_size
        The height and width of the result: ``[H', W']``, or one int for both.

    Returns
    -------
    out : Variable
        (N, C, H', W'), in the dtype of ``input``.
    mask : Variable
        Only with ``require_index``: int32 (N, C, H', W'), the position of each maximum in its image, counted
        row by row.

    Raises
    ------
    TypeError
        ``input`` is not a variable of a float or integer type.
    GraphError
        ``pool_type`` is neither ``"max"`` nor ``"avg"``, or ``require_index`` is given with means.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.arange(15, dtype="float32").reshape(1, 1, 3, 5))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.adaptive_pool2d(x, [1, 2], "max")])
    [array([[[[12., 14.]]]], dtype=float32)]
    """
    return _adaptive(2, input, pool_size, pool_type, require_index, name)


@overload
def adaptive_pool3d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    require_index: Literal[False] = False,
    name: str | None = None,
) -> Variable: ...
@overload
def adaptive_pool3d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    *,
    require_index: Literal[True],
    name: str | None = None,
) -> tuple[Variable, Variable]: ...
def adaptive_pool3d(
    input: Variable,
    pool_size: Ints,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Return the pooling over three dims; see :func:`adaptive_pool2d`.

    Parameters
    ----------
    input
        Volumes (N, C, D, H, W).
    pool_size
        The dims of the result: ``[D', H', W']``, or one int for all three.

    Returns
    -------
    out : Variable
        (N, C, D', H', W') for a ``pool_size`` of [D', H', W'], in the dtype of ``input``.
    mask : Variable
        Only with ``require_index``: int32, in the same shape: the position of each maximum in its volume.

    Raises
    ------
    GraphError, TypeError
        The same as in :func:`adaptive_pool2d`.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8, 8])
    >>> fluid.layers.adaptive_pool3d(x, pool_size=2, pool_type="avg").shape
    (-1, 3, 2, 2, 2)
    """
    return _adaptive(3, input, pool_size, pool_type, require_index, name)


def _adaptive(
    dims: int, input: Variable, pool_size: Ints, pool_type: str, require_index: bool, name: str | None
) -> Variable | tuple[Variable, Variable]:
    layer = f"adaptive_pool{dims}d"
    check_variable(layer, "input", input, (*WIDE_FLOATS, *INTEGERS))
    check_choice(layer, "pool_type", pool_type, ("max", "avg"))
    greatest = pool_type == "max"
    if require_index and not greatest:
        raise GraphError(f"layer {layer!r}: require_index is True, expected pool_type 'max'")
    size = repeat_size(layer, "pool_size", pool_size, dims)
    type = f"max_pool{dims}d_with_index" if greatest else f"pool{dims}d"
    helper = LayerHelper(type, name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    outputs = {"Out": out}
    if greatest:
        outputs["Mask"] = helper.create_variable_for_type_inference(input.dtype)
    attrs = {"pooling_type": pool_type, "ksize": size, "adaptive": True}
    helper.append_op(type=type, inputs={"X": input}, outputs=outputs, attrs=attrs)
    return (out, outputs["Mask"]) if require_index else out
