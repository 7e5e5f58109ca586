"""Layers and functions that draw from numpy's global generator, and devices of operators."""

from __future__ import annotations

import numpy as np


def sequences_of_random_integers(fluid):
    np.random.seed(3)
    first = fluid.create_random_int_lodtensor([[2, 3]], [2], fluid.CPUPlace(), 0, 9)
    return [first, float(np.random.rand())]


def seeds_of_operators(fluid):
    np.random.seed(3)
    data = fluid.data("x", [2, 3, 8, 8])
    fluid.layers.random_crop(data, [3, 5, 5])
    fluid.layers.randn([2, 4])
    return [fluid.default_main_program(), float(np.random.rand())]


def devices(fluid):
    layers = fluid.layers
    with fluid.device_guard("gpu"):
        layers.full([2], 1.0)
        layers.full([2], 1.0, device="cpu")
        layers.randint(3, shape=[2])
        layers.randint(3, shape=[2], device="cpu")
        layers.randperm(3)
        layers.randperm(3, device="cpu")
    return fluid.default_main_program()


def shapes_of_variables(fluid):
    layers = fluid.layers
    rows, columns = layers.fill_constant([1], "int64", 3), layers.fill_constant([1], "int32", 5)
    layers.gaussian_random([rows, columns], seed=1)
    layers.gaussian_random([rows, 2], seed=1)
    layers.gaussian_random(fluid.data("shape", [2], "int64"), seed=1)
    layers.fill_constant([rows, columns], "float32", 1.0)
    layers.crop_tensor(fluid.data("x", [None, 3, 5]), [-1, 2, 3], fluid.data("offsets", [3], "int32"))
    return fluid.default_main_program()


def selected_rows_without_a_shape(fluid):
    block = fluid.default_main_program().global_block()
    rows = block.create_var(name="X", dtype="float32", type=fluid.core.VarDesc.VarType.SELECTED_ROWS)
    merged = fluid.layers.merge_selected_rows(rows)
    return [list(merged.shape), list(fluid.layers.get_tensor_from_selected_rows(merged).shape)]


def the_largest_uniform_values(fluid):
    seeds = [247665088, 896523595]  # their first values round to 1, and to the float before it
    values = [fluid.layers.uniform_random([3], min=-0.3, max=0.7, seed=seed) for seed in seeds]
    return fluid.Executor(fluid.CPUPlace()).run(fetch_list=values)
