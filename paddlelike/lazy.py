"""Objects made at their first use: names of packages, and the methods of dataclasses.

Names are imported as in https://scientific-python.org/specs/spec-0001/. A package lists its names in a stub,
``__init__.pyi``, which type checkers and editors read; this module reads the same file.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from operator import attrgetter
from os import PathLike
from reprlib import recursive_repr
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from paddlelike.left_out import MODULES, LeftOutFinder, find_left_out, make_attribute_error, make_getattr

__all__ = ["AliasFinder", "add_function_module", "attach_stub", "read_stub"]

#: Modules of earlier releases, which pickles name, and where their classes and functions are now.
MOVED: Final = {
    "paddlelike.collection.recurrent": "paddlelike.collection.recurrent_builders",
    "paddlelike.distributed.transpiler.dispatch": "paddlelike.distributed.transpiler.slicing",
    "paddlelike.executor.fetches": "paddlelike.executor.exchange.fetches",
    "paddlelike.fluid.incubate.hdfs": "paddlelike.distributed.fleet.hdfs",
    "paddlelike.io.planning.plan": "paddlelike.io.planning.load_plan",
    "paddlelike.io.select": "paddlelike.io.calls",
    "paddlelike.optimizer.ftrl": "paddlelike.optimizer.adagrad",
    "paddlelike.optimizer.lookahead": "paddlelike.optimizer.wrapping",
    "paddlelike.optimizer.model_average": "paddlelike.optimizer.averages",
    "paddlelike.optimizer.momentum": "paddlelike.optimizer.sgd",
    "paddlelike.optimizer.moving_average": "paddlelike.optimizer.averages",
    "paddlelike.optimizer.recompute": "paddlelike.optimizer.wrapping",
    "paddlelike.optimizer.refused": "paddlelike.optimizer.wrapping",
    "paddlelike.optimizer.rmsprop": "paddlelike.optimizer.adagrad",
    "paddlelike.training.early_stopping": "paddlelike.training.configs",
    "paddlelike.training.frequency": "paddlelike.training.configs",
    "paddlelike.training.progress.log": "paddlelike.training.progress.curves",
    "paddlelike.training.progress.tensorboard": "paddlelike.training.progress.curves",
}


Path = str | PathLike[str]


def read_stub(path: Path) -> dict[str, tuple[str, str]]:
    """Return the imports of a stub: for each name, its module and its name there."""
    return _find_imports(_parse(path))


def _parse(stub: Path) -> ast.Module:
    with open(stub, "rb") as file:
        return ast.parse(file.read())


def _find_imports(stub: ast.Module) -> dict[str, tuple[str, str]]:
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def attach_stub(
    package: str, stub: Path, find_other: Callable[[str], Any] | None = None
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` for a package with that stub.

    The package has the names of the stub's ``__all__``, its other imports, and every module of the package.
    Without ``__all__``, the stub lists all its imports that do not begin with an underscore.
    For any other name ``__getattr__`` returns the result of ``find_other``, or raises AttributeError.
    """
    tree = _parse(stub)
    origins = _find_imports(tree)
    lists = (ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    names = sorted(name for name in next(lists, origins) if not name.startswith("_"))

    def get(name: str) -> Any:
        module, attribute = origins.get(name, (package, name))
        if module != package:
            found = getattr(__import__(module, fromlist=[attribute]), attribute)
            setattr(sys.modules[package], name, found)
            from paddlelike.foundation.docstrings import relate  # not when the package is imported

            relate(found, package.partition(".")[2], name)
            return found
        if not attribute.startswith("_") and find_spec(f"{package}.{attribute}") is not None:
            # Not set here: the import system does so after all of the module ran. Other threads wait for it.
            return import_module(f"{package}.{attribute}")
        if find_other is not None:
            return find_other(name)
        found = find_left_out(f"{package}.{name}".partition(".")[2].removeprefix("fluid."))
        if found is None:
            raise make_attribute_error(package, name, names)
        return found

    return names, get, lambda: names


def keep_names(package: str, modules: str, former: str = "") -> None:
    """Make modules forward unknown names to their package, which is also imported under ``former`` names."""
    face = sys.modules[package]
    for name in modules.split():
        vars(sys.modules[f"{package}.{name}"]).setdefault("__getattr__", partial(getattr, face))
    # not by a finder: the import system would bind layers.loss.cross_entropy, a function, to a module
    sys.modules.update({f"{package}.{name}": face for name in former.split()})


def keep_functions(package: str, names: str) -> None:
    """Let a package with a stub have functions with the same names as its modules.

    The import system would bind a module to its name in the package at its first import; this function
    prevents that.
    """
    face = sys.modules[package]
    find = vars(face)["__getattr__"]

    def make(name: str) -> property:
        def get(_: ModuleType) -> object:
            return vars(face).get(name) or find(name)

        def bind(_: ModuleType, value: object) -> None:
            if not isinstance(value, ModuleType):
                vars(face)[name] = value

        def unbind(_: ModuleType) -> None:
            vars(face).pop(name, None)

        return property(get, bind, unbind)

    face.__class__ = type("_Face", (ModuleType,), {name: make(name) for name in names.split()})


def add_function_module(name: str) -> None:
    """Add the module ``name`` with one function, which its package also has under that name.

    So ``import paddle.batch`` works, and ``paddle.batch`` still is the function: the import system binds only
    its own imports to the package.
    """
    sys.modules[name] = _FunctionModule(name)


if TYPE_CHECKING:
    from dataclasses import Field, dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, kw_only=False):  # noqa: A002
        """Make a dataclass as the standard library does, but compile its ``__init__`` at the first call.

        The library compiles up to six functions per class at import, which takes half a millisecond.
        """
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq, repr=repr, kw_only=kw_only)
        import dataclasses  # late: help of commands needs none

        below = any(map(dataclasses.is_dataclass, cls.__mro__[1:]))
        dataclasses.dataclass(cls, init=False, repr=False, eq=False, frozen=frozen and below, kw_only=kw_only)
        for name, value in {"init": True, "repr": repr, "eq": eq, "frozen": frozen}.items():
            setattr(cls.__dataclass_params__, name, value)  # the library reads them in subclasses
        fields = dataclasses.fields(cls)
        names = [one.name for one in fields if one.compare]
        get_values = (
            attrgetter(*names) if names[1:] else lambda self: tuple(getattr(self, name) for name in names)
        )

        def equals(self, other):
            if other.__class__ is not self.__class__:
                return NotImplemented
            return get_values(self) == get_values(other)

        @recursive_repr()
        def show(self):
            values = (f"{one.name}={getattr(self, one.name)!r}" for one in fields if one.repr)
            return f"{self.__class__.__qualname__}({', '.join(values)})"

        def refuse(verb, change):
            def check(self, name, *value):
                if type(self) is cls or name in cls.__dataclass_fields__:
                    raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
                getattr(super(cls, self), change)(name, *value)

            return check

        methods = {}
        if "__init__" not in vars(cls):
            init = _LateInit(cls, fields, frozen=frozen)
            methods = {"__init__": init.first, "__signature__": init}
        if repr:
            methods["__repr__"] = show
        if eq:
            hashed = (lambda self: hash(get_values(self))) if frozen else None
            methods |= {"__eq__": equals, "__hash__": hashed}
        if frozen:
            methods["__setattr__"] = refuse("assign to", "__setattr__")
            methods["__delattr__"] = refuse("delete", "__delattr__")
        for name in methods.keys() - vars(cls).keys():
            setattr(cls, name, methods[name])
        return cls


