"""Mistakes made while a network is built."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid
from tests.gallery.render import list_mistakes

__all__ = ["MISTAKES"]

layers = fluid.layers


def _data(name: str = "x", width: int = 4, dtype: str = "float32") -> fluid.Variable:
    return fluid.data(name, [None, width], dtype)


def branch_on_a_variable() -> None:
    if layers.mean(_data()) > 0:
        pass


def misspell_a_layer() -> None:
    layers.softmax_with_crossentropy(_data(), _data("label", 1, "int64"))


def give_a_size_as_text() -> None:
    layers.fc(_data(), size="10")


def multiply_matrices_that_do_not_fit() -> None:
    layers.matmul(_data(), fluid.data("y", [5, 3]))


def add_shapes_that_do_not_fit() -> None:
    layers.elementwise_add(_data(), _data("y", 5))


def concatenate_shapes_that_do_not_fit() -> None:
    layers.concat([_data(), fluid.data("y", [None, 4, 2])], axis=1)


def convolve_a_matrix() -> None:
    layers.conv2d(_data(), num_filters=2, filter_size=3)


def convolve_too_small_an_image() -> None:
    layers.conv2d(fluid.data("image", [None, 1, 3, 3]), num_filters=2, filter_size=5)


def embed_floats() -> None:
    layers.embedding(_data("word", 1), size=[10, 4])


def classify_with_float_labels() -> None:
    loss = layers.cross_entropy(layers.fc(_data(), 3, act="softmax"), _data("label", 1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones([2, 4], "float32"), "label": np.zeros([2, 1], "float32")}, fetch_list=[loss])


def name_an_activation_that_does_not_exist() -> None:
    layers.fc(_data(), 3, act="rellu")


def pass_an_array_to_a_layer() -> None:
    layers.fc(np.zeros([2, 4], "float32"), 3)


def reshape_to_another_size() -> None:
    layers.reshape(fluid.data("x", [3, 4]), [5, -1])


def share_a_parameter_of_another_shape() -> None:
    x = _data()
    layers.fc(x, 3, param_attr="w")
    layers.fc(x, 5, param_attr="w")


def declare_a_variable_twice() -> None:
    _data("x", 4)
    _data("x", 5)


def minimize_a_vector() -> None:
    fluid.optimizer.SGD(0.1).minimize(layers.fc(_data(), 3))


def minimize_without_parameters() -> None:
    fluid.optimizer.SGD(0.1).minimize(layers.mean(_data()))


def forget_the_learning_rate() -> None:
    fluid.optimizer.SGD().minimize(layers.mean(layers.fc(_data(), 1)))


def give_the_learning_rate_as_text() -> None:
    fluid.optimizer.Adam(learning_rate="0.1")


def use_dygraph() -> None:
    with fluid.dygraph.guard():
        pass


def reduce_over_an_axis_that_does_not_exist() -> None:
    layers.reduce_sum(_data(), dim=3)


def pool_with_a_type_that_does_not_exist() -> None:
    layers.pool2d(fluid.data("image", [None, 1, 8, 8]), pool_size=2, pool_type="mean")


def pool_a_sequence_without_levels() -> None:
    layers.sequence_pool(_data(), "max")


def set_a_flag_that_does_not_exist() -> None:
    fluid.set_flags({"FLAGS_check_nan_info": 1})


def declare_a_dtype_that_does_not_exist() -> None:
    fluid.data("x", [None, 4], "float31")


def iterate_over_a_variable() -> None:
    for _ in _data():
        pass


def read_the_value_of_a_variable() -> None:
    _data().numpy()


def ask_for_a_variable_that_does_not_exist() -> None:
    layers.fc(_data(), 1)
    fluid.default_main_program().global_block().var("fc0.w_0")


def misspell_a_layer_of_a_module() -> None:
    layers.nn.batch_nrom(_data())


def misspell_an_attribute_of_paddlelike() -> None:
    fluid.Excutor()


def use_a_variable_of_another_program() -> None:
    x = _data()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        layers.fc(x, 3)


def give_branches_that_return_different_things() -> None:
    yes = layers.reduce_sum(_data()) > 0.0
    layers.cond(yes, lambda: _data(), lambda: None)


def loop_while_a_vector_is_true() -> None:
    layers.While(layers.less_than(_data(), _data("y")))


def forget_the_output_of_a_branch() -> None:
    branches = layers.IfElse(layers.less_than(_data("x", 1), _data("y", 1)))
    with branches.true_block():
        branches.input(_data("x", 1))


def divide_filters_that_cannot_be_divided() -> None:
    layers.conv2d(fluid.data("image", [None, 3, 8, 8]), num_filters=4, filter_size=3, groups=2)


def forget_the_window_of_a_pool() -> None:
    layers.pool2d(fluid.data("image", [None, 1, 8, 8]), pool_type="avg")


def project_sequences_to_a_width_that_is_no_multiple_of_four() -> None:
    layers.dynamic_lstm(fluid.data("x", [None, 30], lod_level=1), size=30)


def split_into_parts_that_do_not_divide() -> None:
    layers.split(fluid.data("x", [None, 5]), 2, dim=1)


def slice_axes_without_limits() -> None:
    layers.slice(_data(), axes=[0, 1], starts=[0], ends=[2])


def misspell_a_keyword() -> None:
    layers.fc(_data(), 3, activation="relu")


def call_a_layer_as_others_do() -> None:
    layers.fully_connected(_data(), 3)


def take_a_variable_for_a_number() -> None:
    float(layers.mean(_data()))


def give_the_activation_as_a_function() -> None:
    layers.fc(_data(), 3, act=layers.relu)


def give_one_size_for_an_embedding() -> None:
    layers.embedding(_data(dtype="int64"), 100)


def name_an_initializer() -> None:
    layers.fc(_data(), 3, param_attr=fluid.ParamAttr(initializer="xavier"))


def name_a_dim_of_the_data() -> None:
    fluid.data("x", ["batch", 4])


def concatenate_without_a_list() -> None:
    layers.concat(_data("x"), _data("y"))


def compute_with_numpy() -> None:
    np.mean(_data())


def assign_to_a_part_of_a_variable() -> None:
    _data()[:, 0] = 1.0


def call_a_method_of_other_frameworks() -> None:
    _data().view(-1, 2)


def compute_gradients_at_once() -> None:
    layers.mean(_data()).backward()


def look_for_an_optimizer_in_the_face() -> None:
    fluid.Adam(0.1)


def look_for_modules() -> None:
    fluid.nn.Linear(4, 3)


def name_an_axis_as_others_do() -> None:
    layers.reduce_mean(_data(), axis=1)


def give_values_as_branches() -> None:
    x = fluid.data("x", [1])
    layers.cond(x > 0, x, x + 1)


def append_the_batch_size_to_data() -> None:
    fluid.data("x", [None, 4], append_batch_size=False)


def call_a_function_of_numpy() -> None:
    np.exp(_data())


def format_a_variable_as_a_number() -> None:
    format(layers.mean(_data()), ".3f")


def step_a_schedule() -> None:
    layers.exponential_decay(0.1, 10, 0.9).step()


def name_the_class_of_an_initializer() -> None:
    layers.fc(_data(), 3, param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant))


def minimize_outside_of_the_guard() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        loss = layers.mean(layers.fc(_data(), 1))
    fluid.optimizer.SGD(0.1).minimize(loss)


def minimize_the_loss_of_the_original_for_a_clone() -> None:
    loss = layers.mean(layers.fc(_data(), 1))
    with fluid.program_guard(fluid.default_main_program().clone()):
        fluid.optimizer.SGD(0.1).minimize(loss)


def give_a_size_that_is_not_whole() -> None:
    layers.fc(_data(), size=3.5)


def take_the_cross_entropy_of_scores() -> None:
    layers.cross_entropy(layers.fc(_data(), 3), _data("label", 1, "int64"))


def normalize_a_batch_without_its_axis() -> None:
    layers.batch_norm(fluid.data("x", [4]))


def take_the_softmax_of_an_axis_that_is_not_there() -> None:
    layers.softmax(_data(), axis=2)


def give_a_learning_rate_of_a_parameter_as_text() -> None:
    layers.fc(_data(), 3, param_attr=fluid.ParamAttr(learning_rate="0.1"))


def take_gradients_by_a_name() -> None:
    fluid.gradients(layers.mean(_data()), "x")


def give_the_loss_as_learning_rate() -> None:
    loss = layers.mean(layers.fc(_data(), 1))
    fluid.optimizer.Adam(loss).minimize(loss)


def give_a_learning_rate_of_integers() -> None:
    fluid.optimizer.Momentum(layers.fill_constant([1], "int64", 1), 0.9)


def feed_a_learning_rate_with_a_batch_axis() -> None:
    fluid.optimizer.SGD(fluid.data("rate", [None, 1]))


def give_the_parameters_in_place_of_beta1() -> None:
    loss = layers.mean(layers.fc(_data(), 1))
    fluid.optimizer.Adam(0.1, fluid.default_main_program().all_parameters()).minimize(loss)


def misspell_a_name_in_no_grad_set() -> None:
    loss = layers.mean(layers.fc(_data(), 1))
    fluid.optimizer.SGD(0.1).minimize(loss, no_grad_set={"fc_0.w"})


def look_for_a_number_in_a_variable() -> None:
    assert 1 in _data()


def give_a_depth_as_text() -> None:
    fluid.one_hot(fluid.data("ids", [None], "int64"), "3")


def switch_to_static_programs() -> None:
    fluid.enable_static()


def choose_a_device() -> None:
    fluid.set_device("cpu")


MISTAKES = list_mistakes(globals())
