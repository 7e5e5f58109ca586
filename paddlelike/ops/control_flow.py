"""Operators that run blocks: conditional_block."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.registry import Array, Block, Bool, Context, OpDef, Strings, register

__all__ = ["ConditionalBlock"]


@register
class ConditionalBlock(OpDef):
    """Runs ``sub_block`` when the condition holds; otherwise ``Out`` stays as it is.

    With ``is_scalar_condition`` the condition is the one element of Cond; without it, that none of the
    variables in Cond is empty. ``Input`` and ``Out`` name what the block reads and writes outside of itself.
    """

    type = "conditional_block"
    inputs = ("Cond*", "Input*")
    outputs = ("Out*", "Scope")
    attrs = {
        "sub_block": Block(),
        "is_scalar_condition": Bool(False),
        "skip_eager_deletion_vars": Strings(()),
    }
    context = True
    pure = False

    @staticmethod
    def forward(
        ctx: Context,
        conditions: list[Array],
        inputs: list[Array],
        *,
        sub_block: int,
        is_scalar_condition: bool,
    ) -> tuple[None, None]:
        if _holds(conditions, scalar=is_scalar_condition):
            ctx.run_block(sub_block)
        return None, None


def _holds(conditions: list[Array], *, scalar: bool) -> bool:
    if not scalar:
        return all(condition.size for condition in conditions)
    if len(conditions) != 1 or conditions[0].size != 1 or conditions[0].dtype != np.bool_:
        came = ", ".join(f"{c.dtype}{list(c.shape)}" for c in conditions)
        raise ShapeError(f"conditional_block: Cond is one bool, got {came}")
    return bool(conditions[0].item())
