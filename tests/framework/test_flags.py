"""Fluid's flags."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.framework import flags


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags that a test sets are forgotten."""
    monkeypatch.setattr(flags, "_flags", {})
    for name in ("FLAGS_check_nan_inf", "FLAGS_eager_delete_tensor_gb"):
        monkeypatch.delenv(name, raising=False)


def test_a_flag_is_taken_from_the_script_then_the_environment_then_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "FLAGS_check_nan_inf"
    assert fluid.get_flags(name) == {name: False}
    monkeypatch.setenv(name, "true")
    assert fluid.get_flags([name]) == {name: True}
    fluid.set_flags({name: False})
    assert fluid.get_flags([name]) == {name: False}


def test_environment_values_are_converted_to_the_type_of_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_eager_delete_tensor_gb", "1.5")
    assert flags.flag("FLAGS_eager_delete_tensor_gb") == 1.5


@pytest.mark.parametrize("function", [lambda name: fluid.set_flags({name: 1}), fluid.get_flags])
def test_an_unknown_flag_raises_value_error_with_near_names(function: Any) -> None:
    with pytest.raises(ValueError, match=r"'FLAGS_check_nan_info' is no.*mean .FLAGS_check_nan_inf.\?"):
        function("FLAGS_check_nan_info")
    with pytest.raises(ValueError, match=r"'mine' is not a flag of Fluid 1.8.5 on CPUs$"):
        function("mine")


def test_no_flag_is_set_when_one_of_several_is_refused() -> None:
    with pytest.raises(ValueError, match="FLAGS_no"):
        fluid.set_flags({"FLAGS_check_nan_inf": True, "FLAGS_no": 1})
    with pytest.raises(TypeError, match="FLAGS_check_nan_inf is 'yes', expected bool"):
        fluid.set_flags({"FLAGS_paddle_num_threads": 3, "FLAGS_check_nan_inf": "yes"})
    assert not flags._flags


def test_flag_values_are_converted_to_the_type_of_the_flag() -> None:
    fluid.set_flags({"FLAGS_check_nan_inf": 1, "FLAGS_eager_delete_tensor_gb": 2})
    found = fluid.get_flags(["FLAGS_check_nan_inf", "FLAGS_eager_delete_tensor_gb"])
    assert found == {"FLAGS_check_nan_inf": True, "FLAGS_eager_delete_tensor_gb": 2.0}
    assert found["FLAGS_check_nan_inf"] is True


def test_flag_arguments_of_other_types_raise_type_error() -> None:
    with pytest.raises(TypeError, match="takes a dict"):
        fluid.set_flags("FLAGS_check_nan_inf")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a name or a list of names"):
        fluid.get_flags(3)  # type: ignore[arg-type]


def test_flags_have_the_defaults_of_fluid() -> None:
    """The public flags of 1.8.5 on a CPU, with their values there."""
    found = fluid.get_flags(
        ["FLAGS_allocator_strategy", "FLAGS_paddle_num_threads", "FLAGS_cpu_deterministic"]
    )
    assert list(found.values()) == ["auto_growth", 1, True]


@pytest.mark.parametrize(("least", "most"), [("1.6.0", None), ("1.8.5", None), ("1.8", "1.8.5"), ("0", "2")])
def test_require_version_accepts_versions_around_1_8_5(least: str, most: str | None) -> None:
    assert fluid.require_version(least, most) is None


@pytest.mark.parametrize(
    ("least", "most", "words"),
    [
        ("1.8.6", None, "requires Fluid 1.8.6 or newer"),
        ("1.6", "1.8.4", "requires Fluid 1.6 to 1.8.4"),
    ],
)
def test_require_version_refuses_other_versions(least: str, most: str | None, words: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{words}; this package has the API of 1\.8\.5"):
        fluid.require_version(least, most)


@pytest.mark.parametrize(
    ("version", "error"), [(1.8, TypeError), ("1.8-rc", ValueError), ("", ValueError)], ids=str
)
def test_a_version_consists_of_integers_and_dots(version: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="a version is"):
        fluid.require_version(version)


def test_loading_compiled_operators_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"ops\.so cannot be loaded"):
        fluid.load_op_library("ops.so")
    assert fluid.in_dygraph_mode() is False
