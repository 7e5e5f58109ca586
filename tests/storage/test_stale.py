"""Files of an earlier save stay; those of the same program are stale, and ``remove_stale`` deletes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlelike.errors import SaveError
from paddlelike.storage.interfaces import Committed
from paddlelike.storage.local import generation, manifest_file
from paddlelike.storage.local.transaction import Transaction
from tests.storage.test_transaction import contents, names, without_exchange


def save(directory: Path, files: dict[str, bytes], program: str = "5f", **options) -> Committed:
    transaction = Transaction(directory, program=program, **{"part": "persistables", **options})
    for name, data in files.items():
        transaction.add(name, [data], {"variable": name})
    return transaction.commit()


@pytest.fixture(params=["exchange", "journal", "keep_generation"])
def options(request, monkeypatch):
    if request.param == "journal":
        without_exchange(monkeypatch)
    return {"keep_generation": True} if request.param == "keep_generation" else {}


def test_stale_files_stay_and_are_listed(tmp_path, options):
    save(tmp_path / "m", {"a": b"1", "b": b"2", "sub/deep/c": b"3"}, **options)
    done = save(tmp_path / "m", {"a": b"5"}, **options)
    assert (done.stale, done.removed) == (("b", "sub/deep/c"), ())
    assert contents(tmp_path / "m")["b"] == b"2"
    assert manifest_file.verify(tmp_path / "m").good == ("a", "b", "sub/deep/c")


def test_remove_stale_deletes_only_stale_files(tmp_path, options):
    save(tmp_path / "m", {"a": b"1", "b": b"2", "sub/deep/c": b"3"}, **options)
    (tmp_path / "m" / "theirs").write_bytes(b"4")
    done = save(tmp_path / "m", {"a": b"5"}, remove_stale=True, **options)
    assert (done.stale, done.removed) == ((), ("b", "sub/deep/c"))
    assert contents(tmp_path / "m") == {"a": b"5", "theirs": b"4"}
    found = manifest_file.verify(tmp_path / "m")
    assert (found.good, found.extra, found.missing) == (("a",), ("theirs",), ())
    save(tmp_path / "m", {"a": b"6", "b": b"7"}, **options)  # and what was deleted can be saved again
    assert contents(tmp_path / "m") == {"a": b"6", "b": b"7", "theirs": b"4"}


def test_a_folder_with_other_files_is_not_removed(tmp_path, options):
    save(tmp_path / "m", {"a": b"1", "sub/c": b"3"}, **options)
    (tmp_path / "m" / "sub" / "theirs").write_bytes(b"4")
    save(tmp_path / "m", {"a": b"1"}, remove_stale=True, **options)
    assert contents(tmp_path / "m") == {"a": b"1", "sub": b"/", "sub/theirs": b"4"}


def test_a_save_of_only_unchanged_files_also_removes_stale_ones(tmp_path, options):
    done = save(tmp_path / "m", {"a": b"1", "b": b"2"}, **options)
    transaction = Transaction(tmp_path / "m", program="5f", part="params", remove_stale=True, **options)
    assert transaction.keep("a", done.files["a"])
    assert transaction.commit().removed == ("b",)
    assert contents(tmp_path / "m") == {"a": b"1"}


def test_files_of_another_program_are_not_stale(tmp_path):
    """Proves S13."""
    save(tmp_path / "m", {"g": b"1", "g.moment": b"2"}, "generator", state={"step": 3})
    done = save(tmp_path / "m", {"d": b"3"}, "discriminator", remove_stale=True)
    assert (done.stale, done.removed) == ((), ())
    assert contents(tmp_path / "m") == {"d": b"3", "g": b"1", "g.moment": b"2"}
    found = manifest_file.read_manifest(tmp_path / "m")
    assert {name: record.author.program for name, record in found.files.items()} == {
        "d": "discriminator", "g": "generator", "g.moment": "generator",
    }  # fmt: skip
    assert found.state == {"step": 3}
    assert save(tmp_path / "m", {"g": b"4"}, "generator", remove_stale=True).removed == ("g.moment",)
    assert contents(tmp_path / "m") == {"d": b"3", "g": b"4"}


@pytest.mark.parametrize("author", [{"part": None}, {"program": None}], ids=["chosen", "no program"])
def test_saves_of_other_programs_make_no_file_stale(tmp_path, author):
    save(tmp_path / "m", {"a": b"1", "b": b"2"}, **author)
    done = save(tmp_path / "m", {"a": b"3"}, remove_stale=True, **author)
    assert (done.stale, done.removed) == ((), ())


def test_a_file_that_somebody_replaced_is_not_stale(tmp_path):
    """Proves S9."""
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    (tmp_path / "m" / "b").write_bytes(b"theirs")
    done = save(tmp_path / "m", {"a": b"3"}, remove_stale=True)
    assert (done.stale, done.removed) == ((), ())
    assert done.notes == ("no longer in the manifest, since others replaced them: b",)
    assert contents(tmp_path / "m") == {"a": b"3", "b": b"theirs"}


def test_a_copied_directory_keeps_its_records(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    (tmp_path / "copy").mkdir()
    for path in (tmp_path / "m").iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    assert manifest_file.verify(tmp_path / "copy")
    assert save(tmp_path / "copy", {"a": b"3"}).stale == ("b",)
    assert manifest_file.verify(tmp_path / "copy")


def test_in_a_directory_without_a_manifest_no_file_is_removed(tmp_path):
    save(tmp_path / "m", {"a": b"1", "b": b"2"})
    (tmp_path / "m" / "__manifest__").unlink()
    assert save(tmp_path / "m", {"a": b"3"}, remove_stale=True).removed == ()
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
        save(tmp_path / "m", {"a": b"3"}, remove_stale=True)
    monkeypatch.undo()
    assert contents(tmp_path) == before
    assert names(tmp_path) == ["m"]
