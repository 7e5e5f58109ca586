"""Second gradients of functions that are linear in each operand.

The gradient operator of such a function is linear in the gradients too. So the second gradient consists of
the function itself and its two gradients.
"""

from __future__ import annotations

import math
from typing import Any

from paddlelike.framework.opdef import Array
from paddlelike.ops.linalg.matmul import Mul
from paddlelike.ops.nn.conv.conv import Conv2d, Conv3d
from paddlelike.ops.reduction import reduce  # noqa: F401  (it registers the operators)
from paddlelike.ops.second_order.registration import register_repeated, register_second_order
from paddlelike.ops.tensor import expand, reshape, slice  # noqa: A004, F401  (likewise)

Maybe = Array | None


def _add(a: Maybe, b: Maybe) -> Maybe:
    return b if a is None else a if b is None else a + b


def _mul(
    dd_x: Maybe, dd_y: Maybe, d_out: Array, x: Array, y: Array, *, x_num_col_dims: int, y_num_col_dims: int
) -> tuple[Maybe, Maybe, Maybe]:
    """The second gradient of a matrix product, whose operands are taken as matrices."""
    columns = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    rows = math.prod(x.shape[:x_num_col_dims])
    inner = math.prod(y.shape[:y_num_col_dims])
    flat = d_out.reshape(rows, -1)
    dd_out = _add(
        None if dd_x is None else Mul.forward(dd_x, y, **columns),
        None if dd_y is None else Mul.forward(x, dd_y, **columns),
    )
    d_x = None if dd_y is None else (flat @ dd_y.reshape(inner, -1).T).reshape(x.shape)
    d_y = None if dd_x is None else (dd_x.reshape(rows, -1).T @ flat).reshape(y.shape)
    return dd_out, d_x, d_y


register_second_order(
    "mul",
    {"DDX": "X@GRAD", "DDY": "Y@GRAD", "DOut": "Out@GRAD", "X": "X", "Y": "Y"},
    {"DDOut": "Out@GRAD", "DX": "X", "DY": "Y"},
    _mul,
    {"DDOut": ("DDX", "DDY"), "DX": ("DDY",), "DY": ("DDX",)},
)


def _register_conv(cls: Any) -> None:
    added = [None] * (len(cls.inputs) - 2)

    def run(
        dd_w: Maybe, dd_x: Maybe, d_out: Array, w: Array, x: Array, *, attrs: Any
    ) -> tuple[Maybe, Maybe, Maybe]:
        def slopes(x: Array, w: Array, first: bool) -> Maybe:
            result: Maybe = cls.backward(x, w, None, d_out, attrs=attrs, wanted=(first, not first))[not first]
            return result

        dd_out = _add(
            None if dd_x is None else cls.forward(dd_x, w, *added, attrs=attrs),
            None if dd_w is None else cls.forward(x, dd_w, *added, attrs=attrs),
        )
        d_w = None if dd_x is None else slopes(dd_x, w, first=False)
        d_x = None if dd_w is None else slopes(x, dd_w, first=True)
        return dd_out, d_w, d_x

    register_second_order(
        cls.type,
        {
            "DDFilter": "Filter@GRAD",
            "DDInput": "Input@GRAD",
            "DOutput": "Output@GRAD",
            "Filter": "Filter",
            "Input": "Input",
        },
        {"DDOutput": "Output@GRAD", "DFilter": "Filter", "DInput": "Input"},
        run,
        {"DDOutput": ("DDInput", "DDFilter"), "DFilter": ("DDInput",), "DInput": ("DDFilter",)},
    )


_register_conv(Conv2d)
_register_conv(Conv3d)


def _reshape(dd_x: Array, d_out: Array) -> Array:
    return dd_x.reshape(d_out.shape)


register_second_order("reshape2", {"DDX": "X@GRAD", "DOut": "Out@GRAD"}, {"DDOut": "Out@GRAD"}, _reshape)
for _name in ("reduce_sum", "reduce_mean"):
    register_repeated(_name, {"X": "X@GRAD"}, {"Out": "Out@GRAD"})
register_repeated(
    "expand",
    {"X": "X@GRAD", "ExpandTimes": "ExpandTimes", "expand_times_tensor": "expand_times_tensor"},
    {"Out": "Out@GRAD"},
)
register_repeated(
    "slice",
    {
        "Input": "Input@GRAD",
        "StartsTensor": "StartsTensor",
        "EndsTensor": "EndsTensor",
        "StartsTensorList": "StartsTensorList",
        "EndsTensorList": "EndsTensorList",
    },
    {"Out": "Out@GRAD"},
)
