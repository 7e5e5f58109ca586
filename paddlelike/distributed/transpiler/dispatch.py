"""Dispatchers: place blocks on servers in turn, or by a hash of the name."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any


class PSDispatcher:
    """Places variables on servers; subclasses define ``dispatch``.

    The blocks of one variable must be placed on different servers.
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """The endpoints of the servers."""
        return self._eps

    def reset(self) -> None:
        """Start with the first server again."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable. Raises NotImplementedError in this base class."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatch()")


class HashName(PSDispatcher):
    """Places a variable by a hash of its name, independently of other variables.

    The blocks of one variable are placed on consecutive servers, so that no server gets two of them. Fluid
    1.8.5 cannot transpile with it (it calls ``var.name()``), and its hash differs from process to process.

    >>> from types import SimpleNamespace
    >>> variables = [SimpleNamespace(name=f"fc_0.w_0.block{i}") for i in range(3)]
    >>> HashName(["a:1", "b:1", "c:1"]).dispatch(variables)
    ['c:1', 'a:1', 'b:1']
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        super().__init__(pserver_endpoints)

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable."""
        return [self._eps[self._hash_block(var.name, len(self._eps))] for var in varlist]

    @staticmethod
    def _hash_block(block_str: str, total: int) -> int:
        match = re.fullmatch(r"(.*)\.block(\d+)", block_str)
        origin, block = (match.group(1), int(match.group(2))) if match else (block_str, 0)
        return (zlib.crc32(origin.encode()) + block) % total


class RoundRobin(PSDispatcher):
    """Places variables on the servers in turn.

    >>> RoundRobin(["a:1", "b:1"]).dispatch(["u", "v", "w"])
    ['a:1', 'b:1', 'a:1']
    """

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        super().__init__(pserver_endpoints)

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        """Return the endpoint of each variable."""
        first = self._step
        self._step = (first + len(varlist)) % len(self._eps)
        return [self._eps[(first + i) % len(self._eps)] for i in range(len(varlist))]
