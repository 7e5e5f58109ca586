"""The advice of errors of directories, names, locks and stores, followed to the letter."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.hints.advice import Advice, each, new_network
from tests.hints.files.test_files import build, load, save

io = fluid.io


def save_names(*names: str, directory: str = "m", filename: str | None = None) -> Any:
    """Save variables of these names that hold their index, and return their values as a load gives them."""
    with new_network():
        exe, values = fluid.Executor(), []
        for at, name in enumerate(names):
            attr = fluid.ParamAttr(name=name, initializer=fluid.initializer.Constant(at + 1.0))
            values.append(fluid.layers.create_parameter([1], "float32", attr=attr))
        exe.run(fluid.default_startup_program())
        io.save_vars(exe, directory, vars=values, filename=filename)
        for name in names:
            fluid.global_scope().find_var(name).get_tensor().set(np.zeros(1, "float32"), None)
        io.load_vars(exe, directory, vars=values, filename=filename)
        return [float(np.array(fluid.global_scope().find_var(name).get_tensor())[0]) for name in names]


def link_folder() -> None:
    os.makedirs("m")
    os.makedirs("other")
    os.symlink(Path("other").resolve(), "m/encoder")


def block_folder(kind: str) -> None:
    os.makedirs("m")
    if kind == "file":
        Path("m/encoder").write_text("mine")
    else:
        os.makedirs("m/encoder/mine")


def block_manifest() -> None:
    save()
    data = bytearray(Path("m/__manifest__").read_bytes())
    data[len(data) // 2] ^= 1
    Path("m/__manifest__").write_bytes(bytes(data))


def move_away(path: str) -> None:
    os.rename(path, "mine")


def save_to(path: str) -> Any:
    with new_network():
        build()
        io.save_persistables(fluid.Executor(), path)
    return load(dirname=path)


ADVICE: dict[str, Advice] = {
    "a variable that is a folder of another": Advice(
        lambda: save_names("encoder", "encoder/w"),
        "rename one of them (ParamAttr(name=...)), or use filename= for one file",
        lambda: each(
            lambda: save_names("encoder", "decoder/w"),
            lambda: save_names("encoder", "encoder/w", filename="all"),
        ),
        [[1.0, 2.0]] * 2,
    ),
    "a folder that is a link": Advice(
        lambda: [link_folder(), save_names("encoder/w")],
        "make it a directory, or save the whole model where the link points to",
        lambda: [
            link_folder(),
            save_names("encoder/w", directory="other"),
            os.remove("m/encoder"),
            os.makedirs("m/encoder"),
            save_names("encoder/w"),
        ][1::3],
        [[1.0], [1.0]],
    ),
    "a folder that is a file": Advice(
        lambda: [block_folder("file"), save_names("encoder/w")],
        "rename the variable (ParamAttr(name=...)), or move the file away",
        lambda: [
            block_folder("file"),
            save_names("decoder/w"),
            move_away("m/encoder"),
            save_names("encoder/w"),
        ][1::2],
        [[1.0], [1.0]],
    ),
    "a file that is a folder": Advice(
        lambda: [block_folder("folder"), save_names("encoder")],
        "rename the variable (ParamAttr(name=...)), or move the directory away",
        lambda: [
            block_folder("folder"),
            save_names("decoder"),
            move_away("m/encoder"),
            save_names("encoder"),
        ][1::2],
        [[1.0], [1.0]],
    ),
    "a directory that is a file": Advice(
        lambda: [Path("m").write_text("mine"), save_to("m")],
        "pass another path, or move the file away",
        lambda: [Path("m").write_text("mine"), save_to("other").sum(), move_away("m"), save_to("m").sum()][
            1::2
        ],
        [8.0, 8.0],
    ),
    "a variable of the manifest's name": Advice(
        lambda: save_names("__manifest__"),
        "rename the variable (ParamAttr(name=...))",
        lambda: save_names("manifest"),
        [1.0],
    ),
    "a variable that leads out": Advice(
        lambda: save_names("../w"),
        "rename the variable (ParamAttr(name=...)), or use filename= for one file",
        lambda: each(lambda: save_names("w"), lambda: save_names("../w", filename="all")),
        [[1.0], [1.0]],
    ),
    "a manifest that is damaged": Advice(
        lambda: [block_manifest(), load(verify=True)],
        "the files themselves may be good; save again to write a new manifest",
        lambda: [block_manifest(), save(), load(verify=True).sum()][2],
        8.0,
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_a_directory_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