class _LateInit:
    """The ``__init__`` of a dataclass, compiled at its first call, or when its signature is read."""

    def __init__(self, cls: type, fields: Sequence[Field[Any]], *, frozen: bool) -> None:
        self._cls, self._fields, self._frozen = cls, fields, frozen
        self._compiled: Callable[..., None] | None = None

        def compile_first(instance: object, /, *args: object, **given: object) -> None:
            self.compile()(instance, *args, **given)

        self.first = compile_first

    def __get__(self, _: object, cls: type) -> None:
        self.compile()
        raise AttributeError("__signature__")  # it is that of __init__

    def compile(self) -> Callable[..., None]:
        """Return ``__init__``, which the class then uses unless the first one was wrapped."""
        if self._compiled is None:
            self._compiled = self._compile()
        if vars(self._cls).get("__init__") is self.first:
            self._cls.__init__ = self._compiled  # type: ignore[misc]
        return self._compiled

    def _compile(self) -> Callable[..., None]:
        from dataclasses import dataclass

        body: dict[str, Any] = {one.name: one for one in self._fields}
        body |= {"__module__": self._cls.__module__, "__qualname__": self._cls.__qualname__}
        body["__annotations__"] = {one.name: one.type for one in self._fields}
        body["__doc__"] = self._cls.__doc__ or self._cls.__name__  # else made from the signature
        if hasattr(self._cls, "__post_init__"):
            body["__post_init__"] = None  # the instance's own method is called
        twin = type(self._cls.__name__, (), body)
        dataclass(twin, repr=False, eq=False, frozen=self._frozen)
        made: Callable[..., None] = vars(twin)["__init__"]
        return made


