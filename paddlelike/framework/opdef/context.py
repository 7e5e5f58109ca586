"""The run context: a kernel's access to the run besides its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from paddlelike.core.scope import Scope
from paddlelike.framework.opdef.slots import LoD


class OpView(Protocol):
    """An operator of a program, as shape rules of gradients and kernels may see it."""

    type: str

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def input(self, slot: str) -> list[str]: ...
    def output(self, slot: str) -> list[str]: ...


class Context(Protocol):
    """The first argument of a kernel with ``context = True``, before its arrays."""

    @property
    def op(self) -> OpView:
        """The operator that runs."""

    @property
    def scope(self) -> Scope:
        """The scope of the run: holds the persistables, or has a parent that does."""

    def lod(self, slot: str, index: int = 0) -> LoD:
        """Return the LoD (offsets) of a variable of an input slot; [] when it has none."""

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Give a variable of an output slot its LoD."""

    def read(self, name: str) -> Any:
        """Return the value of any variable this operator can see, or None."""

    def read_lod(self, name: str) -> LoD:
        """Return the LoD of any variable this operator can see."""

    def write(self, name: str, value: Any, lod: LoD | None = None, *, fresh: bool = False) -> None:
        """Set any variable this operator can see; a ``fresh`` array has no other reference."""

    def run_block(self, index: int) -> None:
        """Run a sub-block of the program on the same values."""

    def clear(self, index: int) -> None:
        """Delete the values of a sub-block's own variables; every step begins without them."""

    def inside(self, index: int) -> Context:
        """Return the context of a sub-block: its own variables hide those of the same name around it."""

    def owns(self, name: str) -> bool:
        """Return whether the block of this context itself has a variable of that name."""

    def is_read(self, slot: str) -> bool:
        """Return whether any operator of the run reads the variable in an output slot."""

    def snapshot(self, index: int) -> Any:
        """Return the values of a sub-block's own variables."""

    def snapshot_overwritten(self) -> Any:
        """Return a snapshot of the variables around the sub-block that it reads and then overwrites.

        Counters are not among them: the gradient of the block takes them back.
        """

    def reveal(self, snapshot: Any) -> None:
        """Give the gradients of earlier operators the values from before a block overwrote them.

        Nothing happens when no value was overwritten.
        """

    def restore(self, snapshot: Any) -> None:
        """Put the values of a snapshot back."""

    def exchange(self, snapshot: Any) -> Any:
        """Put the values of a snapshot back; return a snapshot of the values they replace."""

    def random(self, seed: int) -> Any:
        """Return a generator that starts at ``seed``; for 0 the scope's own, which advances."""

    def service(self, name: str) -> Any:
        """Return a service that the executor provides to operators (files, remote), or None."""
