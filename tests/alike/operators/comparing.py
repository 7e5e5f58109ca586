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
#: Arrays that Fluid's kernels fill for themselves, which no layer reads: outputs by operator, not compared.
SCRATCH = {
    "attention_lstm": "AttentionFCOut AttentionedX LSTMOUT LSTMX",
    "fused_embedding_fc_lstm": "BatchedCell BatchedHidden BatchedInput ReorderedC0 ReorderedH0 XX",
    "fusion_gru": "BatchedInput BatchedOut ReorderedH0 XX",
    "fusion_lstm": "BatchedCell BatchedHidden BatchedInput CheckedCell ReorderedC0 ReorderedH0 XX",
    "fusion_seqexpand_concat_fc": "FCOut",
    "gru": "BatchGate BatchHidden BatchResetHiddenPrev",
    "linear_chain_crf": "Alpha EmissionExps TransitionExps",
    "lstm": "BatchCellPreAct BatchGate",
    "lstmp": "BatchCellPreAct BatchGate BatchHidden OrderedP0",
}
_BEYOND = "1.8.5 reads or writes beyond an array"
_SIZES = "sizes that do not fit together are refused; 1.8.5 reads other places of the arrays"
#: What is not copied: regular expressions of operators and of differences, and why.
DIFFERENT = [
    ("accuracy|equal_reduce", "LoD", "one element has no sequences here; 1.8.5 leaves those of X on it"),
    ("unsqueeze2?|expand|.*_interp", "LoD", "sizes and axes of a variable say nothing of sequences here"),
    ("collect_fpn_proposals", "LoD", "an image without regions has an empty sequence; 1.8.5 leaves it out"),
    ("clip_by_norm", "nan", "zeros stay zeros; 1.8.5 divides by their norm: clip_by_norm_op.h"),
    ("fill_constant", "inf", "infinity stays; 1.8.5 reads 0 from its characters: fill_constant_op.h"),
    ("conv.*|depthwise_conv.*", "bias", "Bias is added; 1.8.5 reads it with MKL-DNN alone: conv_op.h"),
    (
        "split|unbind",
        "",
        "fewer outputs than parts: rows of the outputs' width are cut from X as from one line",
    ),
    (
        (
            "crop.*|dequantize_log|gather.*|mean_iou|one_hot|target_assign|tdm_child|sequence_scatter|split_byref"
            "|scatter.*|hierarchical_sigmoid|lookup_table.*|linear_chain_crf|center_loss|fused_embedding.*"
        ),
        "refused",
        _BEYOND,
    ),
    ("crop.*|tdm_child|target_assign|max_pool.d_with_index|mean_iou|auc", "differ", _BEYOND),
    ("momentum|rmsprop", "", "rows of unsorted ids are lost in 1.8.5: momentum_op.h, rmsprop_op.h"),
    (
        (
            "exp|r?sqrt|log|log1p|sigmoid|tanh.*|soft_relu|logsigmoid|softplus|stanh|elu|(?:frobenius_)?norm"
            "|.*adagrad"
        ),
        "differ",
        "Eigen gives NaN, infinities, -0.0 and denormals other numbers in whole packets than behind the last",
    ),
    ("box_coder", "", "float32 variances are read as if float64, and beyond their end: box_coder_op.h"),
    (
        "pool.d|spp",
        "nan wanted",
        "NaN stays in a maximum; 1.8.5 forgets it and what precedes it, if an element follows: pooling.h",
    ),
    ("dist", "differ", "Eigen skips a NaN, or keeps it, by its place in a packet"),
    (
        "pool.d",
        "grad X.*'pooling_type': 'avg'",
        "1.8.5 multiplies by a float32 in float64 averages too: pooling.cc",
    ),
    ("pad2d", "too small to be reflected", _BEYOND),
    ("lstm", ": -?0.0 wanted", "the argument of the sigmoid of a gate begins at -40 in 1.8.5: lstm_kernel.h"),
    ("teacher_student_sigmoid_loss", "differ", "1.8.5 adds up in float64: numbers of 1e38 do not overflow"),
    ("p_norm", "differ", "1.8.5 computes 1 / porder in float32"),
    ("p_norm", "is float", "one number has the shape [1]; in 1.8.5 it has none"),
    (
        ".*",
        "positive number|above 0 for every|by zero|pyramid_height is|rising numbers|depth is 0|leave \\[",
        "a window, step, depth or size of 0 or less is refused",
    ),
    (".*", "smaller than (?:one|a) window|nothing is left", "a result without elements is refused"),
    ("range", "not None", "a step that overflows"),
    ("reduce_any", "wanted True", "1.8.5 leaves the result of no elements unset"),
    ("reduce_.*", "grad X.*'reduce_all': True", _BEYOND),
    (
        "hierarchical_sigmoid|linear_chain_crf|fused_elemwise_activation",
        "LoD",
        "parameters and intermediate results are not sequences here",
    ),
    (
        (
            "partial_sum|similarity_focus|yolov3_loss|dequantize_abs_max|trace|bpr_loss|reshape2?|edit_distance"
            "|auc|shuffle_channel|fusion_seqpool.*|softmax_with_cross_entropy"
        ),
        "refused|-1\\]|is float|differ",
        _BEYOND,
    ),
    ("warpctc", "WarpCTCGrad", "labels that are the blank, and NaN: of a row all classes are NaN here"),
    ("lstmp?|gru", "grad", "1.8.5 reads rows of the next step for a sequence without rows that has an H0"),
    ("detection_map|prroi_pool|matrix_nms", "nan", "scores and regions of NaN"),
    ("gru_unit", "differ", "the argument of the sigmoid of a gate ends at 13, as in Fluid's other cells"),
    ("pool.d", "e.308", "a window beyond float64 holds the least float64; in 1.8.5 the least float32"),
    ("sequence_softmax", "differ", "the greatest number is taken off first; 1.8.5 has infinities above 88"),
    ("fusion_gru", "differ", "1.8.5 approximates the exponentials"),
    ("gather_tree", "differ", _BEYOND),
    ("detection_map", "differ", "labels that are no classes"),
    ("sequence_expand|gru|fused_elemwise_activation|add_position_encoding", "refused", _SIZES),
    ("lrn|data_norm", "nan", "running sums of 1.8.5 carry NaN and infinities on"),
    ("rank_loss", "wanted inf", "log(1 + e^d) is exact; 1.8.5 has infinities above 88"),
    ("prior_box", "math domain", "aspect ratios below 0 are refused"),
    ("slice", "infer_flags", "no layer takes such infer_flags"),
    ("matmul", "head_number", "an attribute of Intel's library"),
    (
        "roi_perspective_transform|roi_align|deformable_psroi_pooling|yolo_box",
        "differ",
        "rounding at the border of a region",
    ),
    (
        "sigmoid_cross_entropy_with_logits",
        "wanted nan",
        "0 where all labels are ignored; 1.8.5 divides by their count",
    ),
    (
        (
            "assign_value|fill|cross_entropy|ctc_align|im2sequence|linear_chain_crf|split_ids|sequence_.*pooling"
            "|multiclass_nms2|distribute_fpn_proposals"
        ),
        "refused|differ|is int|not None",
        _SIZES,
    ),
    ("row_conv", "", "X of three dims is a padded batch, whatever its LoD"),
    ("maxout", "'axis': [02]", "no layer takes that axis"),
    ("(?:group|instance)_norm", "differ", "rounding of the variance of equal numbers"),
    ("split_ids", "0, 1\\], wanted", "1.8.5 reads one id of no elements"),
    ("prroi_pool", "grad ROIs", "1.8.5 adds up the gradient of ROIs in float32"),
    ("roi_pool", "not inexact", "regions of integers are refused"),
    (
        (
            "roi_pool|.*psroi_pool.*|prroi_pool|.*fpn_proposals|filter_by_instag|var_conv_2d|prelu|cvm|beam_search"
            "|retinanet_detection_output|sequence_slice|warpctc|fusion_.*|mean_iou|one_hot|tree_conv|p_norm"
            "|affine_grid|density_prior_box"
        ),
        "refused|is float",
        _SIZES,
    ),
]


def find_reason(case: dict[str, Any], text: str) -> str:
    """Return why a difference is left; what it is if nothing is known."""
    if text.startswith("accepted"):
        return "refused there: " + next(why for pattern, why in WIDER.items() if re.search(pattern, text))
    text += f" {case['attrs']}" + (" bias" if case["inputs"].get("Bias") else "")
    reasons = (
        why
        for types, pattern, why in DIFFERENT
        if re.fullmatch(types, case["type"]) and re.search(pattern, text)
    )
    return next(reasons, "NOT KNOWN")


def differ(got: dict[str, Any], want: dict[str, Any], type: str = "") -> str:
    """Return what of an outcome is not what was wanted; "" if nothing is.

    ``type`` is the operator, whose scratch arrays are not compared.
    """
    scratch = SCRATCH.get(type, "").split()
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
            if part == "out" and name.split("_")[0] in scratch:
                continue
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
