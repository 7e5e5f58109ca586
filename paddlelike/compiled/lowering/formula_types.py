"""Operators whose numpy kernels are evaluated with JAX, and those that work row by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

_FORMULAS: Final = """
    abs abs_grad acos acos_grad acosh add_position_encoding add_position_encoding_grad addmm addmm_grad
    affine_grid affine_grid@2 allclose allclose@2 anchor_generator angle arg_max arg_max@2 arg_min
    arg_min@2 as_complex as_real asin asin_grad asinh assign assign_value atan atan2 atan_grad atanh
    bce_loss bce_loss_grad bilinear_tensor_product bilinear_tensor_product_grad bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor brelu brelu_grad
    broadcast_tensors c_sync_calc_stream cast cast@2 cast@3 ceil ceil_grad celu channel_shuffle cholesky
    clip clip_grad concat concat_grad conj conv_shift copysign cos cos_grad cos_sim_grad cosh crop
    crop_tensor cross cross_grad cummax cummin cumprod cumsum@2 data_norm data_norm_grad
    density_prior_box dequantize_abs_max dequantize_log determinant diag diag_v2 diagonal digamma
    dist_grad dot dot@2 dot_grad einsum elementwise_add elementwise_add_grad elementwise_add_grad_grad
    elementwise_div elementwise_div_grad elementwise_div_grad_grad elementwise_floordiv
    elementwise_floordiv@2 elementwise_fmax elementwise_fmin elementwise_heaviside elementwise_max
    elementwise_max@3 elementwise_max_grad elementwise_min elementwise_min@3 elementwise_min_grad
    elementwise_mod elementwise_mod@2 elementwise_mul elementwise_mul_grad elementwise_mul_grad_grad
    elementwise_pow elementwise_pow_grad elementwise_sub elementwise_sub_grad elementwise_sub_grad_grad
    elu elu_grad elu_grad_grad equal equal@2 equal@3 equal_all equal_reduce erf erf_grad erfinv exp
    exp_grad expand_as_grad expand_as_v2 expand_grad expand_v2 expm1 eye
    fake_channel_wise_dequantize_max_abs fake_channel_wise_quantize_abs_max fake_dequantize_max_abs
    fake_quantize_abs_max fake_quantize_dequantize_moving_average_abs_max
    fake_quantize_moving_average_abs_max fill fill_any_like fill_constant fill_zeros_like
    fill_zeros_like2 flatten flatten2 flatten2_grad flatten_contiguous_range flatten_grad flip flip@2
    floor floor_grad frobenius_norm@2 fsp fsp_grad fused_elemwise_activation
    fused_elemwise_activation_grad fusion_squared_mat_sub gather@2 gelu gelu_grad greater_equal
    greater_than grid_sampler grid_sampler@2 hard_shrink hard_shrink_grad hard_sigmoid hard_sigmoid_grad
    hard_swish hard_swish_grad hash hinge_loss hinge_loss_grad huber_loss huber_loss_grad i0 i0e imag
    increment instance_norm_grad_grad is_empty isclose isfinite isfinite_v2 isinf isinf_v2 isnan
    isnan_v2 kldiv_loss kldiv_loss@2 kldiv_loss_grad kron kron_grad l1_norm l1_norm_grad label_smooth
    label_smooth_grad leaky_relu leaky_relu_grad leaky_relu_grad_grad lerp less_equal less_than log
    log10 log1p log1p_grad log2 log_grad log_loss log_loss_grad log_softmax logcumsumexp logical_and
    logical_not logical_or logical_xor logit logsigmoid logsigmoid_grad logsumexp lstm_unit
    margin_rank_loss margin_rank_loss_grad matmul_v2 memcpy meshgrid meshgrid_grad minus mish mish_grad
    modified_huber_loss modified_huber_loss_grad moving_average_abs_max_scale multiplex_grad mv
    nearest_interp_v2 norm_grad not_equal not_equal@2 not_equal@3 p_norm p_norm@2 p_norm_grad pad3d
    pad_constant_like_grad pad_grad partial_concat partial_sum pixel_shuffle pixel_shuffle@2
    pixel_shuffle_grad pixel_unshuffle polygon_box_transform pow pow_grad prelu prelu_grad prior_box
    put_along_axis rank_loss rank_loss_grad real reciprocal reciprocal_grad reduce_all@2 reduce_amax
    reduce_amin reduce_any@2 reduce_max@2 reduce_mean@2 reduce_min@2 reduce_prod@2 reduce_sum@2 relu
    relu6 relu6_grad relu_grad relu_grad_grad renorm reshape reshape2 reshape2_grad reshape2_grad_grad
    reshape_grad reverse rnn_memory_helper rnn_memory_helper_grad roll roll@2 roll_grad round round@3
    round_grad rsqrt rsqrt_grad scale searchsorted selu selu_grad set_value share_data shuffle_channel
    shuffle_channel_grad sigmoid sigmoid_grad sign sign@2 silu sin sin_grad sinh size slice
    slogdeterminant smooth_l1_loss smooth_l1_loss_grad soft_relu soft_relu_grad softmax_grad softplus
    softplus@2 softplus_grad softshrink softshrink_grad softsign softsign_grad solve space_to_depth
    space_to_depth_grad spectral_norm spectral_norm_grad split split_byref sqrt sqrt_grad sqrt_grad_grad
    square square_grad square_grad_grad squared_l2_distance squared_l2_distance_grad squared_l2_norm
    squared_l2_norm_grad squeeze squeeze2 squeeze2_grad squeeze_grad stack stack_grad stanh
    strided_slice strided_slice@2 swish swish_grad take_along_axis tan tanh tanh_grad tanh_shrink
    tanh_shrink_grad teacher_student_sigmoid_loss teacher_student_sigmoid_loss_grad thresholded_relu
    thresholded_relu_grad tile trace trace@2 transpose transpose2 transpose2_grad transpose_grad
    triangular_solve tril_indices tril_triu tril_triu_grad triu_indices trunc unbind unsqueeze
    unsqueeze2 unsqueeze2_grad unsqueeze_grad unstack unstack_grad where where_grad
