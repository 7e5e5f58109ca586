"""A save of a part removes what an earlier save of it left there, and nothing else, in the same step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage import manifest
from paddlelike.storage.local import generation
from paddlelike.storage.local.transaction import Committed, Transaction
from paddlelike.storage.parts import Part
from tests.storage.test_transaction import contents, names, without_exchange

MODEL, STATE = Part("model"), Part("state")


def save(directory: Path, files: dict[str, bytes], part: Part | None = MODEL, **options) -> Committed:
    transaction = Transaction(directory, part=part, **options)
    for name, data in files.items():
        transaction.add(name, [data], {"variable": name})
    return transaction.commit()


@pytest.fixture(params=["exchange", "journal", "keep_generation"])
def options(request, monkeypatch):
    if request.param == "journal":
        without_exchange(monkeypatch)
    return {"keep_generation": True} if request.param == "keep_generation" else {}


def test_what_the_part_has_no_more_goes(tmp_path, options):
    save(tmp_path / "m", {"a": b"1", "b": b"2", "sub/deep/c": b"3"}, **options)
    (tmp_path / "m" / "theirs").write_bytes(b"4")
    done = save(tmp_path / "m", {"a": b"5"}, **options)
    assert done.removed == ("b", "sub/deep/c")
    assert contents(tmp_path / "m") == {"a": b"5", "theirs": b"4"}
    found = manifest.verify(tmp_path / "m")
    assert (found.good, found.extra, found.missing) == (("a",), ("theirs",), ())
    save(tmp_path / "m", {"a": b"6", "b": b"7"}, **options)  # and what went can come again
    assert contents(tmp_path / "m") == {"a": b"6", "b": b"7", "theirs": b"4"}


def test_a_folder_with_something_of_others_stays(tmp_path, options):
    save(tmp_path / "m", {"a": b"1", "sub/c": b"3"}, **options)
    (tmp_path / "m" / "sub" / "theirs").write_bytes(b"4")
    save(tmp_path / "m", {"a": b"1"}, **options)
    assert contents(tmp_path / "m") == {"a": b"1", "sub": b"/", "sub/theirs": b"4"}


def test_a_save_of_kept_files_only_removes_as_well(tmp_path, options):
    done = save(tmp_path / "m", {"a": b"1", "b": b"2"}, **options)
    transaction = Transaction(tmp_path / "m", part=MODEL, **options)
    assert transaction.keep("a", done.files["a"])
    assert transaction.commit().removed == ("b",)
    assert contents(tmp_path / "m") == {"a": b"1"}


def test_other_parts_stay(tmp_path):
    save(tmp_path / "m", {"a": b"1", "s": b"2", "both": b"3"}, STATE)
    save(tmp_path / "m", {"a": b"4", "x": b"5", "both": b"6"}, MODEL)
    assert save(tmp_path / "m", {"a": b"7"}, MODEL).removed == ("x",)  # "both" is of the state as well
    assert contents(tmp_path / "m") == {"a": b"7", "both": b"6", "s": b"2"}
    assert save(tmp_path / "m", {"a": b"8"}, STATE).removed == ("both", "s")
    assert contents(tmp_path / "m") == {"a": b"8"}


def test_a_save_of_no_part_removes_nothing(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    assert save(tmp_path / "m", {"a": b"3"}, None).removed == ()
    assert save(tmp_path / "m", {"a": b"4"}).removed == ("b",)  # which was of the part still


def test_what_is_in_use_stays(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2", "c": b"3"})
    part = Part("model", lambda facts: facts["variable"] == "b")
    assert save(tmp_path / "m", {"a": b"4"}, part).removed == ("c",)
    assert save(tmp_path / "m", {"a": b"5"}).removed == ("b",)


def test_a_file_that_somebody_replaced_is_theirs(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    (tmp_path / "m" / "b").write_bytes(b"theirs")
    assert save(tmp_path / "m", {"a": b"3"}).removed == ()
    assert contents(tmp_path / "m") == {"a": b"3", "b": b"theirs"}


def test_a_directory_without_a_manifest_loses_nothing(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    (tmp_path / "m.manifest.json").unlink()
    assert save(tmp_path / "m", {"a": b"3"}).removed == ()
    assert contents(tmp_path / "m") == {"a": b"3", "b": b"2"}


@pytest.mark.parametrize("step", ["exchange", "journal"])
def test_a_save_that_fails_removes_nothing(tmp_path, monkeypatch, step):
    save(tmp_path / "m", {"a": b"1", "b/c": b"2"})
    before = contents(tmp_path)
    if step == "journal":
        without_exchange(monkeypatch)
    real = os.unlink

    def refuse(path, **kwargs):
        if os.fspath(path).endswith("m/b/c"):
            raise PermissionError(1, "no")
        real(path, **kwargs)

    monkeypatch.setattr(os, "unlink", refuse)
    if step == "exchange":
        monkeypatch.setattr(generation.Generation, "commit", lambda *_, **__: refuse("m/b/c"))
    with pytest.raises(SaveError, match="no"):
        save(tmp_path / "m", {"a": b"3"})
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert names(tmp_path) == ["m", "m.manifest.json"]
