"""load_program_state of a directory whose only file holds several variables, or one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid


@pytest.mark.parametrize("is_model", [False, True], ids=["params", "inference"])
def test_a_combined_file_is_never_read_as_one_variable(tmp_path: Path, is_model: bool) -> None:
    exe, main = fluid.Executor(), fluid.default_main_program()
    out = fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 4]), 3), 2)
    exe.run(fluid.default_startup_program())
    if is_model:
        fluid.io.save_inference_model(str(tmp_path), ["x"], [out], exe, main, params_filename="all")
    else:
        fluid.io.save_params(exe, str(tmp_path), main, filename="all")
    with pytest.raises(ValueError, match="all is a combined file, which stores no names: pass var_list"):
        fluid.load_program_state(str(tmp_path))
    state = fluid.load_program_state(str(tmp_path), var_list=main.all_parameters())
    assert sorted(state) == sorted(p.name for p in main.all_parameters())
    for name, array in state.items():
        np.testing.assert_array_equal(array, np.array(fluid.global_scope().find_var(name).get_tensor()))


def test_a_directory_with_the_file_of_one_variable_is_read(tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.layers.create_parameter([3], "float32", name="w")
    exe.run(fluid.default_startup_program())
    fluid.io.save_params(exe, str(tmp_path))
    assert {name: array.shape for name, array in fluid.load_program_state(str(tmp_path)).items()} == {
        "w": (3,)
    }
