"""``paddlelike.install()`` gives paddlelike to ``import paddle`` in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paddlelike.import_paddle import FOLDER, add_to_path


def in_a_new_process(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True)


def test_every_path_below_paddle_is_the_same_module(tmp_path: Path) -> None:
    script = """
import paddlelike
paddlelike.install()
paddlelike.install()
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers.rnn
import paddle.fluid.layers.nn as nn
from paddle.fluid.layers import control_flow
from paddle.fluid.incubate.fleet.base import role_maker
import paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy as strategy
from paddle.reader.decorator import shuffle
assert paddle.__version__ == "1.8.5" and paddle.batch is paddlelike.batch
assert fluid is paddlelike.fluid
assert nn is paddlelike.layers.nn and nn.fc is fluid.layers.fc
assert control_flow is paddlelike.layers.control_flow
assert callable(fluid.layers.rnn), "the module of that name has replaced the function"
assert role_maker is fluid.incubate.fleet.base.role_maker
assert role_maker.UserDefinedRoleMaker.__module__ == "paddlelike.distributed.fleet.role_maker"
assert strategy.StrategyFactory
assert shuffle is paddle.reader.shuffle
for name in ("paddle.fluid.nothing", "paddle.nothing", "paddle.fluid.incubate.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = in_a_new_process(script, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"No module named 'paddle.{name}'" for name in ("fluid.nothing", "nothing", "fluid.incubate.nothing")
    ]


def test_modules_have_the_names_that_fluid_imports_into_them(tmp_path: Path) -> None:
    script = """
import paddlelike
paddlelike.install()
import paddle
import paddle.fluid as fluid
from paddle.fluid.backward import Variable
from paddle.fluid.data_feeder import check_dtype, check_type, check_variable_and_dtype, convert_dtype
from paddle.fluid.framework import _current_expected_place, _dygraph_tracer, core, unique_name
from paddle.fluid.initializer import in_dygraph_mode
from paddle.fluid.layers.device import get_places
from paddle.fluid.layers.layer_function_generator import autodoc, templatedoc
from paddle.fluid.optimizer import LayerHelper, Program
from paddle.fluid.unique_name import generate_with_ignorable_key
assert core is fluid.core and unique_name is fluid.unique_name
assert fluid.framework.core.VarDesc.VarType.INT64 == fluid.core.VarDesc.VarType.INT64
assert fluid.layers.Variable is Variable is fluid.framework.Variable
assert fluid.layers.nn.concat is fluid.layers.concat
assert fluid.layers.collective._c_allreduce.__name__ == "_c_allreduce"
assert fluid.transpiler.collective.GradAllReduce.__name__ == "GradAllReduce"
assert Program is fluid.Program and LayerHelper is fluid.layer_helper.LayerHelper
assert _current_expected_place() is None and not in_dygraph_mode()
assert generate_with_ignorable_key("a") == "a_0"
check_variable_and_dtype(fluid.data("x", [2], "int64"), "x", ["int64"], "mine")
for call in (
    lambda: check_type(3, "x", fluid.framework.Variable, "mine"),
    lambda: check_dtype("float32", "x", ["int64"], "mine"),
    lambda: fluid.layers.nn.nothing,
    lambda: __import__("paddle.fluid.optimizer", fromlist=["nothing"]).nothing,
    get_places,
):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, str(error)[:50])
"""
    done = in_a_new_process(script, tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "TypeError layer 'mine': x is 3 (int), expected Variable",
        "TypeError layer 'mine': x is float32, expected one of int64.",
        "AttributeError module 'paddlelike.layers.nn' has no attribute 'no",
        "AttributeError module 'paddlelike.optimizer' has no attribute 'no",
        "LeftOutError fluid.layers.device.get_places is not here: it is ",
    ]


def test_paddle_batch_and_paddle_data_are_functions_and_importable_modules(tmp_path: Path) -> None:
    script = """
import paddle, paddle.batch, paddle.fluid.data
import paddle.fluid as fluid
from paddle.batch import batch
from paddle.fluid.data import *
assert batch is paddle.batch and data is fluid.data
assert [list(one) for one in paddle.batch(lambda: range(3), 2)()] == [[0, 1], [2]]
print(fluid.data("x", [None, 2]).shape)
"""
    done = in_a_new_process(f"import paddlelike\npaddlelike.install(){script}", tmp_path)
    assert (done.stdout, done.stderr) == ("(-1, 2)\n", "")


def test_installing_after_another_paddle_was_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("")
    script = "import paddle, paddlelike\ntry: paddlelike.install()\nexcept RuntimeError as e: print(e)"
    done = in_a_new_process(script, tmp_path)
    assert done.stdout.startswith("paddlelike.install: another paddle is imported already, from ")
    assert "paddle.py" in done.stdout
    assert "before the first import of paddle" in done.stdout


def test_an_installed_paddle_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("print('the other')")
    script = "import paddlelike\npaddlelike.install()\nimport paddle\nprint(paddle.fluid.__name__)"
    assert in_a_new_process(script, tmp_path).stdout == "paddlelike.fluid\n"


@pytest.mark.parametrize(
    "path", ["", "/home/me", f"/home/me{os.pathsep}{FOLDER}"], ids=["none", "one", "twice"]
)
def test_the_folder_is_first_in_pythonpath_and_appears_once(path: str) -> None:
    found = add_to_path({"PYTHONPATH": path, "HOME": "/home/me"})
    assert found["PYTHONPATH"].split(os.pathsep) == [FOLDER, *(["/home/me"] if path else [])]
    assert found["HOME"] == "/home/me"
