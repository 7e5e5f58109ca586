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
#: What is not copied: regular expressions of operators and of differences, and why: the name of a row of
#: `fluid.quirks()`, or a refusal in words.
DIFFERENT = [
    ("swish|hard_swish|relu6", "differ.*'(?:beta|offset|threshold)'", "later_fixed_attributes"),
    ("relu|abs|reduce_min|nll_loss|conv3d.*|grid_sampler|gru|(?:fusion_)?lstm", "nan|inf", "later_nan"),
    ("pool3d", "differ.*'avg'.* beyond", "later_nan"),
    ("viterbi_decode", "differ.* beyond", "later_nan"),
    ("unique.*", "(?:Counts|Index).*not None", "later_surplus"),
    ("sequence_pool", "MaxIndex.*None", "later_surplus"),
    (".*", "grad .*not None.* integers", "later_surplus"),
    ("bmm|kldiv_loss", "differ.* nothing", "later_nothing"),
    ("roi_pool", "Argmax.* wanted 0.* nothing", "later_nothing"),
    ("fake_quantize_range_abs_max", "OutScales", "later_nothing"),
    ("sigmoid_cross_entropy_with_logits", "grad .*differ", "later_logits_of_zero"),
    ("elementwise_m(?:ax|in)", "grad .*differ.*'axis': [0-9]", "later_axis_of_gradients"),
    ("detection_map", "Accum.* is float", "later_sums_of_detections"),
    ("selu|prior_box|atan2|bilinear_interp", "differ", "later_rounding"),
    ("lstm|add_position_encoding", "grad .*LoD", "later_lods"),
    ("top_k|kthvalue", "Indices", "later_order_of_equals"),
    ("nearest_interp", r"wanted \w+\[|differ.*'scale': 0", "later_sizes"),
    ("layer_norm", r"(?:Mean|Variance).*wanted \w+\[", "later_statistics"),
    ("leaky_relu", r"grad .*'alpha': (?:-|0\.0\b)", "later_leaky_slope"),
    ("gather", "grad", "later_gather_gradient"),
    ("fill_constant", "90071992547", "later_large_numbers"),
    ("accuracy|equal_reduce", "LoD", "lods_of_one_number"),
    ("unsqueeze2?|expand|.*_interp", "LoD", "lods_of_one_number"),
    ("collect_fpn_proposals", "LoD", "empty_image"),
    ("clip_by_norm", "nan", "clip_of_zeros"),
    ("fill_constant", "inf", "constant_infinity"),
    ("conv.*|depthwise_conv.*", "bias", "conv_bias"),
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
    ("crop.*|tdm_child|target_assign|max_pool.d_with_index|mean_iou|auc", "differ|is float", _BEYOND),
    ("slice", r"is float.*'axes': \[[^]]*-", _BEYOND),
    ("momentum|rmsprop", "", "lost_rows"),
    (
        (
            "exp|r?sqrt|log|log1p|sigmoid|tanh.*|soft_relu|logsigmoid|softplus|stanh|elu|(?:frobenius_)?norm"
            "|.*adagrad"
        ),
        "differ",
        "packets",
    ),
    ("box_coder", "", "box_variances"),
    (
        "pool.d|spp",
        "nan wanted",
        "maximum_of_nan",
    ),
    ("dist", "differ", "dist_nan"),
    (
        "pool.d",
        "grad X.*'pooling_type': 'avg'",
        "average_gradient",
    ),
    ("pad2d", "too small to be reflected", _BEYOND),
    ("lstm", ": -?0.0 wanted", "gate_bounds"),
    ("teacher_student_sigmoid_loss", "differ", "teacher_student_sums"),
    ("p_norm", "differ", "p_norm_exponent"),
    ("p_norm", "is float", "p_norm_exponent"),
    (
        ".*",
        "positive number|above 0 for every|by zero|pyramid_height is|rising numbers|depth is 0|leave \\[",
        "a window, step, depth or size of 0 or less is refused",
    ),
    (".*", "smaller than (?:one|a) window|nothing is left", "a result without elements is refused"),
    ("range", "not None", "overflowing_steps"),
    ("reduce_any", "wanted True", "any_of_nothing"),
    ("reduce_.*", "grad X.*'reduce_all': True", _BEYOND),
    (
        "hierarchical_sigmoid|linear_chain_crf|fused_elemwise_activation",
        "LoD",
        "lods_of_one_number",
    ),
    (
        (
            "partial_sum|similarity_focus|yolov3_loss|dequantize_abs_max|trace|bpr_loss|reshape2?|edit_distance"
            "|auc|shuffle_channel|fusion_seqpool.*|softmax_with_cross_entropy"
        ),
        "refused|-1\\]|is float|differ",
        _BEYOND,
    ),
    ("warpctc", "WarpCTCGrad", "ctc_blanks"),
    ("lstmp?|gru", "grad", "1.8.5 reads rows of the next step for a sequence without rows that has an H0"),
    ("detection_map|prroi_pool|matrix_nms", "nan", "nan_regions"),
    ("collect_fpn_proposals", "differ.* beyond", "nan_regions"),
    (
        "conv.*|deformable_conv.*|fusion_seqexpand_concat_fc",
        "differ.* beyond",
        "sums in another order, whose infinities and numbers beyond 1e30 cancel",
    ),
    ("detection_map", "'class_num': 0", "a detection map of 0 classes is refused"),
    ("gru_unit", "differ", "gate_bounds"),
    ("pool.d", "e.308", "maximum_of_least"),
    ("sequence_softmax", "differ", "softmax_overflow"),
    ("fusion_gru", "differ", "approximate_exponentials"),
    ("gather_tree", "differ", _BEYOND),
    ("detection_map", "differ", "unknown_classes"),
    ("sequence_expand|gru|fused_elemwise_activation|add_position_encoding", "refused", _SIZES),
    ("lrn|data_norm", "nan", "running_sums"),
    ("rank_loss", "wanted inf", "rank_loss_overflow"),
    ("prior_box", "math domain", "aspect ratios below 0 are refused"),
    ("slice", "infer_flags", "no layer takes such infer_flags"),
    ("matmul", "head_number", "an attribute of Intel's library"),
    (
        "roi_perspective_transform|roi_align|deformable_psroi_pooling|yolo_box",
        "differ",
        "region_borders",
    ),
    (
        "sigmoid_cross_entropy_with_logits",
        "wanted nan",
        "all_ignored",
    ),
    (
        (
            "assign_value|fill|cross_entropy|ctc_align|im2sequence|linear_chain_crf|split_ids|sequence_.*pooling"
            "|multiclass_nms2|distribute_fpn_proposals"
        ),
        "refused|differ|is int|not None",
        _SIZES,
    ),
    ("row_conv", "", "padded_row_conv"),
    ("maxout", "'axis': [02]", "no layer takes that axis"),
    ("(?:group|instance)_norm", "differ", "variance_of_equals"),
    ("split_ids", "0, 1\\], wanted", "1.8.5 reads one id of no elements"),
    ("prroi_pool", "grad ROIs", "region_gradients"),
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
    arrays = [decode(record) for records in case["inputs"].values() for record in records]
    text += " integers" * any(array.dtype.kind == "i" for array in arrays)
    text += " nothing" * any(array.size == 0 for array in arrays)
    text += " beyond" * any(array.dtype.kind == "f" and not (abs(array) < 1e30).all() for array in arrays)
    reasons = (
        why
        for types, pattern, why in DIFFERENT
        if re.fullmatch(types, case["type"]) and re.search(pattern, text)
    )
    return next(reasons, "NOT KNOWN")


def list_rows() -> set[str]:
    """Return the names of the rows of `fluid.quirks()` among the reasons."""
    return {why for _, _, why in DIFFERENT if " " not in why}


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
