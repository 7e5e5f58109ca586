"""Elementwise functions of one variable: activations and others. The output has the input's shape and dtype.

Functions that differ by their formula alone are rows of one table, each an operator of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.layers.checks import (
    FLOATS,
    NUMBERS,
    WIDE_FLOATS,
    check_variable,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.creation import assign

if TYPE_CHECKING:
    pass

__all__ = [
    "abs",
    "acos",
    "asin",
    "atan",
    "brelu",
    "ceil",
    "cos",
    "elu",
    "erf",
    "exp",
    "floor",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log1p",
    "logsigmoid",
    "mish",
    "pow",
    "reciprocal",
    "relu",
    "relu6",
    "round",
    "rsqrt",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "soft_relu",
    "softplus",
    "softshrink",
    "softsign",
    "sqrt",
    "square",
    "stanh",
    "swish",
    "tanh",
    "tanh_shrink",
    "thresholded_relu",
]


class Activation(Protocol):
    """A layer of one input."""

    def __call__(self, x: Variable, name: str | None = None) -> Variable: ...


def _make_activation(
    type: str, formula: str, example: tuple[str, str], dtypes: Sequence[VarType] = FLOATS
) -> Activation:
    """Return the layer that appends the operator ``type``; ``example``: numbers, and its result rounded."""

    def layer(x: Variable, name: str | None = None) -> Variable:
        check_variable(type, "x", x, dtypes)
        return emit(type, {"X": x}, name=name)

    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = f"""Return ``{formula}``, number by number (operator ``{type}``), in the shape of ``x``.

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([{example[0]}], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.{type}(x)])
    >>> print(out.round(3))
    [{example[1]}]
    """
    return layer


abs = _make_activation("abs", "|x|", ("-2, 0, 1", "2. 0. 1."), NUMBERS)
acos = _make_activation("acos", "arc cosine of x", ("-1, 0, 1", "3.142 1.571 0.   "))
asin = _make_activation("asin", "arc sine of x", ("-1, 0, 1", "-1.571  0.     1.571"))
atan = _make_activation("atan", "arc tangent of x", ("-2, 0, 1", "-1.107  0.     0.785"))
ceil = _make_activation("ceil", "least integer >= x", ("-1.5, 0.5, 2", "-1.  1.  2."))
cos = _make_activation("cos", "cosine of x", ("-2, 0, 1", "-0.416  1.     0.54 "))
exp = _make_activation("exp", "e ** x", ("-2, 0, 1", "0.135 1.    2.718"), NUMBERS)
floor = _make_activation("floor", "greatest integer <= x", ("-1.5, 0.5, 2", "-2.  0.  2."))
log = _make_activation("log", "natural logarithm of x", ("1, 2, 4", "0.    0.693 1.386"), WIDE_FLOATS)
logsigmoid = _make_activation("logsigmoid", "log(1 / (1 + exp(-x)))", ("-2, 0, 1", "-2.127 -0.693 -0.313"))
reciprocal = _make_activation("reciprocal", "1 / x", ("0.5, 1, 4", "2.   1.   0.25"))
relu = _make_activation("relu", "max(x, 0)", ("-2, 0, 1", "0. 0. 1."))
round = _make_activation("round", "nearest integer, halves away from 0", ("-1.5, 0.4, 2.5", "-2.  0.  3."))
rsqrt = _make_activation("rsqrt", "1 / sqrt(x)", ("0.25, 1, 4", "2.  1.  0.5"))
sigmoid = _make_activation("sigmoid", "1 / (1 + exp(-x))", ("-2, 0, 1", "0.119 0.5   0.731"))
sin = _make_activation("sin", "sine of x", ("-2, 0, 1", "-0.909  0.     0.841"))
softplus = _make_activation("softplus", "log(1 + exp(x))", ("-2, 0, 1", "0.127 0.693 1.313"))
softsign = _make_activation("softsign", "x / (1 + |x|)", ("-2, 0, 1", "-0.667  0.     0.5  "))
sqrt = _make_activation("sqrt", "square root of x", ("0.25, 1, 4", "0.5 1.  2. "))
square = _make_activation("square", "x * x", ("-2, 0, 1", "4. 0. 1."), NUMBERS)
tanh = _make_activation(
    "tanh", "(exp(x) - exp(-x)) / (exp(x) + exp(-x))", ("-2, 0, 1", "-0.964  0.     0.762")
)
tanh_shrink = _make_activation("tanh_shrink", "x - tanh(x)", ("-2, 0, 1", "-1.036  0.     0.238"))


def _emit_with_attrs(type: str, x: object, attrs: dict[str, Any], name: str | None = None) -> Variable:
    """Append the operator ``type`` with the attributes that are not None, and return its output."""
    check_variable(type, "x", x, FLOATS)
    given = {key: value for key, value in attrs.items() if value is not None}
    return emit(type, {"X": x}, given, name=name)


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """Return ``min(max(x, t_min), t_max)`` (operator ``brelu``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 10, 30], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.brelu(x)])
    >>> print(out)
    [ 0. 10. 24.]
    """
    return _emit_with_attrs("brelu", x, {"t_min": t_min, "t_max": t_max}, name)


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """Return ``x`` where positive, else ``alpha * (exp(x) - 1)`` (operator ``elu``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.elu(x)])
    >>> print(out.round(3))
    [-0.865  0.     1.   ]
    """
    return _emit_with_attrs("elu", x, {"alpha": alpha}, name)


def erf(x: Variable) -> Variable:
    """Return ``2 / sqrt(pi) * integral of exp(-t * t) for t in 0 .. x`` (operator ``erf``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.erf(x)])
    >>> print(out.round(3))
    [-0.995  0.     0.843]
    """
    return _emit_with_attrs("erf", x, {})


def gelu(x: Variable, approximate: bool = False) -> Variable:
    """Return ``x * Phi(x)``, Phi the normal distribution function, or its tanh approximation (``gelu``).

    ``approximate`` computes by tanh instead of erf.

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.gelu(x)])
    >>> print(out.round(3))
    [-0.046  0.     0.841]
    """
    return _emit_with_attrs("gelu", x, {"approximate": approximate})


def hard_shrink(x: Variable, threshold: float | None = None) -> Variable:
    """Return ``x`` where ``|x| > threshold`` (0.5), else 0 (operator ``hard_shrink``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.25, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_shrink(x)])
    >>> print(out)
    [-2.  0.  1.]
    """
    return _emit_with_attrs("hard_shrink", x, {"threshold": threshold})


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """Return ``min(max(slope * x + offset, 0), 1)`` (operator ``hard_sigmoid``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_sigmoid(x)])
    >>> print(out.round(3))
    [0.1 0.5 0.7]
    """
    return _emit_with_attrs("hard_sigmoid", x, {"slope": slope, "offset": offset}, name)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """Return ``x * min(max(x + offset, 0), threshold) / scale`` (operator ``hard_swish``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.hard_swish(x)])
    >>> print(out.round(3))
    [-0.333  0.     0.667]
    """
    attrs = {"threshold": threshold, "scale": scale, "offset": offset}
    return _emit_with_attrs("hard_swish", x, attrs, name)


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """Return ``x`` where positive, else ``alpha * x`` (operator ``leaky_relu``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.leaky_relu(x, alpha=0.1)])
    >>> print(out)
    [-0.2  0.   1. ]
    """
    return _emit_with_attrs("leaky_relu", x, {"alpha": alpha}, name)


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Return ``log(1 + x)`` (operator ``log1p``), written to ``out`` if that is given.

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.log1p(x)])
    >>> print(out.round(3))
    [0.    0.693]
    """
    check_variable("log1p", "x", x, FLOATS)
    return emit("log1p", {"X": x}, name=name, out=out)


