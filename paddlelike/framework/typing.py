"""Types of the arguments that hold variables, for annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from paddlelike.core import Scope
from paddlelike.core.typing import FedValue
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable

#: A size that may be known only at run time.
Size: TypeAlias = int | Variable

#: Sizes; some may be known only at run time, or one variable holds them all.
ShapeLike: TypeAlias = Sequence[Size] | Variable

#: Variables in lists, tuples and dicts, as deep as a script likes.
Nested: TypeAlias = "Variable | Sequence[Nested] | Mapping[str, Nested]"

#: Values by the name of the variable that takes them.
Feed: TypeAlias = Mapping[str, FedValue]

#: The result of ``minimize``: update operators, and parameters with their gradients.
Minimized: TypeAlias = tuple[list[Operator], Sequence[tuple[Parameter, Variable | None]]]

#: A variable or its name; update operators and results of ``minimize`` run, but return no value.
FetchItem: TypeAlias = Variable | str | Operator | Minimized

#: The items of a run, in lists as deep as a script likes.
FetchList: TypeAlias = "FetchItem | Sequence[FetchList]"


class Compiled(Protocol):
    """A program with options that determine how it runs: a CompiledProgram."""

    def _run(
        self,
        executor: Any,
        scope: Scope,
        feed: Feed | Sequence[Feed] | None,
        fetch_list: FetchList | None,
        return_numpy: bool,
        return_merged: bool,
        use_prune: bool,
    ) -> list[Any]: ...


#: A program for an executor.
ProgramLike: TypeAlias = Program | Compiled
