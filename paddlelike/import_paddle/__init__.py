"""The stand-in for real Paddle: ``import paddle`` imports paddlelike in unchanged scripts.

:func:`install` does it in this process; :func:`add_to_path` for Python processes that start with an
environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from opcode import opname
from types import ModuleType
from typing import Any, Final

from paddlelike.errors import ImportPaddleError
from paddlelike.import_paddle.version import full_version
from paddlelike.lazy import AliasFinder, add_function_module

__all__ = ["FOLDER", "add_to_path", "install", "is_installed"]

#: The folder that holds a ``paddle`` which is paddlelike.
FOLDER: Final = f"{__file__.rpartition('__init__')[0]}path"

#: The names of ``paddle`` 1.8.5.
_NAMES: Final = (
    "batch",
    "check_import_scipy",
    "compat",
    "complex",
    "dataset",
    "distributed",
    "fluid",
    "hapi",
    "incubate",
    "reader",
    "sysconfig",
    "version",
)
#: What scripts of Paddle 2.0 to 2.4 call before they go on with fluid: programs are static here in any case.
_SWITCHES: Final = ("enable_static",)


def _is_read_by_name() -> bool:
    """Return whether the caller's caller reads an attribute, as in ``paddle.enable_static()``.

    Scripts distinguish Paddle 2 from 1.8 by ``hasattr(paddle, "enable_static")``, so that must be False.
    """
    frame = sys._getframe(2)
    return opname[frame.f_code.co_code[frame.f_lasti]] in ("LOAD_ATTR", "LOAD_METHOD")


class _Paddle(ModuleType):
    """The module ``paddle``: paddlelike under the version number that scripts expect."""

    __version__ = full_version

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES or name.startswith("_"):
            return getattr(sys.modules["paddlelike"], name)
        if name in _SWITCHES and _is_read_by_name():
            return lambda *_: None
        raise AttributeError(
            f"module 'paddle' has no attribute {name!r}: `import paddle` gives the names of Paddle 1.8.5, "
            f"{', '.join(_NAMES)}",
            name=name,
            obj=None,
        )

    def __dir__(self) -> list[str]:
        return list(_NAMES)


class _PaddleFinder(AliasFinder):
    """Imports ``paddle`` and its submodules."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return the module ``paddle``, or None for its submodules, which come from paddlelike."""
        return _Paddle(spec.name, __doc__) if spec.name == "paddle" else super().create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing for ``paddle``; replace its submodules by paddlelike's."""
        if module.__name__ != "paddle":
            super().exec_module(module)


_FINDER: Final = _PaddleFinder({"paddle": "paddlelike"})


def install() -> None:
    """Make ``import paddle``, and every module path below it, import paddlelike in this process.

    A second call changes nothing.

    Raises
    ------
    ImportPaddleError
        Another ``paddle`` is imported already.

    >>> import paddlelike
    >>> paddlelike.install()
    >>> import paddle.fluid as fluid
    >>> fluid.layers is paddlelike.layers
    True
    """
    imported = sys.modules.get("paddle")
    if imported is not None and not isinstance(imported, _Paddle):
        raise ImportPaddleError(
            f"paddlelike.install: another paddle is imported already, from {imported.__file__}",
            hint="call paddlelike.install() before the first import of paddle",
        )
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    import_module("paddle")
    add_function_module("paddle.batch")


def is_installed() -> bool:
    """Return whether ``import paddle`` gives paddlelike in this process."""
    return isinstance(sys.modules.get("paddle"), _Paddle)


def add_to_path(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with :data:`FOLDER` first in PYTHONPATH.

    ``import paddle`` gives paddlelike in every Python process with this environment, and in processes that it
    starts: by multiprocessing, as the command of a dataset, below the launcher.

    >>> add_to_path({"PYTHONPATH": "/home/me"})["PYTHONPATH"] == f"{FOLDER}{os.pathsep}/home/me"
    True
    """
    others = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    entries = [FOLDER, *(entry for entry in others if entry != FOLDER)]
    return dict(environment) | {"PYTHONPATH": os.pathsep.join(entries)}
