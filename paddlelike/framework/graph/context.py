"""The name scope and the device that ``with`` blocks give to new operators."""

from __future__ import annotations

from typing import Final

from paddlelike.foundation.current import Current


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


NAME_SCOPE: Final = Current(NameScope())
DEVICE: Final = Current("")
