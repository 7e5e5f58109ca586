"""Names that scripts of Fluid's time use, and that Python and numpy no longer have; a warning says each.

Python imports this file when it starts with this folder on its path. Another ``sitecustomize`` further on the
path runs as well.
"""

import collections.abc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import abc, import_module
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

#: {module: {removed name: what takes its place}}; a text is its path.
_REMOVED: Final[dict[str, dict[str, Any]]] = {
    "collections": {name: f"collections.abc.{name}" for name in collections.abc.__all__},
    "fractions": {"gcd": "math.gcd"},
    "inspect": {"getargspec": "inspect.getfullargspec"},
    "numpy": {
        "bool": bool, "complex": complex, "float": float, "int": int, "long": int, "object": object,
        "str": str, "unicode": str, "float_": "numpy.float64", "product": "numpy.prod",
        "asscalar": "numpy.ndarray.item",
    },
    "time": {"clock": "time.perf_counter"},
}  # fmt: skip


def _find(path: str) -> object:
    """Return what is at a path; of ``getfullargspec`` only the four values that ``getargspec`` gave."""
    if path == "inspect.getfullargspec":
        ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
        return lambda function: ArgSpec(*import_module("inspect").getfullargspec(function)[:4])
    module, *names = path.split(".")
    found: Any = import_module(module)
    for name in names:
        found = getattr(found, name)
    return found


def _restore(module: ModuleType) -> None:
    """Let a module answer for names that it no longer has."""
    removed = _REMOVED[module.__name__]
    before: Callable[[str], Any] | None = getattr(module, "__getattr__", None)

    def get(name: str) -> Any:
        try:
            if before is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return before(name)
        except AttributeError:
            if name not in removed:
                raise
        target = removed[name]
        called = target if isinstance(target, str) else target.__name__
        warnings.warn(
            f"{module.__name__}.{name} is gone: scripts that paddlelike runs get {called}",
            FutureWarning,
            stacklevel=2,
        )
        value = _find(target) if isinstance(target, str) else target
        setattr(module, name, value)
        return value

    module.__dict__["__getattr__"] = get


class _RestoringFinder(abc.MetaPathFinder):
    """Restores the names of modules that a script imports later."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        """Return the spec of a module of the table, whose loader also restores its names; otherwise None."""
        if name not in _REMOVED:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _restore(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _run_next() -> None:
    """Run the ``sitecustomize`` that this one stands before on the path."""
    here = Path(__file__).parent
    rest = [entry for entry in sys.path if Path(entry or ".").resolve() != here.resolve()]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


for _name in _REMOVED:
    if _name in sys.modules:
        _restore(sys.modules[_name])
sys.meta_path.insert(0, _RestoringFinder())
_run_next()
