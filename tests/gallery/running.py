"""Mistakes made while a program runs."""

from __future__ import annotations

import os

import numpy as np

import paddlelike as fluid
from paddlelike import training
from tests.gallery.render import list_mistakes

__all__ = ["MISTAKES"]

layers = fluid.layers
ONES = np.ones([2, 4], "float32")


def _make_network() -> tuple[fluid.Executor, fluid.Variable]:
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe, loss


def forget_the_startup_program() -> None:
    out = layers.fc(fluid.data("x", [None, 4]), 3)
    fluid.Executor().run(feed={"x": ONES}, fetch_list=[out])


def run_startup_before_minimize() -> None:
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe.run(feed={"x": ONES}, fetch_list=[loss])


def feed_nothing() -> None:
    exe, loss = _make_network()
    exe.run(fetch_list=[loss])


def feed_another_name() -> None:
    exe, loss = _make_network()
    exe.run(feed={"X": ONES}, fetch_list=[loss])


def feed_another_width() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": np.ones([2, 5], "float32")}, fetch_list=[loss])


def feed_another_width_of_unchecked_data() -> None:
    out = layers.fc(layers.data("x", [13]), 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones([2, 12], "float32")}, fetch_list=[out])


def feed_another_dtype() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": np.ones([2, 4], "float64")}, fetch_list=[loss])


def feed_rows_of_different_lengths() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": [[1.0, 2.0, 3.0, 4.0], [1.0]]}, fetch_list=[loss])


def feed_the_batch_alone() -> None:
    exe, loss = _make_network()
    exe.run(feed=ONES, fetch_list=[loss])


def fetch_a_name_that_does_not_exist() -> None:
    exe, _ = _make_network()
    exe.run(feed={"x": ONES}, fetch_list=["mean_0.tmp_1"])


def fetch_an_array() -> None:
    exe, _ = _make_network()
    exe.run(feed={"x": ONES}, fetch_list=[ONES])


def run_what_is_not_a_program() -> None:
    exe, loss = _make_network()
    exe.run(loss, feed={"x": ONES})


def look_up_an_id_behind_the_table() -> None:
    out = layers.embedding(fluid.data("word", [None, 1], "int64"), size=[10, 4])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"word": np.array([[3], [10]])}, fetch_list=[out])


def give_a_label_behind_the_classes() -> None:
    label = fluid.data("label", [None, 1], "int64")
    loss = layers.cross_entropy(layers.fc(fluid.data("x", [None, 4]), 3, act="softmax"), label)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": ONES, "label": np.array([[0], [3]])}, fetch_list=[loss])


def feed_a_sequence_without_lengths() -> None:
    out = layers.sequence_pool(fluid.data("x", [None, 4], lod_level=1), "max")
    fluid.Executor().run(feed={"x": ONES}, fetch_list=[out])


def give_lengths_that_do_not_add_up() -> None:
    fluid.create_lod_tensor(ONES, [[1, 3]], fluid.CPUPlace())


def run_on_a_gpu() -> None:
    fluid.Executor(fluid.CUDAPlace(0)).run(fluid.default_startup_program())


def use_a_closed_executor() -> None:
    exe, loss = _make_network()
    exe.close()
    exe.run(feed={"x": ONES}, fetch_list=[loss])


def train_with_a_nan() -> None:
    flag = "FLAGS_check_nan_inf"
    os.environ[flag] = "1"
    try:
        exe, loss = _make_network()
        exe.run(feed={"x": ONES * np.nan}, fetch_list=[loss])
    finally:
        del os.environ[flag]


def feed_samples_of_another_number_of_fields() -> None:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    fluid.DataFeeder([x, y], fluid.CPUPlace()).feed([(ONES[0],)])


def transpile_for_an_endpoint_that_does_not_exist() -> None:
    _make_network()
    job = fluid.DistributeTranspiler()
    job.transpile(0, pservers="127.0.0.1:6174,127.0.0.1:6175", trainers=1)
    job.get_pserver_program("127.0.0.1:6176")


def fetch_none() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": ONES}, fetch_list=[loss, None])


def fetch_sequences_as_arrays() -> None:
    x = fluid.data("x", [None, 4], lod_level=1)
    rows = fluid.create_lod_tensor(ONES, [[2]], fluid.CPUPlace())
    fluid.Executor().run(feed={"x": rows}, fetch_list=[layers.scale(x, 2.0)])


def fetch_a_sparse_gradient() -> None:
    out = layers.embedding(fluid.data("word", [None, 1], "int64"), size=[10, 4], is_sparse=True)
    ((_, gradient),) = fluid.backward.append_backward(layers.mean(out))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"word": np.array([[3], [4]])}, fetch_list=[gradient])


