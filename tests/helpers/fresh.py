"""Programs as a new process would build them: empty, with fresh counters and an empty scope."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlelike import unique_name
from paddlelike.core import Scope, scope_guard
from paddlelike.framework import Program, program_guard
from paddlelike.framework.graph.guards import reset_name_scope
from paddlelike.reader.program_reader import LOADER_NAMES


@contextmanager
def fresh_programs(seed: int = 0) -> Iterator[tuple[Program, Program]]:
    """New default main and startup programs with that random seed, new counters, a new scope."""
    main, startup = Program(), Program()
    main.random_seed = startup.random_seed = seed
    reset_name_scope()
    LOADER_NAMES.counts.clear()
    with unique_name.guard(), program_guard(main, startup), scope_guard(Scope()):
        yield main, startup
