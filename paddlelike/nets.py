"""``fluid.nets``: common groups of layers.

Parameters
----------
num_filters
    The number of channels of the convolution's result.
filter_size, conv_filter_size
    The size of the filter: an int, or ``[height, width]`` for images.
conv_num_filter
    The number of channels of each convolution's result, a list.
pool_size
    The size of the pooling windows: an int, or ``[height, width]``.
pool_stride
    The step between pooling windows, given like ``pool_size``.
pool_padding
    The padding around the convolved image, given like ``pool_size``.
pool_type
    ``"max"`` or ``"avg"``.
global_pooling
    Whether one window covers the whole image.
conv_stride, conv_padding, conv_dilation, conv_groups
    The argument of :func:`~paddlelike.layers.conv2d` with this name after ``conv_``.
param_attr
    The weight: a :class:`~paddlelike.ParamAttr`, a name, or an initializer; None for the defaults.
bias_attr
    The attributes of the bias, given like ``param_attr``. False for no bias.
act, conv_act
    The name of an activation layer that follows the convolution, such as ``"relu"``; None for none.
conv_with_batchnorm
    Whether batch norm follows a convolution.
conv_batchnorm_drop_rate
    The rate of the dropout after batch norm; 0 for no dropout.
use_cudnn
    Recorded in the operators. It has no effect on the numbers.
dropout_rate
    The share of the weights that dropout sets to 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.foundation.docstrings import complete_docstring, read_shared_entries
from paddlelike.framework import Variable
from paddlelike.layers.elementwise.activation import sigmoid
from paddlelike.layers.elementwise.binary import elementwise_mul
from paddlelike.layers.elementwise.scale import scale
from paddlelike.layers.emit import WIDE_FLOATS, check_variable
from paddlelike.layers.linalg.products import fc, matmul
from paddlelike.layers.nn.conv import conv2d
from paddlelike.layers.nn.dropout import dropout
from paddlelike.layers.nn.image.pool import pool2d
from paddlelike.layers.nn.normalization.batch_norm import batch_norm
from paddlelike.layers.sequence.rows import sequence_conv, sequence_pool
from paddlelike.layers.tensor.concat import split
from paddlelike.layers.tensor.reshape import reshape, transpose

if TYPE_CHECKING:
    from paddlelike.core.typing import Ints, PaddingLike
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "glu",
    "img_conv_group",
    "scaled_dot_product_attention",
    "sequence_conv_pool",
    "simple_img_conv_pool",
]


def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: Ints,
    pool_size: Ints,
    pool_stride: Ints,
    pool_padding: PaddingLike = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Ints = 1,
    conv_padding: PaddingLike = 0,
    conv_dilation: Ints = 1,
    conv_groups: int = 1,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """Return the output of a convolution and a pooling layer.

    Parameters
    ----------
    input
        Images (N, C, H, W).

    Returns
    -------
    Variable
        (N, num_filters, H', W'), in the dtype of ``input``.

    See Also
    --------
    fluid.nets.img_conv_group, fluid.nets.sequence_conv_pool, fluid.nets.glu
    fluid.nets.scaled_dot_product_attention

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> from paddlelike.input import data
    >>> image = data("image", [None, 1, 28, 28])
    >>> simple_img_conv_pool(image, num_filters=6, filter_size=5, pool_size=2, pool_stride=2).shape
    (-1, 6, 12, 12)
    """
    convolved = conv2d(
        input,
        num_filters,
        filter_size,
        conv_stride,
        conv_padding,
        conv_dilation,
        conv_groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
    )
    return pool2d(convolved, pool_size, pool_type, pool_stride, pool_padding, global_pooling, use_cudnn)


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: Ints,
    conv_padding: Ints = 1,
    conv_filter_size: Ints = 3,
    conv_act: str | None = None,
    param_attr: ParamAttrLike | Sequence[ParamAttrLike] = None,
    conv_with_batchnorm: bool | Sequence[bool] = False,
    conv_batchnorm_drop_rate: float | Sequence[float] = 0.0,
    pool_stride: Ints = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """Return the output of several convolutions, with or without batch norm and dropout, and a pooling layer.

    Settings that are not lists apply to every convolution.

    Parameters
    ----------
    input
        Images (N, C, H, W).

    Returns
    -------
    Variable
        (N, C', H', W'), where C' is the last of ``conv_num_filter``; in the dtype of ``input``.

    Raises
    ------
    TypeError
        ``conv_num_filter`` is not a list.
    GraphError
        Another list has a different length than ``conv_num_filter``.

    See Also
    --------
    fluid.nets.simple_img_conv_pool, fluid.nets.sequence_conv_pool, fluid.nets.glu
    fluid.nets.scaled_dot_product_attention

    >>> from paddlelike.input import data
    >>> image = data("image", [None, 3, 32, 32])
    >>> img_conv_group(image, conv_num_filter=[8, 8], pool_size=2, pool_stride=2, conv_act="relu").shape
    (-1, 8, 16, 16)
    """
    if not isinstance(conv_num_filter, list | tuple):
        raise TypeError(f"img_conv_group: conv_num_filter must be a list of ints, got {conv_num_filter!r}")
    count = len(conv_num_filter)

    def expand_setting(argument: str, value: object) -> list[Any]:
        if not isinstance(value, list | tuple):
            return [value] * count
        if len(value) != count:
            raise GraphError(
                f"img_conv_group: {argument} has {len(value)} settings, expected {count}, one per convolution"
            )
        return list(value)

    paddings = expand_setting("conv_padding", conv_padding)
    sizes = expand_setting("conv_filter_size", conv_filter_size)
    attrs = expand_setting("param_attr", param_attr)
    normal = expand_setting("conv_with_batchnorm", conv_with_batchnorm)
    rates = expand_setting("conv_batchnorm_drop_rate", conv_batchnorm_drop_rate)
    out = input
    for i, filters in enumerate(conv_num_filter):
        out = conv2d(
            out,
            filters,
            sizes[i],
            padding=paddings[i],
            param_attr=attrs[i],
            act=None if normal[i] else conv_act,
            use_cudnn=use_cudnn,
        )
        if normal[i]:
            out = batch_norm(out, act=conv_act)
            if abs(rates[i]) > 1e-5:
                out = dropout(out, rates[i])
    return pool2d(out, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: ParamAttrLike = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: ParamAttrLike = None,
) -> Variable:
    """Return a convolution over sequences, pooled to one row per sequence (operators ``sequence_conv``,
    ``sequence_pool``).

    Parameters
    ----------
    input
        Sequences of rows: (T, D) with LoD.
    filter_size
        The number of rows that a filter covers.
    pool_type
        ``"average"``, ``"sum"``, ``"sqrt"``, ``"max"``, ``"last"`` or ``"first"``.

    Returns
    -------
    Variable
        (sequences, num_filters), in the dtype of ``input``.

    See Also
    --------
    fluid.nets.simple_img_conv_pool, fluid.nets.img_conv_group, fluid.nets.glu
    fluid.nets.scaled_dot_product_attention

    Raises
    ------
    TypeError
        ``input`` is not a variable.

    >>> from paddlelike.input import data
    >>> words = data("words", [None, 16], lod_level=1)
    >>> sequence_conv_pool(words, num_filters=32, filter_size=3).shape
    (-1, 32)
    """
    convolved = sequence_conv(
        input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act
    )
    return sequence_pool(convolved, pool_type)


def glu(input: Variable, dim: int = -1) -> Variable:
    """Return the first half of ``input`` along ``dim`` times the sigmoid of the second. Dauphin et al. 2016.

    Parameters
    ----------
    input
        A variable whose dim ``dim`` is even.
    dim
        The dim that is split; negative ones count from the end.

    Returns
    -------
    Variable
        In the shape of ``input`` with half of dim ``dim``, in its dtype.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64.

    See Also
    --------
    fluid.nets.simple_img_conv_pool, fluid.nets.img_conv_group, fluid.nets.sequence_conv_pool
    fluid.nets.scaled_dot_product_attention

    >>> from paddlelike.input import data
    >>> glu(data("x", [None, 6])).shape
    (-1, 3)
    """
    check_variable("glu", "input", input, WIDE_FLOATS)
    value, gate = split(input, 2, dim=dim)
    return elementwise_mul(value, sigmoid(gate))


def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    """Return ``softmax(q @ k.T / sqrt(width)) @ v``, in several heads with projections. Vaswani et al. 2017.

    Parameters
    ----------
    queries
        (N, T, D).
    keys
        (N, S, D).
    values
        (N, S, E).
    num_heads
        The number of heads; D and E are multiples of it. One head has no projections.

    Returns
    -------
    Variable
        (N, T, E), in the dtype of ``values``.

    Raises
    ------
    TypeError
        ``queries``, ``keys`` or ``values`` is not a variable.
    GraphError
        The shapes do not match.

    See Also
    --------
    fluid.nets.simple_img_conv_pool, fluid.nets.img_conv_group, fluid.nets.sequence_conv_pool
    fluid.nets.glu

    >>> from paddlelike.input import data
    >>> queries, keys = data("queries", [2, 5, 8]), data("keys", [2, 7, 8])
    >>> scaled_dot_product_attention(queries, keys, keys, num_heads=2).shape
    (2, 5, 8)
    """
    given = {"queries": queries, "keys": keys, "values": values}
    for argument, value in given.items():
        check_variable("scaled_dot_product_attention", argument, value, WIDE_FLOATS)
    _check_attention(given, num_heads)
    heads = num_heads
    if heads == 1:
        q, k, v = queries, keys, values
    else:
        q, k, v = (fc(x, size=x.shape[-1], num_flatten_dims=2) for x in (queries, keys, values))
    q, k, v = (_split_heads(x, heads) for x in (q, k, v))
    width = keys.shape[-1] // heads
    product = matmul(scale(q, scale=1.0 / math.sqrt(width)), k, transpose_y=True)
    weights = reshape(product, [-1, product.shape[-1]], act="softmax")
    weights = reshape(weights, list(product.shape))
    if dropout_rate:
        weights = dropout(weights, dropout_rate, is_test=False)
    mixed = matmul(weights, v)
    if heads == 1:
        return mixed
    mixed = transpose(mixed, [0, 2, 1, 3])
    return reshape(mixed, [-1, mixed.shape[1], mixed.shape[2] * mixed.shape[3]])


def _split_heads(x: Variable, heads: int) -> Variable:
    """Return (N, T, D) as (N, heads, T, D / heads)."""
    if heads == 1:
        return x
    return transpose(reshape(x, [-1, x.shape[1], heads, x.shape[2] // heads]), [0, 2, 1, 3])


def _check_attention(given: dict[str, Variable], heads: int) -> None:
    shapes = ", ".join(f"{name} {list(x.shape)}" for name, x in given.items())
    described = f"scaled_dot_product_attention: {shapes}, {heads} heads"
    queries, keys, values = given.values()
    if any(len(x.shape) != 3 for x in given.values()):
        raise GraphError(f"{described}; expected 3 dims each (batch, time, width)")
    if queries.shape[-1] != keys.shape[-1]:
        raise GraphError(f"{described}; expected equal widths of queries and keys")
    if keys.shape[-2] != values.shape[-2]:
        raise GraphError(f"{described}; expected as many keys as values")
    if keys.shape[-1] % heads or values.shape[-1] % heads:
        raise GraphError(f"{described}; expected widths that are multiples of the number of heads")


for _name in __all__:
    complete_docstring(globals()[_name], read_shared_entries(__name__))
