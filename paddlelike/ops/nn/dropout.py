"""Dropout: a random part of the elements is set to zero while training."""

from __future__ import annotations

import numpy as np

from paddlelike.core import Generator, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    String,
    register,
)

_DOWNGRADE, _UPSCALE = "downgrade_in_infer", "upscale_in_train"


class DropoutAttrs(Attrs):
    """Attributes of dropout."""

    dropout_prob: float = Float(0.5)
    is_test: bool = Bool(False)
    fix_seed: bool = Bool(False)
    seed: int = Int(0)
    dropout_implementation: str = String(_DOWNGRADE)


@register
class Dropout(OpDef):
    """``Mask = u >= dropout_prob``, u uniform in [0, 1); Mask is uint8.

    =====================  ==========================  ==================
    implementation         training                    ``is_test``
    =====================  ==========================  ==================
    downgrade_in_infer     ``X Mask``                  ``X (1 - p)``
    upscale_in_train       ``X Mask / (1 - p)``        ``X``
    =====================  ==========================  ==================

    The mask is Paddle's own, and the same at every run, when Seed is given or ``fix_seed`` is set
    (even with ``seed`` 0); else it comes from the generator of the scope.
    Source: Srivastava et al., JMLR 15 (2014).
    """

    type = "dropout"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Seed?")
    outputs = ("Out", "Mask")
    attrs = DropoutAttrs.table()
    any_order = True
    lod = {"Out": "X"}
    views = True  # upscaled dropout does nothing in tests
    gradient = Gradient("Out@GRAD", "Mask", outputs=("X@GRAD",), lod="Out@GRAD")

    @staticmethod
    def infer(x: Spec, seed_tensor: Spec | None, *, attrs: DropoutAttrs) -> tuple[Spec, Spec | None]:
        if not 0 <= attrs.dropout_prob <= 1:
            raise ShapeError(f"dropout: dropout_prob is {attrs.dropout_prob}, expected 0 to 1")
        if attrs.dropout_implementation not in (_DOWNGRADE, _UPSCALE):
            raise ShapeError(
                f"dropout: dropout_implementation is {attrs.dropout_implementation!r}, "
                f"expected {_DOWNGRADE!r} or {_UPSCALE!r}"
            )
        out = Spec(x.shape, x.dtype)
        return out, None if attrs.is_test else Spec(x.shape, VarType.UINT8)

    @staticmethod
    def forward(
        ctx: Context, x: Array, seed_tensor: Array | None, *, attrs: DropoutAttrs
    ) -> tuple[Array, Array | None]:
        upscale = attrs.dropout_implementation == _UPSCALE
        if attrs.is_test:
            return x if upscale else x * _compute_kept_fraction(x, attrs.dropout_prob), None
        if seed_tensor is not None:
            generator = Generator(int(seed_tensor.reshape(-1)[0]))
        else:
            generator = Generator(attrs.seed) if attrs.fix_seed else ctx.random(0)
        kept = (generator.draw(x.size) >= np.float32(attrs.dropout_prob)).reshape(x.shape)
        if upscale and attrs.dropout_prob == 1:
            return np.zeros_like(x), np.zeros(x.shape, np.uint8)
        out = np.where(kept, x, x.dtype.type(0))
        if upscale:
            out /= _compute_kept_fraction(x, attrs.dropout_prob)
        return out, kept.view(np.uint8)

    @staticmethod
    def backward(ctx: Context, d_out: Array, mask: Array, *, attrs: DropoutAttrs) -> Array:
        d_x = d_out * mask
        if attrs.dropout_implementation == _UPSCALE and attrs.dropout_prob < 1:
            d_x /= _compute_kept_fraction(d_out, attrs.dropout_prob)
        return d_x

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        if op.attrs["is_test"]:
            raise EnforceNotMet(
                "dropout: there is no gradient with is_test",
                hint="take the gradient of the training program, not of its clone(for_test=True)",
            )
        return super().make_grad(op)


def _compute_kept_fraction(x: Array, dropout_prob: float) -> np.generic:
    """Return ``1 - p``, computed in float32, as an element of X's type."""
    return x.dtype.type(np.float32(1) - np.float32(dropout_prob))
