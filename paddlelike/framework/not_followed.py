"""Odd results of real Paddle that are not reproduced: NaN that it causes itself, rounding, lost rows.

The rows ``later_...`` are about programs of Paddle 2 and 3, beside 2.6.2 and 3.3.1; others about Fluid 1.8.5.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Quirk(NamedTuple):
    """One quirk: Fluid's formula, the textbook's formula, and the source file, line or function, and
    version.
    """

    name: str
    where: str
    fluid: str
    ours: str
    source: str
    followed: bool = True


NOT_FOLLOWED: Final = (
    Quirk(
        "clip_of_zeros",
        "layers.clip_by_norm, GradientClipByNorm of zeros",
        "they become NaN",
        "they stay zeros",
        "paddle/fluid/operators/clip_by_norm_op.h, ClipByNormKernel::Compute (1.8.5): 0 times "
        "max_norm is divided by the norm",
        followed=False,
    ),
    Quirk(
        "constant_infinity",
        "layers.fill_constant(value=infinity)",
        "the result is 0",
        "the result is infinity",
        "paddle/fluid/operators/fill_constant_op.h, FillConstantKernel::Compute (1.8.5): the number "
        "is read from its characters",
        followed=False,
    ),
    Quirk(
        "conv_bias",
        "operators conv2d, depthwise_conv2d, conv3d with a Bias",
        "Bias is not read",
        "Bias is added",
        "paddle/fluid/operators/conv_op.h, GemmConvKernel::Compute (1.8.5): only the kernel of "
        "MKL-DNN reads it",
        followed=False,
    ),
    Quirk(
        "lost_rows",
        "optimizer.Momentum, RMSProp of sparse gradients whose ids are not sorted",
        "rows are lost",
        "every row is updated",
        "paddle/fluid/operators/optimizers/momentum_op.h, SparseMomentumFunctor (1.8.5), "
        "paddle/fluid/operators/optimizers/rmsprop_op.h, RmspropOpKernel::Compute (1.8.5): a binary "
        "search for the ids of an unsorted list",
        followed=False,
    ),
    Quirk(
        "packets",
        "exp, log, sqrt, tanh, sigmoid, norm, adagrad of NaN, infinities, -0.0 and denormals",
        "another result in whole packets of 32 bytes than behind the last",
        "one result everywhere",
        "paddle/fluid/operators/activation_op.h, ActivationKernel::Compute (1.8.5): Eigen's functions "
        "of packets",
        followed=False,
    ),
    Quirk(
        "dist_nan",
        "layers.dist of NaN",
        "a NaN is skipped or kept by its place in a packet",
        "the result is NaN",
        "paddle/fluid/operators/dist_op.h, DistFunction (1.8.5): Eigen's reductions of packets",
        followed=False,
    ),
    Quirk(
        "box_variances",
        "layers.box_coder(prior_box_var) of float32",
        "the variances are read as float64, and beyond their end",
        "the variances as given",
        "paddle/fluid/operators/detection/box_coder_op.h, BoxCoderKernel::EncodeCenterSize (1.8.5)",
        followed=False,
    ),
    Quirk(
        "maximum_of_nan",
        "layers.pool2d, pool3d, operator spp: maxima of NaN",
        "NaN and what precedes it are forgotten if an element follows in the window",
        "the maximum is NaN",
        "paddle/fluid/operators/math/pooling.h, MaxPool::compute (1.8.5): the next element is taken "
        "unless the maximum is greater",
        followed=False,
    ),
    Quirk(
        "maximum_of_least",
        "layers.pool2d, pool3d: maxima of float64 below -3.4e38",
        "the least float32",
        "the maximum",
        "paddle/fluid/operators/math/pooling.h, MaxPool::initial (1.8.5)",
        followed=False,
    ),
    Quirk(
        "average_gradient",
        "layers.pool2d, pool3d: gradients of float64 averages",
        "they are multiplied by a float32",
        "they are divided by the window's size",
        "paddle/fluid/operators/math/pooling.cc, Pool2dGradFunctor (1.8.5)",
        followed=False,
    ),
    Quirk(
        "gate_bounds",
        "layers.dynamic_lstm: gates below -40, layers.gru_unit: gates above 13",
        "the argument of the sigmoid is at least -40 (lstm) and not bounded above (gru_unit)",
        "no lower bound for lstm; gru_unit's argument is at most 13, as in other cells",
        "paddle/fluid/operators/math/detail/activation_functions.h, forward::Sigmoid (1.8.5), "
        "paddle/fluid/operators/gru_unit_op.h, GRUUnitKernel::ActCompute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "teacher_student_sums",
        "layers.teacher_student_sigmoid_loss of numbers near 1e38",
        "the parts are added up in float64",
        "they overflow",
        "paddle/fluid/operators/teacher_student_sigmoid_loss_op.h, "
        "TeacherStudentSigmoidLossOpKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "p_norm_exponent",
        "operator p_norm",
        "1 / porder is float32; the norm of all has no dims",
        "1 / porder is float64; the norm of all has the shape [1]",
        "paddle/fluid/operators/p_norm_op.h, PnormKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "any_of_nothing",
        "layers.reduce_any of no elements",
        "the result is not set",
        "the result is False",
        "paddle/fluid/operators/reduce_ops/reduce_any_op.h, AnyFunctor (1.8.5)",
        followed=False,
    ),
    Quirk(
        "ctc_blanks",
        "layers.warpctc: labels that are the blank, and NaN",
        "some classes of a row are NaN",
        "all classes of the row are NaN",
        "paddle/fluid/operators/warpctc_op.h, WarpCTCKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "nan_regions",
        "layers.detection_map, matrix_nms, prroi_pool, collect_fpn_proposals: scores and regions of NaN",
        "they are sorted and rounded by comparisons that fail",
        "they count as the least score",
        "paddle/fluid/operators/detection_map_op.h, DetectionMAPOpKernel::CalcMAP (1.8.5), "
        "paddle/fluid/operators/detection/matrix_nms_op.cc, MatrixNMSKernel::Compute (1.8.5), "
        "paddle/fluid/operators/prroi_pool_op.h, CPUPRROIPoolOpKernel::Compute (1.8.5), "
        "paddle/fluid/operators/detection/collect_fpn_proposals_op.h, CompareByScore (1.8.5)",
        followed=False,
    ),
    Quirk(
        "unknown_classes",
        "layers.detection_map: labels that are not classes",
        "they are classes of their own",
        "they are left out",
        "paddle/fluid/operators/detection_map_op.h, DetectionMAPOpKernel::CalcTrueAndFalsePositive (1.8.5)",
        followed=False,
    ),
    Quirk(
        "softmax_overflow",
        "layers.sequence_softmax of numbers above 88",
        "infinity and NaN",
        "the softmax: the greatest number is taken off first",
        "paddle/fluid/operators/sequence_ops/sequence_softmax_op.h, SequenceSoftmaxFunctor (1.8.5)",
        followed=False,
    ),
    Quirk(
        "approximate_exponentials",
        "operator fusion_gru",
        "exponentials are approximated to 1e-4",
        "exponentials are exact",
        "paddle/fluid/operators/fused/fusion_gru_op.cc, FusionGRUKernel::SeqCompute (1.8.5): its "
        "own functions of vectors",
        followed=False,
    ),
    Quirk(
        "running_sums",
        "layers.lrn, data_norm of NaN and infinities",
        "running sums carry them on to other channels and rows",
        "they stay in their windows",
        "paddle/fluid/operators/lrn_op.cc, LRNFunctor (1.8.5), "
        "paddle/fluid/operators/data_norm_op.cc, DataNormKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "rank_loss_overflow",
        "layers.rank_loss of differences above 88",
        "infinity",
        "log(1 + e^d)",
        "paddle/fluid/operators/rank_loss_op.h, RankLossKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "region_borders",
        "layers.roi_align, roi_perspective_transform, deformable_roi_pooling, yolo_box at the border "
        "of a region",
        "whether a point is inside is decided in float32, with products that are fused",
        "decided in the dtype of the input",
        "paddle/fluid/operators/roi_align_op.h, PreCalcForBilinearInterpolate (1.8.5), "
        "paddle/fluid/operators/detection/roi_perspective_transform_op.cc, in_quad (1.8.5), "
        "paddle/fluid/operators/detection/yolo_box_op.h, YoloBoxKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "all_ignored",
        "layers.sigmoid_cross_entropy_with_logits(normalize=True) of ignored labels alone",
        "NaN",
        "0",
        "paddle/fluid/operators/sigmoid_cross_entropy_with_logits_op.h, "
        "SigmoidCrossEntropyWithLogitsKernel::Compute (1.8.5): the sum is divided by the count of "
        "others",
        followed=False,
    ),
    Quirk(
        "padded_row_conv",
        "layers.row_conv of three dims that has a LoD",
        "the LoD cuts it into sequences",
        "it is a padded batch",
        "paddle/fluid/operators/row_conv_op.cc, RowConvKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "variance_of_equals",
        "layers.group_norm, instance_norm of equal numbers",
        "the variance is what rounding leaves",
        "the variance is 0",
        "paddle/fluid/operators/group_norm_op.h, GroupNormKernel::Compute (1.8.5), "
        "paddle/fluid/operators/instance_norm_op.cc, InstanceNormKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "region_gradients",
        "layers.prroi_pool: the gradient of ROIs",
        "it is added up in float32",
        "it is added up in the dtype of the input",
        "paddle/fluid/operators/prroi_pool_op.h, CPUPRROIPoolGradOpKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "overflowing_steps",
        "layers.range with a step that overflows",
        "no elements",
        "the elements",
        "paddle/fluid/operators/range_op.h, GetSize (1.8.5)",
        followed=False,
    ),
    Quirk(
        "lods_of_one_number",
        "layers.accuracy, unsqueeze, expand, image_resize, linear_chain_crf, hsigmoid: results and "
        "sizes without rows of sequences",
        "they have the LoD of an input",
        "they have no LoD",
        "paddle/fluid/framework/operator.cc, ShareLoD (1.8.5)",
        followed=False,
    ),
    Quirk(
        "empty_image",
        "layers.collect_fpn_proposals: an image without regions",
        "the image is left out of the LoD",
        "its sequence is empty",
        "paddle/fluid/operators/detection/collect_fpn_proposals_op.h, "
        "CollectFpnProposalsOpKernel::Compute (1.8.5)",
        followed=False,
    ),
    Quirk(
        "names_of_scales",
        "contrib.slim.quantization: names such as accum_0 and channel_scale_0, the order of variables",
        "they change from run to run",
        "operators are numbered in the order in which they were created",
        "python/paddle/fluid/framework.py:3330 (1.8.5): a set of objects without a "
        "hash of their own, visited in the order of their addresses",
        followed=False,
    ),
    Quirk(
        "cut_model",
        "io.save_inference_model of a loaded model with another target, in a new process",
        "the model that is written computes the old target",
        "it computes the given one",
        "python/paddle/fluid/framework.py:4240 (1.8.5): the first operator that "
        "writes save_infer_model/scale_0.tmp_0 is kept, the one of the old target",
        followed=False,
    ),
    Quirk(
        "names_of_later_passes",
        "gradients called again through cond, StaticRNN or While, with target_gradients, or of gradients "
        "that end at a variable",
        "0, None, an error or the end of the process; through cond they overwrite those of the first call, "
        "and the declared shape is [0] with no_grad_set",
        "the gradient, in its shape",
        "python/paddle/fluid/backward.py, _append_backward_ops_ (1.8.5): gradients get new "
        "names outside of a block alone, and target_gradients are not where a pass begins",
        followed=False,
    ),
    Quirk(
        "later_fixed_attributes",
        "swish, hard_swish, relu6 with other attributes than the defaults, in programs of Paddle 2 and 3",
        "the attributes are not read",
        "they are read, as in Fluid 1.8.5",
        "paddle/phi/kernels/activation_kernel.h, HardSwishKernel (2.6.2, 3.3.1): it takes none",
        followed=False,
    ),
    Quirk(
        "later_nan",
        "relu, abs, reduce_min, nll_loss, conv3d, grid_sampler, gru, lstm, viterbi_decode, averages of "
        "pool3d of NaN, infinities and numbers above 1e30, in programs of Paddle 2 and 3",
        "relu of NaN is 0; others differ by operator",
        "NaN stays NaN",
        "paddle/phi/kernels/funcs/activation_functor.h, ReluCPUFunctor (2.6.2, 3.3.1): v > 0 ? v : 0",
        followed=False,
    ),
    Quirk(
        "later_rounding",
        "selu, prior_box, atan2, bilinear_interp of float64 and integers, in programs of Paddle 2 and 3",
        "constants and steps are float32",
        "they are float64",
        "paddle/phi/kernels/selu_kernel.h, SeluKernel (2.6.2, 3.3.1): scale and alpha are float",
        followed=False,
    ),
    Quirk(
        "later_lods",
        "gradients of lstm and add_position_encoding, in programs of Paddle 3",
        "they have the LoD of the input",
        "they have no LoD, as in Fluid 1.8.5",
        "paddle/phi/infermeta/backward.cc, LSTMGradInferMeta (3.3.1): share_meta copies it",
        followed=False,
    ),
    Quirk(
        "later_order_of_equals",
        "top_k of equal numbers, in programs of Paddle 3; kthvalue of them, of Paddle 2 and 3",
        "their order is that of another sort",
        "their order is that of Fluid 1.8.5",
        "paddle/phi/kernels/cpu/top_k_kernel.cc, FullTopK (3.3.1): std::nth_element, then std::sort",
        followed=False,
    ),
    Quirk(
        "later_sizes",
        "nearest_interp with a scale, in programs of Paddle 3",
        "10 times 0.7 in float32 is cut to 6; pixels are 1 / scale apart",
        "it is 7; pixels are old size / new size apart, as in Fluid 1.8.5",
        "paddle/phi/infermeta/multiary.cc, LegacyInterpolateInferMeta (3.3.1)",
        followed=False,
    ),
    Quirk(
        "later_statistics",
        "Mean and Variance of layer_norm, in programs of Paddle 2 and 3",
        "they have the dims before begin_norm_axis",
        "they have one dim, as in Fluid 1.8.5",
        "paddle/phi/infermeta/ternary.cc, LayerNormInferMeta (2.6.2, 3.3.1)",
        followed=False,
    ),
    Quirk(
        "later_leaky_slope",
        "gradients of leaky_relu with an alpha of 0 or less, in programs of Paddle 2 and 3",
        "the sign of X decides",
        "the sign of Out decides, as in Fluid 1.8.5",
        "paddle/phi/kernels/funcs/activation_functor.h, LeakyReluGradFunctor (2.6.2, 3.3.1)",
        followed=False,
    ),
    Quirk(
        "later_gather_gradient",
        "gradients of gather along another axis than 0, in programs of Paddle 2",
        "that of the first slice is repeated",
        "each slice has its own, as in Paddle 3",
        "paddle/phi/kernels/funcs/gather.h, GatherV2GradFunction (2.6.2)",
        followed=False,
    ),
    Quirk(
        "later_large_numbers",
        "fill_constant of integers above 2^53, in programs of Paddle 2 and 3",
        "they are rounded to float64",
        "they are exact",
        "paddle/phi/common/scalar.h, ScalarBase (2.6.2, 3.3.1): str_value is read into a double",
        followed=False,
    ),
    Quirk(
        "later_surplus",
        "Counts and Index of unique, gradients of integers, in programs of Paddle 2 and 3; MaxIndex of "
        "sequence_pool with is_test, in those of Paddle 3",
        "Counts and Index are not written unless they are wanted, gradients never; MaxIndex is written",
        "Counts, Index and gradients are written, MaxIndex is not",
        "paddle/phi/kernels/funcs/unique_functor.h, UniqueFlattendTensor (2.6.2): return_counts and "
        "return_index decide",
        followed=False,
    ),
    Quirk(
        "later_nothing",
        "bmm, kldiv_loss, roi_pool of no elements, OutScales of fake_quantize_range_abs_max, in programs of "
        "Paddle 2 and 3",
        "what the memory held before, or NaN",
        "sums of nothing are 0, Argmax is -1, steps that are to come have the scale 0",
        "paddle/phi/kernels/impl/bmm_kernel_impl.h, BmmKernel (3.3.1), "
        "paddle/phi/kernels/impl/kldiv_loss_kernel_impl.h, KLDivLossKernel (3.3.1)",
        followed=False,
    ),
    Quirk(
        "later_logits_of_zero",
        "gradients of sigmoid_cross_entropy_with_logits where X is 0, in programs of Paddle 3",
        "they are -(0.5 + Label)",
        "they are 0.5 - Label, as in Paddle 2",
        "paddle/phi/kernels/cpu/sigmoid_cross_entropy_with_logits_grad_kernel.cc, "
        "SigmoidCrossEntropyWithLogitsGradKernel (3.3.1)",
        followed=False,
    ),
    Quirk(
        "later_axis_of_gradients",
        "gradients of elementwise_max, elementwise_min with an axis, in programs of Paddle 2 and 3",
        "Y is compared along the last dims, or the shapes are refused",
        "Y is compared along the axis",
        "paddle/phi/kernels/elementwise_grad_kernel.h, MaximumGradKernel (2.6.2, 3.3.1): it takes no axis",
        followed=False,
    ),
    Quirk(
        "later_sums_of_detections",
        "AccumTruePos, AccumFalsePos of detection_map, in programs of Paddle 2",
        "they have a row for every detection",
        "they have a row for every detection of a class",
        "paddle/fluid/operators/detection_map_op.h, DetectionMAPOpKernel::GetOutputPos (2.6.2)",
        followed=False,
    ),
)
