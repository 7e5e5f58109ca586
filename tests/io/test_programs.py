"""The programs that saves and loads build: Fluid's operators, and the executor runs them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.run import Executor
from paddlelike.io.programs import build_load_program, build_save_program


@pytest.fixture
def main() -> Iterator[fluid.Program]:
    """A network whose variables have values, and whose names are not in the order of their creation."""
    program, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(program, startup):
        fluid.layers.fc(fluid.data("x", [None, 2]), 3, name="last")
        fluid.layers.fc(fluid.data("y", [None, 2]), 3, name="first")
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor().run(startup)
        yield program


def build_as_fluid(program: fluid.Program, dirname: str, filename: str | None) -> fluid.Program:
    """The save program that ``fluid.io.save_vars`` of Paddle 1.8.5 builds, with its own calls."""
    save_program = fluid.Program()
    block = save_program.global_block()
    chosen = {}
    for each in program.list_vars():
        if not each.persistable:
            continue
        new = block.create_var(name=each.name, shape=each.shape, dtype=each.dtype, persistable=True)
        if filename is None:
            path = os.path.normpath(f"{dirname}/{new.name}")
            block.append_op(type="save", inputs={"X": [new]}, outputs={}, attrs={"file_path": path})
        else:
            chosen[new.name] = new
    if filename is not None:
        saved = block.create_var(
            type=fluid.core.VarDesc.VarType.RAW, name=fluid.unique_name.generate("saved_params")
        )
        block.append_op(
            type="save_combine",
            inputs={"X": [chosen[name] for name in sorted(chosen)]},
            outputs={"Y": saved},
            attrs={"file_path": f"{os.path.normpath(dirname)}/{filename}", "save_to_memory": False},
        )
    return save_program


def operators(program: fluid.Program) -> list[tuple[Any, ...]]:
    return [(op.type, op.inputs, op.outputs, op.all_attrs()) for op in program.global_block().ops]


@pytest.mark.parametrize("filename", [None, "all"], ids=["a file each", "one file"])
@pytest.mark.parametrize("dirname", ["model", "./model/", "a/../model", "/data/model", "."])
def test_a_save_program_has_the_same_operators_as_in_fluid(
    main: fluid.Program, dirname: str, filename: str | None
) -> None:
    variables = [variable for variable in main.list_vars() if variable.persistable]
    with fluid.unique_name.guard():
        ours = build_save_program(variables, dirname, filename)
    with fluid.unique_name.guard():
        theirs = build_as_fluid(main, dirname, filename)
    assert operators(ours) == operators(theirs)
    assert len(operators(ours)) == (len(variables) if filename is None else 1)


def test_a_load_program_has_the_same_operators_as_in_fluid(main: fluid.Program) -> None:
    pairs = [(variable, variable.name) for variable in main.list_vars() if variable.persistable]
    ops = build_load_program(pairs, "./model", None).global_block().ops
    assert [(op.type, op.outputs, op.attr("file_path")) for op in ops] == [
        ("load", {"Out": [variable.name]}, f"./model/{variable.name}") for variable, _ in pairs
    ]
    (op,) = build_load_program(pairs, "./model", "all").global_block().ops
    assert (op.type, op.output("Out")) == ("load_combine", sorted(name for _, name in pairs))
    assert (op.attr("file_path"), op.attr("model_from_memory")) == ("./model/all", False)


@pytest.mark.parametrize("filename", [None, "all"], ids=["a file each", "one file"])
def test_the_executor_runs_the_programs_of_a_save_and_a_load(
    main: fluid.Program, filename: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    run = Executor._run

    def note(self: Executor, program: fluid.Program, *args: Any, **kwargs: Any) -> Any:
        ran.append([op.type for op in program.global_block().ops])
        return run(self, program, *args, **kwargs)

    monkeypatch.setattr(Executor, "_run", note)
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "m"), main, filename)
    fluid.io.load_persistables(exe, str(tmp_path / "m"), main, filename)
    if filename is None:
        assert ran == [["save"] * 4, ["load"] * 4]
    else:
        assert ran == [["save_combine"], ["load_combine"]]


def test_the_program_that_fluid_builds_saves_the_same_files(main: fluid.Program, tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "ours"), main)
    exe.run(build_as_fluid(main, str(tmp_path / "theirs"), None))
    for variable in main.list_vars():
        if variable.persistable:
            saved = (tmp_path / "ours" / variable.name).read_bytes()
            assert (tmp_path / "theirs" / variable.name).read_bytes() == saved
            assert saved.endswith(
                np.array(fluid.global_scope().find_var(variable.name).get_tensor()).tobytes()
            )
