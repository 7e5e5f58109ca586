"""spectral_norm: weights divided by their largest singular value.

Parameters
----------
weight
    A parameter of two to five dims.
dim
    The dim that counts as rows: 0, or 1 for weights of ``fc`` and of transposed convolutions.
power_iters
    The count of power iterations.
eps
    Added to the norms, against division by zero.
"""

from __future__ import annotations

import math

from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.initializer import Normal
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.helper import LayerHelper
from paddlelike.param_attr import ParamAttr

__all__ = ["spectral_norm"]


def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """Return ``weight`` divided by its greatest singular value as a matrix whose rows are dim ``dim``.

    Operator ``spectral_norm``. The value comes from ``power_iters`` power iterations on two persistable
    vectors; for its gradient see ``fluid.quirks()``. Miyato et al. 2018. Raises TypeError unless ``weight``
    is a variable of a supported dtype.

    ``eps`` is added to the norms.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [4, 3])
    >>> fluid.layers.spectral_norm(x).shape
    (4, 3)
    """
    check_variable("spectral_norm", "weight", weight, WIDE_FLOATS)
    warn_quirk("spectral_norm_gradient")
    helper = LayerHelper("spectral_norm", name=name)
    rows = weight.shape[dim]
    columns = math.prod(weight.shape) // rows
    u, v = (
        helper.create_parameter(ParamAttr(), [length], weight.dtype, default_initializer=Normal(0.0, 1.0))
        for length in (rows, columns)
    )
    u.stop_gradient = v.stop_gradient = True
    out = helper.create_variable(dtype=weight.dtype)
    helper.append_op(
        type="spectral_norm",
        inputs={"Weight": weight, "U": u, "V": v},
        outputs={"Out": out},
        attrs={"dim": dim, "power_iters": power_iters, "eps": eps},
    )
    return out
