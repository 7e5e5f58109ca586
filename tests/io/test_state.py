"""fluid.save, load, load_program_state, set_program_state: all or nothing, and what they read besides."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError, MissingFileError, NotInitializedError

X = np.ones((2, 4), "float32")
NAMES = ["fc_0.b_0", "fc_0.b_0_velocity_0", "fc_0.w_0", "fc_0.w_0_velocity_0", "learning_rate_0"]


def build(size: int = 3) -> fluid.Program:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), size))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    main.startup = startup
    return main


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with fluid.scope_guard(fluid.Scope()):
        yield


@pytest.fixture
def exe() -> fluid.Executor:
    return fluid.Executor()


@pytest.fixture
def main(exe: fluid.Executor) -> fluid.Program:
    program = build()
    exe.run(program.startup)
    return program


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def bits() -> dict[str, bytes]:
    return {name: value(name).tobytes() for name in NAMES}


def versions() -> dict[str, int]:
    return {name: fluid.global_scope().find_var(name).version for name in NAMES}


def test_save_writes_three_files_and_load_restores_every_bit(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    exe.run(main, feed={"x": X})
    report = fluid.save(main, str(tmp_path / "deep" / "net"))
    assert report
    assert sorted(report.saved) == NAMES
    files = [name for name in names(tmp_path / "deep") if "manifest" not in name]
    assert sorted(files) == ["net.pdmodel", "net.pdopt", "net.pdparams"]
    want = bits()
    exe.run(main, feed={"x": X})
    assert bits() != want
    assert sorted(fluid.load(main, str(tmp_path / "deep" / "net"), exe).loaded) == NAMES
    assert bits() == want


def test_a_prefix_with_two_dots_after_a_link_is_resolved_as_by_the_system(
    main: fluid.Program, tmp_path: Path
) -> None:
    (tmp_path / "deep" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("deep/inner")
    prefix = f"{tmp_path}/link/../net"
    fluid.save(main, prefix)
    assert names(tmp_path / "deep")[1:] == ["net.pdmanifest", "net.pdmodel", "net.pdopt", "net.pdparams"]
    assert names(tmp_path) == ["deep", "link"]
    assert fluid.load(main, prefix)


@pytest.mark.parametrize("suffix", ["", ".pdparams", ".pdopt", ".pdmodel"])
def test_load_accepts_a_path_with_suffix(main: fluid.Program, tmp_path: Path, suffix: str) -> None:
    fluid.save(main, str(tmp_path / "net"))
    assert fluid.load(main, str(tmp_path / "net") + suffix)
    assert sorted(fluid.load_program_state(str(tmp_path / "net") + suffix)) == NAMES


def test_the_files_are_pickles_of_arrays_for_any_paddle(main: fluid.Program, tmp_path: Path) -> None:
    fluid.save(main, str(tmp_path / "net"))
    parameters = pickle.loads((tmp_path / "net.pdparams").read_bytes())
    assert sorted(parameters) == ["fc_0.b_0", "fc_0.w_0"]
    np.testing.assert_array_equal(parameters["fc_0.w_0"], value("fc_0.w_0"))
    assert sorted(pickle.loads((tmp_path / "net.pdopt").read_bytes())) == sorted(
        set(NAMES) - {"fc_0.b_0", "fc_0.w_0"}
    )
    program = fluid.Program.parse_from_string((tmp_path / "net.pdmodel").read_bytes())
    assert [op.type for op in program.global_block().ops] == [op.type for op in main.global_block().ops]


def test_a_load_before_startup_makes_the_variables(main: fluid.Program, tmp_path: Path) -> None:
    fluid.save(main, str(tmp_path / "net"))
    want = bits()
    with fluid.scope_guard(fluid.Scope()):
        fluid.load(main, str(tmp_path / "net"))
        assert bits() == want


def refused(kind: type[BaseException], call: Any, *args: Any, **keywords: Any) -> str:
    """Expect a refusal that leaves the scope as it was; its text."""
    before = bits(), versions()
    with pytest.raises(kind) as caught:
        call(*args, **keywords)
    assert (bits(), versions()) == before
    return str(caught.value)


def test_loading_the_state_of_another_network_sets_nothing(
    exe: fluid.Executor, main: fluid.Program, tmp_path: Path
) -> None:
    other = build(5)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(other.startup)
        fluid.save(other, str(tmp_path / "net"))
    text = refused(LoadError, fluid.load, main, str(tmp_path / "net"))
    for part in (
        "fc_0.w_0: the file has shape [4, 5], the program wants [4, 3]",
        "4 of 5 variables do not fit",
    ):
        assert part in text


def test_missing_variables_are_listed_with_near_names(main: fluid.Program, tmp_path: Path) -> None:
    fluid.save(main, str(tmp_path / "net"))
    state = pickle.loads((tmp_path / "net.pdparams").read_bytes())
    state["fc_9.w_0"] = state.pop("fc_0.w_0")
    (tmp_path / "net.pdparams").write_bytes(pickle.dumps(state, protocol=2))
    (tmp_path / "net.pdmanifest").unlink()
    text = refused(LoadError, fluid.load, main, str(tmp_path / "net"))
    assert "fc_0.w_0: not in the file; did you mean " in text


def test_missing_files_and_values_are_errors(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    refused(MissingFileError, fluid.load, main, str(tmp_path / "nowhere"), exe)
    refused(FileNotFoundError, fluid.load_program_state, str(tmp_path / "nowhere"))
    refused(AssertionError, fluid.save, main, str(tmp_path) + "/")


def test_a_network_without_values_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotInitializedError, match="startup"):
        fluid.save(build(), str(tmp_path / "net"))
    assert names(tmp_path) == []


def test_loading_a_pickle_runs_none_of_its_code(main: fluid.Program, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (os.mkdir, (str(tmp_path / "owned"),))

    fluid.save(main, str(tmp_path / "net"))
    (tmp_path / "net.pdparams").write_bytes(pickle.dumps({"fc_0.w_0": Evil()}, protocol=2))
    refused(fluid.core.EnforceNotMet, fluid.load, main, str(tmp_path / "net"))
    assert not (tmp_path / "owned").exists()


# Older forms


def test_fluid_load_reads_the_matching_files_of_a_directory(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    fluid.io.save_params(exe, str(tmp_path), main)
    want = value("fc_0.w_0")
    exe.run(main, feed={"x": X})
    refused(ValueError, fluid.load, main, str(tmp_path))
    assert sorted(fluid.load(main, str(tmp_path), exe).loaded) == ["fc_0.b_0", "fc_0.w_0"]
    np.testing.assert_array_equal(value("fc_0.w_0"), want)


def test_fluid_load_of_a_combined_file_requires_var_list(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    fluid.io.save_persistables(exe, str(tmp_path), main, "all")
    path = str(tmp_path / "all")
    variables = [v for v in main.list_vars() if fluid.io.is_persistable(v)]
    refused(ValueError, fluid.load, main, path, exe)
    refused(ValueError, fluid.load_program_state, path)
    refused(LoadError, fluid.load_program_state, path, variables[:2])
    want = bits()
    exe.run(main, feed={"x": X})
    assert sorted(fluid.load(main, path, exe, variables).loaded) == NAMES
    assert bits() == want
    assert sorted(fluid.load_program_state(path, variables)) == NAMES


def test_fluid_load_of_a_file_with_none_of_the_variables_is_an_error(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    np.savez(tmp_path / "other.npz", a=np.ones(3, "float32"))
    with pytest.raises(LoadError, match="the file has no such variable"):
        fluid.load(main, tmp_path / "other.npz", exe)


def test_a_directory_is_read_as_a_state(main: fluid.Program, exe: fluid.Executor, tmp_path: Path) -> None:
    fluid.io.save_persistables(exe, str(tmp_path), main)
    state = fluid.load_program_state(str(tmp_path))
    assert {name: array.tobytes() for name, array in state.items()} == bits()
    chosen = [main.global_block().var("fc_0.w_0")]
    assert list(fluid.load_program_state(str(tmp_path), chosen)) == ["fc_0.w_0"]


def test_the_path_of_a_directory_may_end_in_a_slash(
    main: fluid.Program, exe: fluid.Executor, tmp_path: Path
) -> None:
    fluid.io.save_persistables(exe, str(tmp_path), main)
    assert sorted(fluid.load_program_state(f"{tmp_path}/")) == NAMES
    assert sorted(fluid.load(main, f"{tmp_path}/", exe).loaded) == NAMES
    for load in (fluid.load_program_state, lambda path: fluid.load(main, path, exe)):
        refused(MissingFileError, load, f"{tmp_path}/nowhere/")


# Setting states


def test_set_program_state_changes_only_the_given_variables(main: fluid.Program) -> None:
    bias = value("fc_0.b_0")
    report = fluid.set_program_state(main, {"fc_0.w_0": np.full((4, 3), 2, "float32")})
    assert list(report.loaded) == ["fc_0.w_0"]
    assert (value("fc_0.w_0") == 2).all()
    np.testing.assert_array_equal(value("fc_0.b_0"), bias)


def test_unknown_names_cause_a_warning(main: fluid.Program) -> None:
    state = {"fc_0.b_0": np.ones(3, "float32"), "nobody": np.ones(3, "float32")}
    with pytest.warns(UserWarning, match="nobody"):
        assert fluid.set_program_state(main, state).unexpected == ("nobody",)


@pytest.mark.parametrize(
    "bad", [np.ones((4, 5), "float32"), np.ones((4, 3), "float64")], ids=["shape", "dtype"]
)
def test_set_program_state_with_one_wrong_shape_sets_nothing(main: fluid.Program, bad: Any) -> None:
    state = {"fc_0.b_0": np.ones(3, "float32"), "fc_0.w_0": bad}
    assert "fc_0.w_0: " in refused(LoadError, fluid.set_program_state, main, state)


def test_a_state_without_a_known_name_is_an_error(main: fluid.Program) -> None:
    refused(LoadError, fluid.set_program_state, main, {"nobody": np.ones(3, "float32")})
    refused(LoadError, fluid.set_program_state, main, {})


def test_a_state_before_startup_is_refused() -> None:
    with pytest.raises(NotInitializedError, match="startup"):
        fluid.set_program_state(build(), {"fc_0.b_0": np.ones(3, "float32")})


def test_changing_the_given_arrays_later_does_not_change_the_program(main: fluid.Program) -> None:
    mine = np.ones(3, "float32")
    fluid.set_program_state(main, {"fc_0.b_0": mine})
    mine[:] = 9
    assert (value("fc_0.b_0") == 1).all()
