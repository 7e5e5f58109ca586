"""``fluid.incubate``: the generators of samples, and fleet under Fluid's module paths.

The modules are those of ``paddlelike.reader`` and ``paddlelike.distributed.fleet``; the table of names is in
``paddlelike/__init__.py``.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["data_generator", "fleet"]


def __getattr__(name: str) -> ModuleType:
    """Import a module when it is used. Raises AttributeError for names that are not modules."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
