"""Odd but well-defined results of real Fluid 1.8.5: one table, and one flag.

Training that continues from Fluid's files must give Fluid's numbers. So Fluid's result is the default, and
the layer or optimizer warns if it makes a difference. Set ``FLAGS_fluid_quirks`` to False before the network
is built to select the textbook's formula in every such row. The last rows are results that are not
reproduced: a NaN or an infinity that Fluid causes, its rounding, lost rows. Results that depend on memory
beyond an array are not listed.
"""

from __future__ import annotations

from typing import Final

from paddlelike.errors import QuirkWarning
from paddlelike.foundation.warn import warn_user
from paddlelike.framework.flags import flag
from paddlelike.framework.not_followed import NOT_FOLLOWED, Quirk

_ROWS: Final = (
    Quirk(
        "swish_beta",
        "layers.swish(x, beta)",
        "beta is 1.0 whatever the argument",
        "beta as given",
        "python/paddle/fluid/layers/nn.py:10646 (1.8.5): the attribute is called 'slope', which the "
        "operator does not have",
    ),
    Quirk(
        "clamp_lower",
        "layers.clamp(x, max=m)",
        "without min, the lower bound is 0",
        "no lower bound",
        "python/paddle/fluid/layers/nn.py:408 (1.8.5): sys.float_info.min, the smallest positive "
        "number, stands for no bound",
    ),
    Quirk(
        "batch_norm_momentum",
        "layers.batch_norm, inplace_abn(momentum=variable)",
        "momentum is 0.9",
        "the variable's value",
        "python/paddle/fluid/layers/nn.py:4192, 4395 (1.8.5): the slot is misspelled 'MomemtumTensor'",
    ),
    Quirk(
        "gru_unit_activations",
        "layers.gru_unit(activation, gate_activation)",
        "tanh and sigmoid whatever the arguments",
        "the activations given",
        "python/paddle/fluid/layers/rnn.py:2818, 2819 (1.8.5): the attributes are constants",
    ),
    Quirk(
        "uniform_random_dtype",
        "layers.uniform_random(dtype='float64')",
        "values are float32",
        "values are float64",
        "python/paddle/fluid/layers/nn.py:15895 (1.8.5): dtype is not passed to the operator",
    ),
    Quirk(
        "uniform_distribution",
        "layers.Uniform(low, high).sample",
        "draws from [2 low - high, high)",
        "draws from [low, high)",
        "python/paddle/fluid/layers/distributions.py:222 (1.8.5): uniform_random's default range [-1, "
        "1) is scaled",
    ),
    Quirk(
        "topk_variable",
        "layers.topk(k=variable)",
        "the result is declared with a last dim of 1",
        "a last dim of -1, unknown",
        "paddle/fluid/operators/top_k_op.cc, TopkOp::InferShape (1.8.5): the shape rule reads the "
        "attribute k",
    ),
    Quirk(
        "ftrl_l2",
        "optimizer.Ftrl(l1, l2)",
        "l2 is l1's value",
        "l2 as given",
        "python/paddle/fluid/optimizer.py:2817 (1.8.5): l1 is passed for both",
    ),
    Quirk(
        "adadelta_step",
        "optimizer.Adadelta",
        "the step uses a mean of squared updates that includes the step itself",
        "the step uses the mean before it (Zeiler 2012)",
        "paddle/fluid/operators/optimizers/adadelta_op.h, AdadeltaOpKernel::Compute (1.8.5)",
    ),
    Quirk(
        "lamb_correction",
        "optimizer.Lamb",
        "moments are not corrected for their start at 0",
        "moments are divided by 1 - beta^t (You et al. 2019)",
        "paddle/fluid/operators/optimizers/lamb_op.h, LambMomentUpdateFunctor (1.8.5)",
    ),
    Quirk(
        "dpsgd_noise",
        "optimizer.Dpsgd",
        "all elements of a parameter share one noise",
        "each element has its own (Abadi et al. 2016)",
        "paddle/fluid/operators/optimizers/dpsgd_op.h, DpsgdOpKernel::Compute (1.8.5)",
    ),
    Quirk(
        "adam_sparse_correction",
        "optimizer.Adam with sparse gradients",
        "the bias correction of the next step is used",
        "the bias correction of this step is used, as for dense gradients",
        "paddle/fluid/operators/optimizers/adam_op.h, AdamOpKernel::Compute (1.8.5)",
    ),
    Quirk(
        "lstm_cell_gradient",
        "layers.dynamic_lstm, dynamic_lstmp in float32, width a multiple of 8",
        "only the output gate learns",
        "all gates learn",
        "paddle/fluid/operators/math/detail/lstm_kernel.h, backward::lstm (1.8.5): the kernel for AVX",
    ),
    Quirk(
        "same_padding_dilation",
        "layers.conv2d, conv3d(padding='SAME', dilation=d)",
        "dilation is 1",
        "dilation as given",
        "paddle/fluid/operators/conv_op.h, UpdatePaddingAndDilation (1.8.5)",
    ),
    Quirk(
        "adaptive_maxima",
        "operators pool2d, pool3d(pooling_type='max', adaptive=True), which no layer appends",
        "windows of ksize at steps of strides, as many as ksize says",
        "ksize windows, as even as can be (layers.adaptive_pool2d, by max_pool2d_with_index)",
        "paddle/fluid/operators/pool_op.h, PoolKernel::Compute (1.8.5): maxima are given adaptive=false",
    ),
    Quirk(
        "bilinear_weights",
        "initializer.Bilinear",
        "every row is shifted by fractions of a pixel, as Python 3 divides",
        "the weights of linear interpolation along both axes",
        "python/paddle/fluid/initializer.py:782 (1.8.5): y = (i / size) % size",
    ),
    Quirk(
        "detection_output_options",
        "layers.detection_output(background_label, nms_eta)",
        "background_label is 0 and nms_eta 1.0 whatever the arguments",
        "both as given",
        "python/paddle/fluid/layers/detection.py:668, 673, 683, 688 (1.8.5): the attributes are constants",
    ),
    Quirk(
        "detection_map_background",
        "metrics.DetectionMAP(background_label)",
        "classes with 0 true boxes are left out, whatever the argument",
        "the class background_label is left out",
        "python/paddle/fluid/layers/detection.py:1222 (1.8.5) does not pass it; "
        "paddle/fluid/operators/detection_map_op.h, DetectionMAPOpKernel::CalcMAP (1.8.5) compares it "
        "with a count",
    ),
    Quirk(
        "conv_transpose_groups",
        "layers.conv2d_transpose, conv3d_transpose(groups=g)",
        "channels after the last whole group are ignored",
        "an error unless g divides the channels",
        "python/paddle/fluid/layers/nn.py:5307, 5602 (1.8.5): the groups are not checked; "
        "paddle/fluid/operators/conv_transpose_op.h, GemmConvTransposeKernel::Compute (1.8.5) rounds "
        "channels / g down",
    ),
    Quirk(
        "moving_average_correction",
        "optimizer.ExponentialMovingAverage.apply",
        "the corrected averages are stored, and corrected again the next time",
        "the stored averages do not change",
        "python/paddle/fluid/optimizer.py:3440 (1.8.5): layers.assign(output=ema, input=ema / (1.0 - "
        "decay_pow))",
    ),
    Quirk(
        "auc_curve",
        "layers.auc, metrics.Auc(curve='PR')",
        "the area under the ROC curve",
        "the area under the precision-recall curve",
        "paddle/fluid/operators/metrics/auc_op.h, AucKernel::Compute (1.8.5), "
        "python/paddle/fluid/metrics.py:748 (1.8.5): curve is not read",
    ),
    Quirk(
        "metric_reset",
        "metrics.Auc.reset(), metrics.CompositeMetric.reset()",
        "nothing is reset: the counts continue",
        "the counts start again from zero",
        "python/paddle/fluid/metrics.py:107 (1.8.5): MetricBase.reset passes by names that begin with "
        "an underscore",
    ),
    Quirk(
        "equal_tolerance",
        "layers.equal, not_equal of real numbers",
        "numbers less than 1e-8 apart are equal",
        "equal numbers are equal",
        "paddle/fluid/operators/controlflow/compare_op.h, EqualFunctor (1.8.5)",
    ),
    Quirk(
        "stopped_second_gradients",
        "gradients of gradients",
        "the results of tanh_grad and other operators without a second gradient count as constants",
        "an error that names the operators",
        "python/paddle/fluid/backward.py:902 (1.8.5): an operator without a maker of gradients gives no "
        "operators",
    ),
    Quirk(
        "loop_gradient",
        "layers.While, while_loop that overwrite a tensor",
        "the gradient ends at the loop's last step and reads the tensor's last value; earlier values get 0",
        "the gradient passes through all steps, with the values of each",
        "paddle/fluid/operators/controlflow/while_op.cc, WhileGradOp::RunImpl (1.8.5): X@GRAD, which shares "
        "memory with Out@GRAD, is filled with 0 after the last step, and added to itself after others",
    ),
    Quirk(
        "later_pass",
        "append_backward, gradients called again in a program, through a loop",
        "the gradient ends at a loop that an earlier pass went through, and at increment",
        "the loop's gradient is appended again; it fails where the first one has counted the index back",
        "python/paddle/fluid/backward.py:935 (1.8.5): an operator that reads no gradient is not appended",
    ),
    Quirk(
        "overwritten_gradient",
        "append_backward, gradients of a variable that the program overwrites",
        "the gradients of all its values are added up",
        "each value has its own gradient",
        "python/paddle/fluid/backward.py:389 (1.8.5): a gradient that was read stays among the parts of the "
        "next sum",
    ),
    Quirk(
        "tree_conv_gradient",
        "contrib.layers.tree_conv",
        "the gradient of nodes_vector mixes up the numbers of the filter",
        "the gradient",
        "paddle/fluid/operators/tree_conv_op.h, TreeConvGradKernel::Compute (1.8.5): the filter (D, 3, "
        "O, F) is read as if it were (D, O, F, 3)",
    ),
    Quirk(
        "fused_activation_gradient",
        "contrib.layers.fused_elemwise_activation([mul, tanh or sigmoid], save_intermediate_out=False)",
        "the gradient of y uses y itself in place of tanh(y) or sigmoid(y)",
        "the gradient",
        "paddle/fluid/operators/fused/fused_elemwise_activation_op.h, "
        "FusedElemwiseActivationGradKernel::Compute (1.8.5): y stands for the intermediate value",
    ),
    Quirk(
        "group_norm_gradient",
        "layers.group_norm without a scale",
        "the gradient of the input lacks the mean of the result's gradient",
        "the gradient",
        "paddle/fluid/operators/group_norm_op.h, GroupNormGradKernel::Compute (1.8.5): the sum for the "
        "mean is taken only where there is a scale",
    ),
    Quirk(
        "spectral_norm_gradient",
        "layers.spectral_norm",
        "each element's gradient is multiplied by the weight's gradient for an output gradient of ones",
        "the gradient",
        "paddle/fluid/operators/spectral_norm_op.h, SpectralNormGradKernel::Compute (1.8.5): the "
        "weights are added up without the gradient of the result",
    ),
    Quirk(
        "shuffle_channel_gradient",
        "layers.shuffle_channel unless there are group * group channels",
        "the gradient's channels are shuffled forward once more",
        "the gradient's channels are moved back",
        "paddle/fluid/operators/shuffle_channel_op.h, ShuffleChannelGradOpKernel::Compute (1.8.5): the "
        "kernel of the gradient is that of the operator",
    ),
    Quirk(
        "set_gradient_clip",
        "clip.set_gradient_clip(clip, param_list)",
        "the clip of the last parameter is used for all; nothing is clipped if a parameter has none",
        "each parameter has its own clip, or none",
        "python/paddle/fluid/clip.py:837 (1.8.5): append_gradient_clip_ops calls the variable that its "
        "first loop leaves behind",
    ),
    Quirk(
        "group_norm_parameters",
        "layers.group_norm without param_attr or bias_attr",
        "the layer has no scale without param_attr, and no bias without bias_attr",
        "both are learned (Wu & He 2018), unless False is given",
        "python/paddle/fluid/layers/nn.py:4912, 4919 (1.8.5): 'if param_attr', where other layers take "
        "None for the default",
    ),
    Quirk(
        "conv_group_channels",
        "layers.conv2d, conv3d(groups=g) without an initializer",
        "the filters' variance is 2 / (all input channels * window)",
        "the variance is 2 / (the channels of one group * window) (He et al. 2015)",
        "python/paddle/fluid/layers/nn.py:2910, 3174 (1.8.5): _get_default_param_initializer takes "
        "num_channels, not the channels of the filter",
    ),
    Quirk(
        "empty_fetch",
        "fetch_list names a tensor without elements",
        "its value is None",
        "an empty array of its shape",
        "paddle/fluid/operators/controlflow/fetch_op.cc, FetchOp::RunImpl (1.8.5): only a tensor with "
        "numel() > 0 is copied",
    ),
    Quirk(
        "string_slots",
        "incubate.data_generator.MultiSlotStringDataGenerator",
        "a string is a list of its characters",
        "a string is one value",
        "python/paddle/fluid/incubate/data_generator/__init__.py:276, 277 (1.8.5): len() and extend() "
        "of the string",
    ),
    Quirk(
        "elementwise_order",
        "layers.elementwise_pow, elementwise_mod, elementwise_floordiv(x, y), x with fewer dims than y",
        "computes f(y, x), with the gradients of f(x, y)",
        "computes f(x, y)",
        "paddle/fluid/operators/elementwise/elementwise_op_function.h, ElementwiseComputeEx (1.8.5): "
        "x and y are exchanged if y has more dims, and these functors have no inverse",
    ),
    Quirk(
        "order_of_equals",
        "layers.topk, argsort of equal numbers or NaN",
        "their order is that of C++'s std::partial_sort and std::sort",
        "they keep their order; NaN is the largest",
        "paddle/fluid/operators/top_k_op.h, TopkKernel::Compute (1.8.5), "
        "paddle/fluid/operators/argsort_op.h, FullSort (1.8.5): pairs are compared by their numbers "
        "alone",
    ),
    Quirk(
        "nan_comparisons",
        "layers.reduce_max, reduce_min, argmax, argmin, sign, elementwise_max, elementwise_min, relu of NaN",
        "a comparison with NaN is false: a maximum or minimum skips it, its sign is 0, and of two numbers "
        "the second is taken",
        "NaN where an operand is NaN",
        "paddle/fluid/operators/reduce_ops/reduce_min_max_op.h, MaxFunctor (1.8.5), "
        "paddle/fluid/operators/arg_min_max_op_base.h, ArgMinMaxFunctor (1.8.5), "
        "paddle/fluid/operators/elementwise/elementwise_max_op.h, MaxFunctor (1.8.5): they compare by > "
        "and <",
    ),
    Quirk(
        "group_norm_groups",
        "layers.group_norm where the groups do not divide the channels",
        "each group has ceil(channels / groups) channels, as long as channels remain",
        "an error",
        "paddle/fluid/operators/group_norm_op.h, GroupNormKernel::Compute (1.8.5): group_size = (C - 1) "
        "/ groups + 1",
    ),
    Quirk(
        "label_smooth_gradient",
        "layers.label_smooth(label)",
        "stop_gradient is set on label, so that the layers that compute it get no gradient",
        "label gets its gradient",
        "python/paddle/fluid/layers/nn.py:8111 (1.8.5): label.stop_gradient = True",
    ),
    Quirk(
        "strided_slice_backwards",
        "layers.strided_slice with a stride below -1",
        "elements are taken forward from the one after the end, then reversed",
        "elements are taken backwards from the start",
        "paddle/fluid/operators/strided_slice_op.h, StridedSliceFunctor (1.8.5): start and end are "
        "exchanged, and the stride's sign is dropped",
    ),
    Quirk(
        "ignored_labels",
        "layers.softmax_with_cross_entropy(ignore_index)",
        "elements with that label have a loss of 0, but still a gradient: the usual one if the label is a "
        "class, else the softmax",
        "they have no gradient",
        "paddle/fluid/operators/softmax_with_cross_entropy_op.h, "
        "SoftmaxWithCrossEntropyGradKernel::Compute (1.8.5): the kernel for CPUs does not read "
        "ignore_index",
    ),
    Quirk(
        "pad_gradient",
        "layers.pad, pad_constant_like",
        "some elements of the gradient at the ends of rows are those of padding beside them",
        "the gradient",
        "paddle/fluid/operators/math/padding.h, PadGradFunction (1.8.5): Eigen reads packets of "
        "neighbours for a padding of negative width",
    ),
    Quirk(
        "round_packets",
        "layers.round, fake quantization",
        "halves are rounded to the even number in whole packets of 32 bytes, and away from 0 after them",
        "away from 0 everywhere",
        "paddle/fluid/operators/activation_op.h, RoundFunctor (1.8.5): by Eigen's pround of AVX",
    ),
    Quirk(
        "elu_gradient",
        "layers.elu",
        "the gradient is NaN where e^X is too large for the dtype: X of float32 above 88.7",
        "the gradient of Out",
        "paddle/fluid/operators/activation_op.h, ELUGradFunctor (1.8.5): e^X is multiplied by 0 there",
    ),
    Quirk(
        "tree_conv_padding",
        "contrib.layers.tree_conv of several trees",
        "the rows behind the last node of a tree are those of the tree before it",
        "they are 0",
        "paddle/fluid/operators/tree_conv_op.h, TreeConvKernel::Compute (1.8.5): the patches of all trees "
        "share one tensor, and each writes as many rows as it has nodes",
    ),
    Quirk(
        "sequence_conv_gradient",
        "layers.sequence_conv(padding_start) above 0",
        "sequences of padding_start rows or fewer add wrong values to the filter's gradient",
        "the gradient",
        "paddle/fluid/operators/sequence_ops/sequence_conv_op.h, SequenceConvGradKernel::Compute (1.8.5): "
        "the windows are written over their own gradient, but those of such sequences are not",
    ),
    Quirk(
        "deformable_steps",
        "layers.deformable_conv where im2col_step, 2 or more, divides the number of images",
        "the results of im2col_step images are stored by filter, but read as if stored by image",
        "the results of each image are stored together",
        "paddle/fluid/operators/deformable_conv_op.h, DeformableConvCPUKernel::Compute (1.8.5): the buffer "
        "(N / step, filters, step, H, W) becomes Output as it lies",
    ),
    Quirk(
        "clone_schedule",
        "Program.clone(for_test=True) before minimize",
        "a learning-rate schedule stays in the copy, and each evaluation counts as a step of training",
        "the copy without the schedule",
        "paddle/fluid/framework/prune.cc, PruneBackward (1.8.5): nothing is pruned from a program without "
        "the gradient of a loss",
    ),
)
#: The rows by name.
QUIRKS: Final = {row.name: row for row in _ROWS}


