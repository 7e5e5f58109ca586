"""Elementwise activations; the result has the shape and dtype of the input.

Parameters
----------
x
    A variable of any shape. The result has the same shape and dtype.
alpha, threshold, scale, slope, offset, t_min, t_max, scale_a, scale_b
    The numbers of these names in the formula above.

Returns
-------
Variable
    In the shape, dtype and LoD of ``x``.

Raises
------
TypeError
    ``x`` is not a variable of float16, float32 or float64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework import Variable, warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.elementwise.unary import emit_with_attrs, make_unary
from paddlelike.layers.emit import WIDE_FLOATS, check_choice, check_variable
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.param_attr import ParamAttrLike

__all__ = [
    "brelu",
    "elu",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "soft_relu",
    "softplus",
    "softshrink",
    "softsign",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
]


logsigmoid = make_unary("logsigmoid", "log(1 / (1 + exp(-x)))", ("-2, 0, 1", "-2.127 -0.693 -0.313"))


relu = make_unary("relu", "max(x, 0)", ("-2, 0, 1", "0. 0. 1."))


sigmoid = make_unary("sigmoid", "1 / (1 + exp(-x))", ("-2, 0, 1", "0.119 0.5   0.731"))


softplus = make_unary("softplus", "log(1 + exp(x))", ("-2, 0, 1", "0.127 0.693 1.313"))


softsign = make_unary("softsign", "x / (1 + |x|)", ("-2, 0, 1", "-0.667  0.     0.5  "))


tanh = make_unary("tanh", "(exp(x) - exp(-x)) / (exp(x) + exp(-x))", ("-2, 0, 1", "-0.964  0.     0.762"))


tanh_shrink = make_unary("tanh_shrink", "x - tanh(x)", ("-2, 0, 1", "-1.036  0.     0.238"))


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """Return ``min(max(x, t_min), t_max)`` (operator ``brelu``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 10, 30], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.brelu(x)])
    >>> print(out)
    [ 0. 10. 24.]
    """
    return emit_with_attrs("brelu", x, {"t_min": t_min, "t_max": t_max}, name)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Return ``x`` if positive, else ``alpha * (exp(x) - 1)`` (operator ``elu``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.elu(x)])
    >>> print(out.round(3))
    [-0.865  0.     1.   ]
    """
    return emit_with_attrs("elu", x, {"alpha": alpha}, name)


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """Return ``x * Phi(x)`` with the normal distribution function Phi, or its tanh approximation (``gelu``).

    Parameters
    ----------
    approximate
        Whether to compute the tanh approximation instead of the exact function.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.gelu(x)])
    >>> print(out.round(3))
    [-0.046  0.     0.841]
    """
    return emit_with_attrs("gelu", x, {"approximate": approximate})


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Return ``x`` where ``|x| > threshold`` (0.5), else 0 (operator ``hard_shrink``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.25, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_shrink(x)])
    >>> print(out)
    [-2.  0.  1.]
    """
    return emit_with_attrs("hard_shrink", x, {"threshold": threshold})


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """Return ``min(max(slope * x + offset, 0), 1)`` (operator ``hard_sigmoid``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_sigmoid(x)])
    >>> print(out.round(3))
    [0.1 0.5 0.7]
    """
    return emit_with_attrs("hard_sigmoid", x, {"slope": slope, "offset": offset}, name)


def hard_swish(
    x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0, name: str | None = None
) -> Variable:
    """Return ``x * min(max(x + offset, 0), threshold) / scale`` (operator ``hard_swish``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_swish(x)])
    >>> print(out.round(3))
    [-0.333  0.     0.667]
    """
    attrs = {"threshold": threshold, "scale": scale, "offset": offset}
    return emit_with_attrs("hard_swish", x, attrs, name)


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Return ``x`` if positive, else ``alpha * x`` (operator ``leaky_relu``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.leaky_relu(x, alpha=0.1)])
    >>> print(out)
    [-0.2  0.   1. ]
    """
    return emit_with_attrs("leaky_relu", x, {"alpha": alpha}, name)


