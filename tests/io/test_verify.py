"""Loads that compare with the manifest: every change is found, by name, and the scope stays as it was."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.io.contents import file as file_contents
from paddlelike.storage.local import manifest_file
from tests.io.loading import executor, network, program_of, save, unchanged, value, values

F32 = "float32"


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Small values, one of 200 kB, and one of SelectedRows."""
    program = mixed()
    scope = fluid.global_scope()
    rng = np.random.default_rng(0)
    for name, shape in (("big", (200, 256)), ("small", (7,)), ("unaligned", (64, 1024))):
        scope.var(name).get_tensor().set(rng.random(shape, F32))
    rows = scope.var("rows").get_selected_rows()
    rows.set_rows([5, 1])
    rows.set_height(9)
    rows.get_tensor().set(rng.random((2, 3), F32))
    fluid.io.save_persistables(executor(), tmp_path / "a", program)
    return tmp_path / "a"


def mixed() -> fluid.Program:
    program = program_of(big=([200, 256], F32), small=([7], F32), unaligned=([64, 1024], F32))
    program.global_block().create_var(
        name="rows", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, shape=[9, 3], dtype=F32, persistable=True
    )
    return program


def load(directory: Path, program: fluid.Program, **keywords: Any) -> fluid.io.LoadReport:
    return fluid.io.load_persistables(executor(), directory, program, verify=True, **keywords)


def test_a_load_reports_that_the_files_were_verified(saved: Path) -> None:
    before = value("big")
    fluid.global_scope().find_var("big").get_tensor().set(np.zeros_like(before))
    report = load(saved, mixed())
    assert report
    assert report.verified
    assert "compared with the manifest" in str(report)
    np.testing.assert_array_equal(value("big"), before)
    assert fluid.global_scope().find_var("rows").get_selected_rows().rows() == [5, 1]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data())
