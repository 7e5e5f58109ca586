"""Bundles that we write: numpy reads the arrays, the real Theano's layout, stable names."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import bundle
from paddlelike.errors import SaveError
from tests.bundle.models import Affine, Attributes


def members(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_arrays_are_named_after_the_attribute_or_key_that_holds_them(tmp_path: Path) -> None:  # T14, T17, T21
    model = Attributes()
    model.weights = np.ones((2, 3))  # type: ignore[attr-defined]
    model.parts = {"enc/W": np.zeros(2), "layer1.b": np.ones(1)}  # type: ignore[attr-defined]
    model.list = [np.arange(3)]  # type: ignore[attr-defined]
    bundle.dump(model, tmp_path / "m.zip")
    assert members(tmp_path / "m.zip") == ["weights", "enc/W", "layer1.b", "array_0", "pkl"]
    again = bundle.load(tmp_path / "m.zip", classes=[Attributes])
    np.testing.assert_array_equal(again.parts["layer1.b"], [1])
    with np.load(tmp_path / "m.zip") as seen:
        np.testing.assert_array_equal(seen["enc/W"], [0, 0])


def test_values_of_a_scope_are_named_after_their_variables(tmp_path: Path) -> None:  # T17, T24
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr="w", bias_attr="b")
        fluid.Executor().run(fluid.default_startup_program())
        values = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in "wb"}
        bundle.dump(values, tmp_path / "params.zip")
    assert members(tmp_path / "params.zip") == ["w", "b", "pkl"]
    np.testing.assert_array_equal(np.load(tmp_path / "params.zip")["w"], values["w"])


def test_names_never_collide(tmp_path: Path) -> None:  # T21: where Theano loses an array
    names = ["x", "x", "x_2", "array_0", "pkl", "x"]
    holders = []
    for index, name in enumerate(names):
        one = Attributes()
        one.name, one.value = name, np.full(2, float(index))  # type: ignore[attr-defined]
        holders.append(one)
    bundle.dump([*holders, np.full(2, 9.0)], tmp_path / "m.zip")
    found = members(tmp_path / "m.zip")
    assert found == ["x", "x_2", "x_2_2", "array_0", "pkl_2", "x_3", "array_1", "pkl"]
    *again, bare = bundle.load(tmp_path / "m.zip", classes=[Attributes])
    assert [one.value[0] for one in again] == [0, 1, 2, 3, 4, 5]
    assert bare[0] == 9


def test_options_make_unnamed_and_duplicate_arrays_errors(tmp_path: Path) -> None:  # T22
    with pytest.raises(SaveError, match=r"has no name"):
        bundle.dump([np.ones(2)], tmp_path / "m.zip", allow_unnamed=False)
    with pytest.raises(SaveError, match="two arrays are called 'W'"):
        bundle.dump([{"W": np.ones(2)}, {"W": np.zeros(2)}], tmp_path / "m.zip", allow_duplicates=False)
    assert list(tmp_path.iterdir()) == []


def test_a_shared_array_is_stored_once_and_loaded_as_one_object(tmp_path: Path) -> None:  # T23
    array = np.arange(5)
    bundle.dump({"a": array, "b": [array, array]}, tmp_path / "m.zip")
    assert members(tmp_path / "m.zip") == ["a", "pkl"]
    again = bundle.load(tmp_path / "m.zip")
    assert again["a"] is again["b"][0] is again["b"][1]


@pytest.mark.parametrize("protocol", range(5))
def test_every_pickle_protocol_is_read_back(protocol: int) -> None:  # T05, T19
    value = {"f": np.asfortranarray(np.ones((2, 3))), "zero": np.array(2.5), "empty": np.zeros((0, 3), "f4"),
             "big": np.arange(3, dtype=">i4"), "text": np.array(["a", "bcd"]), "scalar": np.float32(0.5),
             "plain": [1, 2.5, "three", None, b"x", (True,), {4}, 1 + 2j]}  # fmt: skip
    file = io.BytesIO()
    bundle.dump(value, file, protocol)
    again = bundle.load(file)
    for name in ("f", "zero", "empty", "big", "text"):
        np.testing.assert_array_equal(again[name], value[name])
        assert (again[name].dtype, again[name].flags.f_contiguous) == (
            value[name].dtype, value[name].flags.f_contiguous)  # fmt: skip
    assert (again["scalar"], type(again["scalar"])) == (0.5, np.float32)
    assert again["plain"] == value["plain"]


def test_equal_objects_give_equal_bytes() -> None:
    def dumped() -> bytes:
        file = io.BytesIO()
        bundle.dump({"W": np.ones((20, 30)), "n": 3}, file)
        return file.getvalue()

    assert dumped() == dumped()


def test_a_failing_dump_leaves_the_old_file(tmp_path: Path) -> None:
    bundle.dump([1], tmp_path / "m.zip")
    before = (tmp_path / "m.zip").read_bytes()
    with pytest.raises(SaveError, match="holds objects"):
        bundle.dump([np.array([1, None])], tmp_path / "m.zip")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        bundle.dump([lambda: 0], tmp_path / "m.zip")
    assert (tmp_path / "m.zip").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.zip"]


def test_text_handles_are_refused(tmp_path: Path) -> None:  # T06, T26
    with (tmp_path / "m").open("w") as text:
        with pytest.raises(SaveError, match="mode 'wb'"):
            bundle.dump([1], text)  # type: ignore[arg-type]
        with pytest.raises(SaveError, match="mode 'wb'"):
            bundle.dump_all(text, [1])  # type: ignore[arg-type]
    with (tmp_path / "m").open("wb") as binary:
        bundle.dump([1], binary)
    assert bundle.load(tmp_path / "m") == [1]


def test_several_objects_go_into_one_file(tmp_path: Path) -> None:  # T05, T08
    objects: list[Any] = [np.arange(4), {"epoch": 7}, Affine(np.ones(2), 3)]
    bundle.dump_all(tmp_path / "objects", objects)
    array, plain, affine = bundle.load_all(tmp_path / "objects", classes=[Affine])
    np.testing.assert_array_equal(array, objects[0])
    assert (plain, affine.b) == (objects[1], 3)
    with (tmp_path / "objects").open("rb") as file:
        np.testing.assert_array_equal(pickle.load(file), objects[0])  # Python's own reader


def test_a_persistent_id_function_of_the_caller_is_used() -> None:  # T14
    seen: list[Any] = []

    def find_id(archive: zipfile.ZipFile) -> Any:
        def persistent_id(obj: Any) -> str | None:
            if isinstance(obj, np.ndarray):
                seen.append(obj)
                return f"mine.{len(seen)}"
            return None

        return persistent_id

    file = io.BytesIO()
    bundle.dump([np.ones(2), np.zeros(3)], file, persistent_id=find_id)
    again = bundle.load(file, persistent_load=lambda archive: lambda key: seen[int(key.split(".")[1]) - 1])
    assert [a.shape for a in again] == [(2,), (3,)]
