"""The run context: what a kernel sees of the run besides its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from paddlelike.core.scope import Scope
from paddlelike.framework.opdef.slots import LoD

__all__ = ["Context", "OpView"]


class OpView(Protocol):
    """An operator of a program, as shape rules of gradients and kernels may see it."""

    type: str

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def input(self, slot: str) -> list[str]: ...
    def output(self, slot: str) -> list[str]: ...


class Context(Protocol):
    """What a kernel with ``context = True`` gets as first argument, besides its arrays."""

    @property
    def op(self) -> OpView:
        """The operator that runs."""

    @property
    def scope(self) -> Scope:
        """The scope of the run: holds the persistables, or has a parent that does."""

    def lod(self, slot: str, index: int = 0) -> LoD:
        """The LoD (offsets) of a variable of an input slot; [] when it has none."""

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Give a variable of an output slot its LoD."""

    def read(self, name: str) -> Any:
        """The value of any variable this operator can see, or None."""

    def read_lod(self, name: str) -> LoD:
        """The LoD of any variable this operator can see."""

    def write(self, name: str, value: Any, lod: LoD | None = None, *, fresh: bool = False) -> None:
        """Set any variable this operator can see; a ``fresh`` array belongs to nobody else."""

    def run_block(self, index: int) -> None:
        """Run a sub-block of the program on the same values."""

    def clear(self, index: int) -> None:
        """Forget the values of a sub-block's own variables, as every step begins without them."""

    def inside(self, index: int) -> Context:
        """The context as a sub-block sees it: its own variables hide those of the same name around it."""

    def owns(self, name: str) -> bool:
        """Whether the block that this context looks from has a variable of that name itself."""

    def is_read(self, slot: str) -> bool:
        """Whether any operator of the run reads the variable in an output slot."""

    def snapshot(self, index: int) -> Any:
        """The values of a sub-block's own variables."""

    def overwritten(self) -> Any:
        """A snapshot of the variables around the sub-block that it reads and then overwrites.

        Counters are not among them: the gradient of the block takes them back.
        """

    def reveal(self, snapshot: Any) -> None:
        """Show the values before a block overwrote them to the gradients of what ran before it.

        None: they are what they are.
        """

    def restore(self, snapshot: Any) -> Any:
        """Put the values of a snapshot back; returns one of what was there."""

    def random(self, seed: int) -> Any:
        """A generator that starts at ``seed``; at 0 the scope's own, which moves on."""

    def service(self, name: str) -> Any:
        """What the caller of the run lends to operators (storage, wire), or None."""
