"""The connection of an executor is made at its first use, and closed once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paddlelike.executor.exchange import files
from paddlelike.executor.exchange.files import RemoteSwitch


class Connection:
    """Counts how often it is closed."""

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections made, by a provider of the test."""
    made: list[Any] = []

    def connect() -> Connection:
        made.append(Connection())
        return made[-1]

    monkeypatch.setattr(files, "_connect_remote", SimpleNamespace(function=connect))
    return made


def test_a_connection_is_made_once(connections: list[Any]) -> None:
    switch = RemoteSwitch()
    assert connections == []
    assert switch.open() is switch.open() is connections[0]
    switch.close()
    switch.close()
    assert connections[0].closed == 1


def test_closing_without_a_connection_makes_none(connections: list[Any]) -> None:
    RemoteSwitch().close()
    assert connections == []
