"""What differs between two outcomes of a case, in a line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tests.alike.operators.asking import decode

__all__ = ["MEMORY", "ODD", "differ", "find_reason"]

#: Sums in another order, and functions of another library.
CLOSE = {"float32": (2e-5, 1e-6), "float64": (1e-9, 1e-12), "float16": (2e-3, 1e-3)}

#: What 1.8.5 refuses and this project computes: a pattern of its message, and why.
WIDER = {
    "does not have kernel|holds the wrong type|got >|Cannot get attribute": "no kernel for the element type",
    "share the same|same Tensor": "outputs must overwrite inputs",
    "not been initialized|holds no memory|Empty|numel must": "no elements count as never set",
    r"(?:\[|:|, |= |is |\()-1\b": "an unknown size counts as -1",
    "": "a size or an attribute that the kernel does not need is checked",
}
MEMORY = "memory: 1.8.5 gives other numbers where what it allocates is filled before"
ODD = "without its infinities, NaN and numbers beyond 1e30 the case is alike"
#: What is not copied: a regular expression of operators, and why.
DIFFERENT = {
    "accuracy|equal_reduce": "one element has no sequences here; 1.8.5 leaves those of X on it",
    "clip_by_norm": "zeros stay zeros; 1.8.5 divides by their norm: clip_by_norm_op.h",
    "fill_constant": "infinity stays; 1.8.5 reads 0 from its characters: fill_constant_op.h",
    "conv.*|depthwise_conv.*": "Bias is added; 1.8.5 reads it with MKL-DNN alone: conv_op.h",
    "attention_lstm|fus.*|gru|lstmp?|linear_chain_crf": "scratch arrays, which no layer reads",
    "split|unbind": "fewer outputs than parts: rows of the outputs' width are cut from X as from one line",
    "crop.*|dequantize_log|gather.*|mean_iou|one_hot|target_assign|tdm_child|sequence_scatter|split_byref"
    "|var_conv_2d|center_loss|hierarchical_sigmoid|filter_by_instag": "1.8.5 reads or writes beyond an array",
    "momentum|rmsprop": "rows of unsorted ids are lost in 1.8.5: momentum_op.h, rmsprop_op.h",
    "exp|r?sqrt|log|log1p|sigmoid|tanh.*|soft_relu|logsigmoid|softplus|stanh|elu|(?:frobenius_)?norm"
    "|.*adagrad": (
        "Eigen gives NaN, infinities, -0.0 and denormals other numbers in whole packets than behind the last"
    ),
    "box_coder": "float32 variances are read as if float64, and beyond their end: box_coder_op.h",
    "p_norm": "one number has the shape [1]; in 1.8.5 it has none",
}


def find_reason(type: str, text: str) -> str:
    """Return why a difference is left; what it is if nothing is known."""
    if text.startswith("accepted"):
        return "refused there: " + next(why for pattern, why in WIDER.items() if re.search(pattern, text))
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
