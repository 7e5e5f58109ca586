"""Functions that methods of the graph's classes call and that packages above the graph implement.

Fluid's API has methods such as ``Program.clone``, ``Program.to_string`` and ``Variable.__add__``. The graph's
classes are plain data and import neither passes nor codecs: these methods call :func:`services`. The package
``paddlelike.framework`` installs the implementations when it is imported; Python imports it before any module
inside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import networkx as nx

    from paddlelike.framework.graph.block import Block
    from paddlelike.framework.graph.operator import Operator
    from paddlelike.framework.graph.program import Program
    from paddlelike.framework.graph.variable import Variable

__all__ = [
    "Arithmetic",
    "Decoder",
    "Encoder",
    "Indexing",
    "Passes",
    "Services",
    "Text",
    "Views",
    "install",
    "services",
]


class Encoder(Protocol):
    """Programs to bytes; implemented by :mod:`paddlelike.framework.codec.encode`."""

    PADDLE_VERSION: int

    def encode_program(self, program: Program) -> bytes:
        """Return the program as a serialized ProgramDesc."""


class Decoder(Protocol):
    """Bytes to programs; implemented by :mod:`paddlelike.framework.codec.decode`."""

    def decode_program(self, data: bytes, *, trusted: bool = False) -> Program:
        """Return the program in a serialized ProgramDesc."""

    def decode_message(self, kind: str, data: bytes) -> Any:
        """Return the message of a program, a variable or an operator."""


class Text(Protocol):
    """Programs as text; implemented by :mod:`paddlelike.framework.codec.text`."""

    def format_program(self, program: Program, *, with_details: bool = False) -> str:
        """Return a program as protobuf text."""

    def format_block(self, block: Block, *, with_details: bool = False) -> str:
        """Return a block as protobuf text."""

    def format_variable(self, variable: Variable, *, with_details: bool = False) -> str:
        """Return a variable as protobuf text."""

    def format_operator(self, op: Operator) -> str:
        """Return an operator as protobuf text."""


class Passes(Protocol):
    """Copies of programs; implemented by :mod:`paddlelike.framework.passes.clone`."""

    def copy(self, program: Program) -> Program:
        """Return a full copy."""

    def copy_for_test(self, program: Program) -> Program:
        """Return a copy of the forward part in test mode."""

    def copy_for_inference(self, program: Program, *, without_readers: bool) -> Program:
        """Return a copy in test mode."""

    def prune(self, program: Program, *, feeds: Iterable[str], targets: Iterable[str]) -> Program:
        """Return a copy that computes ``targets`` from ``feeds`` and nothing else."""


class Views(Protocol):
    """Programs as networkx graphs; implemented by :mod:`paddlelike.framework.passes.views`."""

    def build_graph(self, program: Program) -> nx.DiGraph[Any]:
        """Return operators and variables as a directed graph."""


class Arithmetic(Protocol):
    """Python's operators; implemented by :mod:`paddlelike.framework.expressions.arithmetic`."""

    def combine(self, left: Variable, right: Any, type: str, *, reverse: bool = False) -> Variable:
        """Append the operator ``type`` of a variable and a variable or a number."""

    def cast(self, variable: Variable, dtype: Any) -> Variable:
        """Append a conversion to another element type."""

    def negate(self, variable: Variable) -> Variable:
        """Append a change of sign."""


class Indexing(Protocol):
    """``x[...]``; implemented by :mod:`paddlelike.framework.expressions.indexing`."""

    def getitem(self, variable: Variable, item: Any) -> Variable:
        """Append the operators that cut ``item`` out of a variable."""


@dataclass(frozen=True)
class Services:
    """The implementations of all protocols of this module."""

    encoder: Encoder
    decoder: Decoder
    text: Text
    passes: Passes
    views: Views
    arithmetic: Arithmetic
    indexing: Indexing


_installed: list[Services] = []


def install(implementations: Services) -> None:
    """Set the implementations that :func:`services` returns; called once, by ``paddlelike.framework``."""
    _installed[:] = [implementations]


def services() -> Services:
    """Return the installed implementations."""
    return _installed[0]
