"""Names that are paths, and names that are refused."""

from __future__ import annotations

import contextlib
import os

import pytest
from hypothesis import given, strategies as st

from paddlelike.errors import StorageError
from paddlelike.storage.names import relative_path


@pytest.mark.parametrize(
    "name",
    ["fc_0.w_0", "@LR_DECAY_COUNTER@", "encoder/aspp0/BatchNorm/moving_mean", "w:0", "...", "a b",
     "fc.w@GRAD.block0", "größe", ".hidden", "a..b", "x\\y", "新/建"],
)  # fmt: skip
def test_plain_names_are_used_as_paths(name):
    assert relative_path(name) == name


@pytest.mark.parametrize(("name", "path"), [("a//b", "a/b"), ("./a", "a"), ("a/./b", "a/b")])
def test_file_names_are_normalized_as_in_paddle(name, path):
    assert relative_path(name) == path


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("../w", "must not have a part '..'"),
        ("a/../../w", "must not have a part '..'"),
        ("a\\..\\w", "must not have a part '..'"),
        ("..", "must not have a part '..'"),
        ("/w", "must not begin with a slash"),
        ("/etc/passwd", "must not begin with a slash"),
        ("\\\\host\\share", "must not begin with a slash"),
        ("C:\\w", "does not begin with a drive letter"),
        ("c:/w", "does not begin with a drive letter"),
        ("w\0", "no NUL character"),
        ("", "ends in the name of a file"),
        (".", "ends in the name of a file"),
        ("a/", "ends in the name of a file"),
        ("\ud800", "text that can be encoded"),
    ],
)
def test_names_that_cannot_be_files_are_refused(name, rule):
    with pytest.raises(StorageError) as caught:
        relative_path(name)
    assert repr(name) in caught.value.message
    assert rule in caught.value.message
    assert "filename=" in caught.value.hint


@given(st.text(alphabet="ab./\\:C\0", max_size=12))
def test_no_variable_name_leads_outside_the_directory(name):
    """Proves S7."""
    path = "refused"
    with contextlib.suppress(StorageError):
        path = relative_path(name)
    assert os.path.normpath(f"/home/model/{path}").startswith("/home/model/")
