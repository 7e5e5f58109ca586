"""Trainings that are followed: losses and saves as they land."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike.view.server import (
    Follower,
    LoopbackServer,
    make_live_routes,
)
from tests.view.asking import FIT, ask


def save(path: Path, value: float) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        attr = fluid.ParamAttr(initializer=fluid.initializer.Constant(value))
        fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr=attr)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        fluid.io.save_persistables(exe, str(path), main)


def test_new_losses_and_saves_appear(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = fluid.io.TrainingLog(tmp_path / "logs" / "a.jsonl")
    follower = Follower(tmp_path)
    empty = follower.look()
    assert (empty["logs"], empty["saves"]) == ([], [])
    log.write(0, loss=4)
    log.write(1, loss=3)
    first = follower.look()
    assert first["version"] == empty["version"] + 1
    assert follower.look()["version"] == first["version"]
    fluid.io.TrainingLog(log.path).write(1, loss=math.nan)  # restarted
    save(tmp_path / "one", 1.0)
    state = follower.look()
    (found,) = state["logs"]
    assert found["restarts"] == [1]
    curve = found["curves"]["loss"]
    assert (curve["steps"], str(curve["values"]), curve["smallest"]) == ([0, 1], "[4.0, nan]", 4)
    (landed,) = state["saves"]
    assert (landed["name"], landed["files"]) == ("one", 2)
    assert follower.find_save(landed["id"]) == str(tmp_path / "one")
    assert follower.find_save(99) is None
    save(tmp_path / "one", 2.0)  # another save in the same place
    assert [one["name"] for one in follower.look()["saves"]] == ["one", "one"]


def test_a_half_written_line_is_read_after_it_is_complete(tmp_path: Path) -> None:
    line = b'{"run": 1, "step": 0, "values": {"loss": 1.5}}\n'
    path, follower = tmp_path / "a.jsonl", Follower(tmp_path)
    path.write_bytes(b"garbage\n" + line[:20])
    assert follower.look()["logs"][0]["curves"] == {}
    with path.open("ab") as file:
        file.write(line[20:])
    assert follower.look()["logs"][0]["curves"]["loss"]["values"] == [1.5]
    path.write_bytes(line.replace(b"1.5", b"2.5"))  # begun anew, shorter than before
    assert follower.look()["logs"][0]["curves"]["loss"]["values"] == [2.5]


def test_checkpoints_are_listed_with_step_and_metric(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        fluid.layers.fc(fluid.data("x", [None, 2]), 1)
    exe = fluid.Executor()
    with fluid.scope_guard(fluid.Scope()):
        exe.run(startup)
        checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=3)
        for step in (1, 2):
            checkpoints.save(exe, main, step, metric=0.5 * step)
    found = Follower(tmp_path).look()["saves"]
    assert [(one["name"], one["step"], one["metric"]) for one in found] == [
        ("step-00000001", 1, 0.5),
        ("step-00000002", 2, 1.0),
    ]


def test_a_long_curve_keeps_its_ends_and_its_peaks(tmp_path: Path) -> None:
    values = np.sin(np.arange(20_000) / 900.0)
    values[7_777] = 50.0
    lines = [
        f'{{"run": 1, "step": {step}, "values": {{"loss": {value}}}}}' for step, value in enumerate(values)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    curve = Follower(tmp_path).look()["logs"][0]["curves"]["loss"]
    assert curve["count"] == 20_000
    assert len(curve["steps"]) <= 1202
    assert (curve["steps"][0], curve["steps"][-1]) == (0, 19_999)
    assert curve["values"][curve["steps"].index(7_777)] == 50.0


def test_other_files_in_a_followed_directory_do_no_harm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")  # reading it would wait for ever
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "__manifest__").write_bytes(b"\0" * 100)
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    state = Follower(tmp_path, [str(tmp_path / "missing.jsonl")]).look()
    assert (state["logs"], state["saves"]) == ([], [])


def test_only_known_save_ids_are_served(tmp_path: Path) -> None:
    save(tmp_path / "one", 1.0)
    shutil.copytree(FIT / "persistables", tmp_path.parent / f"{tmp_path.name}-secret")
    with LoopbackServer(make_live_routes(Follower(tmp_path))) as found:
        found.start()
        _, state = ask(found, "GET", "/state")
        assert ask(found, "GET", f"/state?version={state['version']}")[1].keys() == {"version", "now"}
        status, page = ask(found, "GET", f"/save?id={state['saves'][0]['id']}")
        assert (status, b"fc_0.w_0" in page) == (200, True)
        for wrong in ("9", "-1", "../x", "", "0" * 50, "%00"):
            assert ask(found, "GET", f"/save?id={wrong}")[0] == 404


def test_saves_within_one_second_are_ordered_by_their_numbers(tmp_path: Path) -> None:
    names = ["step_9", "step_10", "step_999", "step_1499"]
    for name in names:
        save(tmp_path / name, 1.0)
    follower = Follower(tmp_path)
    by_second: dict[str, list[str]] = {}
    for one in follower.look()["saves"]:
        by_second.setdefault(one["time"], []).append(one["name"])
    assert [name for some in by_second.values() for name in some] == names
