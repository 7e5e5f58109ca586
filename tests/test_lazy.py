"""Packages whose names are imported at first use, further names of modules, and late dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from paddlelike.lazy import AliasFinder, attach_stub, dataclass, read_stub
from paddlelike.storage.options import SaveOptions

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


def test_a_stub_without_a_list_lists_its_imports(tmp_path: Path) -> None:
    (tmp_path / "names.pyi").write_text("from json import dumps as dumps, loads as _loads, load as read\n")
    names, _, _ = attach_stub("package", tmp_path / "names.pyi")
    assert names == ["dumps", "read"]


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


def make_class(declare: Any, **options: bool) -> Any:
    @declare(**options)
    class Point:
        """A class with every kind of field."""

        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        z: str = dataclasses.field(default="z", repr=False)
        _: dataclasses.KW_ONLY
        w: float = 1.0
        v: int = dataclasses.field(default=4, init=False, compare=False)
        u: list[int] = dataclasses.field(default_factory=list, init=False)

        def __post_init__(self) -> None:
            self.__dict__["complete"] = (*self.__dict__,)

    return Point


def outcome(use: Callable[[Any, Any], object], cls: Any) -> object:
    try:
        return use(cls, cls(3, [1], w=2.0))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "options",
    [{}, {"frozen": True}, {"eq": False}, {"kw_only": True, "frozen": True}, {"repr": False, "frozen": True}],
    ids=str,
)
def test_a_late_dataclass_behaves_like_one_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, theirs = make_class(dataclass, **options), make_class(dataclasses.dataclass, **options)
    uses: list[Callable[[Any, Any], object]] = [
        lambda cls, _: inspect.signature(cls).replace(parameters=[]),
        lambda cls, _: str(inspect.signature(cls)),
        lambda _, one: vars(one),
        lambda cls, one: (one == cls(3, [1], w=2.0), one != cls(3, [1]), one == 3),
        lambda cls, _: hash(cls(1, (), z="")) != hash(cls(2, (), z="")),
        lambda _, one: hash(one) and None,
        lambda _, one: repr(one).partition(" object at")[0],
        lambda _, one: setattr(one, "x", 2),
        lambda _, one: setattr(one, "new", 2),
        lambda _, one: delattr(one, "x"),
        lambda cls, _: cls(),
        lambda cls, _: cls(1, [2], "3", 4.0),
        lambda cls, _: cls(1, unknown=3),
        lambda _, one: dataclasses.asdict(one),
        lambda _, one: vars(dataclasses.replace(one, x=9)) if "u" not in vars(one) else None,
        lambda cls, _: cls.__match_args__,
        lambda _, one: vars(copy.deepcopy(one)),
        lambda cls, one: vars(type("Below", (cls,), {})(3, [1])),
    ]
    assert [outcome(use, ours) for use in uses] == [outcome(use, theirs) for use in uses]


def test_a_late_dataclass_inherits_and_keeps_methods_of_its_own() -> None:
    @dataclass(frozen=True)
    class Base:
        x: int

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True)
    class Below(Base):
        y: int = 2

    assert (repr(Base(1)), repr(Below(1)).rpartition(".")[2]) == ("own", "Below(x=1, y=2)")
    assert Below(1) == Below(1, 2) != Below(2)
    assert Base(1) != Below(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        Below(1).x = 3  # type: ignore[misc]


def test_a_package_keeps_functions_that_are_named_like_its_modules(package: str, tmp_path: Path) -> None:
    home = tmp_path / package
    (home / "__init__.pyi").write_text(f"from {package}.twice import twice\n__all__ = ['twice']\n")
    (home / "__init__.py").write_text(
        (home / "__init__.py").read_text()
        + ("from paddlelike.lazy import keep_functions\nkeep_functions(__name__, 'twice')\n")
    )
    (home / "twice.py").write_text("def twice(x):\n    return 2 * x\n")
    module = importlib.import_module(package)
    assert f"{package}.twice" not in sys.modules
    assert importlib.import_module(f"{package}.twice").twice is module.twice
    assert module.twice(3) == 6
    with mock.patch(f"{package}.twice", abs):
        assert module.twice is abs
    assert module.twice(3) == 6


def test_the_standard_library_makes_subclasses_of_a_late_dataclass() -> None:
    frozen: Any = dataclasses.dataclass(frozen=True)(type("Below", (make_class(dataclass, frozen=True),), {}))
    assert frozen(3, [1]).x == 3
    with pytest.raises(TypeError, match="cannot inherit non-frozen dataclass from a frozen one"):
        dataclasses.dataclass(type("Below", (frozen,), {}))


def test_a_wrapped_init_of_a_late_dataclass_stays_wrapped() -> None:
    cls, seen = make_class(dataclass), []
    first = cls.__init__

    def around(self: object, x: int) -> None:
        seen.append(x)
        first(self, x)

    cls.__init__ = around
    assert [cls(1).x, cls(2).x] == seen == [1, 2]
    assert list(inspect.signature(cls).parameters) == ["x"]
    assert cls(3).x == 3 == seen[-1]


def test_annotations_of_a_late_dataclass_are_resolved_in_its_module() -> None:
    assert typing.get_type_hints(make_class(dataclass, frozen=True)(1).__init__)["x"] is int
    hints = typing.get_type_hints(SaveOptions().__init__)  # type: ignore[misc]
    assert hints["wait"] == float | None
