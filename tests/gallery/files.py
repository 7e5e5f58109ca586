"""Mistakes made with saved files; each is made in an empty directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import paddlelike as fluid
from tests.gallery.render import list_mistakes

__all__ = ["MISTAKES"]

layers, io = fluid.layers, fluid.io
PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(40)


def _save_network(width: int = 3, filename: str | None = None) -> fluid.Executor:
    """Save the network in ``model`` and leave empty programs with the executor."""
    exe = _make_network(width)
    io.save_persistables(exe, "model", filename=filename)
    return exe


def _make_network(width: int = 3) -> fluid.Executor:
    loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), width))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def load_into_another_width() -> None:
    _save_network()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        exe = _make_network(width=5)
        io.load_persistables(exe, "model")


def load_after_building_twice() -> None:
    _save_network()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        exe = _make_network()
        io.load_persistables(exe, "model")


def run_the_cell_of_a_notebook_again() -> None:
    _save_network()
    exe = _make_network()
    io.load_persistables(exe, "model")


def load_a_directory_that_does_not_exist() -> None:
    exe = _save_network()
    io.load_persistables(exe, "modle")


def load_an_empty_directory() -> None:
    exe = _make_network()
    Path("model").mkdir()
    io.load_persistables(exe, "model")


def load_the_parent() -> None:
    exe = _save_network()
    Path("models").mkdir()
    Path("model").rename("models/epoch_0")
    io.load_persistables(exe, "models")


def forget_the_name_of_the_combined_file() -> None:
    exe = _save_network(filename="__params__")
    io.load_persistables(exe, "model")


def name_a_combined_file_that_does_not_exist() -> None:
    exe = _save_network()
    io.load_persistables(exe, "model", filename="__params__")


def load_parameters_of_a_combined_file_of_persistables() -> None:
    exe = _save_network(filename="all")
    io.load_params(exe, "model", filename="all")


def load_from_another_optimizer() -> None:
    _save_network()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
        loss = layers.mean(layers.fc(fluid.data("x", [None, 4]), 3))
        fluid.optimizer.Adam(0.1).minimize(loss)
        io.load_persistables(fluid.Executor(), "model")


def load_a_cut_file() -> None:
    exe = _save_network()
    Path("model/fc_0.w_0").write_bytes(Path("model/fc_0.w_0").read_bytes()[:-4])
    io.load_persistables(exe, "model")


def load_a_cut_file_without_a_manifest() -> None:
    exe = _save_network()
    Path("model/__manifest__").unlink()
    Path("model/fc_0.w_0").write_bytes(Path("model/fc_0.w_0").read_bytes()[:-4])
    io.load_persistables(exe, "model")


def load_a_changed_file() -> None:
    exe = _save_network()
    damaged = bytearray(Path("model/fc_0.w_0").read_bytes())
    damaged[-1] ^= 1
    Path("model/fc_0.w_0").write_bytes(damaged)
    io.load_persistables(exe, "model")


def load_an_incomplete_copy() -> None:
    exe = _save_network()
    Path("model/fc_0.w_0").unlink()
    io.load_persistables(exe, "model")


def load_a_picture() -> None:
    exe = _save_network()
    Path("model/__manifest__").unlink()
    Path("model/fc_0.w_0").write_bytes(PNG)
    io.load_persistables(exe, "model")


def load_a_pickle_as_a_variable() -> None:
    exe = _save_network()
    fluid.save(fluid.default_main_program(), "saved")
    Path("model/__manifest__").unlink()
    shutil.copy("saved.pdparams", "model/fc_0.w_0")
    io.load_persistables(exe, "model")


def load_a_pointer_of_git_lfs() -> None:
    exe = _save_network()
    Path("model/__manifest__").unlink()
    Path("model/fc_0.w_0").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 48\n")
    io.load_persistables(exe, "model")


def load_into_an_empty_program() -> None:
    exe = _save_network()
    io.load_persistables(exe, "model", fluid.Program())


def save_before_startup() -> None:
    layers.fc(fluid.data("x", [None, 4]), 3)
    io.save_persistables(fluid.Executor(), "model")


def save_into_a_file() -> None:
    exe = _make_network()
    Path("model").write_text("notes")
    io.save_persistables(exe, "model")


def save_gradients() -> None:
    exe = _make_network()
    exe.run(feed={"x": np.ones([2, 4], "float32")})
    io.save_vars(exe, "model", predicate=lambda v: v.name.endswith("@GRAD"))


def swap_executor_and_directory() -> None:
    exe = _make_network()
    io.save_persistables("model", exe)


def pass_the_program_as_the_directory() -> None:
    exe = _save_network()
    io.load_persistables(exe, fluid.default_main_program())


def give_load_the_folder_of_the_model() -> None:
    _make_network()
    fluid.save(fluid.default_main_program(), "saved/model")
    fluid.load(fluid.default_main_program(), "saved")


def give_load_a_path_that_does_not_exist() -> None:
    _make_network()
    fluid.load(fluid.default_main_program(), "saved/model")


def give_load_a_page_of_a_browser() -> None:
    _make_network()
    Path("model.pdparams").write_text("<!DOCTYPE html><html><body>404</body></html>")
    fluid.load(fluid.default_main_program(), "model")


def give_load_an_array_of_numpy() -> None:
    _make_network()
    np.save("model.npy", np.ones(3))
    fluid.load(fluid.default_main_program(), "model.npy")


def load_a_state_that_does_not_exist() -> None:
    fluid.load_program_state("saved/model")


def load_a_malicious_pickle() -> None:
    _make_network()
    Path("model.pdparams").write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echo\x85R.")
    fluid.load(fluid.default_main_program(), "model")


def export_feeds_that_do_not_exist() -> None:
    exe = _make_network()
    out = fluid.default_main_program().global_block().var("fc_0.tmp_1")
    io.save_inference_model("served", ["y"], [out], exe)


def export_variables_as_feeds() -> None:
    exe = _make_network()
    block = fluid.default_main_program().global_block()
    io.save_inference_model("served", [block.var("x")], [block.var("fc_0.tmp_1")], exe)


def forget_a_feed_that_the_target_needs() -> None:
    exe = _make_network()
    io.save_inference_model(
        "served", [], [fluid.default_main_program().global_block().var("fc_0.tmp_1")], exe
    )


def serve_what_was_saved_for_training() -> None:
    exe = _save_network()
    io.load_inference_model("model", exe)


def serve_without_the_name_of_the_parameters() -> None:
    exe = _make_network()
    out = fluid.default_main_program().global_block().var("fc_0.tmp_1")
    io.save_inference_model("served", ["x"], [out], exe, params_filename="__params__")
    io.load_inference_model("served", exe)


def serve_a_picture() -> None:
    exe = _make_network()
    Path("served").mkdir()
    Path("served/__model__").write_bytes(PNG)
    io.load_inference_model("served", exe)


def set_a_state_of_another_shape() -> None:
    _make_network()
    io.set_program_state(fluid.default_main_program(), {"fc_0.w_0": np.ones([4, 5], "float32")})


def give_load_the_combined_file() -> None:
    exe = _save_network(filename="all")
    fluid.io.load_params(exe, "model/all")


def misspell_the_directory() -> None:
    exe = _save_network()
    fluid.io.load_persistables(exe, "modell")


def run_what_load_inference_model_returns() -> None:
    exe = fluid.Executor()
    x = fluid.data("x", [None, 4])
    fluid.io.save_inference_model("model", ["x"], [fluid.layers.scale(x, 2.0)], exe)
    exe.run(fluid.io.load_inference_model("model", exe))


def load_from_no_directory() -> None:
    fluid.io.load_params(fluid.Executor(), None)


def load_variables_that_a_predicate_does_not_choose() -> None:
    exe = _save_network()
    _make_network()
    io.load_vars(exe, "model", predicate=lambda one: one.name.startswith("conv"))


def save_variables_that_a_predicate_does_not_choose() -> None:
    io.save_vars(_make_network(), "model", predicate=lambda one: one.name.startswith("conv"))


def give_the_suffix_to_save_and_to_load() -> None:
    exe = _make_network()
    fluid.save(fluid.default_main_program(), "net.pdparams")
    fluid.load(fluid.default_main_program(), "net.pdparams", exe)


MISTAKES = list_mistakes(globals())
