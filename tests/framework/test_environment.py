"""Fluid's version."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError


@pytest.mark.parametrize(("least", "most"), [("1.6.0", None), ("1.8.5", None), ("1.8", "1.8.5"), ("0", "2")])
def test_versions_around_1_8_5_pass(least: str, most: str | None) -> None:
    assert fluid.require_version(least, most) is None


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        ("1.8.6", None, "asks for Fluid 1.8.6 or newer"),
        ("1.6", "1.8.4", "asks for Fluid 1.6 to 1.8.4"),
    ],
)
def test_other_versions_are_refused(least: str, most: str | None, words: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{words}; the API here is that of 1\.8\.5"):
        fluid.require_version(least, most)


@pytest.mark.parametrize(
    ("version", "error"), [(1.8, TypeError), ("1.8-rc", ValueError), ("", ValueError)], ids=str
)
def test_a_version_is_integers_with_dots(version: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="a version is"):
        fluid.require_version(version)


def test_operators_in_c_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"ops\.so cannot be loaded"):
        fluid.load_op_library("ops.so")
    assert fluid.in_dygraph_mode() is False