def test_every_flipped_bit_is_found_by_name(saved: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["big", "small", "unaligned", "rows"]))
    path = saved / name
    good = path.read_bytes()
    bit = data.draw(st.integers(0, 8 * len(good) - 1))
    bad = bytearray(good)
    bad[bit // 8] ^= 1 << bit % 8
    facts = path.stat()
    with path.open("r+b") as file:
        file.write(bad)
    try:
        lazily = data.draw(st.booleans())
        with pytest.raises(LoadError, match=rf"(?m)^  {name}: "):
            unchanged(lambda: load(saved, mixed(), lazy=lazily))
        result = fluid.io.verify(saved)
        assert (bool(result), result.changed) == (False, (name,))
    finally:
        with path.open("r+b") as file:
            file.write(good)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert load(saved, mixed())


def test_a_load_verifies_by_default_and_verify_false_skips_it(saved: Path) -> None:
    assert fluid.io.load_persistables(executor(), saved, mixed()).verified
    flip(saved / "big", -1)
    with pytest.raises(LoadError, match="big: its bytes"):
        unchanged(lambda: fluid.io.load_persistables(executor(), saved, mixed()))
    assert not fluid.io.load_persistables(executor(), saved, mixed(), verify=False).verified


def test_a_file_without_a_record_is_loaded_by_default_and_not_verified(saved: Path) -> None:
    (saved / "other").write_bytes((saved / "small").read_bytes())
    program = program_of(other=([7], F32), big=([200, 256], F32))
    report = fluid.io.load_persistables(executor(), saved, program)
    assert (bool(report), report.verified) == (True, False)


def test_files_newer_than_the_manifest_are_loaded(saved: Path, tmp_path: Path) -> None:
    for path in saved.iterdir():  # as real Paddle does, which knows no manifest
        if path.name in ("big", "small", "unaligned"):
            flip(path, -1)
    os.utime(saved / "rows")
    os.utime(saved / "counts") if (saved / "counts").exists() else None
    with pytest.warns(UserWarning, match="which belongs to another save: not verified"):
        report = fluid.io.load_persistables(executor(), saved, mixed())
    assert (bool(report), report.verified) == (True, False)
    assert any("belongs to another save" in note for note in report.notes)
    dense = [mixed().global_block().var(name) for name in ("big", "small", "unaligned")]
    with pytest.warns(UserWarning, match="which belongs to another save: not verified"):  # there is no report
        assert len(fluid.io.load_program_state(saved, dense)) == 3


def test_large_files_of_another_save_are_read_to_their_end(tmp_path: Path) -> None:
    """They are compared piece by piece; the first piece that differs must not be the last that is read."""
    program = program_of(
        table=([1000, 700], F32), other=([900, 900], F32)
    )  # 2.8 MB and 3.2 MB: 3 and 4 pieces
    want = {}
    for which, number in (("old", 1.0), ("new", 2.0)):
        for name, shape in (("table", (1000, 700)), ("other", (900, 900))):
            want[name] = np.full(shape, number, F32)
            fluid.global_scope().var(name).get_tensor().set(want[name])
        fluid.io.save_persistables(executor(), tmp_path / which, program)
    shutil.copy(tmp_path / "old" / "__manifest__", tmp_path / "new" / "__manifest__")
    for name, array in want.items():
        fluid.global_scope().find_var(name).get_tensor().set(np.full_like(array, -1.0))
    with pytest.warns(UserWarning, match="which belongs to another save: not verified"):
        fluid.io.load_persistables(executor(), tmp_path / "new", program)
    for name, array in want.items():
        np.testing.assert_array_equal(value(name), array)


def test_a_damaged_manifest_is_named_in_the_report(saved: Path) -> None:
    flip(saved / "__manifest__", 40)
    with pytest.warns(UserWarning, match="the files were not verified"):
        report = fluid.io.load_persistables(executor(), saved, mixed())
    assert (bool(report), report.verified) == (True, False)
    assert any("the files were not verified" in note for note in report.notes)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_every_bad_file_is_named_at_once(saved: Path) -> None:
    flip(saved / "big", -1)
    flip(saved / "small", 0)  # a header that cannot be read either
    with (saved / "rows").open("ab") as file:
        file.write(b"surplus")
    with pytest.raises(LoadError) as caught:
        unchanged(lambda: load(saved, mixed()))
    text = str(caught.value)
    for words in (
        "big: its bytes are not those",
        "small: its bytes are not",
        r"rows: it has \d+ bytes, \d+ were saved",
    ):
        assert re.search(words, text), text
    assert "unaligned" not in text


def test_a_file_that_the_manifest_does_not_know_cannot_be_verified(saved: Path) -> None:
    (saved / "other").write_bytes((saved / "small").read_bytes())
    program = program_of(other=([7], F32), big=([200, 256], F32))
    with pytest.raises(LoadError, match="other: the manifest has no record of this file"):
        unchanged(lambda: load(saved, program))
    assert fluid.io.verify(saved).extra == ("other",)


def test_a_missing_file_is_reported_as_missing(saved: Path) -> None:
    (saved / "small").unlink()
    with pytest.raises(LoadError, match="small: there is no such file"):
        unchanged(lambda: load(saved, mixed()))


def test_without_a_manifest_a_verified_load_is_refused_and_a_plain_load_works(saved: Path) -> None:
    (saved / "__manifest__").unlink()
    with pytest.raises(LoadError, match="it has no manifest"):
        unchanged(lambda: load(saved, mixed()))
    assert fluid.io.load_persistables(executor(), saved, mixed())
    result = fluid.io.verify(saved)
    assert not result
    assert "no manifest" in str(result)


def test_a_damaged_manifest_is_not_trusted(saved: Path) -> None:
    flip(saved / "__manifest__", 40)
    with pytest.raises(LoadError, match="cannot be trusted"):
        unchanged(lambda: load(saved, mixed()))
    with pytest.warns(UserWarning, match="__manifest__ cannot be trusted: a manifest of .* is damaged"):
        assert fluid.io.load_persistables(executor(), saved, mixed())


def test_a_manifest_of_another_save_is_explained(saved: Path, tmp_path: Path) -> None:
    for name in ("big", "small", "unaligned"):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.asarray(tensor) + 1)
    fluid.global_scope().find_var("rows").get_selected_rows().set_height(10)
    fluid.io.save_persistables(executor(), tmp_path / "b", mixed())
    (tmp_path / "b" / "__manifest__").replace(tmp_path / "a" / "__manifest__")
    with pytest.raises(LoadError, match="probably belongs to another save"):
        unchanged(lambda: load(saved, mixed()))