"""

#: The kernels of these are expressions of functions that numpy and ``jax.numpy`` have in common.
FORMULAS: Final = frozenset(_FORMULAS.split())

Condition = Callable[[Mapping[str, Any]], bool]


def _always(attrs: Mapping[str, Any]) -> bool:
    return True


def _reduces_no_rows(attrs: Mapping[str, Any]) -> bool:
    dims = attrs.get("dim", [0])
    return not attrs.get("reduce_all") and 0 not in dims and all(dim > 0 or dim == -1 for dim in dims)


def _leaves_first(name: str) -> Condition:
    """Return whether an axis is not the first one; of several axes, whether none is.

    -1 counts as the last of two or more.
    """

    def check(attrs: Mapping[str, Any]) -> bool:
        axes = attrs.get(name, 0)
        axes = [axes] if isinstance(axes, int) else list(axes)
        return all(axis > 0 or axis == -1 for axis in axes)

    return check


_UNCONDITIONAL: Final = """
    abs acos affine_channel asin assign atan bce_loss bpr_loss brelu cast ceil clip conv2d
    conv2d_transpose conv3d cos cos_sim cross_entropy cross_entropy2 cvm depthwise_conv2d dropout
    elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min
    elementwise_mod elementwise_mul elementwise_pow elementwise_sub elu equal erf exp fc
    fill_any_like fill_zeros_like floor fused_elemwise_activation fusion_repeated_fc_relu
    fusion_squared_mat_sub gelu greater_equal greater_than group_norm gru_unit hard_shrink
    hard_sigmoid hard_swish hinge_loss huber_loss label_smooth leaky_relu less_equal less_than log
    log1p log_loss logical_and logical_not logical_or logical_xor logsigmoid lookup_table
    lookup_table_v2 lrn lstm_unit margin_rank_loss minus mish modified_huber_loss not_equal one_hot
    one_hot_v2 pool2d pool3d pow prelu rank_loss reciprocal relu relu6 round rsqrt scale selu
    sigmoid sigmoid_focal_loss sign sin smooth_l1_loss soft_relu
    softplus softshrink softsign sqrt square squared_l2_distance stanh sum swish tanh tanh_shrink
    thresholded_relu where
"""
_REDUCTIONS: Final = "reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum"

#: By type, whether every row of the results depends on the same row of the inputs only.
ROW_BY_ROW: Final[Mapping[str, Condition]] = {
    **dict.fromkeys(_UNCONDITIONAL.split(), _always),
    **dict.fromkeys(_REDUCTIONS.split(), _reduces_no_rows),
    "arg_max": _leaves_first("axis"),
    "arg_min": _leaves_first("axis"),
    "argsort": _leaves_first("axis"),
    "bilinear_tensor_product": _always,
    "box_decoder_and_assign": _always,
    "concat": _leaves_first("axis"),
    "conv_shift": _always,
    "cumsum": lambda attrs: not attrs.get("flatten") and _leaves_first("axis")(attrs),
    "expand": lambda attrs: list(attrs.get("expand_times", [2]))[:1] == [1],
    "cross_entropy_grad2": _always,
    "flatten2": lambda attrs: attrs.get("axis", 1) == 1,
    "hash": _always,
    "layer_norm": lambda attrs: attrs.get("begin_norm_axis", 1) > 0,
    "log_softmax": _leaves_first("axis"),
    "maxout": _always,
    "mul": _always,
    "multiplex": _always,
    "norm": _leaves_first("axis"),
    "pad": lambda attrs: not any(attrs["paddings"][:2]),
    "pad2d": _always,
    "pixel_shuffle": _always,
    "reshape2": lambda attrs: list(attrs.get("shape", ()))[:1] in ([-1], [0]),  # and has as many rows
    "shuffle_channel": _always,
    "sigmoid_cross_entropy_with_logits": lambda attrs: not attrs.get("normalize"),
    "slice": _leaves_first("axes"),
    "softmax": _leaves_first("axis"),
    "softmax_with_cross_entropy": _leaves_first("axis"),
    "split": _leaves_first("axis"),
    "stack": _leaves_first("axis"),
    "strided_slice": _leaves_first("axes"),
    "teacher_student_sigmoid_loss": _always,
    "squeeze2": lambda attrs: bool(attrs.get("axes")) and _leaves_first("axes")(attrs),
    "transpose2": lambda attrs: list(attrs["axis"])[:1] == [0],
    "unsqueeze2": _leaves_first("axes"),
    "top_k": _always,
}

_WITHOUT_LOD: Final = """
    bilinear_tensor_product bmm crop_tensor cumsum dot expand_as flatten frobenius_norm gather gather_nd
    instance_norm kron l1_norm matmul matmul_v2 multiplex p_norm pad2d pad_constant_like pixel_shuffle
    reshape reverse scatter scatter_nd_add sequence_unpad shuffle_channel space_to_depth squared_l2_norm
    squeeze strided_slice transpose unsqueeze unstack
"""

#: Besides those: types of operators that read no LoD.
WITHOUT_LOD: Final = frozenset(_WITHOUT_LOD.split())
