"""Losses by step, across restarts."""

from __future__ import annotations

import json
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.io import TrainingLog


def test_a_resumed_run_replaces_the_lines_it_repeats(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    log = TrainingLog(path)
    for step in range(5):
        log.write(step, loss=np.float32([10 - step]), accuracy=step / 10)
    resumed = TrainingLog(path)
    for step in range(3, 5):
        resumed.write(step, loss=100 + step)
    curves = log.curves()
    assert curves["loss"] == ((0, 1, 2, 3, 4), (10, 9, 8, 103, 104))
    assert curves["accuracy"] == ((0, 1, 2), (0, 0.1, 0.2))
    assert log.restarts() == [3]


def test_a_line_cut_by_a_killed_process_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    TrainingLog(path).write(0, loss=1.0)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole + whole[:length])
        TrainingLog(path).write(1, loss=2.0)
        assert TrainingLog(path).curves()["loss"] == ((0, 1), (1.0, 2.0))


def test_a_half_written_line_damages_no_other_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = TrainingLog(tmp_path / "losses.jsonl"), os.write
    log.write(0, loss=1.0)
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[: len(data) // 2]))
    with pytest.raises(OSError, match="No space left"):
        log.write(1, loss=2.0)
    monkeypatch.setattr(os, "write", write)
    log.write(2, loss=3.0)
    assert log.curves()["loss"] == ((0, 2), (1.0, 3.0))


def test_a_flipped_bit_in_a_training_log_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    for step, loss in enumerate((1.0, 0.25, math.inf)):
        TrainingLog(path).write(step, loss=loss, crc32=math.inf)
    whole, expected = path.read_bytes(), TrainingLog(path).curves()
    for bit in range(8 * len(whole)):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = TrainingLog(path).curves()
        assert found == expected or any(
            "is damaged: these lines were left out:" in str(one.message) for one in said
        )
        for name, curve in found.items():
            assert set(zip(*curve, strict=True)) <= set(zip(*expected[name], strict=True))


def test_a_line_without_a_checksum_is_read(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_text('{"run": 1, "step": 0, "values": {"loss": 0.5}}\n')  # as earlier versions wrote it
    TrainingLog(path).write(1, loss=0.25)
    assert TrainingLog(path).curves()["loss"] == ((0, 1), (0.5, 0.25))


def test_numbers_that_are_not_finite_are_logged_as_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    log = TrainingLog(path)
    log.write(0, loss=math.nan)
    log.write(1, loss=-math.inf)
    values = log.curves()["loss"].values
    assert math.isnan(values[0])
    assert values[1] == -math.inf

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_lines_of_other_programs_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    path.write_bytes(
        b'\xff\n[]\n3\n{"run": 1, "step": "x", "values": {}}\n{"run": 1e999, "step": 1, "values": {}}\n'
    )
    log = TrainingLog(path)
    assert log.curves() == {}
    log.write(7, loss=1)
    assert log.curves() == {"loss": ((7,), (1.0,))}


def test_invalid_values_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "losses.jsonl")
    with pytest.raises(ValueError, match=r"loss has shape \(2,\), expected one element"):
        log.write(0, loss=[1, 2])
    with pytest.raises(ValueError, match="takes a step of 0 or more and values"):
        log.write(0)
    with pytest.raises(ValueError, match="takes a step of 0 or more and values"):
        log.write(-1, loss=1)
    assert not (tmp_path / "losses.jsonl").exists()
    assert log.curves() == {}


@pytest.mark.slow  # imports matplotlib
def test_curves_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is in the extra 'tutorials'")
    log = fluid.io.TrainingLog(tmp_path / "losses.jsonl")
    log.write(0, **{"<script>$\\frac": 1.0})
    TrainingLog(log.path).write(1, **{"<script>$\\frac": 0.5})
    log.plot(tmp_path / "losses.png")
    assert (tmp_path / "losses.png").read_bytes().startswith(b"\x89PNG")
    shown = log._repr_html_()
    assert shown is not None
    assert "<script" not in shown
    assert "<svg" in shown
    assert "restarts: 1" in shown
