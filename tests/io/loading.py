"""What the tests of loads share: small networks, a saved directory, and a look at the scope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import paddlelike as fluid
from paddlelike.core import SelectedRows

T = TypeVar("T")
Programs = tuple[fluid.Program, fluid.Program]


def network(classes: int = 10, words: int = 6, *, times: int = 1) -> Programs:
    """A table, two layers and Momentum, under fresh names; ``times`` 2: built twice, so that they drift."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard():
        for _ in range(times):
            main, startup = fluid.Program(), fluid.Program()
            main.random_seed = startup.random_seed = 7
            with fluid.program_guard(main, startup):
                ids = fluid.data("ids", [None, 1], "int64")
                hidden = fluid.layers.fc(fluid.layers.embedding(ids, [words, 4]), 8)
                loss = fluid.layers.mean(fluid.layers.fc(hidden, classes))
                fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return main, startup


def executor() -> fluid.Executor:
    return fluid.Executor()


def save(directory: Path, programs: Programs, filename: str | None = None) -> dict[str, np.ndarray]:
    """Save the first values of a network, with its names in them; returns what was saved."""
    main, startup = programs
    with fluid.scope_guard(fluid.Scope()):
        executor().run(startup)
        for number, variable in enumerate(persistables(main)):
            tensor = fluid.global_scope().find_var(variable.name).get_tensor()
            tensor.set(np.asarray(tensor) + tensor.array.dtype.type(number))
        fluid.io.save_persistables(executor(), str(directory), main, filename)
        return values(main)


def persistables(program: fluid.Program) -> list[Any]:
    return [v for v in program.list_vars() if fluid.io.is_persistable(v)]


def values(program: fluid.Program) -> dict[str, np.ndarray]:
    return {v.name: value(v.name) for v in persistables(program)}


def value(name: str) -> np.ndarray:
    held = fluid.global_scope().find_var(name).value
    return np.array(held.get_tensor() if isinstance(held, SelectedRows) else held)


def unchanged(action: Callable[[], T]) -> T:
    """Carry out what must not change the scope, and check that it did not, also if it raised."""
    scope = fluid.global_scope()

    def state() -> dict[str, Any]:
        names = scope.local_var_names()
        return {n: (scope.find_var(n).version, value(n).tobytes(), scope.find_var(n).origin) for n in names}

    before = state()
    try:
        return action()
    finally:
        assert state() == before


def own(directory: Path, name: str, array: np.ndarray) -> None:
    """Put a variable's file into a directory."""
    from paddlelike.formats.paddle import lod_tensor

    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(b"".join(bytes(b) for b in lod_tensor.encode(array)))


def program_of(**shapes: Any) -> fluid.Program:
    """A program of parameters and nothing else."""
    program = fluid.Program()
    for name, (shape, dtype) in shapes.items():
        program.global_block().create_var(name=name, shape=shape, dtype=dtype, persistable=True)
    return program
