"""Normalizations as objects."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paddlelike.errors import GraphError
from paddlelike.fluid.dygraph.nn.built import BuiltLayer
from paddlelike.framework import Variable
from paddlelike.initializer import Constant, Normal
from paddlelike.layers.emit import FLOATS, WIDE_FLOATS, check_choice, check_variable
from paddlelike.param_attr import ParamAttr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from paddlelike.core import DtypeLike
    from paddlelike.core.typing import Ints
    from paddlelike.param_attr import ParamAttrLike

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "SpectralNorm"]


class BatchNorm(BuiltLayer):
    """Normalization over a batch; ``is_test`` is for test programs. See :func:`paddlelike.layers.batch_norm`.

    Parameters
    ----------
    trainable_statistics
        Whether running averages are also updated where ``is_test`` is set.

    See Also
    --------
    fluid.layers.batch_norm

    >>> import paddlelike as fluid
    >>> norm = BatchNorm(3, act="relu")
    >>> norm(fluid.data("batch_norm_image", [None, 3, 8, 8])).shape, len(norm.parameters())
    ((-1, 3, 8, 8), 4)
    """

    def __init__(
        self,
        num_channels: int,
        act: str | None = None,
        is_test: bool = False,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
        data_layout: str = "NCHW",
        in_place: bool = False,
        moving_mean_name: str | None = None,
        moving_variance_name: str | None = None,
        do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:
        super().__init__()
        self._require(bias_attr, "bias_attr")
        self._act, self._in_place = act, in_place
        self._dtype = "float32" if dtype == "float16" else dtype
        shape = [num_channels]
        self.weight = self.create_parameter(shape, param_attr, self._dtype, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(shape, bias_attr, self._dtype, is_bias=True)
        fixed = use_global_stats and getattr(ParamAttr._to_attr(param_attr), "learning_rate", 1.0) == 0.0
        self.weight.stop_gradient = self.bias.stop_gradient = fixed
        moving = ((moving_mean_name, 0.0), (moving_variance_name, 1.0))
        self._mean, self._variance = (
            self.create_parameter(
                shape,
                ParamAttr(
                    name,
                    initializer=Constant(value),
                    trainable=False,
                    do_model_average=do_model_average_for_mean_and_var,
                ),
                self._dtype,
            )
            for name, value in moving
        )
        self._mean.stop_gradient = self._variance.stop_gradient = True
        self._attrs = {
            "momentum": momentum,
            "epsilon": epsilon,
            "is_test": is_test,
            "data_layout": data_layout,
            "use_mkldnn": False,
            "fuse_with_relu": False,
            "use_global_stats": use_global_stats,
            "trainable_statistics": trainable_statistics,
        }

    def forward(self, input: Variable) -> Variable:  # noqa: A002  (Fluid's name)
        """Return the activation of the normalized input."""
        check_variable("BatchNorm", "input", input, FLOATS)
        helper = self._helper
        mean, variance = (
            helper.create_variable_for_type_inference(self._dtype, stop_gradient=True) for _ in range(2)
        )
        out = input if self._in_place else helper.create_variable_for_type_inference(self._dtype)
        helper.append_op(
            type="batch_norm",
            inputs={
                "X": input,
                "Scale": self.weight,
                "Bias": self.bias,
                "Mean": self._mean,
                "Variance": self._variance,
            },
            outputs={
                "Y": out,
                "MeanOut": self._mean,
                "VarianceOut": self._variance,
                "SavedMean": mean,
                "SavedVariance": variance,
            },
            attrs=self._attrs,
        )
        return helper.append_activation(out, self._act)


class InstanceNorm(BuiltLayer):
    """Normalization of each image and channel; see :func:`paddlelike.layers.instance_norm`.

    See Also
    --------
    fluid.layers.instance_norm

    >>> import paddlelike as fluid
    >>> InstanceNorm(3)(fluid.data("instance_x", [None, 3, 8, 8])).shape
    (-1, 3, 8, 8)
    """

    def __init__(
        self,
        num_channels: int,
        epsilon: float = 1e-05,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._require(bias_attr, "bias_attr")
        self._epsilon, self._dtype = epsilon, dtype
        shape = [num_channels]
        self.scale = self.create_parameter(shape, param_attr, dtype, default_initializer=Constant(1.0))
        self.bias = self.create_parameter(shape, bias_attr, dtype, True, Constant(0.0))

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the normalized input."""
        check_variable("InstanceNorm", "input", input, WIDE_FLOATS)
        inputs = {"X": input, "Scale": self.scale, "Bias": self.bias}
        attrs = {"epsilon": self._epsilon}
        return self._emit_statistics("instance_norm", inputs, attrs, "Y", "SavedMean", "SavedVariance")


