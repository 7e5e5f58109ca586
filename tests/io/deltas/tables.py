"""A network with a large table for the tests of deltas, and its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid

__all__ = ["HEIGHT", "Training", "read_files"]

HEIGHT = 2000  # rows of 16 float32: 128 kB


class Training:
    """A network that looks rows up in a table, its optimizer, and a scope of its own."""

    def __init__(self, optimizer: Any = None, *, is_sparse: bool = True) -> None:
        self.main, self.startup = main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 1
        self.exe, self.scope = fluid.Executor(), fluid.Scope()
        with fluid.unique_name.guard(), fluid.program_guard(main, startup):
            rows = fluid.layers.embedding(
                fluid.data("ids", [None, 1], "int64"), [HEIGHT, 16], is_sparse=is_sparse, param_attr="emb"
            )
            self.loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
            (optimizer or fluid.optimizer.Adagrad(0.1)).minimize(self.loss)
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)

    def step(self, *ids: int) -> None:
        with fluid.scope_guard(self.scope):
            self.exe.run(self.main, feed={"ids": np.array(ids, "int64").reshape(-1, 1)})

    def save(self, path: str | Path, **options: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return fluid.io.save_persistables(self.exe, path, self.main, **options)

    def load(self, path: str | Path, **options: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return fluid.io.load_persistables(self.exe, path, self.main, **options)

    def tensor(self, name: str = "emb") -> Any:
        return self.scope.find_var(name).get_tensor()

    def values(self) -> dict[str, bytes]:
        names = [v.name for v in self.main.list_vars() if v.persistable and self.scope.find_var(v.name)]
        return {name: np.array(self.tensor(name)).tobytes() for name in names}

    def loaded(self, path: str | Path, **options: Any) -> dict[str, bytes]:
        """Return the values that a load brings into another scope."""
        mine, self.scope = self.scope, fluid.Scope()
        try:
            self.load(path, **options)
            return self.values()
        finally:
            self.scope = mine


def read_files(path: Path) -> dict[str, bytes]:
    """Return all files below a directory."""
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}
