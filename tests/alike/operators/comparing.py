"""What differs between two outcomes of a case, in a line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.alike.operators.asking import decode

__all__ = ["DIFFERENT", "differ", "find_reason"]

#: Sums in another order, and functions of another library.
CLOSE = {"float32": (2e-5, 1e-6), "float64": (1e-9, 1e-12), "float16": (2e-3, 1e-3)}

#: What is not copied: a regular expression of operators, and why, with the place in Paddle 1.8.5's source.
DIFFERENT = {
    "reduce_.*|frobenius_norm": "all dims without reduce_all leave memory as it was: reduce_op.h",
    "trace|gather_tree|edit_distance|chunk_eval|target_assign": "it reads beyond inputs of other sizes",
    "conv.*|depthwise_conv.*": "Bias is read by MKL-DNN alone: conv_op.h, GemmConvKernel::Compute",
    "exp|log|r?sqrt|tanh.*|.*sigmoid|swish|mish|soft.*|[sg]?elu|hard_.*|.*relu.*|stanh|square|abs|pow": (
        "NaN, infinities and denormals in whole packets are those of Eigen's approximations: activation_op.h"
    ),
    "adadelta|ada.*|lamb|label_smooth|.*_interp|pool2d|decayed_adagrad|momentum|rmsprop|ftrl|lars.*": (
        "attributes and factors are float32: numbers of float64 differ from the eighth digit on"
    ),
    "sequence_conv|tree_conv": "filters' gradients and rows behind the last node hold what the memory held",
    "fusi.*|fused_.*|attention_lstm|linear_chain_crf|lstmp?|gru": "intermediate results of another order",
    "accuracy|equal_reduce": "a result of one element has no sequences here; it keeps X's there",
    ".*(pool|roi).*|grid_sampler|yolo_box|box_clip|maxout": "NaN takes another way through comparisons",
}


def find_reason(type: str, text: str) -> str:
    """Return why a difference is left; what it is if nothing is known."""
    reasons = (why for pattern, why in DIFFERENT.items() if re.fullmatch(pattern, type))
    return next(reasons, "NOT KNOWN")


def differ(got: dict[str, Any], want: dict[str, Any]) -> str:
    """Return what of an outcome is not what was wanted; "" if nothing is."""
    if "died" in want:
        return ""
    if "refused" in want:
        return (
            ""
            if "refused" in got or want["refused"] == "gradient"
            else f"accepted, wanted refused ({want.get('why')})"
        )
    if "refused" in got:
        return f"refused ({got['refused']}: {got['why']})"
    for part in ("out", "grad"):
        mine, theirs = got.get(part), want.get(part)
        if theirs is None:
            continue
        for name in theirs:
            text = _differ_record(None if mine is None else mine.get(name), theirs[name])
            if text:
                return f"{part} {name}: {text}"
    return ""


def _differ_record(got: Any, want: Any) -> str:
    if want is None:
        return "" if got is None or 0 in got[1] else "not None"
    if got is None:
        return "None"
    if got[0] != want[0] or got[1] != want[1]:
        return f"is {got[0]}{got[1]}, wanted {want[0]}{want[1]}"
    if [list(level) for level in got[3]] != [list(level) for level in want[3]]:
        return f"LoD {got[3]}, wanted {want[3]}"
    if got[4:] != want[4:]:
        return f"rows {got[4:]}, wanted {want[4:]}"
    mine, theirs = decode(got), decode(want)
    if mine.dtype.kind != "f":
        return "" if np.array_equal(mine, theirs) else _show(mine, theirs, mine == theirs)
    rtol, atol = CLOSE[want[0]]
    with np.errstate(all="ignore"):
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = float(finite.max()) if finite.size else 0.0
        near = np.isclose(mine, theirs, rtol, max(atol, rtol * min(scale, 1e6)), equal_nan=True)
    return "" if near.all() else _show(mine, theirs, near)


def _show(mine: Any, theirs: Any, near: Any) -> str:
    where = np.argwhere(~np.asarray(near))[:3].tolist()
    pairs = ", ".join(f"{tuple(at)}: {mine[tuple(at)]!s} wanted {theirs[tuple(at)]!s}" for at in where)
    return f"{int((~np.asarray(near)).sum())} of {mine.size} differ: {pairs}"
