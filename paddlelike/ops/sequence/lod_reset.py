"""lod_reset: the same rows cut into other sequences."""

from __future__ import annotations

import numpy as np

from paddlelike.core.tensor import LoD
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, Ints, OpDef, Spec, register


@register
class LodReset(OpDef):
    """``Out = X`` with another LoD: that of Y, else the offsets that Y holds, else ``target_lod``.

    With ``append`` the new level comes below the levels that X has.
    """

    type = "lod_reset"
    inputs = ("X", "Y?")
    attrs = {"target_lod": Ints([]), "append": Bool(False)}
    context = True
    views = True
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec | None, *, target_lod: list[int], append: bool) -> Spec:
        if y is not None:
            return Spec(x.shape, x.dtype, max(y.lod_level or 0, 1))
        return Spec(x.shape, x.dtype, (x.lod_level or 0) + 1 if append else 1)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array | None, *, target_lod: list[int], append: bool) -> Array:
        if y is not None and ctx.lod("Y"):
            ctx.set_lod("Out", ctx.lod("Y"))
            return x
        offsets = np.array(target_lod if y is None else y, np.int64).reshape(-1)
        level = offsets.tolist()
        if len(level) < 2 or level[0] != 0 or level[-1] != len(x) or (offsets[1:] < offsets[:-1]).any():
            raise EnforceNotMet(
                f"lod_reset: the offsets {level} do not cut the {len(x)} rows of X into sequences",
                hint="offsets begin with 0, never fall, and end with the number of rows",
            )
        above: LoD = ctx.lod("X") if append else []
        ctx.set_lod("Out", [*above, level])
        return x

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array) -> Array:
        return d_out
