"""Save and load operators in a user's own program: one transaction a run, loads completely or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError, NotInitializedError, SaveError
from paddlelike.storage.local.transaction import Transaction


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with fluid.scope_guard(fluid.Scope()):
        yield


def program_of(*ops: tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]) -> fluid.Program:
    """A program of operators over persistable variables of two float32, ``a``, ``b`` and ``c``."""
    program = fluid.Program()
    block = program.global_block()
    for name in "abc":
        block.create_var(name=name, shape=[2], dtype="float32", persistable=True)
    for kind, inputs, outputs, attrs in ops:
        block.append_op(type=kind, inputs=inputs, outputs=outputs, attrs=attrs)
    return program


def save(name: str, path: object, **attrs: Any) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    return "save", {"X": [name]}, {}, {"file_path": str(path), **attrs}


def load(name: str, path: object, **attrs: Any) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    return "load", {}, {"Out": [name]}, {"file_path": str(path), **attrs}


def double(name: str) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]:
    return "scale", {"X": [name]}, {"Out": [name]}, {"scale": 2.0}


def put(**values: float) -> None:
    for name, value in values.items():
        fluid.global_scope().var(name).get_tensor().set(np.full(2, value, np.float32))


def get(name: str) -> list[float]:
    array: list[float] = np.array(fluid.global_scope().find_var(name).get_tensor()).tolist()
    return array


def test_all_save_operators_of_a_run_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[str] = []
    commit = Transaction.commit

    def note(self: Transaction) -> Any:
        commits.append(self.directory)
        return commit(self)

    monkeypatch.setattr(Transaction, "commit", note)
    put(a=1, b=2, c=3)
    where = tmp_path / "model"
    fluid.Executor().run(program_of(save("a", where / "a"), save("b", where / "b"), save("c", where / "c")))
    assert commits == [str(where)]
    assert bool(fluid.io.verify(str(where)))
    put(a=0, b=0)
    fluid.Executor().run(program_of(load("a", where / "b"), load("b", where / "a")))
    assert (get("a"), get("b")) == ([2.0, 2.0], [1.0, 1.0])


def test_a_save_operator_saves_the_value_at_its_place_in_the_program(tmp_path: Path) -> None:
    put(a=1)
    fluid.Executor().run(
        program_of(save("a", tmp_path / "m/early"), double("a"), save("a", tmp_path / "m/late"))
    )
    fluid.Executor().run(program_of(load("b", tmp_path / "m/early"), load("c", tmp_path / "m/late")))
    assert (get("b"), get("c")) == ([1.0, 1.0], [2.0, 2.0])


def test_a_load_operator_reads_the_file_saved_earlier_in_the_run(tmp_path: Path) -> None:
    put(a=1)
    fluid.Executor().run(program_of(save("a", tmp_path / "m/a"), double("a"), load("b", tmp_path / "m/a")))
    assert (get("a"), get("b")) == ([2.0, 2.0], [1.0, 1.0])


def test_a_run_that_fails_saves_nothing(tmp_path: Path) -> None:
    put(a=1, b=2)
    exe = fluid.Executor()
    exe.run(program_of(save("a", tmp_path / "m/a"), save("b", tmp_path / "m/b")))
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    put(a=5, b=6)
    with pytest.raises(NotInitializedError, match="'c' cannot be saved: it holds no value"):
        exe.run(
            program_of(save("a", tmp_path / "m/a"), save("b", tmp_path / "m/b"), save("c", tmp_path / "m/c"))
        )
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


@pytest.mark.parametrize("between", [(), (double("b"),)], ids=["one after the other", "with others between"])
def test_load_operators_of_a_run_load_everything_or_nothing(tmp_path: Path, between: tuple[Any, ...]) -> None:
    put(a=1, b=2)
    exe = fluid.Executor()
    exe.run(program_of(save("a", tmp_path / "m/a"), save("b", tmp_path / "m/b")))
    put(a=5, c=7)
    with pytest.raises(
        MissingFileError, match=r"1 of 2 files cannot be loaded\n  c: .*/m/nothing: there is no such"
    ):
        exe.run(program_of(load("a", tmp_path / "m/a"), *between, load("c", tmp_path / "m/nothing")))
    assert (get("a"), get("c")) == ([5.0, 5.0], [7.0, 7.0])
    (tmp_path / "m" / "b").write_bytes(b"no tensor at all")
    with pytest.raises(LoadError, match="/m/b"):
        exe.run(program_of(load("a", tmp_path / "m/a"), *between, load("c", tmp_path / "m/b")))
    assert get("a") == [5.0, 5.0]


def test_an_error_of_a_run_names_the_line_that_made_the_operator(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"created at .*test_files\.py:\d+ in program_of"):
        fluid.Executor().run(program_of(load("a", tmp_path / "nothing")))


def test_a_file_that_exists_is_not_overwritten_unless_allowed(tmp_path: Path) -> None:
    put(a=1)
    exe = fluid.Executor()
    exe.run(program_of(save("a", tmp_path / "m/a")))
    with pytest.raises(SaveError, match="exists, and overwrite is False"):
        exe.run(program_of(save("a", tmp_path / "m/a", overwrite=False)))


def test_half_precision_is_converted_by_save_and_load_operators(tmp_path: Path) -> None:
    put(a=1.0009765625)
    exe = fluid.Executor()
    exe.run(program_of(save("a", tmp_path / "m/a", save_as_fp16=True), save("a", tmp_path / "m/whole")))
    exe.run(program_of(load("b", tmp_path / "m/a"), load("c", tmp_path / "m/whole", load_as_fp16=True)))
    for name in "bc":
        held = np.array(fluid.global_scope().find_var(name).get_tensor())
        assert held.dtype == np.float16
        assert held.tolist() == [1.0009765625] * 2


def test_a_load_operator_reads_a_part_of_a_file(tmp_path: Path) -> None:
    fluid.global_scope().var("a").get_tensor().set(np.arange(6, dtype=np.float32))
    exe = fluid.Executor()
    exe.run(program_of(save("a", tmp_path / "m/a")))
    exe.run(program_of(load("b", tmp_path / "m/a", seek=2, shape=[2])))
    assert get("b") == [2.0, 3.0]


def test_a_run_saves_combined_files_and_bytes_in_memory(tmp_path: Path) -> None:
    put(a=1, b=2)
    exe = fluid.Executor()
    path = str(tmp_path / "m/all")
    exe.run(program_of(("save_combine", {"X": ["b", "a"]}, {}, {"file_path": path})))
    exe.run(program_of(("load_combine", {}, {"Out": ["a", "c"]}, {"file_path": path})))
    assert (get("a"), get("c")) == ([2.0, 2.0], [1.0, 1.0])
    with pytest.raises(LoadError, match=r"holds 2 variables, the operator load_combine has 1 outputs"):
        exe.run(program_of(("load_combine", {}, {"Out": ["a"]}, {"file_path": path})))


def test_temporary_values_of_a_run_are_saved_too(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        x = fluid.data("x", [None, 2], lod_level=1)
        out = fluid.layers.scale(x, 3.0)
        main.global_block().append_op(
            type="save", inputs={"X": [out]}, attrs={"file_path": str(tmp_path / "m/out")}
        )
    fed = fluid.create_lod_tensor(np.float32([[1, 2], [3, 4]]), [[1, 1]], fluid.CPUPlace())
    fluid.Executor().run(main, feed={"x": fed})
    reader = fluid.Program()
    back = reader.global_block().create_var(name="back", shape=[2, 2], dtype="float32", lod_level=1)
    fluid.Executor().run(reader_of(reader, tmp_path / "m/out"))
    (value,) = fluid.Executor().run(reader, fetch_list=[back], return_numpy=False)
    assert np.array(value).tolist() == [[3, 6], [9, 12]]
    assert value.lod() == [[0, 1, 2]]


def reader_of(program: fluid.Program, path: Path) -> fluid.Program:
    program.global_block().append_op(type="load", outputs={"Out": ["back"]}, attrs={"file_path": str(path)})
    return program


def test_a_run_over_several_directories_commits_each(tmp_path: Path) -> None:
    put(a=1, b=2)
    fluid.Executor().run(program_of(save("a", tmp_path / "x/a"), save("b", tmp_path / "y/b")))
    assert bool(fluid.io.verify(str(tmp_path / "x")))
    assert bool(fluid.io.verify(str(tmp_path / "y")))
