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


def test_a_directory_that_holds_only_a_sparse_table_is_refused_because_of_the_table(tmp_path: Path) -> None:
    main = fluid.Program()
    main.global_block().create_var(
        name="table",
        shape=[9, 2],
        dtype="float32",
        persistable=True,
        type=fluid.core.VarDesc.VarType.SELECTED_ROWS,
    )
    rows = fluid.global_scope().var("table").get_selected_rows()
    rows.set_height(9)
    rows.set_rows([1, 5])
    rows.get_tensor().set(np.ones((2, 2), "float32"), fluid.CPUPlace())
    fluid.io.save_persistables(fluid.Executor(), str(tmp_path), main)
    with pytest.raises(fluid.errors.FormatError, match="sparse table") as error:
        fluid.load_program_state(str(tmp_path))
    assert "combined file" not in str(error.value)
