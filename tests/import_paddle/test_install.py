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


def test_functions_that_are_modules_too(tmp_path: Path) -> None:
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


def test_another_paddle_that_is_imported_already_is_refused(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("")
    script = "import paddle, paddlelike\ntry: paddlelike.install()\nexcept RuntimeError as e: print(e)"
    done = in_a_new_process(script, tmp_path)
    assert done.stdout.startswith("paddlelike.install: another paddle is imported already, from ")
    assert "paddle.py" in done.stdout
    assert "before the first import of paddle" in done.stdout


def test_another_paddle_that_is_only_there_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "paddle.py").write_text("print('the other')")
    script = "import paddlelike\npaddlelike.install()\nimport paddle\nprint(paddle.fluid.__name__)"
    assert in_a_new_process(script, tmp_path).stdout == "paddlelike.fluid\n"


@pytest.mark.parametrize(
    "path", ["", "/home/me", f"/home/me{os.pathsep}{FOLDER}"], ids=["none", "one", "twice"]
)
def test_the_folder_stands_first_and_once(path: str) -> None:
    found = add_to_path({"PYTHONPATH": path, "HOME": "/home/me"})
    assert found["PYTHONPATH"].split(os.pathsep) == [str(FOLDER), *(["/home/me"] if path else [])]
    assert found["HOME"] == "/home/me"
