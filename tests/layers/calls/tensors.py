"""New tensors: constants, random values, distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.layers.calls.net import Net

TABLE: dict[str, Callable[[Net], Any]] = {
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
    "linspace_variables": lambda n: n.linspace(n.one(0, "float32"), n.one(1, "float32"), n.one(5),
        "float32"),
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
    "gaussian_random_shape": lambda n: n.gaussian_random(n.exact(2, dtype="int32")),
    "gaussian_random_list": lambda n: n.gaussian_random([n.one(2), 3], seed=2),
    "gaussian_random_bsl": lambda n: n.gaussian_random_batch_size_like(n.x(6), [-1, 3], mean=1.0, std=2.0),
    "uniform_random_bsl_dims": lambda n: n.uniform_random_batch_size_like(
        n.x(6), [3, -1], "float32", 0, 1, -2.0, 2.0, 5),
    "randint": lambda n: n.randint(0, 5, [2, 3], dtype="int64"),
    "randperm": lambda n: n.randperm(6),
    "random_crop_seed": lambda n: n.random_crop(n.x(3, 8, 8), [3, 4, 4], seed=3),
    "sampling_id_seed": lambda n: n.sampling_id(n.x(6), 0.1, 0.9, 5, "float32"),
    "dropout_test": lambda n: n.dropout(n.x(6), 0.3, is_test=True, name="d"),
    "dropout_refuses": lambda n: n.dropout(n.x(6, dtype="int64"), 0.3),
    # distributions
    "normal_sample": lambda n: n.Normal(0.5, 2.0).sample([2, 3], seed=4),
    "normal_entropy": lambda n: n.Normal(0.5, 2.0).entropy(),
    "normal_log_prob": lambda n: n.Normal(0.5, 2.0).log_prob(n.exact(1)),
    "normal_kl": lambda n: n.Normal(0.5, 2.0).kl_divergence(n.Normal(0.1, 1.0)),
    "normal_lists": lambda n: n.Normal([0.5, 1.0], [2.0, 3.0]).sample([3]),
    "normal_arrays": lambda n: n.Normal(np.array([0.5], "float32"), 2.0).entropy(),
    "normal_variables": lambda n: n.Normal(n.x(3), n.y(3)).sample([2], seed=4),
    "normal_variables_log": lambda n: n.Normal(n.x(3), n.y(3)).log_prob(n.z(3)),
    "normal_mixed": lambda n: n.Normal(n.x(3), 2.0).entropy(),
    "uniform_sample": lambda n: n.Uniform(0.5, 2.0).sample([2, 3], seed=4),
    "uniform_entropy": lambda n: n.Uniform(0.5, 2.0).entropy(),
    "uniform_log_prob": lambda n: n.Uniform(0.5, 2.0).log_prob(n.exact(1)),
    "uniform_lists": lambda n: n.Uniform([0.5, 1.0], [2.0, 3.0]).sample([3]),
    "uniform_variables": lambda n: n.Uniform(n.x(3), n.y(3)).sample([2], seed=4),
    "categorical_entropy": lambda n: n.Categorical(n.x(3)).entropy(),
    "categorical_kl": lambda n: n.Categorical(n.x(3)).kl_divergence(n.Categorical(n.y(3))),
    "categorical_array": lambda n: n.Categorical(np.ones([2,3],"float32")).entropy(),
    "mvn_entropy": lambda n: n.MultivariateNormalDiag(n.exact(2), n.exact(2,2,name="s")).entropy(),
    "mvn_kl": lambda n: n.MultivariateNormalDiag(n.exact(2),
        n.exact(2,2,name="s")).kl_divergence(n.MultivariateNormalDiag(n.exact(2,name="f"),
        n.exact(2,2,name="g"))),
    "normal_refuses": lambda n: n.Normal("a", 1.0),
    "normal_refuses_shape": lambda n: n.Normal(0.5, 2.0).sample(3),
}  # fmt: skip
