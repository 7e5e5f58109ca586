"""Fluid's ``incubate``: the module paths of fleet, ``incubate.fleet...``, and the unsupported ones.

``paddlelike.incubate`` is this module. Importing it makes the modules below importable under Fluid's names.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Final, NoReturn

from paddlelike.distributed.fleet import base, parameter_server, role_maker, strategy
from paddlelike.errors import UnsupportedError

__all__ = ["FLEET_MODULES", "fleet"]

_INSTEAD: Final = "incubate.fleet.parameter_server.distribute_transpiler is the fleet for parameter servers"


class _Refused(ModuleType):
    """A module of Fluid's that is not supported: importing a name from it raises UnsupportedError."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{self.__name__}.{name}: {self._why}", hint=_INSTEAD)


_COLLECTIVE: Final = "training by collectives (all-reduce between GPUs) is not supported"
_PSLIB: Final = "pslib, a parameter server inside Baidu's own builds of Paddle, is not supported"

#: The modules behind ``from paddlelike.incubate.fleet.... import ...``.
FLEET_MODULES: Final = {
    "incubate.fleet.base.role_maker": role_maker,
    "incubate.fleet.base.fleet_base": base,
    "incubate.fleet.base.mode": base,
    "incubate.fleet.parameter_server.distribute_transpiler": parameter_server,
    "incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy": strategy,
    "incubate.fleet.parameter_server.pslib": _Refused("incubate.fleet.parameter_server.pslib", _PSLIB),
    "incubate.fleet.collective": _Refused("incubate.fleet.collective", _COLLECTIVE),
}


def _install(name: str, module: ModuleType) -> ModuleType:
    """Make ``module`` importable as ``paddlelike.<name>``, and the packages above it."""
    found = sys.modules.setdefault(f"paddlelike.{name}", module)
    parent, _, last = name.rpartition(".")
    if parent != "incubate":
        above = ModuleType(f"paddlelike.{parent}", "Modules of Fluid's, one level deeper.")
        setattr(_install(parent, above), last, found)
    return found


for _name, _module in FLEET_MODULES.items():
    _install(_name, _module)

fleet = sys.modules["paddlelike.incubate.fleet"]
