"""fc: a product of matrices with a bias and an activation."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Bool, Float, Floats, Int, OpDef, Spec, String, register
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.operands import can_be_equal


@register
class Fc(OpDef):
    """``Out = act(Input W + Bias)``, where the dims of Input from ``in_num_col_dims`` on count as columns.

    W is ``(M, D)``, Bias ``(D,)`` or ``(1, D)``; ``activation_type`` is none or relu. With
    ``padding_weights`` the last four rows and columns of W are padding.
    """

    type = "fc"
    by_row = True
    inputs = ("Input", "W", "Bias?")
    attrs = {
        "in_num_col_dims": Int(1),
        "activation_type": String(""),
        "use_mkldnn": Bool(False),
        "padding_weights": Bool(False),
        "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Bool(True),
        "use_quantizer": Bool(False),
        "Scale_in": Float(1.0),
        "Scale_weights": Floats([1.0]),
        "Scale_out": Float(1.0),
        "force_fp32_output": Bool(False),
    }
    lod = "Input"

    @staticmethod
    def infer(x: Spec, w: Spec, bias: Spec | None, *, in_num_col_dims: int, padding_weights: bool) -> Spec:
        if len(w.shape) != 2 or not 0 < in_num_col_dims < len(x.shape):
            raise ShapeError(
                f"fc: Input has shape {x.shape}, W {w.shape}, in_num_col_dims is {in_num_col_dims}; W needs "
                "2 dims, Input more than in_num_col_dims"
            )
        rows, columns = (dim - 4 for dim in w.shape) if padding_weights else w.shape
        inner = x.shape[in_num_col_dims:]
        if min(inner) >= 0 and not can_be_equal(math.prod(inner), rows):
            raise ShapeError(f"fc: Input has {math.prod(inner)} columns (dims {inner}), W {rows} rows")
        return Spec((*x.shape[:in_num_col_dims], columns), x.dtype)

    @staticmethod
    def forward(
        x: Array,
        w: Array,
        bias: Array | None,
        *,
        in_num_col_dims: int,
        activation_type: str,
        padding_weights: bool,
    ) -> Array:
        if activation_type not in ("", "relu"):
            raise EnforceNotMet(f"fc: activation_type is {activation_type!r}, expected '' or 'relu'")
        w = w[:-4, :-4] if padding_weights else w
        leading = x.shape[:in_num_col_dims]
        out = multiply(x.reshape(math.prod(leading), math.prod(x.shape[in_num_col_dims:])), w)
        if bias is not None:
            out += bias.reshape(-1)
        if activation_type:
            np.maximum(out, 0, out=out)
        return out.reshape(*leading, w.shape[1])
