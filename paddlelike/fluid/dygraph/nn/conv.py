"""Convolutions, transposed convolutions and pooling as objects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from paddlelike.errors import GraphError
from paddlelike.fluid.dygraph.nn.built import BuiltLayer
from paddlelike.framework import Variable
from paddlelike.initializer import Normal
from paddlelike.layers.emit import FLOATS, check_choice, check_type, check_variable, repeat_size

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike
    from paddlelike.core.typing import Ints
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Pool2D"]


class _Conv(BuiltLayer):
    """A convolution over ``dims`` dims, or a transposed one."""

    _dims = 2
    _operator = "conv2d"

    def _set_up(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Ints,
        settings: dict[str, Any],
        groups: int | None,
        attrs: tuple[ParamAttrLike, ParamAttrLike],
        act: str | None,
        dtype: DtypeLike,
    ) -> None:
        param_attr, bias_attr = attrs
        name = type(self).__name__
        self._require(param_attr, "param_attr")
        check_type(name, "use_cudnn", settings["use_cudnn"], bool)
        sizes = {
            slot: repeat_size(name, slot[:-1], settings[slot], self._dims)
            for slot in ("strides", "paddings", "dilations")
        }
        self._attrs = {**settings, **sizes, "groups": groups or 1}
        self._act, self._dtype = act, dtype
        window = repeat_size(name, "filter_size", filter_size, self._dims)
        transposed = self._operator.endswith("_transpose")
        initializer = None
        if transposed:
            shape = [num_channels, num_filters // (groups or 1), *window]
        else:
            if groups is not None and num_channels % groups:
                raise GraphError(f"{name}: {num_channels} channels cannot be divided into {groups} groups")
            shape = [num_filters, num_channels // (groups or 1), *window]
            initializer = Normal(0.0, (2.0 / (math.prod(window) * num_channels)) ** 0.5, 0)
        self.weight = self.create_parameter(shape, param_attr, dtype, default_initializer=initializer)
        self.bias = self.create_parameter([num_filters], bias_attr, dtype, is_bias=True)

    def forward(self, input: Variable) -> Variable:  # noqa: A002  (Fluid's name)
        """Return the activation of the convolution of ``input`` plus the bias."""
        check_variable(type(self).__name__, "input", input, FLOATS)
        return self._finish(self._convolve(input), self.bias)

    def _convolve(self, input: Variable) -> Variable:  # noqa: A002
        inputs = {"Input": input, "Filter": self.weight}
        return self._emit(self._operator, inputs, self._attrs, slot="Output")


class Conv2D(_Conv):
    """A convolution of images (N, C, H, W); see :func:`paddlelike.layers.conv2d`.

    See Also
    --------
    fluid.layers.conv2d

    >>> import paddlelike as fluid
    >>> conv = Conv2D(num_channels=3, num_filters=8, filter_size=3, padding=1)
    >>> conv(fluid.data("conv_image", [None, 3, 32, 32])).shape
    (-1, 8, 32, 32)
    """

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        if num_channels == groups and num_filters % num_channels == 0 and not use_cudnn:
            self._operator = "depthwise_conv2d"
        settings = {"strides": stride, "paddings": padding, "dilations": dilation, "use_cudnn": use_cudnn}
        settings["use_mkldnn"] = False
        attrs = (param_attr, bias_attr)
        self._set_up(num_channels, num_filters, filter_size, settings, groups, attrs, act, dtype)


class Conv3D(_Conv):
    """A convolution of volumes (N, C, D, H, W); see :func:`paddlelike.layers.conv3d`.

    See Also
    --------
    fluid.layers.conv3d

    >>> import paddlelike as fluid
    >>> Conv3D(3, 4, 3, padding=1)(fluid.data("conv3d_x", [None, 3, 8, 8, 8])).shape
    (-1, 4, 8, 8, 8)
    """

    _dims = 3
    _operator = "conv3d"

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        settings = {"strides": stride, "paddings": padding, "dilations": dilation, "use_cudnn": use_cudnn}
        settings["use_mkldnn"] = False
        attrs = (param_attr, bias_attr)
        self._set_up(num_channels, num_filters, filter_size, settings, groups, attrs, act, dtype)


class Conv2DTranspose(_Conv):
    """A transposed convolution of images; see :func:`paddlelike.layers.conv2d_transpose`.

    See Also
    --------
    fluid.layers.conv2d_transpose

    >>> import paddlelike as fluid
    >>> Conv2DTranspose(3, 4, 2, stride=2)(fluid.data("deconv_x", [None, 3, 8, 8])).shape
    (-1, 4, 16, 16)
    """

    _operator = "conv2d_transpose"

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Ints,
        output_size: Ints | None = None,
        padding: Ints = 0,
        stride: Ints = 1,
        dilation: Ints = 1,
        groups: int | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        if num_channels == groups == num_filters and not use_cudnn:
            self._operator = "depthwise_conv2d_transpose"
        size = [] if output_size is None else repeat_size("Conv2DTranspose", "output_size", output_size, 2)
        settings = {"strides": stride, "paddings": padding, "dilations": dilation, "use_cudnn": use_cudnn}
        settings["output_size"] = size
        attrs = (param_attr, bias_attr)
        self._set_up(num_channels, num_filters, filter_size, settings, groups, attrs, act, dtype)


class Conv3DTranspose(_Conv):
    """A transposed convolution of volumes; see :func:`paddlelike.layers.conv3d_transpose`.

    As in Fluid, the bias is always created, but only added if ``bias_attr`` is given.

    See Also
    --------
    fluid.layers.conv3d_transpose

    >>> import paddlelike as fluid
    >>> Conv3DTranspose(3, 4, 2, stride=2)(fluid.data("deconv3d_x", [None, 3, 8, 8, 8])).shape
    (-1, 4, 16, 16, 16)
    """

    _dims = 3
    _operator = "conv3d_transpose"

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Ints,
        padding: Ints = 0,
        stride: Ints = 1,
        dilation: Ints = 1,
        groups: int | None = None,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        settings = {"strides": stride, "paddings": padding, "dilations": dilation, "use_cudnn": use_cudnn}
        self._adds_bias = bool(bias_attr)
        attrs = (param_attr, bias_attr)
        self._set_up(num_channels, num_filters, filter_size, settings, groups, attrs, act, dtype)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of the transposed convolution."""
        return self._finish(self._convolve(input), self.bias if self._adds_bias else None)


