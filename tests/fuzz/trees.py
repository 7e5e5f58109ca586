"""Names of variables, and hostile trees of files, as fuzzing targets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import numpy as np

import paddlelike as fluid
from paddlelike.core.scope import Scope, global_scope, scope_guard
from paddlelike.framework.program import Program
from paddlelike.storage.local import list_names
from paddlelike.storage.names import relative_path
from tests.fuzz import tree_maker
from tests.fuzz.guard import Fault
from tests.fuzz.loaders import ROOM, copies, executor, program_of, watched_scope
from tests.fuzz.readers import Target, attempt
from tests.golden_data import GOLDEN

__all__ = ["TREES"]


def _set_up_outside(root: Path) -> None:
    copies(root)
    (root / "outside").mkdir()
    shutil.copyfile(GOLDEN / "fit_a_line/persistables/fc_0.b_0", root / "outside" / "w")
    (root / "outside" / "secret").write_text("secret\n")


def _fresh_model(data: bytes, root: Path) -> None:
    for path in (*root.glob("model*"), *root.glob("new*")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(GOLDEN / "fit_a_line" / "inference", root / "model")
    shutil.copyfile(GOLDEN / "fit_a_line/persistables/learning_rate_0", root / "model" / "learning_rate_0")


def _names(data: bytes, root: Path) -> None:
    name = data.decode("utf-8", "surrogateescape")
    directory = root / "model"
    path = attempt(lambda: relative_path(name))
    if path is not None and not (directory / path).resolve().is_relative_to(directory):
        raise Fault(f"{name!r} leads to {path!r}")
    program = Program()
    variable = program.global_block().create_var(name=name, shape=[1], dtype="float32", persistable=True)
    attempt(lambda: fluid.io.load_slice(str(directory), name, rows=(0, 1)))
    with scope_guard(Scope()):
        global_scope().var(name).get_tensor().set(np.ones(1, "float32"))
        attempt(lambda: fluid.io.save_vars(executor(), str(root / "new"), program, vars=[variable]))
        attempt(lambda: fluid.io.save_vars(executor(), str(directory), program, vars=[variable]))
    attempt(lambda: fluid.io.load_program_state(str(root / "new")))
    attempt(lambda: fluid.io.load_program_state(str(root / "new"), var_list=[variable]))
    with watched_scope(program):
        fluid.io.load_persistables(executor(), str(root / "new"), program)


def _put_tree(data: bytes, root: Path) -> None:
    _fresh_model(data, root)
    tree_maker.build(root / "model", json.loads(data))


def _trees(data: bytes, root: Path) -> None:
    directory, program, exe = str(root / "model"), program_of("fit_a_line"), executor()
    attempt(lambda: list_names(directory))
    attempt(lambda: fluid.io.verify(directory))
    attempt(lambda: fluid.io.load_program_state(directory))
    with watched_scope(Program()):
        attempt(lambda: fluid.io.load_inference_model(directory, exe))
    with watched_scope(program):
        fluid.io.load_persistables(exe, directory, program)


TREES: Final = (
    Target("names", tree_maker.made_name, _names, set_up=_set_up_outside, prepare=_fresh_model, writes=True, **ROOM),
    Target("tree", tree_maker.made_tree, _trees, set_up=_set_up_outside, prepare=_put_tree, **ROOM),
)  # fmt: skip
