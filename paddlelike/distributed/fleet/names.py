"""Fluid's deep names for what fleet is made of, ``incubate.fleet...``, and what of it is not here."""

from __future__ import annotations

from types import ModuleType
from typing import Final, NoReturn

from paddlelike.distributed.fleet import base, parameter_server, role_maker, strategy
from paddlelike.errors import UnsupportedError

__all__ = ["FLEET_MODULES"]

_INSTEAD: Final = "incubate.fleet.parameter_server.distribute_transpiler is the fleet for parameter servers"


class _Refused(ModuleType):
    """A module of Fluid's whose contents are not here: whoever takes something out of it learns why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"{self.__name__}.{name}: {self._why}", hint=_INSTEAD)


_COLLECTIVE: Final = "training by collectives (all-reduce between GPUs) is not here"
_PSLIB: Final = "pslib, a parameter server inside Baidu's own builds of Paddle, is not here"

#: What ``from paddlelike.incubate.fleet.... import ...`` finds.
FLEET_MODULES: Final = {
    "incubate.fleet.base.role_maker": role_maker,
    "incubate.fleet.base.fleet_base": base,
    "incubate.fleet.base.mode": base,
    "incubate.fleet.parameter_server.distribute_transpiler": parameter_server,
    "incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy": strategy,
    "incubate.fleet.parameter_server.pslib": _Refused("incubate.fleet.parameter_server.pslib", _PSLIB),
    "incubate.fleet.collective": _Refused("incubate.fleet.collective", _COLLECTIVE),
}