class Pool2D(BuiltLayer):
    """Pooling of images (N, C, H, W); see :func:`paddlelike.layers.pool2d`.

    Raises
    ------
    GraphError
        There is neither a ``pool_size`` nor ``global_pooling``, or ``pool_type`` is another text.

    See Also
    --------
    fluid.layers.pool2d

    >>> import paddlelike as fluid
    >>> Pool2D(2, "avg", pool_stride=2)(fluid.data("pool_x", [None, 3, 8, 8])).shape
    (-1, 3, 4, 4)
    """

    def __init__(
        self,
        pool_size: Ints = -1,
        pool_type: str = "max",
        pool_stride: Ints = 1,
        pool_padding: Ints = 0,
        global_pooling: bool = False,
        use_cudnn: bool = True,
        ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> None:
        check_choice("Pool2D", "pool_type", pool_type, ("max", "avg"))
        check_type("Pool2D", "use_cudnn", use_cudnn, bool)
        if not global_pooling and pool_size == -1:
            raise GraphError("Pool2D needs pool_size, or global_pooling=True")
        super().__init__()
        self._attrs = {
            "pooling_type": pool_type,
            "ksize": repeat_size("Pool2D", "pool_size", pool_size, 2),
            "global_pooling": global_pooling,
            "strides": repeat_size("Pool2D", "pool_stride", pool_stride, 2),
            "paddings": repeat_size("Pool2D", "pool_padding", pool_padding, 2),
            "use_cudnn": use_cudnn,
            "ceil_mode": ceil_mode,
            "use_mkldnn": False,
            "exclusive": exclusive,
        }

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the largest element, or the mean, of each window."""
        check_variable("Pool2D", "input", input)
        return self._emit("pool2d", {"X": input}, self._attrs)
