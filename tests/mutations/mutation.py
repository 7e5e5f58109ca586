"""A mutation: a small fault that somebody could have written."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ROOMS", "Mutation", "list_mutations"]

#: The rooms with mutations; the module of each is beside this one.
ROOMS: Final = ("storage", "io", "framework", "executor", "ops", "formats", "distributed")


class Mutation(NamedTuple):
    """The text ``old``, which ``file`` has once, becomes ``new``; ``breaks``: the number of an invariant."""

    name: str
    file: str  # below ``paddlelike/``
    old: str
    new: str
    breaks: str = ""

    @property
    def room(self) -> str:
        """The room that the mutated file is in."""
        return self.file.partition("/")[0]

    def count_places(self, project: Path) -> int:
        """Return how often the file has the old text; a mutation applies where that is once."""
        return (project / "paddlelike" / self.file).read_text(encoding="utf-8").count(self.old)

    def apply(self, project: Path) -> str:
        """Write the mutated file into a project, and return what it was.

        Raises ValueError unless the file has the old text once.
        """
        if (count := self.count_places(project)) != 1:
            raise ValueError(
                f"mutation {self.name!r}: {self.file} has its old text {count} times, expected once: "
                "write the mutation for the present code",
            )
        path = project / "paddlelike" / self.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return text


def list_mutations() -> list[Mutation]:
    """Return all mutations, room by room."""
    return [
        mutation
        for room in ROOMS
        for mutation in importlib.import_module(f"tests.mutations.{room}").MUTATIONS
    ]
