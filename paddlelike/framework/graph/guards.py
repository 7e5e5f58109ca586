"""The default programs, and ``with`` blocks that choose programs, name scope and device for new operators.

See :class:`~paddlelike.foundation.current.Current` for the threads that a block holds for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from paddlelike.errors import GraphError
from paddlelike.foundation.current import Current
from paddlelike.framework.graph.context import CONTEXT, NameScope
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable

__all__ = [
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "name_scope",
    "program_guard",
    "reset_name_scope",
    "switch_main_program",
    "switch_startup_program",
]

CONTEXT.main_program = Current(Program())
CONTEXT.startup_program = Current(Program())


def default_main_program() -> Program:
    """Return the program that layers are built into."""
    return CONTEXT.main_program.get()


def default_startup_program() -> Program:
    """Return the program that initializers are built into."""
    return CONTEXT.startup_program.get()


def switch_main_program(program: Program) -> Program:
    """Make ``program`` the default main program. Return the previous one."""
    return CONTEXT.main_program.set(program)


def switch_startup_program(program: Program) -> Program:
    """Make ``program`` the default startup program. Return the previous one."""
    return CONTEXT.startup_program.set(program)


@contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Build layers into these programs inside the ``with`` block. Raises TypeError for anything else."""
    for name, program in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(program, Program) and (program is not None or name == "main_program"):
            raise TypeError(f"program_guard: {name} is {program!r}, expected a Program")
    with ExitStack() as blocks:
        blocks.enter_context(CONTEXT.main_program.replaced(main_program))
        if startup_program is not None:
            blocks.enter_context(CONTEXT.startup_program.replaced(startup_program))
        yield


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Mark operators built inside with a path such as ``/encoder/`` (attribute ``op_namescope``).

    Raises GraphError for an empty name.
    """
    if not prefix:
        raise GraphError("name_scope: the name is empty", hint='pass a name, such as "encoder"')
    with CONTEXT.name_scope.replaced(CONTEXT.name_scope.get().create_child(prefix)):
        yield


def reset_name_scope() -> None:
    """Forget all name scopes, so that suffixes are counted as in a new process."""
    CONTEXT.name_scope.set(NameScope())


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Mark operators built inside with a device (attribute ``op_device``); all run on the CPU here.

    Raises ValueError for a device that is neither ``"cpu"``, ``"gpu"`` (with or without an index) nor None.
    """
    name = "" if device is None else device
    if name.split(":")[0] not in ("", "cpu", "gpu"):
        raise ValueError(f"device_guard takes 'cpu', 'gpu' or None, not {device!r}")
    with CONTEXT.device.replaced(name):
        yield


def _get_var(name: str, program: Program | None = None) -> Variable:
    """Return the variable of that name in block 0 of a program, by default the main program.

    Scripts import it although Fluid does not list it. Raises GraphError when there is none.
    """
    return (default_main_program() if program is None else program).global_block().var(name)