class QuirkTable(tuple[Quirk, ...]):
    """The rows; they print as a table."""

    def __str__(self) -> str:
        way = flag("FLAGS_fluid_quirks")
        lines = [f"FLAGS_fluid_quirks is {way}: True computes Fluid's, False the textbook's"]
        for row in self:
            ours = "textbook:   " if row.followed else "always here:"
            lines += [row.where, f"  Fluid 1.8.5: {row.fluid}", f"  {ours} {row.ours}"]
            lines += [f"  source:      {row.source}"]
        return "\n".join(lines)

    __repr__ = __str__


def quirks() -> QuirkTable:
    """Return a table of Fluid's odd results: operator, Fluid's formula, the textbook's formula, and the
    source.

    Returns
    -------
    QuirkTable
        A row for each oddity; it prints as text. Where ``followed`` is False, nothing selects Fluid's way.

    >>> print(quirks())
    FLAGS_fluid_quirks is True: True computes Fluid's, False the textbook's
    layers.swish(x, beta)
      Fluid 1.8.5: beta is 1.0 whatever the argument
      textbook:    beta as given
    ...
    """
    return QuirkTable((*_ROWS, *NOT_FOLLOWED))


def follows_fluid(name: str) -> bool:
    """Return whether a quirk is computed as in Fluid. Raises KeyError for an unknown name."""
    return bool(QUIRKS[name] and flag("FLAGS_fluid_quirks"))


def warn_quirk(name: str) -> bool:
    """Return the result of :func:`follows_fluid`, and warn if it is true. Layers whose result then
    differs from the textbook's call this.
    """
    if not follows_fluid(name):
        return False
    row = QUIRKS[name]
    warn_user(
        f"{row.where}: as in Fluid 1.8.5, {row.fluid}; the textbook has {row.ours}. "
        "fluid.set_flags({'FLAGS_fluid_quirks': False}) before the network is built selects the "
        "textbook's result; fluid.quirks() lists all of these",
        QuirkWarning,
    )
    return True
