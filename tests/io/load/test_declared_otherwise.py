"""Files of Fluid 1.8.5 whose shape or integer type is not the declared one are loaded, as there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError

#: What 1.8.5 wrote for the seed after four runs of shuffle_batch on six rows, beginning with seed 5.
SEED = bytes(16) + b"\x04\0\0\0\x08\x03\x10\x01\x1d\xb7zS\0\0\0\0"


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Programs, names and a scope of this test's own."""
    fluid.framework.switch_main_program(fluid.Program())
    fluid.framework.switch_startup_program(fluid.Program())


def test_the_seed_of_shuffle_batch_is_declared_without_elements(tmp_path: Path) -> None:
    with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 2])
        out = fluid.contrib.layers.shuffle_batch(x, seed=5)
        seed = fluid.default_main_program().global_block().var("shuffle_batch_seed_0")
        assert seed.shape == (0,)
        (tmp_path / seed.name).write_bytes(SEED)
        exe = fluid.Executor()
        fluid.io.load_persistables(exe, str(tmp_path))
        assert np.array(fluid.global_scope().find_var(seed.name).get_tensor()).tolist() == [1400551197]
        feed = {"x": np.arange(12, dtype=np.float32).reshape(6, 2)}
        loaded = exe.run(feed=feed, fetch_list=[out, seed])
        fluid.io.save_persistables(exe, str(tmp_path / "again"))
        assert (tmp_path / "again" / seed.name).stat().st_size == len(SEED)
        again = exe.run(feed=feed, fetch_list=[out, seed])
        fluid.io.load_persistables(exe, str(tmp_path / "again"))
        for a, b in zip(again, exe.run(feed=feed, fetch_list=[out, seed]), strict=True):
            np.testing.assert_array_equal(a, b)
        assert not np.array_equal(loaded[1], again[1])


def create_tree(dtype: str) -> None:
    attr = fluid.ParamAttr(name="tree", initializer=fluid.initializer.Constant(3))
    fluid.contrib.layers.tdm_child(fluid.data("x", [None, 1], dtype), 4, 2, attr, dtype)


def test_an_int32_file_of_a_tree_is_loaded_into_an_int64_variable(tmp_path: Path) -> None:
    """Fluid keeps what the file says, and so does the next save."""
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        create_tree("int32")
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, str(tmp_path / "int32"))
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.scope_guard(fluid.Scope()):
        create_tree("int64")
        fluid.io.load_params(exe, str(tmp_path / "int32"), main)
        found = fluid.global_scope().find_var("tree").get_tensor()
        assert np.array(found).dtype == np.int32
        (child,) = main.global_block().ops[-1].output("Child")
        (value,) = exe.run(main, feed={"x": np.array([[1]])}, fetch_list=[child])
        assert (value.tolist(), value.dtype) == ([[[3, 3]]], np.int64)
        fluid.io.save_params(exe, str(tmp_path / "again"), main)
    assert (tmp_path / "again" / "tree").read_bytes() == (tmp_path / "int32" / "tree").read_bytes()


def test_loading_a_float_into_an_integer_variable_is_refused(tmp_path: Path) -> None:
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        fluid.layers.create_parameter([4, 5], "float32", "tree")
        exe.run(fluid.default_startup_program())
        fluid.io.save_params(exe, str(tmp_path))
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        create_tree("int64")
        with pytest.raises(LoadError, match=r"the file holds FP32\[4, 5\], the program wants INT64\[4, 5\]"):
            fluid.io.load_params(exe, str(tmp_path))
