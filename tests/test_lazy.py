"""Packages whose names are imported at first use, and further names of modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlelike.lazy import AliasFinder, attach_stub, read_stub

STUB = '''"""Names."""
from lazy_package import inner
from lazy_package.inner import double, LIMIT as GREATEST
from json import dumps

__version__: str
__all__ = ["GREATEST", "double", "dumps", "inner"]
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with a stub and a module, importable while the test runs."""
    folder = tmp_path / "lazy_package"
    folder.mkdir()
    (folder / "__init__.pyi").write_text(STUB)
    (folder / "__init__.py").write_text(
        "from pathlib import Path\n"
        "from paddlelike.lazy import attach_stub\n"
        "__all__, __getattr__, __dir__ = attach_stub(__name__, Path(__file__).with_suffix('.pyi'))\n"
    )
    (folder / "inner.py").write_text("LIMIT = 3\n\ndef double(x):\n    return 2 * x\n")
    (folder / "unlisted.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "lazy_package"
    for name in [name for name in sys.modules if name.startswith("lazy_")]:
        del sys.modules[name]


def test_lazy_modules_read_their_names_from_the_stub(tmp_path: Path) -> None:
    (tmp_path / "names.pyi").write_text(STUB)
    assert read_stub(tmp_path / "names.pyi") == {
        "inner": ("lazy_package", "inner"),
        "double": ("lazy_package.inner", "double"),
        "GREATEST": ("lazy_package.inner", "LIMIT"),
        "dumps": ("json", "dumps"),
    }


def test_a_lazy_module_becomes_an_attribute_after_its_import_finished(package: str, tmp_path: Path) -> None:
    """Or another thread that uses it meanwhile finds a module without its functions."""
    (tmp_path / package / "circular.py").write_text(
        f"import {package}\n"
        f"from {package} import circular\n"  # as modules do that need each other
        f"SEEN = vars({package}).get('circular')\n"
    )
    module = importlib.import_module(package)
    assert module.circular.SEEN is None
    assert vars(module)["circular"] is module.circular


def test_lazy_names_are_imported_on_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert dir(module) == module.__all__ == ["GREATEST", "double", "dumps", "inner"]
    assert f"{package}.inner" not in sys.modules
    assert module.double(4) == 8
    assert module.GREATEST == 3
    assert module.inner is sys.modules[f"{package}.inner"]
    assert "double" in vars(module)  # the next use finds it without a look-up


def test_unlisted_modules_are_attributes_after_import(package: str) -> None:
    module = importlib.import_module(package)
    assert module.unlisted is sys.modules[f"{package}.unlisted"]
    for absent in ("nothing", "_private"):
        with pytest.raises(AttributeError, match=f"'{package}' has no attribute '{absent}'"):
            getattr(module, absent)


def test_a_missing_stub_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        attach_stub("package", tmp_path / "absent.pyi")


def test_an_alias_of_a_module_is_the_module_itself(package: str) -> None:
    finder = AliasFinder({"lazy_alias": package, "lazy_alias.short": f"{package}.inner"})
    sys.meta_path.insert(0, finder)
    try:
        for name in ("lazy_alias.inner", "lazy_alias.short"):
            assert importlib.import_module(name) is importlib.import_module(f"{package}.inner")
        assert importlib.import_module("lazy_alias") is importlib.import_module(package)
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'lazy_alias\.absent'"):
            importlib.import_module("lazy_alias.absent")
        assert finder.find_spec("json", None) is None
    finally:
        sys.meta_path.remove(finder)