def mish(x: Variable, threshold: float = 20, name: str | None = None) -> Variable:
    """Return ``x * tanh(softplus(x))``; above ``threshold`` softplus is the identity (operator ``mish``).

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32 or float64.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.mish(x)])
    >>> print(out.round(3))
    [-0.253  0.     0.865]
    """
    check_variable("mish", "x", x, WIDE_FLOATS)
    if threshold <= 0:
        raise GraphError(f"layer 'mish': threshold is {threshold}, expected a positive number")
    return emit_with_attrs("mish", x, {"threshold": float(threshold)}, name)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Return ``min(max(x, 0), threshold)`` (operator ``relu6``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 3, 8], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.relu6(x)])
    >>> print(out)
    [0. 3. 6.]
    """
    return emit_with_attrs("relu6", x, {"threshold": threshold}, name)


def selu(
    x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None
) -> Variable:
    """Return ``scale * x`` if positive, else ``scale * alpha * (exp(x) - 1)`` (operator ``selu``).

    The defaults are the self-normalising constants of Klambauer et al. 2017.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.selu(x)])
    >>> print(out.round(3))
    [-1.52   0.     1.051]
    """
    return emit_with_attrs("selu", x, {"scale": scale, "alpha": alpha}, name)


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Return ``log(1 + exp(min(max(x, -threshold), threshold)))`` (operator ``soft_relu``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.soft_relu(x)])
    >>> print(out.round(3))
    [0.127 0.693 1.313]
    """
    return emit_with_attrs("soft_relu", x, {"threshold": threshold}, name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """Return ``x`` moved towards 0 by ``alpha`` (0.5), at most to 0 (operator ``softshrink``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.25, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.softshrink(x)])
    >>> print(out)
    [-1.5  0.   0.5]
    """
    return emit_with_attrs("softshrink", x, {"lambda": alpha})


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """Return ``scale_b * tanh(scale_a * x)`` (operator ``stanh``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.stanh(x)])
    >>> print(out.round(3))
    [-1.496  0.     1.004]
    """
    return emit_with_attrs("stanh", x, {"scale_a": scale_a, "scale_b": scale_b}, name)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Return ``x / (1 + exp(-beta * x))`` (operator ``swish``).

    By default ``beta`` has no effect: the formula uses 1, see ``fluid.quirks()``.

    Parameters
    ----------
    beta
        Recorded in the operator. The formula uses 1, as in Fluid, unless ``FLAGS_fluid_quirks`` is False.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.swish(x)])
    >>> print(out.round(3))
    [-0.238  0.     0.731]
    """
    given = {} if beta == 1.0 or warn_quirk("swish_beta") else {"beta": beta}
    return emit_with_attrs("swish", x, given, name)


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Return ``x`` where above ``threshold`` (1.0), else 0 (operator ``thresholded_relu``).

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.5, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.thresholded_relu(x)])
    >>> print(out)
    [-0.  0.  2.]
    """
    return emit_with_attrs("thresholded_relu", x, {"threshold": threshold})


def prelu(x: Variable, mode: str, param_attr: ParamAttrLike = None, name: str | None = None) -> Variable:
    """Return ``x`` if positive, else ``alpha * x``; alpha is a parameter, initially 0.25 (``prelu``).

    ``mode`` is ``"all"`` for one alpha, ``"channel"`` for one per channel (dim 1), ``"element"`` for one per
    element of a sample.

    Parameters
    ----------
    mode
        ``"all"`` for one alpha, ``"channel"`` for one per channel (dim 1), ``"element"`` for one per
        element of a sample.
    param_attr
        The parameter alpha, initially 0.25.

    Returns
    -------
    Variable
        In the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        ``x`` is not a variable of float32.
    GraphError
        ``mode`` is neither ``"all"``, ``"channel"`` nor ``"element"``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([[-2, 0, 1]], "float32"))
    >>> fluid.layers.prelu(x, mode="all").shape
    (1, 3)
    """
    check_variable("prelu", "x", x, (VarType.FP32,))
    check_choice("prelu", "mode", mode, ("all", "channel", "element"))
    helper = LayerHelper("prelu", name=name)
    shape = {
        "all": lambda: [1],
        "channel": lambda: [1, x.shape[1], 1, 1],
        "element": lambda: [1, *x.shape[1:]],
    }[mode]()
    alpha = helper.create_parameter(param_attr, shape, "float32", default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    inputs = {"X": x, "Alpha": alpha}
    helper.append_op(type="prelu", inputs=inputs, outputs={"Out": out}, attrs={"mode": mode})
    return out