def mish(x: Variable, threshold: float = 20, name: str | None = None) -> Variable:
    """Return ``x * tanh(softplus(x))``; above ``threshold`` softplus is the identity (operator ``mish``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    The result has the shape of ``x``.

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
    return _emit_with_attrs("mish", x, {"threshold": float(threshold)}, name)


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """Return ``x ** factor``; the factor may be a variable of shape [1] (operator ``pow``).

    Raises TypeError unless ``x`` is a variable of a supported dtype.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([1, 2, 3], "float32"))
    >>> fluid.Executor().run(fetch_list=[fluid.layers.pow(x, factor=2.0)])
    [array([1., 4., 9.], dtype=float32)]
    """
    check_variable("pow", "x", x, NUMBERS)
    if isinstance(factor, Variable):
        factor.stop_gradient = True
        return emit("pow", {"X": x, "FactorTensor": factor}, name=name)
    return emit("pow", {"X": x}, {"factor": factor}, name=name)


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """Return ``min(max(x, 0), threshold)`` (operator ``relu6``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 3, 8], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.relu6(x)])
    >>> print(out)
    [0. 3. 6.]
    """
    return _emit_with_attrs("relu6", x, {"threshold": threshold}, name)


def selu(
    x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None
) -> Variable:
    """Return ``scale * x`` where positive, else ``scale * alpha * (exp(x) - 1)`` (operator ``selu``).

    The defaults are the self-normalising constants of Klambauer et al. 2017.

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.selu(x)])
    >>> print(out.round(3))
    [-1.52   0.     1.051]
    """
    return _emit_with_attrs("selu", x, {"scale": scale, "alpha": alpha}, name)


def sign(x: Variable | np.ndarray[Any, Any]) -> Variable:
    """Return -1, 0 or 1, the sign of each element (operator ``sign``); an array becomes a constant.

    ``x`` is a variable or an array; the result has its shape.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.sign(x)])
    >>> print(out)
    [-1.  0.  1.]
    """
    if isinstance(x, np.ndarray):
        x = assign(x)
    return _emit_with_attrs("sign", x, {})


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """Return ``log(1 + exp(min(max(x, -threshold), threshold)))`` (operator ``soft_relu``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.soft_relu(x)])
    >>> print(out.round(3))
    [0.127 0.693 1.313]
    """
    return _emit_with_attrs("soft_relu", x, {"threshold": threshold}, name)


def softshrink(x: Variable, alpha: float | None = None) -> Variable:
    """Return ``x`` moved towards 0 by ``alpha`` (0.5), at most to 0 (operator ``softshrink``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.25, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.softshrink(x)])
    >>> print(out)
    [-1.5  0.   0.5]
    """
    return _emit_with_attrs("softshrink", x, {"lambda": alpha})


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """Return ``scale_b * tanh(scale_a * x)`` (operator ``stanh``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.stanh(x)])
    >>> print(out.round(3))
    [-1.496  0.     1.004]
    """
    return _emit_with_attrs("stanh", x, {"scale_a": scale_a, "scale_b": scale_b}, name)


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """Return ``x / (1 + exp(-beta * x))`` (operator ``swish``).

    By default ``beta`` is 1 whatever is given, see ``fluid.quirks()``.

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0, 1], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.swish(x)])
    >>> print(out.round(3))
    [-0.238  0.     0.731]
    """
    given = {} if beta == 1.0 or warn_quirk("swish_beta") else {"beta": beta}
    return _emit_with_attrs("swish", x, given, name)


def thresholded_relu(x: Variable, threshold: float | None = None) -> Variable:
    """Return ``x`` where above ``threshold`` (1.0), else 0 (operator ``thresholded_relu``).

    The result has the shape of ``x``.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> x = fluid.layers.assign(np.array([-2, 0.5, 2], "float32"))
    >>> (out,) = fluid.Executor().run(fetch_list=[fluid.layers.thresholded_relu(x)])
    >>> print(out)
    [-0.  0.  2.]
    """
    return _emit_with_attrs("thresholded_relu", x, {"threshold": threshold})
