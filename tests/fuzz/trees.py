"""Names of variables, and hostile trees of files, as fuzzing targets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import numpy as np

import paddlelike as fluid
from paddlelike.core import Scope, global_scope, scope_guard
from paddlelike.errors import PaddlelikeError
from paddlelike.framework import Program
from paddlelike.storage.local.files import list_names
from paddlelike.storage.local.transaction import Transaction
from paddlelike.storage.names import relative_path
from tests.fuzz.guard import Fault
from tests.fuzz.loaders import ROOM, copy_networks, executor, program_of, watched_scope
from tests.fuzz.makers import tree_maker
from tests.fuzz.readers import Target, attempt
from tests.helpers.golden_data import GOLDEN

__all__ = ["TREES"]

_OUTSIDE: Final = (GOLDEN / "fit_a_line/persistables/fc_0.b_0").read_bytes()


def _set_up_outside(root: Path) -> None:
    copy_networks(root)
    _fill_outside(root)


def _fill_outside(root: Path) -> None:
    (root / "outside").mkdir()
    (root / "outside" / "w").write_bytes(_OUTSIDE)
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


def _put_staging(data: bytes, root: Path) -> None:
    for path in root.glob("model*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.rmtree(root / "outside")
    _fill_outside(root)
    _save(root, b"old", keep=bool(data[-2] % 2))
    tree_maker.build(root / "model", json.loads(data))


def _save(root: Path, value: bytes, *, keep: bool) -> None:
    with Transaction(
        root / "model", keep_generation=keep, program="5f", part="part", remove_stale=True
    ) as transaction:
        for name in ("w", "sub/v"):
            transaction.add(name, [value])


def _staging(data: bytes, root: Path) -> None:
    refused = None
    try:
        _save(root, b"new", keep=bool(sum(data) % 2))
    except PaddlelikeError as error:
        refused = error
    outside = {path.name: path.is_file() and path.read_bytes() for path in (root / "outside").iterdir()}
    if outside != {"w": _OUTSIDE, "secret": b"secret\n"}:
        raise Fault(f"outside there is now {sorted(outside)}")
    attempt(lambda: fluid.io.verify(root / "model"))
    if refused is None:
        for name in ("w", "sub/v"):
            if (root / "model" / name).read_bytes() != b"new":
                raise Fault(f"{name} is not what was saved")
    attempt(lambda: fluid.io.load_program_state(str(root / "model")))
    if refused is not None:
        raise refused


TREES: Final = (
    Target("names", tree_maker.make_name, _names, set_up=_set_up_outside, prepare=_fresh_model, writes=True, **ROOM),
    Target("staging", tree_maker.make_staging, _staging, set_up=_set_up_outside, prepare=_put_staging, writes=True, **ROOM),
    Target("tree", tree_maker.make_tree, _trees, set_up=_set_up_outside, prepare=_put_tree, **ROOM),
)  # fmt: skip
