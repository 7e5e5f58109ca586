"""Files of a format of another package: loaded, sliced and planned without a line of io about it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet, LoadError
from paddlelike.formats import registry
from paddlelike.formats.registry import Registry
from tests.formats.toy import TOY, install

W = np.arange(8, dtype="float32").reshape(4, 2)
B = np.float32([5, 6])


@pytest.fixture
def main() -> fluid.Program:
    program = fluid.Program()
    for name, shape in (("b", [2]), ("w", [4, 2])):
        program.global_block().create_var(name=name, shape=shape, dtype="float32", persistable=True)
    return program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with net.toy, while the toy's package is installed."""
    monkeypatch.setattr(registry, "_registry", Registry())
    install(tmp_path / "packages", monkeypatch, "toy_format", TOY, toy="Toy")
    data = b"".join(registry.find("toy").write({"w": W, "b": B}))
    (tmp_path / "net.toy").write_bytes(data)
    return tmp_path


def exe() -> fluid.Executor:
    return fluid.Executor()


def values() -> dict[str, np.ndarray]:
    return {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in ("w", "b")}


@pytest.mark.parametrize("keywords", [{}, {"lazy": True}, {"in_place": True}, {"strict": False}], ids=str)
def test_a_registered_format_is_loaded_by_its_own_names(
    home: Path, main: fluid.Program, keywords: dict
) -> None:
    with fluid.scope_guard(fluid.Scope()):
        report = fluid.io.load_vars(exe(), home, main, vars=["w", "b"], filename="net.toy", **keywords)
        assert sorted(report.loaded) == ["b", "w"]
        np.testing.assert_array_equal(values()["w"], W)
        np.testing.assert_array_equal(values()["b"], B)


def test_a_load_may_select_and_rename_variables_of_the_file(home: Path, main: fluid.Program) -> None:
    with fluid.scope_guard(fluid.Scope()):
        plan = fluid.io.plan_load(home, main, filename="net.toy", vars=["w"])
        assert [(row.variable, row.what) for row in plan.rows] == [("w", "load"), (None, "not requested")]
        other = fluid.Program()
        other.global_block().create_var(name="v", shape=[4, 2], dtype="float32", persistable=True)
        fluid.io.load_persistables(exe(), home, other, filename="net.toy", rename={"w": "v"})
        np.testing.assert_array_equal(np.array(fluid.global_scope().find_var("v").get_tensor()), W)


def test_a_registered_format_is_read_without_a_program(home: Path) -> None:
    state = fluid.io.load_program_state(home / "net.toy")
    assert list(state) == ["w", "b"]
    np.testing.assert_array_equal(state["w"], W)
    np.testing.assert_array_equal(fluid.io.load_slice(home, "w", (1, 3), filename="net.toy"), W[1:3])
    with pytest.raises(LoadError, match="does not hold 'v'"):
        fluid.io.load_slice(home, "v", (1, 3), filename="net.toy")


def test_fluid_load_opens_a_registered_format(home: Path, main: fluid.Program) -> None:
    with fluid.scope_guard(fluid.Scope()):
        fluid.load(main, str(home / "net.toy"), exe())
        np.testing.assert_array_equal(values()["b"], B)


def test_a_file_that_declares_too_much_data_uses_no_memory(home: Path, main: fluid.Program) -> None:
    (home / "net.toy").write_bytes(b"TOY1w 4000000000 200\n" + bytes(40))
    with fluid.scope_guard(fluid.Scope()), pytest.raises(LoadError, match="but the file has 61"):
        fluid.io.load_vars(exe(), home, main, vars=["w"], filename="net.toy")


def test_a_file_of_a_missing_package_is_not_a_combined_file(
    home: Path, main: fluid.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(LoadError, match=r"is not a combined file of variables"),
    ):
        fluid.io.load_vars(exe(), home, main, vars=["w"], filename="net.toy")


@pytest.mark.parametrize("name", ["state", "npz", "safetensors"])
def test_other_formats_are_loaded_by_filename_and_without_a_program(
    home: Path, main: fluid.Program, name: str
) -> None:
    (home / "net").write_bytes(b"".join(registry.find(name).write({"w": W, "b": B})))
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe(), home, main, filename="net")
        np.testing.assert_array_equal(values()["w"], W)
    np.testing.assert_array_equal(fluid.io.load_program_state(home / "net")["b"], B)
    np.testing.assert_array_equal(fluid.io.load_slice(home, "w", (1, 2), filename="net"), W[1:2])


def test_the_error_for_a_damaged_file_names_its_format(home: Path, main: fluid.Program) -> None:
    data = b"".join(registry.find("safetensors").write({"w": W, "b": B}))
    (home / "net").write_bytes(data[:-1])
    with (
        fluid.scope_guard(fluid.Scope()),
        pytest.raises(LoadError, match=r"net cannot be read as a safetensors"),
    ):
        fluid.io.load_persistables(exe(), home, main, filename="net")


def test_a_load_combine_operator_of_a_script_takes_its_outputs_by_name(
    home: Path, main: fluid.Program
) -> None:
    block = main.global_block()
    path = str(home / "net.toy")
    block.append_op(type="load_combine", outputs={"Out": ["b", "w"]}, attrs={"file_path": path})
    with fluid.scope_guard(fluid.Scope()):
        exe().run(main)
        np.testing.assert_array_equal(values()["w"], W)
        block.append_op(type="load_combine", outputs={"Out": ["v"]}, attrs={"file_path": path})
        block.create_var(name="v", shape=[1], dtype="float32", persistable=True)
        with pytest.raises(EnforceNotMet, match=r"does not hold \['v'\]"):
            exe().run(main)