class AliasFinder:  # without a base of importlib.abc, which takes long to import
    """Imports modules under alias names, such as ``paddlelike.compiler`` for ``paddlelike.executor``.

    An alias also covers the modules below it. The modules are the same objects under both names.

    Parameters
    ----------
    targets
        The name of the module for each alias. An empty name stands for a package without code, which only
        holds the modules below it.
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec for an alias; None for every other name, and if the module is missing."""
        original = self._original(fullname)
        if original is None:
            return None
        try:
            is_package = not original or _is_package(original)
        except ModuleNotFoundError:
            return None
        return ModuleSpec(fullname, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return a package without code; None for an alias, which :meth:`exec_module` replaces."""
        if self._original(spec.name):
            return None
        return _Holder(spec.name, "Modules of Fluid's, one level deeper.")

    def exec_module(self, module: ModuleType) -> None:
        """Replace the alias in ``sys.modules``, from which the import system takes its result, by the
        original.

        Imported modules below it are replaced too. Otherwise the import system would bind each to its name in
        the package again, and ``layers.rnn`` would turn from a function into a module.
        """
        original = self._original(module.__name__)
        if not original:
            return
        sys.modules[module.__name__] = found = import_module(original)
        path = module.__name__.partition(".")[2].removeprefix("fluid.")
        if not hasattr(type(found), "__getattr__"):  # a module that is left out answers for itself
            names = [name for name in self._targets if name.rpartition(".")[0] == module.__name__]
            below = {name.rpartition(".")[2]: name for name in names}
            vars(found).setdefault("__getattr__", make_getattr(original, path, below))
        for name in [name for name in sys.modules if name.startswith(f"{original}.")]:
            sys.modules.setdefault(module.__name__ + name.removeprefix(original), sys.modules[name])
        if not hasattr(sys.modules[original], "__path__"):  # the import system looks below packages only
            for name in [name for name in self._targets if name.startswith(f"{module.__name__}.")]:
                sys.modules[name] = import_module(self._targets[name])
                setattr(sys.modules[original], name.rpartition(".")[2], sys.modules[name])
            for name in [name for name in MODULES if name.startswith(f"{path}.")]:
                left_out = LeftOutFinder().create_module(ModuleSpec(f"paddlelike.{name}", None))
                sys.modules[module.__name__ + name.removeprefix(path)] = left_out

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the original, for ``python -m``, or None if there is none."""
        spec = find_spec(self._original(fullname) or __name__)
        return getattr(spec.loader, "get_code", lambda _: None)(spec.name) if spec else None

    def _original(self, fullname: str) -> str | None:
        """Return the name behind an alias, "" for a package without code, None for any other name."""
        name, below = fullname, ""
        while name and name not in self._targets:
            name, _, last = name.rpartition(".")
            below = f".{last}{below}"
        if not name or (below and not self._targets[name]):
            return None
        return f"{self._targets[name]}{below}"


class _FunctionModule(ModuleType):
    """A module with one function: the function of the same name in its package."""

    def __getattr__(self, name: str) -> Any:
        package, _, own = self.__name__.rpartition(".")
        if name == "__all__":
            return [own]
        if name == own:
            return getattr(sys.modules[package], own)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class _Holder(ModuleType):
    """A package without code, which imports the modules below it when they are used."""

    def __getattr__(self, name: str) -> ModuleType:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None


def _is_package(name: str) -> bool:
    """Return whether a module has modules below it. Raises ModuleNotFoundError where there is no module."""
    if name in sys.modules:
        return hasattr(sys.modules[name], "__path__")
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec.submodule_search_locations is not None
