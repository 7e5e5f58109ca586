"""Calls of layers, each recorded from the real system: what the 252 networks of the zoo leave out.

Every entry takes the `fluid` module to build with, ours or the real one (this file keeps to what
Python 3.7 understands), and returns the layer's result. An entry may also be a call that is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CALLS"]


class _Net:
    """Short names for the inputs of a call."""

    def __init__(self, fluid: Any) -> None:
        self.fluid = fluid

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fluid.layers, name)

    def x(self, *shape: Any, dtype: str = "float32", name: str = "x") -> Any:
        return self.fluid.data(name, [None, *shape], dtype)

    def y(self, *shape: Any, dtype: str = "float32") -> Any:
        return self.x(*shape, dtype=dtype, name="y")

    def z(self, *shape: Any, dtype: str = "float32") -> Any:
        return self.x(*shape, dtype=dtype, name="z")

    def ids(self, *shape: Any, name: str = "ids") -> Any:
        return self.fluid.data(name, [None, *shape], "int64")

    def exact(self, *shape: int, dtype: str = "float32", name: str = "e") -> Any:
        return self.fluid.data(name, list(shape), dtype)

    def one(self, value: float = 1, dtype: str = "int32") -> Any:
        return self.fill_constant([1], dtype, value)

    def attr(self, *args: Any, **kwargs: Any) -> Any:
        return self.fluid.ParamAttr(*args, **kwargs)


_TABLE = {
    # activations
    "acos": lambda n: n.acos(n.x(6)),
    "asin": lambda n: n.asin(n.x(6)),
    "atan": lambda n: n.atan(n.x(6)),
    "ceil": lambda n: n.ceil(n.x(6)),
    "round": lambda n: n.round(n.x(6)),
    "tanh_shrink": lambda n: n.tanh_shrink(n.x(6)),
    "erf": lambda n: n.erf(n.x(6)),
    "log1p": lambda n: n.log1p(n.x(6)),
    "log1p_out": lambda n: n.log1p(n.x(6), out=n.create_tensor("float32")),
    "gelu_approximate": lambda n: n.gelu(n.x(6), approximate=True),
    "hard_shrink": lambda n: n.hard_shrink(n.x(6)),
    "hard_shrink_value": lambda n: n.hard_shrink(n.x(6), 0.3),
    "softshrink": lambda n: n.softshrink(n.x(6)),
    "softshrink_value": lambda n: n.softshrink(n.x(6), 0.3),
    "thresholded_relu": lambda n: n.thresholded_relu(n.x(6)),
    "thresholded_relu_value": lambda n: n.thresholded_relu(n.x(6), 0.3),
    "cumsum_plain": lambda n: n.cumsum(n.x(6)),
    "cumsum_all": lambda n: n.cumsum(n.x(6), axis=0, exclusive=True, reverse=True),
    "selu": lambda n: n.selu(n.x(6)),
    "selu_values": lambda n: n.selu(n.x(6), scale=1.5, alpha=2.0),
    "soft_relu": lambda n: n.soft_relu(n.x(6), 20.0),
    "mish": lambda n: n.mish(n.x(6)),
    "swish_beta": lambda n: n.swish(n.x(6), 2.0),
    "relu6_threshold": lambda n: n.relu6(n.x(6), 5.0, name="r"),
    "pow_variable": lambda n: n.pow(n.x(6), n.one(2, "float32")),
    "log_softmax": lambda n: n.log_softmax(n.x(6)),
    "log_softmax_axis": lambda n: n.log_softmax(n.x(6, 4), axis=1, dtype="float64"),
    "logsumexp": lambda n: n.logsumexp(n.x(6), 1),
    "logsumexp_all": lambda n: n.logsumexp(n.x(6)),
    "tanh_named": lambda n: n.tanh(n.x(6), name="t"),
    "relu_refuses_integers": lambda n: n.relu(n.x(6, dtype="int64")),
    "relu_refuses_arrays": lambda n: n.relu(np.ones([2, 2], "float32")),
    "sigmoid_refuses_arrays": lambda n: n.sigmoid(np.ones([2, 2], "float32")),
    "maxout_axis": lambda n: n.maxout(n.x(4, 4, 4), groups=2, axis=-1),
    "prelu_refuses_mode": lambda n: n.prelu(n.x(4), mode="some"),
    "softmax_double": lambda n: n.softmax(n.x(6, dtype="float64")),
    # arithmetic
    "elementwise_mod": lambda n: n.elementwise_mod(n.ids(6), n.ids(6, name="j")),
    "elementwise_floordiv": lambda n: n.elementwise_floordiv(n.ids(6), n.ids(6, name="j")),
    "elementwise_equal": lambda n: n.elementwise_equal(n.x(6), n.y(6)),
    "elementwise_sub_name": lambda n: n.elementwise_sub(n.x(6), n.y(6), name="d"),
    "elementwise_refuses_dtypes": lambda n: n.elementwise_add(n.x(6), n.y(6, dtype="bool")),
    "elementwise_refuses_numbers": lambda n: n.elementwise_add(n.x(6), 2.0),
    "equal": lambda n: n.equal(n.x(6), n.y(6)),
    "equal_cond": lambda n: n.equal(n.x(6), n.y(6), cond=n.create_tensor("bool")),
    "not_equal": lambda n: n.not_equal(n.x(6), n.y(6)),
    "less_equal": lambda n: n.less_equal(n.x(6), n.y(6)),
    "greater_than": lambda n: n.greater_than(n.x(6), n.y(6)),
    "greater_equal": lambda n: n.greater_equal(n.x(6), n.y(6)),
    "less_than_cpu": lambda n: n.less_than(n.x(6), n.y(6), force_cpu=True),
    "less_than_refuses": lambda n: n.less_than(n.x(6), 3),
    "logical_or": lambda n: n.logical_or(n.x(2, dtype="bool"), n.y(2, dtype="bool")),
    "logical_xor": lambda n: n.logical_xor(n.x(2, dtype="bool"), n.y(2, dtype="bool"), name="xor"),
    "logical_not": lambda n: n.logical_not(n.x(2, dtype="bool")),
    "logical_not_out": lambda n: n.logical_not(n.x(2, dtype="bool"), n.create_tensor("bool")),
    "logical_and_refuses": lambda n: n.logical_and(n.x(2), n.y(2)),
    "is_empty": lambda n: n.is_empty(n.x(2)),
    "is_empty_cond": lambda n: n.is_empty(n.x(2), n.create_tensor("bool")),
    "has_inf": lambda n: n.has_inf(n.x(6)),
    "increment_copy": lambda n: n.increment(n.one(1, "float32"), 2.0, in_place=False),
    "clip_double": lambda n: n.clip(n.x(6, dtype="float64"), 0.0, 1.0, name="c"),
    "clip_by_norm_name": lambda n: n.clip_by_norm(n.x(6), 2.0, name="c"),
    "clamp": lambda n: n.clamp(n.x(6), 0.0, 1.0),
    "clamp_variable": lambda n: n.clamp(n.x(6), max=n.one(2, "float32")),
    "mul_dims": lambda n: n.mul(n.x(2, 3, 4), n.exact(3, 4, 5), 2, 2),
    "matmul_plain": lambda n: n.matmul(n.x(3, 4), n.y(4, 5)),
    "matmul_transpose_x": lambda n: n.matmul(n.exact(4, 3), n.exact(4, 5, name="f"), transpose_x=True),
    "matmul_refuses": lambda n: n.matmul(n.exact(4, 3), n.exact(4, 5, name="f")),
    "bmm": lambda n: n.bmm(n.x(3, 4), n.y(4, 5)),
    "dot": lambda n: n.dot(n.x(4), n.y(4)),
    "cross": lambda n: n.cross(n.exact(3, 3), n.exact(3, 3, name="f")),
    "cross_dim": lambda n: n.cross(n.exact(4, 3), n.exact(4, 3, name="f"), dim=1),
    "dist": lambda n: n.dist(n.x(4), n.y(4)),
    "dist_inf": lambda n: n.dist(n.x(4), n.y(4), float("inf")),
    "kron": lambda n: n.kron(n.x(4), n.y(4)),
    "addmm": lambda n: n.addmm(n.exact(3, 5), n.exact(3, 4, name="a"), n.exact(4, 5, name="b"), 2.0, 0.5),
    "addcmul": lambda n: n.addcmul(n.x(4), n.y(4), n.z(4), 2.0),
    "trace": lambda n: n.trace(n.x(4, 4), 1, 1, 2),
    "sums_out": lambda n: n.sums([n.x(6), n.y(6)], out=n.create_tensor("float32")),
    "sum_one": lambda n: n.sum(n.x(6)),
    "scale_variable": lambda n: n.scale(n.x(6), n.one(2, "float32"), 1.0, False),
    "mean_name": lambda n: n.mean(n.x(6), name="m"),
    "allclose": lambda n: n.allclose(n.x(6), n.y(6)),
    "multiplex_refuses": lambda n: n.multiplex([n.x(6)], n.ids(1)),
    # reductions
    "reduce_all": lambda n: n.reduce_all(n.x(6, dtype="bool"), dim=1),
    "reduce_any": lambda n: n.reduce_any(n.x(6, dtype="bool")),
    "reduce_sum_every_dim": lambda n: n.reduce_sum(n.x(6, 4), dim=[0, 1, 2], keep_dim=True),
    "reduce_mean_name": lambda n: n.reduce_mean(n.x(6, 4), dim=[-1], name="r"),
    "reduce_max_all": lambda n: n.reduce_max(n.x(6)),
    "reduce_prod_list": lambda n: n.reduce_prod(n.x(6, 4), dim=[1, -1], keep_dim=True),
    "reduce_min_all_keep": lambda n: n.reduce_min(n.x(6, 4), keep_dim=True),
    "reduce_sum_empty": lambda n: n.reduce_sum(n.x(6, 4), dim=[]),
    "argmin": lambda n: n.argmin(n.x(6)),
    "argsort_descending": lambda n: n.argsort(n.x(6, 4), axis=1, descending=True)[1],
    "topk_variable": lambda n: n.topk(n.x(6), k=n.one(2))[1],
    # shaping
    "reshape_act": lambda n: n.reshape(n.x(6), [-1, 3], act="tanh"),
    "reshape_inplace": lambda n: n.reshape(n.x(6), [-1, 3], inplace=True),
    "reshape_variable": lambda n: n.reshape(n.x(6), n.exact(3, dtype="int32")),
    "reshape_actual": lambda n: n.reshape(n.x(6), [-1, 3, 2], actual_shape=n.exact(3, dtype="int32")),
    "reshape_list": lambda n: n.reshape(n.x(6), [n.one(2), 3, -1]),
    "reshape_refuses_two": lambda n: n.reshape(n.x(6), [-1, -1]),
    "reshape_refuses_kind": lambda n: n.reshape(n.x(6), 3),
    "reshape_refuses_zero": lambda n: n.reshape(n.x(6), [-1, 3, 0]),
    "squeeze_two": lambda n: n.squeeze(n.x(1, 4, 1), axes=[1, -1]),
    "squeeze_none": lambda n: n.squeeze(n.exact(1, 4, 1), axes=[]),
    "unsqueeze_int": lambda n: n.unsqueeze(n.x(4), axes=1),
    "unsqueeze_many": lambda n: n.unsqueeze(n.x(4), axes=[0, -1]),
    "unsqueeze_variable": lambda n: n.unsqueeze(n.x(4), axes=n.one(1)),
    "unsqueeze_list": lambda n: n.unsqueeze(n.x(4), axes=[n.one(1), 2]),
    "flatten_axis": lambda n: n.flatten(n.x(2, 3, 4), axis=2),
    "flatten_zero": lambda n: n.flatten(n.exact(2, 3, 4), axis=0),
    "flatten_refuses": lambda n: n.flatten(n.x(2), axis=5),
    "transpose_refuses": lambda n: n.transpose(n.x(2, 3), [0, 1]),
    "t": lambda n: n.t(n.exact(2, 3)),
    "t_vector": lambda n: n.t(n.exact(3)),
    "split_list": lambda n: n.split(n.x(6), [2, -1], dim=-1)[1],
    "split_variable_dim": lambda n: n.split(n.x(6), 3, dim=n.one(1))[0],
    "split_variable_section": lambda n: n.split(n.x(6), [2, n.one(4)], dim=1)[0],
    "split_refuses": lambda n: n.split(n.x(6), 4, dim=1),
    "split_refuses_kind": lambda n: n.split(n.x(6), "2", dim=1),
    "stack_one": lambda n: n.stack(n.x(6), axis=-1),
    "unstack": lambda n: n.unstack(n.x(6), axis=1)[5],
    "concat_one": lambda n: n.concat(n.x(6)),
    "concat_variable": lambda n: n.concat([n.x(6), n.y(4)], axis=n.one(1)),
    "concat_name": lambda n: n.concat([n.x(6), n.y(6)], name="c"),
    "concat_refuses_dtype": lambda n: n.concat([n.x(6), n.y(6, dtype="int64")]),
    "slice_variables": lambda n: n.slice(n.x(6, 4), [1, 2], [n.one(0), 1], [n.one(2), 3]),
    "slice_tensor": lambda n: n.slice(n.x(6, 4), [1, 2], n.exact(2, dtype="int32"), [3, 3]),
    "slice_negative": lambda n: n.slice(n.x(6, 4), [1, 2], [-3, 0], [-1, 100]),
    "slice_refuses": lambda n: n.slice(n.x(6, 4), [1], 0, 1),
    "strided_slice": lambda n: n.strided_slice(n.x(6, 4), [1, 2], [0, 3], [6, 0], [2, -1]),
    "strided_slice_variables": lambda n: n.strided_slice(n.x(6, 4), [1], [n.one(0)], [5], [n.one(2)]),
    "expand_variable": lambda n: n.expand(n.x(6), n.exact(2, dtype="int32")),
    "expand_list": lambda n: n.expand(n.x(6), [n.one(2), 3]),
    "expand_as": lambda n: n.expand_as(n.x(6), n.exact(8, 12)),
    "gather_nd": lambda n: n.gather_nd(n.x(6, 4), n.exact(3, 2, dtype="int32")),
    "gather_overwrite": lambda n: n.gather(n.x(6), n.exact(3, dtype="int32"), overwrite=False),
    "scatter_add": lambda n: n.scatter(n.exact(6, 2), n.exact(3, dtype="int64", name="i"),
                                       n.exact(3, 2, name="u"), name="s", overwrite=False),
    "scatter_nd_add": lambda n: n.scatter_nd_add(n.exact(6, 2), n.exact(3, 1, dtype="int64", name="i"),
                                                 n.exact(3, 2, name="u")),
    "scatter_nd": lambda n: n.scatter_nd(n.exact(3, 1, dtype="int64", name="i"),
                                         n.exact(3, 2, name="u"), [6, 2]),
    "pad_value": lambda n: n.pad(n.x(6), [0, 1, 2, 3], pad_value=0.5, name="p"),
    "pad2d": lambda n: n.pad2d(n.x(3, 4, 4), [1, 2, 3, 4]),
    "pad2d_reflect": lambda n: n.pad2d(n.x(4, 4, 3), [1, 2, 3, 2], "reflect", data_format="NHWC"),
    "pad2d_variable": lambda n: n.pad2d(n.x(3, 4, 4), n.exact(4, dtype="int32"), "edge"),
    "pad_constant_like": lambda n: n.pad_constant_like(n.exact(4, 6), n.exact(2, 6, name="f"), 0.5),
    "crop": lambda n: n.crop(n.exact(4, 6), shape=[2, 3], offsets=[1, 1]),
    "crop_variable": lambda n: n.crop(n.x(6), shape=n.exact(2, 3)),
    "crop_tensor_offsets": lambda n: n.crop_tensor(n.x(6), [-1, 3], [0, 2]),
    "crop_tensor_list": lambda n: n.crop_tensor(n.x(6), [n.one(2), 3], [n.one(0), 1]),
    "crop_tensor_variable": lambda n: n.crop_tensor(n.x(6), n.exact(2, dtype="int32")),
    "reverse": lambda n: n.reverse(n.x(6), axis=1),
    "reverse_many": lambda n: n.reverse(n.x(6), axis=[0, 1]),
    "flip": lambda n: n.flip(n.x(6), [1]),
    "roll": lambda n: n.roll(n.x(6), 2),
    "roll_dims": lambda n: n.roll(n.x(6), [1, 2], [0, 1]),
    "index_select": lambda n: n.index_select(n.x(6), n.exact(3, dtype="int32"), 1),
    "index_sample": lambda n: n.index_sample(n.exact(4, 6), n.exact(4, 3, dtype="int32", name="i")),
    "meshgrid": lambda n: n.meshgrid([n.exact(3), n.exact(4, name="f")])[1],
    "tril": lambda n: n.tril(n.exact(3, 4), 1),
    "triu": lambda n: n.triu(n.exact(3, 4), name="u"),
    "diag_embed": lambda n: n.diag_embed(n.x(4), 1),
    "unfold": lambda n: n.unfold(n.x(3, 8, 8), [3, 3], 1, 1, 1),
    "space_to_depth": lambda n: n.space_to_depth(n.x(4, 4, 4), 2),
    "temporal_shift": lambda n: n.temporal_shift(n.x(4, 4, 4), 2),
    "shard_index": lambda n: n.shard_index(n.ids(1), 20, 2, 0),
    "unique_with_counts": lambda n: n.unique_with_counts(n.exact(5, dtype="int64"))[2],
    "nonzero": lambda n: n.nonzero(n.exact(5, 2)),
    "nonzero_tuple": lambda n: n.nonzero(n.exact(5, 2), as_tuple=True)[1],
    "size": lambda n: n.size(n.x(6)),
    "rank": lambda n: n.rank(n.x(6)),
    "where_matrix": lambda n: n.where(n.x(6, dtype="bool")),
    "cast_names": lambda n: n.cast(n.x(6), np.float64),
    "multiplex_three": lambda n: n.multiplex([n.x(6), n.y(6), n.z(6)], n.fluid.data("i", [None, 1], "int32")),
    # creation
    "assign_output": lambda n: n.assign(n.x(6), n.create_tensor("float32")),
    "assign_int": lambda n: n.assign(np.array([[1, 2]], "int32")),
    "assign_int64": lambda n: n.assign(np.array([[1, 2]], "int64")),
    "assign_bool": lambda n: n.assign(np.array([True, False])),
    "assign_double": lambda n: n.assign(np.array([1.0, 2.0])),
    "assign_refuses": lambda n: n.assign(2.0),
    "create_global_var_refuses": lambda n: n.create_global_var([1, "a"], 0.0, "float32"),
    "create_parameter_default": lambda n: n.create_parameter(
        [2, 3], "float32", default_initializer=n.fluid.initializer.Constant(0.5)),
    "create_parameter_refuses": lambda n: n.create_parameter(3, "float32"),
    "create_tensor_refuses": lambda n: n.create_tensor("text"),
    "fill_constant_out": lambda n: n.fill_constant([2], "int64", 7, out=n.create_tensor("int64")),
    "fill_constant_cpu": lambda n: n.fill_constant([2], "int64", 7, force_cpu=True),
    "fill_constant_bool": lambda n: n.fill_constant([2], "bool", True),
    "fill_constant_double": lambda n: n.fill_constant([2], "float64", 0.1),
    "fill_constant_inf": lambda n: n.fill_constant([2], "float32", float("inf")),
    "fill_constant_variable": lambda n: n.fill_constant([2], "float32", n.one(1, "float32")),
    "fill_constant_shape": lambda n: n.fill_constant(n.exact(2, dtype="int32"), "float32", 2.0),
    "fill_constant_list": lambda n: n.fill_constant([n.one(2), 3], "float32", 2.0),
    "fill_constant_bsl_dims": lambda n: n.fill_constant_batch_size_like(
        n.x(6), [3, -1], "int64", 2, input_dim_idx=0, output_dim_idx=1),
    "zeros_cpu": lambda n: n.zeros([2], "float32", force_cpu=True),
    "ones_int": lambda n: n.ones([2, 3], "int32"),
    "zeros_like_out": lambda n: n.zeros_like(n.x(6), n.create_tensor("float32")),
    "ones_like": lambda n: n.ones_like(n.x(6)),
    "range_float": lambda n: n.range(0.0, 5.0, 0.5, "float32"),
    "range_variable": lambda n: n.range(0, n.one(5, "int64"), 1, "int64"),
    "arange": lambda n: n.arange(0, 5, 2, "int64"),
    "full": lambda n: n.full([2, 3], 1.5, dtype="float32"),
    "full_like": lambda n: n.full_like(n.x(6), 1.5),
    "linspace_variables": lambda n: n.linspace(n.one(0, "float32"), n.one(1, "float32"), n.one(5), "float32"),
    "diag_variable": lambda n: n.diag(n.exact(3)),
    "eye_batch": lambda n: n.eye(2, 3, batch_shape=[4, 5], dtype="int32"),
    "eye_refuses": lambda n: n.eye(-1),
    "shape_int": lambda n: n.shape(n.ids(3)),
    "autoincreased_from": lambda n: n.autoincreased_step_counter("@C@", 5, 2),
    "autoincreased_twice": lambda n: [n.autoincreased_step_counter(), n.autoincreased_step_counter()][1],
    "tensor_data_again": lambda n: [n.data("d", [3]), n.data("d", [3])][1],
    "data_again_refuses": lambda n: [n.fluid.data("d", [3]), n.fluid.data("d", [4])][1],
    "data_refuses_shape": lambda n: n.fluid.data("d", 3),
    "data_refuses_name": lambda n: n.fluid.data(3, [3]),
    "layers_data_unknown": lambda n: n.data("d", [None, 3, -1]),
    "layers_data_gradient": lambda n: n.data("d", [3], stop_gradient=False),
    # randomness
    "uniform_random_plain": lambda n: n.uniform_random([2, 3]),
    "uniform_random_double": lambda n: n.uniform_random((2, 3), dtype="float64"),
    "uniform_random_shape": lambda n: n.uniform_random(n.exact(2, dtype="int64")),
    "uniform_random_list": lambda n: n.uniform_random([n.one(2), 3]),
    "gaussian_random_bsl": lambda n: n.gaussian_random_batch_size_like(n.x(6), [-1, 3], mean=1.0, std=2.0),
    "uniform_random_bsl_dims": lambda n: n.uniform_random_batch_size_like(
        n.x(6), [3, -1], "float32", 0, 1, -2.0, 2.0, 5),
    "randint": lambda n: n.randint(0, 5, [2, 3], dtype="int64"),
    "randperm": lambda n: n.randperm(6),
    "random_crop_seed": lambda n: n.random_crop(n.x(3, 8, 8), [3, 4, 4], seed=3),
    "sampling_id_seed": lambda n: n.sampling_id(n.x(6), 0.1, 0.9, 5, "float32"),
    "dropout_test": lambda n: n.dropout(n.x(6), 0.3, is_test=True, name="d"),
    "dropout_refuses": lambda n: n.dropout(n.x(6, dtype="int64"), 0.3),
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
    "conv2d_pad_pairs_uneven": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding=[[0, 0], [0, 0], [1, 2], [2, 3]]),
    "conv2d_valid": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding="VALID", stride=(2, 1), dilation=2),
    "conv2d_refuses_groups": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, groups=2),
    "conv2d_refuses_padding": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, padding="MOST"),
    "conv2d_refuses_format": lambda n: n.conv2d(n.x(3, 8, 8), 4, 3, data_format="CHW"),
    "conv2d_refuses_dtype": lambda n: n.conv2d(n.x(3, 8, 8, dtype="int64"), 4, 3),
    "conv2d_transpose_size": lambda n: n.conv2d_transpose(n.x(3, 8, 8), 4, output_size=[17, 18], stride=2),
    "conv2d_transpose_both": lambda n: n.conv2d_transpose(
        n.x(4, 8, 8), 6, output_size=16, filter_size=3, stride=2, padding=1, groups=2, act="relu"),
    "conv2d_transpose_depthwise": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4, filter_size=3, groups=4, use_cudnn=False),
    "conv2d_transpose_same": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4, filter_size=3, padding="SAME", bias_attr=False),
    "conv2d_transpose_nhwc": lambda n: n.conv2d_transpose(n.x(8, 8, 4), 4, filter_size=3, data_format="NHWC"),
    "conv2d_transpose_refuses": lambda n: n.conv2d_transpose(n.x(4, 8, 8), 4),
    "conv3d_full": lambda n: n.conv3d(n.x(4, 4, 8, 8), 8, (1, 3, 3), 2, 1, 1, 2, act="relu", use_cudnn=False),
    "conv3d_same": lambda n: n.conv3d(n.x(4, 4, 8, 8), 8, 3, padding="SAME", bias_attr=False),
    "conv3d_ndhwc": lambda n: n.conv3d(n.x(4, 8, 8, 3), 8, 3, data_format="NDHWC"),
    "conv3d_transpose": lambda n: n.conv3d_transpose(n.x(3, 4, 8, 8), 4, filter_size=3, stride=2),
    "conv3d_transpose_size": lambda n: n.conv3d_transpose(n.x(3, 4, 8, 8), 4, output_size=[9, 17, 17], stride=2, act="tanh"),
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
    "deformable_conv": lambda n: n.deformable_conv(
        n.x(4, 8, 8), n.y(18, 8, 8), n.z(9, 8, 8), 4, 3, padding=1, deformable_groups=1, im2col_step=1),
    "deformable_conv_plain": lambda n: n.deformable_conv(
        n.x(4, 8, 8), n.y(18, 8, 8), None, 4, 3, padding=1, deformable_groups=1, im2col_step=1, modulated=False),
    # normalization
    "batch_norm_nhwc": lambda n: n.batch_norm(n.x(8, 8, 3), data_layout="NHWC", name="bn"),
    "batch_norm_in_place": lambda n: n.batch_norm(n.x(3, 8, 8), in_place=True),
    "batch_norm_no_attrs": lambda n: n.batch_norm(n.x(3, 8, 8), param_attr=False, bias_attr=False),
    "batch_norm_half": lambda n: n.batch_norm(n.x(3, 8, 8, dtype="float16")),
    "batch_norm_variable": lambda n: n.batch_norm(n.x(3, 8, 8), momentum=n.one(0.5, "float32")),
    "batch_norm_no_average": lambda n: n.batch_norm(n.x(3, 8, 8), do_model_average_for_mean_and_var=False),
    "inplace_abn_elu": lambda n: n.inplace_abn(n.x(3, 8, 8), act="elu", act_alpha=0.5),
    "inplace_abn_refuses": lambda n: n.inplace_abn(n.x(3, 8, 8), act="tanh"),
    "layer_norm_act": lambda n: n.layer_norm(n.x(3, 8), begin_norm_axis=2, act="relu", param_attr="g", bias_attr="b"),
    "layer_norm_no_shift": lambda n: n.layer_norm(n.x(3), shift=False, epsilon=1e-3),
    "group_norm_attrs": lambda n: n.group_norm(n.x(4, 8, 8), 2, param_attr="g", bias_attr="b", act="relu"),
    "group_norm_refuses": lambda n: n.group_norm(n.x(4, 8, 8), 2, data_layout="NHCW"),
    "instance_norm_names": lambda n: n.instance_norm(n.x(4, 8, 8), 1e-3, "g", "b", "norm"),
    "instance_norm_without": lambda n: n.instance_norm(n.x(4, 8, 8), param_attr=False, bias_attr=False),
    "data_norm_attrs": lambda n: n.data_norm(
        n.x(6), act="relu", name="n", param_attr={"batch_size": 10.0, "batch_sum": 1.0, "batch_square": 20.0}),
    "data_norm_scale": lambda n: n.data_norm(n.x(6), param_attr={}, enable_scale_and_shift=True, slot_dim=2, name="n"),
    "spectral_norm_conv": lambda n: n.spectral_norm(n.create_parameter([4, 3, 3, 3], "float32"), dim=1, power_iters=1, eps=1e-10),
    "lrn_nhwc": lambda n: n.lrn(n.x(4, 4, 4), 3, 2.0, 1e-3, 0.5, data_format="NHWC"),
    "affine_channel": lambda n: n.affine_channel(n.x(4, 4, 4), n.exact(4), n.exact(4, name="f"), act="relu"),
    "l2_normalize_negative": lambda n: n.l2_normalize(n.x(6, 4), -1),
    "l2_normalize_vector": lambda n: n.l2_normalize(n.exact(6), 0),
    # losses
    "square_error_cost_rows": lambda n: n.square_error_cost(n.x(4), n.y(4)),
    "cross_entropy_ignore": lambda n: n.cross_entropy(n.x(6), n.ids(1), ignore_index=3),
    "cross_entropy_deep": lambda n: n.cross_entropy(n.x(5, 6), n.ids(5, 1)),
    "softmax_with_ce_all": lambda n: n.softmax_with_cross_entropy(
        n.x(6), n.ids(1), ignore_index=2, numeric_stable_mode=False, return_softmax=True)[1],
    "softmax_with_ce_soft": lambda n: n.softmax_with_cross_entropy(n.x(6, 4), n.y(6, 4), soft_label=True, axis=1),
    "sigmoid_ce_normalize": lambda n: n.sigmoid_cross_entropy_with_logits(
        n.x(6), n.y(6), ignore_index=-1, normalize=True, name="s"),
    "smooth_l1_weights": lambda n: n.smooth_l1(n.x(4), n.y(4), n.z(4), n.x(4, name="o"), 2.0),
    "margin_rank_loss_margin": lambda n: n.margin_rank_loss(n.x(1), n.y(1), n.z(1), 0.5, "m"),
    "rank_loss_refuses": lambda n: n.rank_loss(3, n.y(1), n.z(1)),
    "label_smooth_prior": lambda n: n.label_smooth(n.x(6), n.exact(1, 6), 0.2, "float64", "s"),
    "label_smooth_refuses": lambda n: n.label_smooth(n.x(6), epsilon=2.0),
    "kldiv_loss_sum": lambda n: n.kldiv_loss(n.x(6), n.y(6), "sum"),
    "teacher_student": lambda n: n.teacher_student_sigmoid_loss(n.x(1), n.y(1), 10.0, -10.0),
    "center_loss_attrs": lambda n: n.center_loss(
        n.x(6), n.ids(1), 5, n.one(0.1, "float32"), n.fluid.initializer.Constant(1.0), update_center=False),
    "npair_exact": lambda n: n.npair_loss(n.exact(4, 6), n.exact(4, 6, name="p"), n.exact(4, name="l")),
    "nce_log_uniform": lambda n: n.nce(
        n.x(6), n.ids(1), 20, sampler="log_uniform", is_sparse=True, bias_attr=False, name="n"),
    "nce_custom": lambda n: n.nce(
        n.x(6), n.ids(1), 3, num_neg_samples=2, sampler="custom_dist", custom_dist=[0.2, 0.5, 0.3], seed=1),
    "nce_alias": lambda n: n.nce(
        n.x(6), n.ids(1), 7, sampler="custom_dist", custom_dist=[0.05, 0.3, 0.02, 0.25, 0.18, 0.1, 0.1]),
    "nce_weights": lambda n: n.nce(n.x(6), n.ids(1), 20, sample_weight=n.y(1)),
    "nce_refuses": lambda n: n.nce(n.x(6), n.ids(1), 20, sampler="other"),
    "hsigmoid_custom": lambda n: n.hsigmoid(
        n.x(6), n.ids(1), 8, path_table=n.ids(4, name="t"), path_code=n.ids(4, name="c"), is_custom=True),
    "hsigmoid_sparse": lambda n: n.hsigmoid(n.x(6), n.ids(1), 8, is_sparse=True, bias_attr=False, name="h"),
    "hsigmoid_refuses": lambda n: n.hsigmoid(n.x(6), n.ids(1), 1),
    "sampled_softmax_custom": lambda n: n.sampled_softmax_with_cross_entropy(
        n.x(20), n.ids(1), 5, use_customized_samples=True, customized_samples=n.ids(6, name="s"),
        customized_probabilities=n.y(6), remove_accidental_hits=False),
    "dice_loss_deep": lambda n: n.dice_loss(n.x(4, 6), n.ids(4, 1), 1e-3),
    "huber_loss_delta": lambda n: n.huber_loss(n.x(1), n.y(1), 0.5),
    "log_loss_epsilon": lambda n: n.log_loss(n.x(1), n.y(1), 1e-3, "l"),
    # metrics
    "accuracy_given": lambda n: n.accuracy(
        n.x(6), n.ids(1), 2, n.create_tensor("int32"), n.create_tensor("int32")),
    "auc_settings": lambda n: n.auc(n.x(2), n.ids(1), "PR", 100, slide_steps=3)[1],
    "mean_iou": lambda n: n.mean_iou(n.exact(4, 4, dtype="int32"), n.exact(4, 4, dtype="int32", name="f"), 3)[0],
    # images
    "image_resize_scale": lambda n: n.image_resize(n.x(3, 4, 4), scale=2.0, resample="NEAREST"),
    "image_resize_variable": lambda n: n.image_resize(n.x(3, 4, 4), out_shape=n.exact(2, dtype="int32")),
    "image_resize_list": lambda n: n.image_resize(n.x(3, 4, 4), out_shape=[n.one(8), 6], align_corners=False),
    "image_resize_scale_variable": lambda n: n.image_resize(n.x(3, 4, 4), scale=n.one(2, "float32")),
    "image_resize_actual": lambda n: n.image_resize(n.x(3, 4, 4), [8, 8], actual_shape=n.exact(2, dtype="int32")),
    "image_resize_refuses": lambda n: n.image_resize(n.x(3, 4, 4)),
    "image_resize_refuses_kind": lambda n: n.image_resize(n.x(3, 4, 4), [8, 8], resample="OTHER"),
    "interpolate_bicubic": lambda n: n.interpolate(n.x(3, 4, 4), [8, 8], resample="BICUBIC"),
    "resize_bilinear": lambda n: n.resize_bilinear(n.x(4, 4, 3), [8, 8], align_mode=0, data_format="NHWC"),
    "resize_nearest": lambda n: n.resize_nearest(n.x(3, 4, 4), [8, 8], align_corners=False, name="r"),
    "resize_trilinear": lambda n: n.resize_trilinear(n.x(3, 4, 4, 4), [8, 8, 8]),
    "resize_trilinear_scale": lambda n: n.resize_trilinear(n.x(3, 4, 4, 4), scale=1.5),
    "image_resize_short": lambda n: n.image_resize_short(n.x(3, 4, 8), 6),
    "affine_grid": lambda n: n.affine_grid(n.x(2, 3), [2, 3, 4, 4]),
    "affine_grid_variable": lambda n: n.affine_grid(n.x(2, 3), n.exact(4, dtype="int32")),
    "grid_sampler": lambda n: n.grid_sampler(n.x(3, 4, 4), n.y(4, 4, 2)),
    "roi_pool": lambda n: n.roi_pool(n.x(3, 8, 8), n.fluid.data("r", [None, 4], lod_level=1), 2, 2, 0.5),
    "roi_align": lambda n: n.roi_align(n.x(3, 8, 8), n.fluid.data("r", [None, 4], lod_level=1), 2, 2, 0.5, 2),
    "psroi_pool": lambda n: n.psroi_pool(n.x(8, 8, 8), n.fluid.data("r", [None, 4], lod_level=1), 2, 0.5, 2, 2),
    "prroi_pool": lambda n: n.prroi_pool(n.x(8, 8, 8), n.fluid.data("r", [None, 4], lod_level=1), 0.5, 2, 2),
    "similarity_focus": lambda n: n.similarity_focus(n.x(3, 2, 2), 1, [0]),
    "pixel_shuffle_refuses": lambda n: n.pixel_shuffle(n.x(4, 4, 4), 2.0),
    # others
    "print_settings": lambda n: n.Print(n.x(6), 5, "here", 10, False, False, False, False, "forward"),
    "get_tensor_from_selected_rows": lambda n: n.get_tensor_from_selected_rows(_rows(n)),
    "merge_selected_rows": lambda n: n.merge_selected_rows(_rows(n)),
    "py_func": lambda n: n.py_func(lambda x: x, n.x(6), n.fluid.default_main_program().current_block().create_var(
        name="o", shape=[-1, 6], dtype="float32")),
    "continuous_value_model": lambda n: n.continuous_value_model(n.x(6), n.y(2), False),
    "filter_by_instag": lambda n: n.filter_by_instag(
        n.x(6), n.fluid.data("t", [None, 1], "int64", lod_level=1), n.exact(1, dtype="int64"), True)[0],
    "gather_tree": lambda n: n.gather_tree(n.exact(5, 2, 2, dtype="int64"), n.exact(5, 2, 2, dtype="int64", name="p")),
    "load": lambda n: n.load(n.create_tensor("float32", persistable=True), "./there", True),
    "chunk_eval": lambda n: n.chunk_eval(
        n.fluid.data("a", [None, 1], "int64", lod_level=1), n.fluid.data("b", [None, 1], "int64", lod_level=1),
        "IOB", 3, [1])[0],
    "ctc_greedy_decoder": lambda n: n.ctc_greedy_decoder(n.fluid.data("a", [None, 8], lod_level=1), 0),
    "sigmoid_focal_loss": lambda n: n.sigmoid_focal_loss(
        n.x(6), n.fluid.data("l", [None, 1], "int32"), n.exact(1, dtype="int32")),
    # nets
    "nets_img_conv_group_plain": lambda n: n.fluid.nets.img_conv_group(
        n.x(3, 8, 8), [4, 4], 2, conv_act="tanh", pool_type="avg"),
    "nets_attention_one": lambda n: n.fluid.nets.scaled_dot_product_attention(
        n.x(4, 6), n.y(4, 6), n.z(4, 6), dropout_rate=0.1),
    "nets_attention_refuses": lambda n: n.fluid.nets.scaled_dot_product_attention(n.x(6), n.y(4, 6), n.z(4, 6)),
    "nets_simple_global": lambda n: n.fluid.nets.simple_img_conv_pool(
        n.x(3, 8, 8), 4, 3, 2, 2, pool_type="avg", global_pooling=True, conv_padding=1, conv_groups=1),
    "nets_glu_dim": lambda n: n.fluid.nets.glu(n.x(6, 4), dim=1),
}  # fmt: skip


def _rows(n: Any) -> Any:
    block = n.fluid.default_main_program().global_block()
    return block.create_var(
        name="rows", dtype="float32", shape=[5, 3], persistable=True,
        type=n.fluid.core.VarDesc.VarType.SELECTED_ROWS,
    )  # fmt: skip


def _call(build: Any) -> Any:
    return lambda fluid: build(_Net(fluid))


CALLS = {name: _call(build) for name, build in _TABLE.items()}
