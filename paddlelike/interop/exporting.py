"""Common code of the exporters of programs: the part to write, and the attributes of its operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paddlelike.core import Array, LoDTensor, Scope
from paddlelike.errors import FormatError, NotInitializedError, PaddlelikeError, UnsupportedError
from paddlelike.framework import Operator, Program, Variable
from paddlelike.framework.opdef import ABSENT, REQUIRED, registry
from paddlelike.interop.reader_tables import InexpressibleError, Translation
from paddlelike.io.export.program import check_feeds, find_ports, make_inference_program


@contextmanager
def name_damage(op: Operator) -> Iterator[None]:
    """Turn the exception about a damaged operator into an error that names the operator.

    Raises
    ------
    FormatError
        Its type has other inputs, outputs or attributes.
    """
    try:
        yield
    except (PaddlelikeError, InexpressibleError):
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        slots = sorted(slot for slot, names in {**op.inputs, **op.outputs}.items() if names)
        raise FormatError(
            f"operator {op.type!r} with the slots {slots} lacks an input, an output or an attribute of its "
            f"type, or has one of another kind ({type(error).__name__}: {error})",
            hint="the program is damaged or was changed: load and run it, or export it again",
        ) from error


def cut_program(
    program: Program, feeds: Sequence[str] | None, fetches: Sequence[Variable | str] | None, caller: str
) -> Program:
    """Return the part of a program that computes the fetches from the feeds.

    Raises
    ------
    UnsupportedError
        There are no fetches; the text names ``caller``, the exporting function.
    GraphError
        A feed is missing or unused.
    """
    if feeds is None or fetches is None:
        own = find_ports(program, "the program")
        feeds = own[0] if feeds is None else feeds
        fetches = own[1] if fetches is None else fetches
    if not fetches:
        raise UnsupportedError(
            f"{caller}: the program has no outputs",
            hint=f"name its feeds and fetches: {caller}(program, file, feeds, fetches)",
        )
    block = program.global_block()
    targets = [one if isinstance(one, Variable) else block.var(one) for one in fetches]
    check_feeds(program, list(feeds), targets)
    return make_inference_program(program, list(feeds), [one.name for one in targets])


def read_parameter(scope: Scope, name: str, title: str) -> Array:
    """Return the array of a parameter that an export writes; ``title`` names the export in errors.

    Raises
    ------
    NotInitializedError
        The parameter holds no tensor.
    """
    holder = scope.find_var(name)
    value = None if holder is None else holder.value
    if not isinstance(value, LoDTensor) or value.held_array is None:
        raise NotInitializedError(
            f"{title}: parameter {name!r} holds no tensor",
            hint="run the startup program, or load the values, first; or pass scope=",
        )
    return value.held_array


class Step(Translation):
    """Base class of the translation of an operator into the graph of another system."""

    op: Operator

    def has(self, slot: str) -> bool:
        """Return whether an input slot has a variable."""
        return bool(self.op.input(slot))

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or its default in Paddle, or ``default``."""
        if name in self.op.attrs:
            return self.op.attrs[name]
        known = registry.find_for_version(self.op.type, self.op.block.program.paddle_version)
        declared = None if known is None or name not in known.attrs else known.attrs[name].default
        return default if declared in (None, REQUIRED, ABSENT) else declared

    def refuse_inputs(self, *slots: str) -> None:
        """Raise InexpressibleError if one of these slots has a variable."""
        for slot in slots:
            if self.has(slot):
                self.refuse(f"input {slot} is computed at run time")
