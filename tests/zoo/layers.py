"""A builder for every entry of the golden table of layers, by the same calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.zoo.control import CONTROL

__all__ = ["LAYERS"]

L = fluid.layers


def data(name: str, shape: list[int | None], dtype: str = "float32", lod_level: int = 0) -> Any:
    return fluid.data(name, shape, dtype, lod_level=lod_level)


def x(*shape: int) -> Any:
    return data("x", [None, *shape])


def seq(width: int = 8, name: str = "seq") -> Any:
    return data(name, [None, width], lod_level=1)


def label() -> Any:
    return data("l", [None, 1], "int64")


LAYERS: dict[str, Callable[[], Any]] = {
    # Dense and embedding
    "fc": lambda: L.fc(x(4), 3),
    "fc_act_relu": lambda: L.fc(x(4), 3, act="relu"),
    "fc_nobias": lambda: L.fc(x(4), 3, bias_attr=False),
    "fc_named": lambda: L.fc(x(4), 3, name="hidden"),
    "fc_param_attr_names": lambda: L.fc(
        x(4),
        3,
        param_attr=fluid.ParamAttr(name="W", initializer=fluid.initializer.Constant(0.1)),
        bias_attr=fluid.ParamAttr(name="B"),
    ),
    "fc_param_attr_str": lambda: L.fc(x(4), 3, param_attr="W", bias_attr="B"),
    "fc_two_inputs": lambda: L.fc([x(4), data("z", [None, 5])], 3, act="tanh"),
    "fc_flatten2": lambda: L.fc(data("x", [None, 6, 4]), 3, num_flatten_dims=2),
    "fc_4d": lambda: L.fc(data("x", [None, 2, 3, 4]), 5),
    "fc_twice": lambda: L.fc(L.fc(x(4), 3, act="relu"), 2),
    "embedding": lambda: L.embedding(data("w", [None, 1], "int64"), size=[50, 8]),
    "embedding_sparse_pad": lambda: L.embedding(
        data("w", [None, 1], "int64"), size=[50, 8], is_sparse=True, padding_idx=0
    ),
    "embedding_negpad": lambda: L.embedding(data("w", [None, 1], "int64"), size=[50, 8], padding_idx=-1),
    "embedding_dist": lambda: L.embedding(
        data("w", [None, 1], "int64"),
        size=[50, 8],
        is_sparse=True,
        is_distributed=True,
        param_attr="table",
    ),
    "fluid_embedding_v2": lambda: fluid.embedding(data("w", [None, 4], "int64"), size=[50, 8]),
    "embedding_lod": lambda: L.embedding(data("w", [None, 1], "int64", lod_level=1), size=[50, 8]),
    # Convolution and pooling
    "conv2d": lambda: L.conv2d(x(3, 8, 8), num_filters=4, filter_size=3),
    "conv2d_full": lambda: L.conv2d(
        x(4, 8, 8),
        num_filters=8,
        filter_size=(3, 5),
        stride=2,
        padding=1,
        dilation=1,
        groups=2,
        act="relu",
        use_cudnn=False,
    ),
    "conv2d_nobias": lambda: L.conv2d(x(3, 8, 8), num_filters=4, filter_size=3, bias_attr=False),
    "conv2d_same": lambda: L.conv2d(x(3, 8, 8), num_filters=4, filter_size=3, padding="SAME"),
    "conv2d_depthwise": lambda: L.conv2d(x(4, 8, 8), num_filters=4, filter_size=3, groups=4, use_cudnn=False),
    "conv2d_transpose": lambda: L.conv2d_transpose(x(3, 8, 8), num_filters=4, filter_size=3, stride=2),
    "conv3d": lambda: L.conv3d(x(3, 4, 8, 8), num_filters=4, filter_size=3),
    "pool2d_max": lambda: L.pool2d(x(3, 8, 8), pool_size=2, pool_stride=2),
    "pool2d_avg": lambda: L.pool2d(
        x(3, 8, 8), pool_size=3, pool_type="avg", pool_stride=2, pool_padding=1, ceil_mode=True
    ),
    "pool2d_global": lambda: L.pool2d(x(3, 8, 8), pool_type="avg", global_pooling=True),
    "adaptive_pool2d": lambda: L.adaptive_pool2d(x(3, 8, 8), pool_size=[2, 2], pool_type="avg"),
    # Normalisation
    "batch_norm": lambda: L.batch_norm(x(3, 8, 8)),
    "batch_norm_act": lambda: L.batch_norm(
        x(3, 8, 8),
        act="relu",
        momentum=0.8,
        epsilon=0.001,
        moving_mean_name="mm",
        moving_variance_name="mv",
    ),
    "batch_norm_test": lambda: L.batch_norm(x(3, 8, 8), is_test=True),
    "batch_norm_global": lambda: L.batch_norm(x(3, 8, 8), use_global_stats=True),
    "batch_norm_2d": lambda: L.batch_norm(x(6)),
    "inplace_abn": lambda: L.inplace_abn(x(3, 8, 8), act="leaky_relu"),
    "layer_norm": lambda: L.layer_norm(x(6)),
    "layer_norm_4d": lambda: L.layer_norm(x(3, 8, 8), begin_norm_axis=1),
    "layer_norm_noscale": lambda: L.layer_norm(x(6), scale=False, shift=False),
    "group_norm": lambda: L.group_norm(x(4, 8, 8), groups=2),
    "instance_norm": lambda: L.instance_norm(x(4, 8, 8)),
    "data_norm": lambda: L.data_norm(x(6)),
    "spectral_norm": lambda: L.spectral_norm(
        L.create_parameter([4, 5], "float32", name="sw"), dim=0, power_iters=2
    ),
    "dropout": lambda: L.dropout(x(6), 0.3),
    "dropout_seed_upscale": lambda: L.dropout(x(6), 0.3, seed=7, dropout_implementation="upscale_in_train"),
    # Losses and metrics
    "softmax": lambda: L.softmax(x(6)),
    "cross_entropy": lambda: L.cross_entropy(L.softmax(x(6)), label()),
    "cross_entropy_soft": lambda: L.cross_entropy(L.softmax(x(6)), data("l", [None, 6]), soft_label=True),
    "softmax_with_ce": lambda: L.softmax_with_cross_entropy(x(6), label()),
    "square_error_cost": lambda: L.square_error_cost(x(1), data("y", [None, 1])),
    "sigmoid_ce_logits": lambda: L.sigmoid_cross_entropy_with_logits(x(6), data("l", [None, 6])),
    "huber_loss": lambda: L.huber_loss(x(1), data("y", [None, 1]), 1.0),
    "log_loss": lambda: L.log_loss(L.sigmoid(x(1)), data("y", [None, 1])),
    "smooth_l1": lambda: L.smooth_l1(x(4), data("y", [None, 4])),
    "rank_loss": lambda: L.rank_loss(data("l", [None, 1]), data("a", [None, 1]), data("b", [None, 1])),
    "margin_rank_loss": lambda: L.margin_rank_loss(
        data("l", [None, 1]), data("a", [None, 1]), data("b", [None, 1])
    ),
    "bpr_loss": lambda: L.bpr_loss(L.softmax(x(6)), label()),
    "label_smooth": lambda: L.label_smooth(x(6), epsilon=0.1),
    "one_hot": lambda: L.one_hot(label(), depth=10),
    "fluid_one_hot": lambda: fluid.one_hot(data("l", [None], "int64"), depth=10),
    "accuracy": lambda: L.accuracy(L.softmax(x(6)), label()),
    "accuracy_k2": lambda: L.accuracy(L.softmax(x(6)), label(), k=2),
    "auc": lambda: L.auc(L.softmax(x(2)), label())[0],
    "topk": lambda: L.topk(x(6), k=2)[0],
    "argmax": lambda: L.argmax(x(6), axis=1),
    # Reductions
    "mean": lambda: L.mean(x(6)),
    "reduce_sum": lambda: L.reduce_sum(x(6), dim=1, keep_dim=True),
    "reduce_sum_all": lambda: L.reduce_sum(x(6)),
    "reduce_mean": lambda: L.reduce_mean(x(6), dim=[0, 1]),
    "reduce_max": lambda: L.reduce_max(x(6), dim=-1),
    "reduce_min": lambda: L.reduce_min(x(6), dim=-1),
    "reduce_prod": lambda: L.reduce_prod(x(6), dim=-1),
    # Elementwise, and operators of Python
    "elementwise_add": lambda: L.elementwise_add(x(6), data("y", [None, 6])),
    "elementwise_add_axis_act": lambda: L.elementwise_add(x(6, 5), data("y", [6]), axis=1, act="relu"),
    "elementwise_sub": lambda: L.elementwise_sub(x(6), data("y", [None, 6])),
    "elementwise_mul": lambda: L.elementwise_mul(x(6), data("y", [None, 6])),
    "elementwise_div": lambda: L.elementwise_div(x(6), data("y", [None, 6])),
    "elementwise_max": lambda: L.elementwise_max(x(6), data("y", [None, 6])),
    "elementwise_min": lambda: L.elementwise_min(x(6), data("y", [None, 6])),
    "elementwise_pow": lambda: L.elementwise_pow(x(6), data("y", [None, 6])),
    "overload_add_scalar": lambda: x(6) + 2.0,
    "overload_radd": lambda: 2.0 + x(6),
    "overload_sub_scalar": lambda: x(6) - 2.0,
    "overload_rsub": lambda: 2.0 - x(6),
    "overload_mul_scalar": lambda: x(6) * 2.0,
    "overload_div_scalar": lambda: x(6) / 2.0,
    "overload_rdiv": lambda: 2.0 / x(6),
    "overload_neg": lambda: -x(6),
    "overload_pow": lambda: x(6) ** 2.0,
    "overload_add": lambda: x(6) + data("y", [None, 6]),
    "overload_mul": lambda: x(6) * data("y", [None, 6]),
    "overload_sub": lambda: x(6) - data("y", [None, 6]),
    "overload_div": lambda: x(6) / data("y", [None, 6]),
    "overload_lt": lambda: x(6) < data("y", [None, 6]),
    "overload_eq": lambda: x(6) == data("y", [None, 6]),
    "overload_getitem": lambda: x(6, 4)[:, 0:2],
    "overload_astype": lambda: x(6).astype("int64"),
    # Products
    "matmul": lambda: L.matmul(x(6), data("y", [None, 6]), transpose_y=True, alpha=0.5),
    "mul": lambda: L.mul(x(6), data("y", [6, 4])),
    # Shapes
    "concat": lambda: L.concat([x(6), data("y", [None, 4])], axis=1),
    "split": lambda: L.split(x(6), 2, dim=1)[0],
    "split_sections": lambda: L.split(x(6), [2, 4], dim=1)[1],
    "stack": lambda: L.stack([x(6), data("y", [None, 6])], axis=1),
    "sums": lambda: L.sums([x(6), data("y", [None, 6])]),
    "sum": lambda: L.sum([x(6), data("y", [None, 6])]),
    "scale": lambda: L.scale(x(6), scale=2.0, bias=1.0),
    "scale_named": lambda: L.scale(x(6), 1.0, name="save_infer_model/scale_0"),
    "scale_act": lambda: L.scale(x(6), 2.0, act="relu"),
    "cast": lambda: L.cast(x(6), "int64"),
    "reshape": lambda: L.reshape(x(6), [-1, 2, 3]),
    "reshape_zero": lambda: L.reshape(x(6), [0, 2, 3]),
    "transpose": lambda: L.transpose(x(6, 4), [0, 2, 1]),
    "squeeze": lambda: L.squeeze(x(1, 4), axes=[1]),
    "unsqueeze": lambda: L.unsqueeze(x(4), axes=[1]),
    "flatten": lambda: L.flatten(x(2, 3)),
    "slice": lambda: L.slice(x(6, 4), axes=[1], starts=[0], ends=[2]),
    "gather": lambda: L.gather(x(6), data("i", [3], "int64")),
    "expand": lambda: L.expand(x(6), [1, 2]),
    "pad": lambda: L.pad(x(6), [0, 0, 1, 1]),
    "clip": lambda: L.clip(x(6), -1.0, 1.0),
    "clip_by_norm": lambda: L.clip_by_norm(x(6), 1.0),
    "l2_normalize": lambda: L.l2_normalize(x(6), axis=1),
    "cos_sim": lambda: L.cos_sim(x(6), data("y", [None, 6])),
    # Activations
    "relu": lambda: L.relu(x(6)),
    "sigmoid": lambda: L.sigmoid(x(6)),
    "tanh": lambda: L.tanh(x(6)),
    "exp": lambda: L.exp(x(6)),
    "log": lambda: L.log(x(6)),
    "sqrt": lambda: L.sqrt(x(6)),
    "square": lambda: L.square(x(6)),
    "abs": lambda: L.abs(x(6)),
    "leaky_relu": lambda: L.leaky_relu(x(6), 0.1),
    "elu": lambda: L.elu(x(6)),
    "relu6": lambda: L.relu6(x(6)),
    "gelu": lambda: L.gelu(x(6)),
    "softplus": lambda: L.softplus(x(6)),
    "softsign": lambda: L.softsign(x(6)),
    "swish": lambda: L.swish(x(6)),
    "hard_sigmoid": lambda: L.hard_sigmoid(x(6)),
    "hard_swish": lambda: L.hard_swish(x(6)),
    "logsigmoid": lambda: L.logsigmoid(x(6)),
    "pow": lambda: L.pow(x(6), 3.0),
    "stanh": lambda: L.stanh(x(6)),
    "brelu": lambda: L.brelu(x(6)),
    "rsqrt": lambda: L.rsqrt(x(6)),
    "floor": lambda: L.floor(x(6)),
    "sin": lambda: L.sin(x(6)),
    "cos": lambda: L.cos(x(6)),
    "reciprocal": lambda: L.reciprocal(x(6)),
    "sign": lambda: L.sign(x(6)),
    "prelu_all": lambda: L.prelu(x(3, 4, 4), mode="all"),
    "prelu_channel": lambda: L.prelu(x(3, 4, 4), mode="channel"),
    "prelu_element": lambda: L.prelu(x(3, 4, 4), mode="element"),
    "maxout": lambda: L.maxout(x(4, 4, 4), groups=2),
    "lrn": lambda: L.lrn(x(4, 4, 4)),
    # Sampled and bilinear
    "bilinear_tensor_product": lambda: L.bilinear_tensor_product(x(4), data("y", [None, 5]), size=6),
    "row_conv": lambda: L.row_conv(seq(), future_context_size=2),
    "nce": lambda: L.nce(x(6), label(), num_total_classes=20, num_neg_samples=4, sampler="uniform", seed=3),
    "hsigmoid": lambda: L.hsigmoid(x(6), label(), num_classes=8),
    # Recurrent
    "dynamic_lstm": lambda: L.dynamic_lstm(L.fc(seq(), 16), size=16)[0],
    "dynamic_lstm_nopeep_rev": lambda: L.dynamic_lstm(
        L.fc(seq(), 16), size=16, use_peepholes=False, is_reverse=True
    )[0],
    "dynamic_lstmp": lambda: L.dynamic_lstmp(L.fc(seq(), 16), size=16, proj_size=3)[0],
    "dynamic_gru": lambda: L.dynamic_gru(L.fc(seq(), 12), size=4),
    "gru_unit": lambda: L.gru_unit(data("x", [None, 12]), data("h", [None, 4]), size=12)[0],
    "lstm_unit": lambda: L.lstm_unit(x(6), data("h", [None, 4]), data("c", [None, 4]))[0],
    # Sequences
    "sequence_pool_sum": lambda: L.sequence_pool(seq(), "sum"),
    "sequence_pool_average": lambda: L.sequence_pool(seq(), "average"),
    "sequence_pool_max": lambda: L.sequence_pool(seq(), "max"),
    "sequence_pool_sqrt": lambda: L.sequence_pool(seq(), "sqrt"),
    "sequence_first_step": lambda: L.sequence_first_step(seq()),
    "sequence_last_step": lambda: L.sequence_last_step(seq()),
    "sequence_conv": lambda: L.sequence_conv(seq(), num_filters=4, filter_size=3, act="tanh"),
    "sequence_softmax": lambda: L.sequence_softmax(seq(1)),
    "sequence_expand": lambda: L.sequence_expand(x(6), seq()),
    "sequence_concat": lambda: L.sequence_concat([seq(), seq(8, "s2")]),
    "sequence_reshape": lambda: L.sequence_reshape(seq(), 4),
    "sequence_reverse": lambda: L.sequence_reverse(seq()),
    "lod_reset": lambda: L.lod_reset(x(6), target_lod=[0, 2, 4]),
    "sequence_pad": lambda: L.sequence_pad(seq(), L.fill_constant([1], "float32", 0.0))[0],
    "sequence_mask": lambda: L.sequence_mask(data("l", [None], "int64"), maxlen=5),
    "im2sequence": lambda: L.im2sequence(x(3, 8, 8), filter_size=2, stride=2),
    "linear_chain_crf": lambda: L.linear_chain_crf(
        seq(4), data("l", [None, 1], "int64", lod_level=1), param_attr=fluid.ParamAttr(name="crfw")
    ),
    "warpctc": lambda: L.warpctc(seq(8), data("l", [None, 1], "int32", lod_level=1)),
    "edit_distance": lambda: L.edit_distance(
        data("a", [None, 1], "int64", lod_level=1), data("b", [None, 1], "int64", lod_level=1)
    )[0],
    # Creation
    "create_parameter": lambda: L.create_parameter([3, 4], "float32"),
    "create_parameter_named_bias": lambda: L.create_parameter([4], "float32", name="bb", is_bias=True),
    "create_parameter_attr": lambda: L.create_parameter(
        [4],
        "float32",
        attr=fluid.ParamAttr(
            name="pp",
            trainable=False,
            regularizer=fluid.regularizer.L2Decay(0.0001),
            learning_rate=0.5,
        ),
    ),
    "create_global_var": lambda: L.create_global_var([1], 1.5, "float32", persistable=True),
    "create_global_var_named_np_cpu": lambda: L.create_global_var(
        [2, 3], 0, "int64", persistable=False, force_cpu=True, name="gv"
    ),
    "create_tensor": lambda: L.create_tensor("float32"),
    "create_tensor_named_p": lambda: L.create_tensor("int64", name="tt", persistable=True),
    "fill_constant": lambda: L.fill_constant([2, 3], "float32", 1.5),
    "fill_constant_bsl": lambda: L.fill_constant_batch_size_like(x(6), [1, 3], "float32", 2.0),
    "zeros": lambda: L.zeros([2], "int64"),
    "ones": lambda: L.ones([2], "float32"),
    "assign": lambda: L.assign(x(6)),
    "assign_np": lambda: L.assign(np.array([[1.0, 2.0]], "float32")),
    "zeros_like": lambda: L.zeros_like(x(6)),
    "range": lambda: L.range(0, 5, 1, "int64"),
    "shape": lambda: L.shape(x(6)),
    # Random
    "uniform_random": lambda: L.uniform_random([2, 3], min=-2.0, max=2.0, seed=5),
    "gaussian_random": lambda: L.gaussian_random([2, 3], mean=1.0, std=2.0, seed=5),
    "uniform_random_bsl": lambda: L.uniform_random_batch_size_like(x(6), [-1, 3]),
    "sampling_id": lambda: L.sampling_id(L.softmax(x(6))),
    # Counters and logic
    "increment": lambda: L.increment(L.fill_constant([1], "float32", 0.0), 2.0),
    "autoincreased_step_counter": lambda: L.autoincreased_step_counter(),
    "less_than": lambda: L.less_than(x(6), data("y", [None, 6])),
    "logical_and": lambda: L.logical_and(data("a", [1], "bool"), data("b", [1], "bool")),
    "where": lambda: L.where(data("a", [None], "bool")),
    # Data
    "layers_data_append_bs": lambda: L.data("d", [3, 4]),
    "layers_data_noappend": lambda: L.data("d", [5, 4], append_batch_size=False, dtype="int64", lod_level=2),
    "fluid_data": lambda: fluid.data("d", [None, 3, -1], "float64", lod_level=1),
    # Small networks
    "nets_simple_img_conv_pool": lambda: fluid.nets.simple_img_conv_pool(
        x(1, 28, 28), num_filters=4, filter_size=5, pool_size=2, pool_stride=2, act="relu"
    ),
    "nets_img_conv_group": lambda: fluid.nets.img_conv_group(
        x(1, 8, 8),
        conv_num_filter=[2, 2],
        pool_size=2,
        conv_with_batchnorm=True,
        conv_batchnorm_drop_rate=0.3,
        conv_act="relu",
        pool_stride=2,
    ),
    "nets_sequence_conv_pool": lambda: fluid.nets.sequence_conv_pool(seq(), num_filters=4, filter_size=3),
    "nets_glu": lambda: fluid.nets.glu(x(6)),
    "nets_attention": lambda: fluid.nets.scaled_dot_product_attention(
        x(4, 6), data("k", [None, 4, 6]), data("v", [None, 4, 6]), num_heads=2
    ),
    # The rest
    "fsp": lambda: L.fsp_matrix(x(3, 4, 4), data("y", [None, 5, 4, 4])),
    "image_resize": lambda: L.image_resize(x(3, 4, 4), out_shape=[8, 8]),
    "pixel_shuffle": lambda: L.pixel_shuffle(x(4, 4, 4), 2),
    "add_position_encoding": lambda: L.add_position_encoding(x(4, 6), 1.0, 1.0),
    "dot_regularizer_fc": lambda: L.fc(
        x(4), 3, param_attr=fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(0.1))
    ),
    "npair_loss": lambda: L.npair_loss(x(6), data("y", [None, 6]), data("l", [None])),
    "mse_loss": lambda: L.mse_loss(x(6), data("y", [None, 6])),
    "kldiv_loss": lambda: L.kldiv_loss(x(6), data("y", [None, 6])),
    "dice_loss": lambda: L.dice_loss(L.softmax(x(6)), label()),
    "sampled_softmax": lambda: L.sampled_softmax_with_cross_entropy(x(20), label(), num_samples=5),
    "center_loss": lambda: L.center_loss(
        x(6), label(), num_classes=5, alpha=0.1, param_attr=fluid.initializer.Constant(0.0)
    ),
    "fill_constant_shape_var": lambda: L.fill_constant([1, 2], "int32", 3),
    "print_": lambda: L.Print(x(6)),
    "cumsum": lambda: L.cumsum(x(6), axis=1),
    "scatter": lambda: L.scatter(x(6), data("i", [None], "int64"), data("u", [None, 6])),
    "has_nan": lambda: L.has_nan(x(6)),
    "isfinite": lambda: L.isfinite(x(6)),
    "unique": lambda: L.unique(data("u", [5], "int64"))[0],
    "multiplex": lambda: L.multiplex([x(6), data("y", [None, 6])], data("i", [None, 1], "int32")),
    "crop_tensor": lambda: L.crop_tensor(x(6), shape=[2, 3]),
    "linspace": lambda: L.linspace(0.0, 1.0, 5, "float32"),
    "diag": lambda: L.diag(np.array([1.0, 2.0], "float32")),
    "eye": lambda: L.eye(3),
    "argsort": lambda: L.argsort(x(6))[0],
    "shuffle_channel": lambda: L.shuffle_channel(x(4, 4, 4), 2),
    "sequence_enumerate": lambda: L.sequence_enumerate(
        data("a", [None, 1], "int64", lod_level=1), win_size=2
    ),
    "sequence_slice": lambda: L.sequence_slice(
        seq(), data("o", [None, 1], "int64"), data("len", [None, 1], "int64")
    ),
    "sequence_unpad": lambda: L.sequence_unpad(x(4, 6), data("len", [None], "int64")),
    "lstm_cudnn": lambda: L.lstm(
        data("x", [5, 2, 4]),
        L.fill_constant([1, 2, 3], "float32", 0.0),
        L.fill_constant([1, 2, 3], "float32", 0.0),
        5,
        3,
        1,
    )[0],
    **CONTROL,
}
