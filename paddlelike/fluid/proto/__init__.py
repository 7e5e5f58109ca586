"""``fluid.proto``: the messages of saved programs."""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType


def __getattr__(name: str) -> _ModuleType:
    """Return the module of that name; AttributeError for any other."""
    if name == "framework_pb2":
        return _import_module(f"{__name__}.framework_pb2")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
