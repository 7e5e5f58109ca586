"""Saving and loading variables: what moves, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import (
    EnforceNotMet,
    LoadError,
    MissingFileError,
    NotInitializedError,
    PaddlelikeError,
    SaveError,
    StorageError,
)

Programs = tuple[fluid.Program, fluid.Program]


def build(size: int = 3, width: int = 4, optimizer: Any = None) -> Programs:
    """A small network under fresh names, so that every call gives the same ones."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, width])
        loss = fluid.layers.mean(fluid.layers.fc(x, size))
        (fluid.optimizer.Momentum(0.1, 0.9) if optimizer is None else optimizer).minimize(loss)
    return main, startup


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


def value(name: str) -> np.ndarray:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def values(program: fluid.Program) -> dict[str, bytes]:
    return {v.name: value(v.name).tobytes() for v in program.list_vars() if fluid.io.is_persistable(v)}


def listed(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != "__manifest__")


NAMES = ["fc_0.b_0", "fc_0.b_0_velocity_0", "fc_0.w_0", "fc_0.w_0_velocity_0", "learning_rate_0"]


# What moves


def test_each_persistable_is_saved_in_its_own_file(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    report = fluid.io.save_persistables(exe, str(tmp_path / "a"), main)
    assert listed(tmp_path / "a") == NAMES
    assert report
    assert sorted(report.saved) == NAMES
    assert report.nbytes == (12 + 12 + 3 + 3 + 1) * 4


def test_save_params_writes_only_parameters(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_params(exe, str(tmp_path / "a"), main)
    assert listed(tmp_path / "a") == ["fc_0.b_0", "fc_0.w_0"]


def test_a_main_program_of_none_means_the_default_program(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    with fluid.program_guard(main):
        fluid.io.save_persistables(exe, str(tmp_path / "none"))
    fluid.io.save_persistables(exe, str(tmp_path / "named"), main)
    for name in NAMES:
        assert (tmp_path / "none" / name).read_bytes() == (tmp_path / "named" / name).read_bytes()


@pytest.mark.parametrize("filename", [None, "all", "deep/er"])
@pytest.mark.parametrize("which", ["main", "startup"])
def test_a_load_into_a_new_scope_restores_every_bit(
    exe: fluid.Executor, tmp_path: Path, filename: str | None, which: str
) -> None:
    main, startup = build()
    exe.run(startup)
    exe.run(main, feed={"x": np.ones((2, 4), "float32")})
    fluid.io.save_persistables(exe, str(tmp_path / "a"), main, filename)
    want = values(main)
    main, startup = build()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        assert values(main) != want
        report = fluid.io.load_persistables(
            exe, str(tmp_path / "a"), main if which == "main" else startup, filename
        )
        assert report
        assert sorted(report.loaded) == NAMES
        assert values(main) == want


def test_a_load_before_startup_makes_the_variables(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    want = values(main)
    with fluid.scope_guard(fluid.Scope()):
        report = fluid.io.load_persistables(exe, str(tmp_path), main)
        assert values(main) == want
        assert not any(moved.had_value for moved in report.loaded.values())
        report = fluid.io.load_persistables(exe, str(tmp_path), main)
        assert all(moved.had_value for moved in report.loaded.values())


def test_startup_after_a_load_replaces_the_values_and_warns(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exe.run(startup)  # nothing was loaded yet: no warning
    fluid.io.load_persistables(exe, str(tmp_path), main)
    with pytest.warns(UserWarning, match="run the startup program before loading"):
        exe.run(startup)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exe.run(startup)  # said once


def test_saving_to_memory_gives_the_bytes_of_a_combined_file(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    data = fluid.io.save_persistables(exe, None, main)
    fluid.io.save_persistables(exe, str(tmp_path), main, "all")
    assert data == (tmp_path / "all").read_bytes()
    want = values(main)
    with fluid.scope_guard(fluid.Scope()):
        assert fluid.io.load_persistables(exe, None, main, filename=data)
        assert values(main) == want


def test_variables_to_save_are_chosen_by_predicate_list_or_name(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    weight = main.global_block().var("fc_0.w_0")
    fluid.io.save_vars(exe, str(tmp_path / "p"), main, predicate=lambda v: "velocity" in v.name)
    assert listed(tmp_path / "p") == ["fc_0.b_0_velocity_0", "fc_0.w_0_velocity_0"]
    fluid.io.save_vars(exe, str(tmp_path / "l"), main, vars=[weight])
    fluid.io.save_vars(exe, str(tmp_path / "g"), main, vars=(v for v in ["fc_0.w_0"]))
    assert listed(tmp_path / "l") == listed(tmp_path / "g") == ["fc_0.w_0"]


def test_unused_files_are_reported_and_left(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    (tmp_path / "notes.txt").write_text("mine")
    report = fluid.io.load_persistables(exe, str(tmp_path), main)
    assert report
    assert report.unexpected == ("notes.txt",)
    assert "notes.txt" in str(report)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_surplus_bytes_of_a_parameter_server_are_ignored(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    want = values(main)
    with (tmp_path / "learning_rate_0").open("ab") as file:
        file.write(bytes(4))
    report = fluid.io.load_persistables(exe, str(tmp_path), main, verify=False)
    assert values(main) == want
    assert any("learning_rate_0" in note for note in report.notes)


def test_selected_rows_are_saved_and_loaded(exe: fluid.Executor, tmp_path: Path) -> None:
    program = fluid.Program()
    rows = program.global_block().create_var(
        name="table", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, shape=[10, 2], dtype="float32",
        persistable=True,
    )  # fmt: skip
    before = fluid.global_scope().var("table").get_selected_rows()
    before.set_rows([7, 0, 7])
    before.set_height(10)
    before.get_tensor().set(np.arange(6, dtype="float32").reshape(3, 2))
    fluid.io.save_vars(exe, str(tmp_path), program, vars=[rows])
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(exe, str(tmp_path), program, vars=[rows])
        after = fluid.global_scope().find_var("table").get_selected_rows()
        assert (after.rows(), after.height()) == ([7, 0, 7], 10)
        np.testing.assert_array_equal(after.get_tensor(), np.arange(6).reshape(3, 2))
    with pytest.raises(SaveError, match="SelectedRows"):
        fluid.io.save_vars(exe, str(tmp_path), program, vars=[rows], filename="all")


def test_a_lod_is_saved_and_loaded(exe: fluid.Executor, tmp_path: Path) -> None:
    program = fluid.Program()
    variable = program.global_block().create_var(
        name="s", shape=[-1, 1], dtype="int64", lod_level=1, persistable=True
    )
    tensor = fluid.create_lod_tensor(np.arange(5).reshape(5, 1), [[2, 3]], fluid.CPUPlace())
    fluid.global_scope().var("s").set_value(tensor)
    fluid.io.save_vars(exe, str(tmp_path), program, vars=[variable])
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_vars(exe, str(tmp_path), program, vars=[variable])
        assert fluid.global_scope().find_var("s").get_tensor().lod() == [[0, 2, 5]]


def test_names_with_slashes_create_directories(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fluid.layers.create_parameter([2], "float32", name="enc/w")
    exe.run(startup)
    fluid.io.save_params(exe, str(tmp_path), main)
    assert (tmp_path / "enc" / "w").is_file()
    assert fluid.io.load_params(exe, str(tmp_path), main)


@pytest.mark.parametrize("name", ["../w", "/w", "a/../../w"])
def test_names_cannot_leave_the_directory(exe: fluid.Executor, tmp_path: Path, name: str) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fluid.layers.create_parameter([2], "float32", name=name)
    exe.run(startup)
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="cannot be a file"):
        fluid.io.save_params(exe, str(tmp_path / "d"), main)
    with pytest.raises((StorageError, LoadError)):
        fluid.io.load_params(exe, str(tmp_path / "d"), main)
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_loading_in_place_keeps_an_array_that_was_fetched(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path), main)
    feed = {"x": np.ones((2, 4), "float32")}
    (fetched,) = exe.run(main, feed=feed, fetch_list=["fc_0.w_0"])
    kept = fetched.copy()
    exe.run(main, feed=feed)
    fluid.io.load_persistables(exe, str(tmp_path), main)
    np.testing.assert_array_equal(fetched, kept)


# What is refused, and that nothing has changed then


def refused(exe: fluid.Executor, directory: Path, program: fluid.Program, **keywords: Any) -> LoadError:
    """Load, expect a refusal, and check that the scope is as it was."""
    scope = fluid.global_scope()
    before = {n: scope.find_var(n).version for n in scope.local_var_names()}
    bits = {n: value(n).tobytes() for n in before}
    with pytest.raises(LoadError) as caught:
        fluid.io.load_persistables(exe, str(directory), program, **keywords)
    assert {n: scope.find_var(n).version for n in scope.local_var_names()} == before
    assert {n: value(n).tobytes() for n in before} == bits
    return caught.value


@pytest.fixture
def saved(exe: fluid.Executor, tmp_path: Path) -> Path:
    main, startup = build()
    exe.run(startup)
    fluid.io.save_persistables(exe, str(tmp_path / "a"), main)
    fluid.io.save_persistables(exe, str(tmp_path / "a.all"), main, "all")
    return tmp_path / "a"


def test_every_missing_file_is_named_at_once(exe: fluid.Executor, saved: Path) -> None:
    (saved / "fc_0.w_0").unlink()
    (saved / "learning_rate_0").unlink()
    error = refused(exe, saved, build()[0])
    assert isinstance(error, MissingFileError | FileNotFoundError)
    assert "2 of 5" in str(error)
    assert "fc_0.w_0" in str(error)
    assert "learning_rate_0" in str(error)


def test_an_error_about_a_shape_names_both_shapes(exe: fluid.Executor, saved: Path) -> None:
    error = refused(exe, saved, build(size=5)[0])
    assert "the file has shape [4, 3], the program wants [4, 5]" in str(error)
    assert "fc_0.w_0_velocity_0" in str(error)  # accumulators are checked as well


def test_an_error_about_a_dtype_names_both_dtypes(exe: fluid.Executor, saved: Path) -> None:
    main, _ = build()
    main.global_block().var("learning_rate_0").dtype = fluid.core.VarDesc.VarType.FP64
    assert "the file holds FP32[1], the program wants FP64[1]" in str(refused(exe, saved, main))


def test_a_missing_directory_is_an_error(exe: fluid.Executor, saved: Path) -> None:
    assert "does not exist" in str(refused(exe, saved / "nowhere", build()[0]))


def test_a_network_built_twice_is_recognised(exe: fluid.Executor, saved: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard():
        for _ in range(2):
            main, startup = fluid.Program(), fluid.Program()
            with fluid.program_guard(main, startup):
                loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
                fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    assert "built twice" in str(refused(exe, saved, main))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"\x80\x02}q\x00.", "pickle", id="pdparams"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(50), "PNG", id="png"),
        pytest.param(b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS", id="lfs"),
        pytest.param(b"<!DOCTYPE html><html>" + bytes(50), "web page", id="html"),
        pytest.param(b"PK\x03\x04" + bytes(60), "zip", id="zip"),
        pytest.param(b"", "empty", id="empty"),
    ],
)
def test_loading_a_file_that_is_not_a_tensor_says_so(
    exe: fluid.Executor, saved: Path, content: bytes, words: str
) -> None:
    (saved / "fc_0.w_0").write_bytes(content)
    assert words.lower() in str(refused(exe, saved, build()[0])).lower()


def test_a_cut_file_is_refused(exe: fluid.Executor, saved: Path) -> None:
    whole = (saved / "fc_0.w_0").read_bytes()
    for length in (1, 11, 20, 30, len(whole) - 1):
        (saved / "fc_0.w_0").write_bytes(whole[:length])
        refused(exe, saved, build()[0])


@pytest.mark.parametrize("change", ["short", "long", "cut"])
def test_a_combined_file_of_another_program_is_refused(exe: fluid.Executor, saved: Path, change: str) -> None:
    path = saved.parent / "a.all" / "all"
    data = path.read_bytes()
    path.write_bytes({"short": data[: -28 - 0], "long": data + data[-28:], "cut": data[:-3]}[change])
    refused(exe, path.parent, build()[0], filename="all")


def test_load_persistables_refuses_a_save_of_parameters(exe: fluid.Executor, saved: Path) -> None:
    main, _ = build()
    fluid.io.save_params(exe, str(saved.parent), main, "params")
    error = refused(exe, saved.parent, main, filename="params")
    assert "holds 2 variables, the program needs 5" in str(error)


def test_loading_no_variable_raises_and_saving_none_warns(exe: fluid.Executor, tmp_path: Path) -> None:
    startup_only = fluid.Program()
    startup_only.global_block().create_var(name="x", shape=[2], dtype="float32")
    with pytest.raises(LoadError, match="nothing to load"):
        fluid.io.load_persistables(exe, str(tmp_path), startup_only)
    with pytest.warns(UserWarning, match="nothing is loaded from .*: the program is empty"):
        assert not fluid.io.load_persistables(exe, str(tmp_path), fluid.Program()).loaded
    with pytest.warns(UserWarning, match="nothing is saved to .*: the program has no persistable variable"):
        assert fluid.io.save_persistables(exe, str(tmp_path / "new"), fluid.Program()) is None
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("choice", [{"predicate": lambda variable: False}, {"vars": []}])
def test_loading_an_empty_selection_of_variables_warns(
    exe: fluid.Executor, tmp_path: Path, choice: dict[str, Any]
) -> None:
    """As in scripts whose predicate asks whether a pretrained file exists, and which go on without."""
    main, _ = build()
    with pytest.warns(UserWarning, match="no variable was chosen, and nothing is loaded from .*nowhere"):
        report = fluid.io.load_vars(exe, str(tmp_path / "nowhere"), main, **choice)
    assert not report.loaded
    assert report.notes == ("no variable was chosen",)


def test_every_load_error_is_an_enforce_not_met(exe: fluid.Executor, tmp_path: Path) -> None:
    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.io.load_persistables(exe, str(tmp_path / "nowhere"), build()[0])
    assert issubclass(LoadError, EnforceNotMet)


def test_a_save_without_values_writes_nothing(exe: fluid.Executor, tmp_path: Path) -> None:
    main, _ = build()
    with pytest.raises(NotInitializedError, match="holds no value"):
        fluid.io.save_persistables(exe, str(tmp_path / "a"), main)
    assert not (tmp_path / "a").exists()


def test_a_save_onto_a_file_is_refused(exe: fluid.Executor, tmp_path: Path) -> None:
    main, startup = build()
    exe.run(startup)
    (tmp_path / "a").write_text("a file")
    with pytest.raises(SaveError, match="is a file"):
        fluid.io.save_persistables(exe, str(tmp_path / "a"), main)
    assert (tmp_path / "a").read_text() == "a file"


def test_a_failed_save_leaves_the_old_files(exe: fluid.Executor, saved: Path) -> None:
    main, _ = build()
    old = {p.name: p.read_bytes() for p in saved.iterdir()}
    (saved / "learning_rate_0").unlink()
    (saved / "learning_rate_0").mkdir()
    exe.run(main, feed={"x": np.ones((2, 4), "float32")})
    with pytest.raises(SaveError):
        fluid.io.save_persistables(exe, str(saved), main)
    (saved / "learning_rate_0").rmdir()
    for name, data in old.items():
        if name != "learning_rate_0":
            assert (saved / name).read_bytes() == data
    names = sorted(p.name for p in saved.parent.iterdir())
    assert names == ["a", "a.all"]


def test_wrong_arguments_are_type_errors(exe: fluid.Executor, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="executor"):
        fluid.io.save_persistables(None, str(tmp_path), fluid.Program())
    with pytest.raises(TypeError, match="main_program"):
        fluid.io.load_persistables(exe, str(tmp_path), "main")
    with pytest.raises(TypeError, match="dirname"):
        fluid.io.save_persistables(exe, None, fluid.Program(), "all")


# Parameters alone


def test_load_params_into_a_training_program_warns(exe: fluid.Executor, saved: Path) -> None:
    main, _ = build()
    with pytest.warns(UserWarning, match=r"clone\(for_test=True\)"):
        fluid.io.load_params(exe, str(saved), main)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fluid.io.load_params(exe, str(saved), main.clone(for_test=True))


def test_a_parameter_stays_persistable() -> None:
    main, _ = build()
    with pytest.raises(ValueError, match="must stay persistable"):
        main.global_block().var("fc_0.w_0").persistable = False


@pytest.mark.parametrize("other", ["a//b", "a/./b", "./a/b"])
def test_two_variables_with_one_file_name_are_refused(tmp_path: Path, other: str) -> None:
    program = fluid.Program()
    with fluid.scope_guard(fluid.Scope()):
        for name in ("a/b", other):
            program.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
            fluid.global_scope().var(name).get_tensor().set(np.zeros(2, "float32"))
        with pytest.raises(SaveError, match="both would be 'a/b'"):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "m"), program)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("names", [["x\udcff"], ["x", "x\udcff"]], ids=["alone", "like another"])
def test_a_name_that_is_not_valid_utf8_raises_a_package_error(tmp_path: Path, names: list[str]) -> None:
    program = fluid.Program()
    with fluid.scope_guard(fluid.Scope()):
        for name in names:
            program.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
            fluid.global_scope().var(name).get_tensor().set(np.zeros(2, "float32"))
        with pytest.raises(PaddlelikeError, match="UTF-8"):
            fluid.save(program, str(tmp_path / "m"))
        with pytest.raises(PaddlelikeError, match="UTF-8"):
            fluid.io.save_persistables(fluid.Executor(), str(tmp_path / "m"), program)
    assert list(tmp_path.iterdir()) == []
