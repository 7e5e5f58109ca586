"""Fluid's version and flags."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.framework import environment


@pytest.fixture(autouse=True)
def flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags that a test sets are forgotten."""
    monkeypatch.setattr(environment, "_flags", {})
    for name in ("FLAGS_check_nan_inf", "FLAGS_eager_delete_tensor_gb"):
        monkeypatch.delenv(name, raising=False)


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


def test_a_flag_comes_from_the_script_else_the_environment_else_its_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "FLAGS_check_nan_inf"
    assert fluid.get_flags(name) == {name: False}
    monkeypatch.setenv(name, "true")
    assert fluid.get_flags([name]) == {name: True}
    fluid.set_flags({name: False})
    assert fluid.get_flags([name]) == {name: False}


def test_text_of_the_environment_becomes_the_type_of_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_eager_delete_tensor_gb", "1.5")
    assert environment.flag("FLAGS_eager_delete_tensor_gb") == 1.5


def test_unknown_flags_are_kept_once_they_are_set() -> None:
    with pytest.raises(ValueError, match=r"\['FLAGS_mine'\] are neither"):
        fluid.get_flags("FLAGS_mine")
    fluid.set_flags({"FLAGS_mine": 7})
    assert fluid.get_flags("FLAGS_mine") == {"FLAGS_mine": 7}
    with pytest.raises(TypeError, match="takes a dict"):
        fluid.set_flags("FLAGS_mine")


def test_operators_in_c_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"ops\.so cannot be loaded"):
        fluid.load_op_library("ops.so")
    assert fluid.in_dygraph_mode() is False
