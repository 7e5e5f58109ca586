"""What a server logs and counts, and when it gives its trainers up."""

from __future__ import annotations

import logging

import pytest

from paddlelike.distributed.protocol.trainer.retries import Limits
from paddlelike.distributed.server.monitor import Monitor, write_log
from paddlelike.distributed.settings import Settings
from paddlelike.errors import FaultError
from tests.distributed.server.test_position import Clock

SETTINGS = Settings(limits=Limits(barrier=100.0), lease=30.0, log_every=60.0)


def test_a_line_is_written_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    monitor = Monitor("a:1", 2, SETTINGS, clock=clock)
    with caplog.at_level(logging.INFO, "paddlelike.distributed.server"):
        for second in range(1, 181):
            clock.now += 1
            monitor.presence.hear(0)
            monitor.rounds += 2
            monitor.check(monitor.rounds, [0, 1])
            assert len(caplog.messages) == second // 60
    assert caplog.messages[0] == "server a:1: round 120, 2.0 rounds/s; waits for trainer 1 (never heard of)"
    assert caplog.messages[2].startswith("server a:1: round 360, 2.0 rounds/s")


def test_one_line_is_written_after_a_long_pause(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    monitor = Monitor("a:1", 1, SETTINGS, clock=clock)
    with caplog.at_level(logging.INFO, "paddlelike.distributed.server"):
        clock.now += 600
        monitor.rounds = 300
        for _ in range(5):
            monitor.check(300, [])
    assert caplog.messages == ["server a:1: round 300, 0.5 rounds/s"]


def test_a_server_ends_when_trainers_are_gone_and_names_them() -> None:
    clock = Clock()
    monitor = Monitor("a:1", 3, SETTINGS, clock=clock)
    monitor.presence.hear(0)
    monitor.presence.hear(2)
    clock.now += 100
    monitor.check(7, [0, 1])
    clock.now += 1
    with pytest.raises(FaultError, match=r"a:1 ends at round 7: no sign of life for 101 s") as caught:
        monitor.check(7, [0, 1])
    assert "from trainer 0 (last heard of 101 s ago), trainer 1 (never heard of)" in str(caught.value)
    assert caught.value.exit_code == 75


def test_a_server_waits_for_its_first_trainer_without_limit() -> None:
    clock = Clock()
    monitor = Monitor("a:1", 2, SETTINGS, clock=clock)
    clock.now += 1e6
    monitor.check(0, [0, 1])
    assert monitor.status("sync", [0, 1])["silent"] == [0, 1]


def test_a_log_line_goes_to_stderr_unless_logging_is_configured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("paddlelike.distributed.server")
    with caplog.at_level(logging.INFO, logger.name):
        write_log("server a:1: round 3")
    assert caplog.messages == ["server a:1: round 3"]
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(logger, "hasHandlers", lambda: False)
    write_log("server a:1: round 4")
    assert capsys.readouterr().err.endswith(" server a:1: round 4\n")