class LayerNorm(BuiltLayer):
    """Normalization over the last dims, ``normalized_shape``; see :func:`paddlelike.layers.layer_norm`.

    Parameters
    ----------
    normalized_shape
        The sizes of the last dims that are normalized; an int for one.

    See Also
    --------
    fluid.layers.layer_norm

    >>> import paddlelike as fluid
    >>> LayerNorm(4)(fluid.data("layer_norm_x", [None, 4])).shape
    (-1, 4)
    """

    def __init__(
        self,
        normalized_shape: Ints,
        scale: bool = True,
        shift: bool = True,
        epsilon: float = 1e-05,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        act: str | None = None,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self._epsilon, self._act, self._dtype = epsilon, act, dtype
        size = [math.prod(self._shape)]
        self.weight = self.bias = None
        if scale:
            self.weight = self.create_parameter(size, param_attr, dtype, default_initializer=Constant(1.0))
        if shift:
            self._require(bias_attr, "bias_attr, with shift=True,")
            self.bias = self.create_parameter(size, bias_attr, dtype, is_bias=True)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of the normalized input. Raises GraphError when its last dims differ."""
        check_variable("LayerNorm", "input", input, WIDE_FLOATS)
        axis = len(input.shape) - len(self._shape)
        if axis < 0 or list(input.shape[axis:]) != self._shape:
            raise GraphError(
                f"LayerNorm: input {input.name!r} has the shape {list(input.shape)}, expected one that ends "
                f"in {self._shape}, the normalized_shape"
            )
        inputs = {"X": input, "Scale": self.weight, "Bias": self.bias}
        attrs = {"epsilon": self._epsilon, "begin_norm_axis": axis}
        out = self._emit_statistics("layer_norm", inputs, attrs, "Y", "Mean", "Variance")
        return self._helper.append_activation(out, self._act)


class GroupNorm(BuiltLayer):
    """Normalization of groups of channels; see :func:`paddlelike.layers.group_norm`.

    As in Fluid, there is a weight or a bias only where ``param_attr`` or ``bias_attr`` is given.

    Parameters
    ----------
    channels
        The number of channels of the input.

    Raises
    ------
    GraphError
        ``data_layout`` is another text.

    See Also
    --------
    fluid.layers.group_norm

    >>> import paddlelike as fluid
    >>> GroupNorm(4, groups=2)(fluid.data("group_x", [None, 4, 8, 8])).shape
    (-1, 4, 8, 8)
    """

    def __init__(
        self,
        channels: int,
        groups: int,
        epsilon: float = 1e-05,
        param_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        act: str | None = None,
        data_layout: str = "NCHW",
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        check_choice("GroupNorm", "data_layout", data_layout, ("NCHW",))
        self._attrs = {"epsilon": epsilon, "groups": groups}
        self._act, self._dtype = act, dtype
        one = Constant(1.0)
        self.weight = self.create_parameter([channels], param_attr or False, dtype, default_initializer=one)
        self.bias = self.create_parameter([channels], bias_attr or False, dtype, is_bias=True)

    def forward(self, input: Variable) -> Variable:  # noqa: A002
        """Return the activation of the normalized input."""
        inputs = {"X": input, "Bias": self.bias, "Scale": self.weight}
        out = self._emit_statistics("group_norm", inputs, self._attrs, "Y", "Mean", "Variance")
        return self._helper.append_activation(out, self._act)


class SpectralNorm(BuiltLayer):
    """A weight divided by its largest singular value; see :func:`paddlelike.layers.spectral_norm`.

    Parameters
    ----------
    weight_shape
        The shape of the weight.

    See Also
    --------
    fluid.layers.spectral_norm

    >>> import paddlelike as fluid
    >>> SpectralNorm([4, 6])(fluid.data("spectral_w", [4, 6])).shape
    (4, 6)
    """

    def __init__(
        self,
        weight_shape: Sequence[int],
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: DtypeLike = "float32",
    ) -> None:
        super().__init__()
        self._attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}
        self._dtype = dtype
        height = weight_shape[dim]
        sizes = (height, math.prod(weight_shape) // height)
        self.weight_u, self.weight_v = (
            self.create_parameter([size], ParamAttr(), dtype, default_initializer=Normal(0.0, 1.0))
            for size in sizes
        )
        self.weight_u.stop_gradient = self.weight_v.stop_gradient = True

    def forward(self, weight: Variable) -> Variable:
        """Return the normalized weight."""
        check_variable("SpectralNorm", "weight", weight, WIDE_FLOATS)
        inputs = {"Weight": weight, "U": self.weight_u, "V": self.weight_v}
        return self._emit("spectral_norm", inputs, self._attrs)
