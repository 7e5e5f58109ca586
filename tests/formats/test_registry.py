"""The registry: every format has a suite, and another package's format is known everywhere."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from paddlelike.errors import FormatError
from paddlelike.formats import registry
from paddlelike.formats.base import FileFormat
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.registry import Registry
from paddlelike.testing import FormatContract
from tests.formats.suites import suites
from tests.formats.toy import TOY, TOY_FILE, install


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry of its own, that has not looked for packages yet."""
    monkeypatch.setattr(registry, "_registry", Registry())
    return registry._registry


def test_every_format_has_a_suite() -> None:
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        parts = path.relative_to(Path(__file__).parents[2]).with_suffix("").parts
        importlib.import_module(".".join(parts))
    tested = {suite.format.name for suite in suites()}
    ours = {
        name for name, one in registry.all_formats().items() if type(one).__module__.startswith("paddlelike.")
    }
    assert len(ours) >= 4
    assert ours <= tested, f"without a suite: {sorted(ours - tested)}"


@pytest.mark.parametrize("way", ["entry point", "register"])
def test_a_format_defined_in_one_file_is_known_to_all_functions(
    way: str, fresh_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "toy_format", TOY, **({"toy": "Toy"} if way == "entry point" else {}))
    if way == "register":
        registry.register(importlib.import_module("toy_format").Toy)
    toy = registry.find("toy")
    assert list(registry.all_formats())[-1] == "toy"
    assert registry.sniff(TOY_FILE) is toy
    assert str(toy.describe(TOY_FILE)) == "a toy file: 1 entries, 8 bytes of elements\n  w: FP32 [2, 1]"
    assert b"".join(toy.write({"w": np.float32([[1], [2]])})) == TOY_FILE
    with pytest.raises(FormatError) as caught:
        lod_tensor.read(TOY_FILE)
    assert caught.value.hint == "this is a toy file: pass its name as filename= of the load"
    with pytest.raises(FormatError, match=r"use one of the known formats: .*toy"):
        registry.find("tiy")


def test_a_format_of_another_package_passes_the_suite(
    fresh_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "toy_format", TOY, toy="Toy")

    class Suite(FormatContract):
        __module__ = "elsewhere"  # not one of the suites of this package
        format = registry.find("toy")
        golden_values = {"w": np.float32([[1], [2]])}
        golden_files = {"": TOY_FILE}

    suite = Suite()
    for name in dir(suite):
        if name.startswith("test_"):
            getattr(suite, name)()


@pytest.mark.obeys("upgrade or remove that package; other formats are not affected")
def test_a_package_that_cannot_be_imported_is_named_and_other_formats_still_work(
    fresh_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "broken_format", "raise OSError('no libbroken.so')", broken="Broken")
    install(tmp_path / "more", monkeypatch, "toy_format", TOY, toy="Toy", misnamed="Toy", number="math")
    message = r"format 'broken' \(broken_format:Broken of package broken_format\) cannot be used: OSError"
    with pytest.warns(RuntimeWarning) as caught:
        assert {"combined", "toy"} <= registry.all_formats().keys()
    said = sorted(str(one.message).splitlines()[0] for one in caught)
    assert [text.split(" ")[1] for text in said] == ["'broken'", "'misnamed'", "'number'"]
    assert "calls itself 'toy'" in said[1]
    assert "is a module, not a FileFormat" in said[2]
    with pytest.raises(FormatError, match=message) as error:
        registry.find("broken")
    assert error.value.hint == "upgrade or remove that package; other formats are not affected"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert registry.sniff(TOY_FILE) is registry.find("toy")


def test_a_format_that_raises_in_sniff_causes_a_warning(fresh_registry: Registry) -> None:
    state = registry.find("state")

    class Raising(type(state)):  # type: ignore[misc]
        name = "raising"

        def sniff(self, head: bytes, size: int) -> bool:
            raise KeyError(head)

    registry.register(Raising())
    with pytest.warns(RuntimeWarning, match="format 'raising' failed to recognize a file: KeyError"):
        assert registry.sniff(b"hello") is None


def test_invalid_formats_cannot_be_registered() -> None:
    with pytest.raises(FormatError, match="a format named 'combined' is registered already"):
        registry.register(type(registry.find("combined")))
    with pytest.raises(FormatError, match=r"register\(\) is a dict, not a FileFormat or FolderFormat"):
        registry.register({})  # type: ignore[arg-type]

    class Spaced(type(registry.find("state"))):  # type: ignore[misc]
        name = "two words"

    with pytest.raises(FormatError, match="is named 'two words'; a name must be an identifier"):
        registry.register(Spaced)


def test_a_format_is_imported_on_first_use(
    fresh_registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "broken_format", "raise OSError('no libbroken.so')", broken="Broken")
    assert registry.find("combined").name == "combined"  # without a warning
    assert "broken_format" not in sys.modules


def test_file_formats_declare_their_suffixes() -> None:
    for one in registry.all_formats().values():
        assert all(suffix.startswith(".") for suffix in one.suffixes)
        assert one.title.split(" ")[0] in ("a", "an", "the")
        folders = ("directory", "paddle_distributed", "safetensors_folder")
        assert isinstance(one, FileFormat) or one.suffixes or one.name in folders
