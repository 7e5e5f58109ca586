"""Each test has programs, names and a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import paddlelike as fluid
from paddlelike.collection import graph


@pytest.fixture(autouse=True)
def fresh_programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(graph, "_fresh", [])
    with (
        fluid.unique_name.guard(),
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
    ):
        yield