def test_a_concurrent_save_does_not_count_as_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S10"""
    program = program_of(small=([7], F32), other=([9], F32))

    def save_all(number: float) -> None:
        for name, size in (("small", 7), ("other", 9)):
            fluid.global_scope().var(name).get_tensor().set(np.full(size, number, F32))
        fluid.io.save_persistables(executor(), tmp_path / "a", program)

    def read_before_a_save(*args: Any, **keywords: Any) -> Any:
        monkeypatch.undo()
        found = read(*args, **keywords)
        save_all(2)
        return found

    save_all(1)
    read = manifest_file.read_manifest
    monkeypatch.setattr(manifest_file, "read_manifest", read_before_a_save)
    found = fluid.io.verify(tmp_path / "a")
    assert found, str(found)


@pytest.mark.parametrize("small", [True, False], ids=["read-at-once", "in-parts"])
def test_combined_files_are_compared_too(
    tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_contents, "_SMALL", 1 << 20 if small else 0)
    saved = save(tmp_path / "a", network(), "all")
    main, startup = network()
    executor().run(startup)
    assert fluid.io.load_persistables(executor(), tmp_path / "a", main, "all", verify=True)
    for name, array in values(main).items():
        np.testing.assert_array_equal(array, saved[name])
    good = (tmp_path / "a" / "all").read_bytes()
    for at in (0, 23, len(good) // 2, len(good) - 1):
        (tmp_path / "a" / "all").write_bytes(good)
        flip(tmp_path / "a" / "all", at)
        with pytest.raises(LoadError, match="all"):
            unchanged(
                lambda: fluid.io.load_persistables(executor(), tmp_path / "a", main, "all", verify=True)
            )
    (tmp_path / "a" / "all").write_bytes(good + b"more")
    with pytest.raises(LoadError):
        fluid.io.load_persistables(executor(), tmp_path / "a", main, "all", verify=True)


def test_verifying_a_model_in_memory_is_refused(saved: Path) -> None:
    data = fluid.io.save_vars(executor(), None, mixed(), vars=["small"])
    with pytest.raises(LoadError, match="no manifest"):
        fluid.io.load_vars(executor(), None, mixed(), vars=["small"], filename=data, verify=True)


def test_a_verified_load_of_slices_compares_whole_files(saved: Path) -> None:
    program = program_of(part=([10, 256], F32))
    rules = fluid.io.Rules().rename("big", "part", rows=(0, 10))
    assert load(saved, program, rules=rules)
    flip(saved / "big", -1)  # far from the rows
    with pytest.raises(LoadError, match="big: its bytes"):
        load(saved, program, rules=rules)


def test_states_of_fluid_save_are_verified(tmp_path: Path) -> None:
    program, exe = mixed(), executor()
    program.global_block()._remove_var("rows")
    for variable in program.list_vars():
        array = np.random.default_rng(0).random(variable.shape, F32)
        fluid.global_scope().var(variable.name).get_tensor().set(array)
    fluid.save(program, str(tmp_path / "net"))
    assert fluid.load(program, str(tmp_path / "net"), exe).verified
    flip(tmp_path / "net.pdopt", -40)
    with pytest.raises(LoadError, match=r"net\.pdopt: its bytes are not those that were saved"):
        unchanged(lambda: fluid.load(program, str(tmp_path / "net"), exe))
    with pytest.raises(LoadError, match=r"net\.pdopt: its bytes are not those that were saved"):
        fluid.load_program_state(str(tmp_path / "net"))
    (tmp_path / "net.pdmanifest").unlink()
    assert not fluid.load(program, str(tmp_path / "net"), exe).verified


def test_the_program_of_a_model_is_verified(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    executor().run(startup)
    fluid.io.save_inference_model(str(tmp_path / "m"), ["x"], [out], executor(), main)
    fluid.io.load_inference_model(str(tmp_path / "m"), executor())
    flip(tmp_path / "m/__model__", -3)
    with pytest.raises(LoadError, match="__model__: its bytes are not those that were saved"):
        fluid.io.load_inference_model(str(tmp_path / "m"), executor())


@pytest.mark.parametrize("filename", [None, "all"])
def test_slices_are_verified_by_pieces(tmp_path: Path, filename: str | None) -> None:
    program = program_of(table=([3000, 256], F32))
    table = np.random.default_rng(0).random((3000, 256), F32)
    fluid.global_scope().var("table").get_tensor().set(table)
    fluid.io.save_persistables(executor(), tmp_path / "m", program, filename)
    path = tmp_path / "m" / (filename or "table")
    flip(path, 2_500_000)  # about row 2441
    got = fluid.io.load_slice(tmp_path / "m", "table", (1000, 1100), filename=filename)
    assert np.array_equal(got, table[1000:1100])
    with pytest.raises(LoadError, match="its bytes 2097152 to 3072"):
        fluid.io.load_slice(tmp_path / "m", "table", (2400, 2500), filename=filename)
    loaded = fluid.io.load_slice(tmp_path / "m", "table", (2400, 2500), filename=filename, verify=False)
    assert (loaded != table[2400:2500]).sum() == 1


@pytest.mark.parametrize("at", [0, 1_048_576, 2_000_000, -1])
@pytest.mark.parametrize("filename", [None, "all"])
def test_a_flip_in_any_piece_of_a_large_file_is_found(tmp_path: Path, filename: str | None, at: int) -> None:
    program = program_of(a=([2000, 256], F32), b=([1000, 256], F32), c=([3], F32))
    for name, shape in (("a", (2000, 256)), ("b", (1000, 256)), ("c", (3,))):
        array = np.random.default_rng(1).random(shape, F32)
        fluid.global_scope().var(name).get_tensor().set(array)
    want = value("a").copy()
    fluid.io.save_persistables(executor(), tmp_path / "m", program, filename)
    fluid.global_scope().var("a").get_tensor().set(np.zeros((2000, 256), F32))
    assert fluid.io.load_persistables(executor(), tmp_path / "m", program, filename).verified
    assert np.array_equal(value("a"), want)
    flip(tmp_path / "m" / (filename or "a"), at)
    with pytest.raises(LoadError):
        unchanged(lambda: fluid.io.load_persistables(executor(), tmp_path / "m", program, filename))


def test_the_requested_part_of_a_large_combined_file_is_verified(tmp_path: Path) -> None:
    shape = (3000, 1000)
    program = program_of(a=(shape, F32), b=(shape, F32), c=(shape, F32))
    for name in "abc":
        fluid.global_scope().var(name).get_tensor().set(np.full(shape, ord(name), F32))
    fluid.io.save_persistables(executor(), tmp_path, program, "all")
    flip(tmp_path / "all", 18_000_000)  # in the middle of b
    with fluid.scope_guard(fluid.Scope()):
        with pytest.raises(LoadError, match="all: its bytes 17825792 to 18874368 are not"):
            fluid.io.load_persistables(executor(), tmp_path, program, "all")
        report = fluid.io.load_persistables(executor(), tmp_path, program, "all", skip="b")
        assert (report.verified, report.skipped) == (True, ("b",))
        for name in "ac":
            assert (value(name) == ord(name)).all()
