"""What networks are built of: tables, products, convolutions, norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls.net import Net

TABLE: dict[str, Callable[[Net], Any]] = {
    # embedding
    "embedding_names": lambda n: n.embedding(n.ids(1), (50, 8), param_attr="table", dtype="float64"),
    "embedding_deep": lambda n: n.embedding(n.ids(5, 1), (50, 8)),
    "fluid_embedding_pad": lambda n: n.fluid.embedding(n.ids(), (50, 8), padding_idx=-2, is_sparse=True),
    "embedding_refuses": lambda n: n.embedding(n.x(1), (50, 8)),
    "one_hot_variable": lambda n: n.one_hot(n.ids(1), n.one(5), allow_out_of_range=True),
    "fluid_one_hot_variable": lambda n: n.fluid.one_hot(n.ids(4), n.one(5)),
    # dense
    "fc_softmax": lambda n: n.fc(n.x(4), 3, act="softmax"),
    "fc_negative_dims": lambda n: n.fc(n.x(4, 5), 3, num_flatten_dims=-1),
    "fc_attrs": lambda n: n.fc([n.x(4), n.y(4)], 3, param_attr=[n.attr("a"), n.attr("b")]),
    "fc_double": lambda n: n.fc(n.x(4, dtype="float64"), 3),
    "fc_shared": lambda n: [n.fc(n.x(4), 3, param_attr="w"), n.fc(n.y(4), 3, param_attr="w")][1],
    "fc_shared_refuses": lambda n: [n.fc(n.x(4), 3, param_attr="w"), n.fc(n.y(5), 3, param_attr="w")][1],
    "fc_unknown_refuses": lambda n: n.fc(n.x(-1), 3),
    "fc_refuses_kind": lambda n: n.fc(3, 3),
    "fc_refuses_dtype": lambda n: n.fc(n.x(4, dtype="int64"), 3),
    "bilinear_tensor_product_act": lambda n: n.bilinear_tensor_product(
        n.x(4), n.y(5), 6, act="tanh", bias_attr=False),
    "weight_norm_whole": lambda n: n.fc(n.x(4), 3, param_attr=n.fluid.WeightNormParamAttr(name="wn")),
    "weight_norm_unnamed": lambda n: n.fc(n.x(4), 3, param_attr=n.fluid.WeightNormParamAttr(dim=0)),
    "weight_norm_conv": lambda n: n.conv2d(
        n.x(3, 8, 8), 4, 3, param_attr=n.fluid.WeightNormParamAttr(dim=1, name="wn")),
    # convolution
    "conv2d_nhwc": lambda n: n.conv2d(n.x(8, 8, 3), 4, 3, data_format="NHWC"),
    "conv2d_pads": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding=[1, 2, 3, 4]),
    "conv2d_pad_pairs": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding=[[0, 0], [0, 0], [1, 1], [2, 2]]),
    "conv2d_pad_pairs_uneven": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding=[[0, 0], [0, 0], [1, 2],
        [2, 3]]),
    "conv2d_valid": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding="VALID", stride=(2, 1), dilation=2),
    "conv2d_refuses_groups": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, groups=2),
    "conv2d_refuses_padding": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding="MOST"),
    "conv2d_refuses_format": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, data_format="CHW"),
    "conv2d_refuses_dtype": lambda n: n.conv2d(n.x(3, 8, 8, dtype="int64"), 4, 3),
    "conv2d_transpose_size": lambda n: n.conv2d_transpose(n.x(3, 8, 8), 4, output_size=[17, 18], stride=2),
    "conv2d_transpose_both": lambda n: n.conv2d_transpose(
        n.x(4, 8, 8), 6, output_size=16, filter_size=3, stride=2, padding=1, groups=2, act="relu"),
    "conv2d_transpose_depthwise": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4, filter_size=3,
        groups=4, use_cudnn=False),
    "conv2d_transpose_same": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4, filter_size=3,
        padding="SAME", bias_attr=False),
    "conv2d_transpose_nhwc": lambda n: n.conv2d_transpose(n.x(8, 8, 4), 4, filter_size=3,
        data_format="NHWC"),
    "conv2d_transpose_refuses": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4),
    "conv3d_full": lambda n: n.conv3d(n.x(4, 4, 8, 8), 8, (1, 3, 3), 2, 1, 1, 2, act="relu",
        use_cudnn=False),
    "conv3d_same": lambda n: n.conv3d(n.x(4, 4, 8, 8), 8, 3, padding="SAME", bias_attr=False),
    "conv3d_ndhwc": lambda n: n.conv3d(n.x(4, 8, 8, 3), 8, 3, data_format="NDHWC"),
    "conv3d_transpose": lambda n: n.conv3d_transpose(n.x(3, 4, 8, 8), 4, filter_size=3, stride=2),
    "conv3d_transpose_size": lambda n: n.conv3d_transpose(n.x(3, 4, 8, 8), 4, output_size=[9, 17, 17],
        stride=2, act="tanh"),
    "pool2d_test": lambda n: n.pool2d(n.x(3, 8, 8), [2, 3], "avg", (2, 1), "SAME", exclusive=False),
    "pool2d_valid": lambda n: n.pool2d(n.x(3, 8, 8), 3, "max", 2, "VALID"),
    "pool2d_pads": lambda n: n.pool2d(n.x(3, 8, 8), 3, "max", 2, [1, 2, 1, 2]),
    "pool2d_nhwc": lambda n: n.pool2d(n.x(8, 8, 3), 3, "max", 2, data_format="NHWC"),
    "pool2d_refuses_type": lambda n: n.pool2d(n.x(8, 8, 3), 3, "most"),
    "pool2d_refuses_size": lambda n: n.pool2d(n.x(8, 8, 3)),
    "pool3d": lambda n: n.pool3d(n.x(3, 4, 8, 8), 2, "max", 2),
    "pool3d_global": lambda n: n.pool3d(n.x(3, 4, 8, 8), pool_type="avg", global_pooling=True),
    "adaptive_pool2d_max": lambda n: n.adaptive_pool2d(n.x(3, 8, 8), [3, 2]),
    "adaptive_pool2d_index": lambda n: n.adaptive_pool2d(n.x(3, 8, 8), 2, "max", require_index=True)[1],
    "adaptive_pool2d_refuses": lambda n: n.adaptive_pool2d(n.x(3, 8, 8), 2, "avg", require_index=True),
    "adaptive_pool3d": lambda n: n.adaptive_pool3d(n.x(3, 8, 8, 8), [3, 2, 2], "avg"),
    "adaptive_pool3d_index": lambda n: n.adaptive_pool3d(n.x(3, 8, 8, 8), 2, "max", require_index=True)[0],
    # normalization
    "batch_norm_nhwc": lambda n: n.batch_norm(n.x(8, 8, 3), data_layout="NHWC", name="bn"),
    "batch_norm_in_place": lambda n: n.batch_norm(n.x(3, 8, 8), in_place=True),
    "batch_norm_no_attrs": lambda n: n.batch_norm(n.x(3, 8, 8), param_attr=False, bias_attr=False),
    "batch_norm_half": lambda n: n.batch_norm(n.x(3, 8, 8, dtype="float16")),
    "batch_norm_variable": lambda n: n.batch_norm(n.x(3, 8, 8), momentum=n.one(0.5, "float32")),
    "batch_norm_no_average": lambda n: n.batch_norm(n.x(3, 8, 8), do_model_average_for_mean_and_var=False),
    "inplace_abn_elu": lambda n: n.inplace_abn(n.x(3, 8, 8), act="elu", act_alpha=0.5),
    "inplace_abn_refuses": lambda n: n.inplace_abn(n.x(3, 8, 8), act="tanh"),
    "layer_norm_act": lambda n: n.layer_norm(n.x(3, 8), begin_norm_axis=2, act="relu", param_attr="g",
        bias_attr="b"),
    "layer_norm_no_shift": lambda n: n.layer_norm(n.x(3), shift=False, epsilon=1e-3),
    "group_norm_attrs": lambda n: n.group_norm(n.x(4, 8, 8), 2, param_attr="g", bias_attr="b", act="relu"),
    "group_norm_refuses": lambda n: n.group_norm(n.x(4, 8, 8), 2, data_layout="NHCW"),
    "instance_norm_names": lambda n: n.instance_norm(n.x(4, 8, 8), 1e-3, "g", "b", "norm"),
    "instance_norm_without": lambda n: n.instance_norm(n.x(4, 8, 8), param_attr=False, bias_attr=False),
    "data_norm_attrs": lambda n: n.data_norm(
        n.x(6), act="relu", name="n", param_attr={"batch_size": 10.0, "batch_sum": 1.0,
        "batch_square": 20.0}),
    "data_norm_scale": lambda n: n.data_norm(n.x(6), param_attr={}, enable_scale_and_shift=True,
        slot_dim=2, name="n"),
    "spectral_norm_conv": lambda n: n.spectral_norm(n.create_parameter([4, 3, 3, 3], "float32"),
        dim=1, power_iters=1, eps=1e-10),
    "lrn_nhwc": lambda n: n.lrn(n.x(4, 4, 4), 3, 2.0, 1e-3, 0.5, data_format="NHWC"),
    "affine_channel": lambda n: n.affine_channel(n.x(4, 4, 4), n.exact(4), n.exact(4, name="f"),
        act="relu"),
    "l2_normalize_negative": lambda n: n.l2_normalize(n.x(6, 4), -1),
    "l2_normalize_vector": lambda n: n.l2_normalize(n.exact(6), 0),
    # nets
    "nets_img_conv_group_plain": lambda n: n.fluid.nets.img_conv_group(
        n.x(3, 8, 8), [4, 4], 2, conv_act="tanh", pool_type="avg"),
    "nets_attention_one": lambda n: n.fluid.nets.scaled_dot_product_attention(
        n.x(4, 6), n.y(4, 6), n.z(4, 6), dropout_rate=0.1),
    "nets_attention_refuses": lambda n: n.fluid.nets.scaled_dot_product_attention(n.x(6), n.y(4, 6),
        n.z(4, 6)),
    "nets_simple_global": lambda n: n.fluid.nets.simple_img_conv_pool(
        n.x(3, 8, 8), 4, 3, 2, 2, pool_type="avg", global_pooling=True, conv_padding=1, conv_groups=1),
    "nets_glu_dim": lambda n: n.fluid.nets.glu(n.x(6, 4), dim=1),
}  # fmt: skip