def run_an_empty_program() -> None:
    out = layers.scale(fluid.data("x", [None, 4]), 2.0)
    fluid.Executor().run(fluid.Program(), feed={"x": ONES}, fetch_list=[out])


def key_the_feed_by_variables() -> None:
    exe, loss = _make_network()
    exe.run(feed={fluid.default_main_program().global_block().var("x"): ONES}, fetch_list=[loss])


def feed_fewer_rows_than_copies() -> None:
    exe, loss = _make_network()
    copies = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=fluid.cpu_places(4)
    )
    exe.run(copies, feed={"x": ONES}, fetch_list=[loss])


def feed_a_list_without_copies() -> None:
    exe, loss = _make_network()
    exe.run(feed=[{"x": ONES}, {"x": ONES}], fetch_list=[loss])


def feed_a_list_of_arrays() -> None:
    exe, loss = _make_network()
    exe.run(feed=[ONES, ONES], fetch_list=[loss])


def name_the_device() -> None:
    fluid.Executor("cpu")


def feed_samples_that_are_too_short() -> None:
    image = fluid.data("image", [None, 1, 4, 4])
    fluid.DataFeeder([image], fluid.CPUPlace()).feed([(np.zeros(8, "float32"),)] * 4)


def run_a_function() -> None:
    fluid.Executor().run(fluid.default_startup_program)


def run_the_feed() -> None:
    fluid.Executor().run({"x": np.ones((2, 4), "float32")})


def fetch_by_the_name_of_the_layer() -> None:
    x = fluid.data("x", [None, 4])
    fluid.layers.scale(x, 2.0, name="twice")
    fluid.Executor().run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=["twice"])


def feed_words() -> None:
    x = fluid.data("x", [None, 2])
    fluid.Executor().run(feed={"x": np.array([["a", "b"]])}, fetch_list=[fluid.layers.scale(x, 2.0)])


def train_without_an_optimizer() -> None:
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 1))
    training.train(loss, (np.ones((4, 4), "float32"),), 2)


def feed_a_picture_without_its_batch_axis() -> None:
    image = fluid.data("image", [None, 3, 8, 8])
    out = layers.conv2d(image, 4, 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"image": np.zeros((3, 8, 8), "float32")}, fetch_list=[out])


def feed_a_picture_of_unchecked_data_without_its_batch_axis() -> None:
    out = layers.conv2d(layers.data("image", [3, 8, 8]), 4, 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"image": np.zeros((3, 8, 8), "float32")}, fetch_list=[out])


def declare_the_batch_of_layers_data() -> None:
    out = layers.fc(layers.data("x", [32, 13]), 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.zeros((32, 13), "float32")}, fetch_list=[out])


def feed_a_batch_of_no_rows() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": np.ones((0, 4), "float32")}, fetch_list=[loss])


def feed_one_dict_for_two_places() -> None:
    exe, loss = _make_network()
    program = fluid.CompiledProgram(fluid.default_main_program())
    program = program.with_data_parallel(loss.name, places=[fluid.CPUPlace()] * 2)
    exe.run(program, feed=[{"x": ONES}], fetch_list=[loss])


def run_the_startup_program_in_another_scope() -> None:
    out = layers.fc(fluid.data("x", [None, 4]), 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program(), scope=fluid.Scope())
    exe.run(feed={"x": ONES}, fetch_list=[out])


def run_the_startup_program_of_another_network() -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = layers.fc(fluid.data("x", [None, 4]), 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(main, feed={"x": ONES}, fetch_list=[out])


def evaluate_a_copy_with_other_names() -> None:
    out = [layers.fc(fluid.data("x", [None, 4]), 3)]
    evaluation = fluid.Program()
    with fluid.program_guard(evaluation, fluid.Program()):
        out.append(layers.fc(fluid.data("x", [None, 4]), 3))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(evaluation, feed={"x": ONES}, fetch_list=[out[1]])


def feed_none() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": None}, fetch_list=[loss])


def feed_a_list_of_rows() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": [[1.0, 2.0, 3.0, 4.0]]}, fetch_list=[loss])


def fetch_a_dict_of_variables() -> None:
    exe, loss = _make_network()
    exe.run(feed={"x": ONES}, fetch_list={"loss": loss})


def feed_more_than_a_model_takes() -> None:
    exe, loss = _make_network()
    fluid.io.save_inference_model("model", ["x"], [loss], exe)
    program, _, fetches = fluid.io.load_inference_model("model", exe)
    exe.run(program, feed={"x": ONES, "label": ONES}, fetch_list=fetches)


MISTAKES = list_mistakes(globals())
