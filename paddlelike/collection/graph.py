"""The program for expressions, and running parts of it.

DyNet builds a graph for every example and forgets it at ``renew_cg()``. Here an expression is a variable of a
Program: of the default main program, or, after :func:`renew_cg`, of a new program. Parameters live in the
global scope, so every graph sees the same values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike import unique_name
from paddlelike.core import Array, CPUPlace, convert_dtype, global_scope
from paddlelike.executor.run import Executor
from paddlelike.framework import Program, Variable, default_main_program, program_guard
from paddlelike.initializer import Initializer

__all__ = ["current_graph", "evaluate", "initialize", "renew_cg", "run"]


_fresh: list[Program] = []  # the graph of the last renew_cg(), if any


def renew_cg(
    immediate_compute: bool = False, check_validity: bool = False, autobatching: bool | None = None
) -> Program:
    """Begin a new graph and return its Program; expressions of earlier graphs keep their own.

    DyNet's arguments have no effect: values are computed on first use.

    Before the first call, expressions go into the default main program, like Fluid's layers.

    Parameters
    ----------
    immediate_compute, check_validity, autobatching
        Accepted for DyNet's scripts; they have no effect.

    Returns
    -------
    Program
        The new main program, which expressions are built into from then on.

    >>> import paddlelike.collection as dy
    >>> program = dy.renew_cg()
    >>> dy.inputVector([1.0]).variable.block.program is program
    True
    """
    _fresh[:] = [Program()]
    return _fresh[0]


def current_graph() -> Program:
    """Return the program that the next expression is built in."""
    return _fresh[0] if _fresh else default_main_program()


def evaluate(variable: Variable) -> Array:
    """Return the value of a variable, running only what it depends on.

    Raises NotInitializedError when it depends on something that has no value.
    """
    (value,) = run(variable.block.program, [variable])
    return value


def run(program: Program, variables: Sequence[Variable]) -> list[Array]:
    """Return the values of variables of one program, running only what they depend on."""
    values = Executor(CPUPlace()).run(program, fetch_list=list(variables), use_prune=True)
    return [np.asarray(value) for value in values]


def initialize(name: str, shape: tuple[int, ...], initializer: Initializer) -> None:
    """Set a variable of the global scope to its first value, as a startup program would."""
    program = Program()
    with program_guard(program, Program()), unique_name.guard():
        block = program.global_block()
        variable = block.create_var(name=name, shape=shape, dtype=convert_dtype("float32"), persistable=True)
        initializer(variable, block)
        Executor(CPUPlace()).run(program, scope=global_scope())
