"""Loads into the arrays that the variables have already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from tests.io.loading import executor, own, program_of, unchanged, value

SHAPE = (256, 1024)
PROGRAM = {"a": (SHAPE, "float32"), "b": (SHAPE, "float32"), "small": ([10], "float32")}


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        for name, (shape, _) in PROGRAM.items():
            fluid.global_scope().var(name).get_tensor().set(np.full(shape, -1, np.float32))
        yield fluid.global_scope()


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.random(shape, np.float32) for name, (shape, _) in PROGRAM.items()}
    for name, array in arrays.items():
        own(tmp_path, name, array)
    return arrays


def get_array(name: str) -> np.ndarray:
    return fluid.global_scope().find_var(name).get_tensor().held_array


def load(directory: Path, filename: str | None = None, **choices: bool) -> fluid.io.LoadReport:
    program = program_of(**PROGRAM)
    return fluid.io.load_persistables(executor(), directory, program, filename, in_place=True, **choices)


def test_loading_in_place_keeps_the_arrays_and_sets_their_values(
    tmp_path: Path, saved: dict[str, np.ndarray]
) -> None:
    before = {name: (get_array(name), fluid.global_scope().find_var(name).version) for name in ("a", "b")}
    assert load(tmp_path)
    for name, (array, version) in before.items():
        assert get_array(name) is array
        assert fluid.global_scope().find_var(name).version > version
    for name, array in saved.items():
        np.testing.assert_array_equal(value(name), array)


def test_combined_files_are_loaded_in_place(tmp_path: Path) -> None:
    shape, program = (5 << 10, 1024), program_of(a=((5 << 10, 1024), "float32"))
    tensor = fluid.global_scope().find_var("a").get_tensor()
    tensor.set(np.ones(shape, np.float32))
    fluid.io.save_persistables(executor(), tmp_path / "d", program, "all")
    array = tensor.held_array
    array[...] = 7
    fluid.io.load_persistables(executor(), tmp_path / "d", program, "all", in_place=True)
    assert tensor.held_array is array
    assert array.min() == array.max() == 1


def test_an_array_of_another_form_is_replaced(tmp_path: Path, saved: dict[str, np.ndarray]) -> None:
    fluid.global_scope().find_var("a").get_tensor().set(np.zeros(3, np.float32))
    fluid.global_scope().find_var("b").get_tensor().set(np.zeros(SHAPE, np.float64))
    assert load(tmp_path)
    for name in ("a", "b"):
        np.testing.assert_array_equal(value(name), saved[name])
        assert value(name).dtype == np.float32


def test_an_error_found_in_the_headers_changes_nothing(tmp_path: Path, saved: dict[str, np.ndarray]) -> None:
    own(tmp_path, "b", np.ones((2, 2), np.float32))
    with pytest.raises(LoadError, match="b") as caught:
        unchanged(lambda: load(tmp_path))
    assert "mix" not in str(caught.value)


def test_an_in_place_load_that_fails_verification_reports_mixed_values(tmp_path: Path) -> None:
    program = program_of(**PROGRAM)
    fluid.io.save_persistables(executor(), tmp_path / "d", program)
    path = tmp_path / "d" / "b"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(LoadError, match=r"up to 3 variables now hold a mix of old and new values"):
        load(tmp_path / "d", verify=True)


def test_the_next_save_writes_the_values_loaded_in_place(
    tmp_path: Path, saved: dict[str, np.ndarray]
) -> None:
    program, other = program_of(**PROGRAM), tmp_path / "other"
    fluid.io.save_persistables(executor(), other, program)
    load(tmp_path)
    fluid.io.save_persistables(executor(), other, program)
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(executor(), other, program, verify=True)
        for name, array in saved.items():
            np.testing.assert_array_equal(value(name), array)
