"""The state that networks are built under: the default programs, the name scope, the device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paddlelike.foundation.current import Current

if TYPE_CHECKING:
    from paddlelike.framework.graph.program import Program

__all__ = ["CONTEXT", "BuildContext", "NameScope"]


class NameScope:
    """A node of the tree of name scopes; a repeated name gets a suffix, as in ``/encoder_1/``."""

    def __init__(self, path: str = "/") -> None:
        self.path = path
        self._counts: dict[str, int] = {}

    def create_child(self, prefix: str) -> NameScope:
        """Return a new scope inside this one."""
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        name = prefix if count == 0 else f"{prefix}_{count}"
        return NameScope(f"{self.path}{name}/")


class BuildContext:
    """The programs that layers are built into, and what every new operator is marked with.

    Changed by :mod:`paddlelike.framework.graph.guards`, which also creates the default programs.
    """

    main_program: Current[Program]
    startup_program: Current[Program]

    def __init__(self) -> None:
        self.name_scope: Final = Current(NameScope())
        self.device: Final = Current("")


CONTEXT: Final = BuildContext()
