"""``durability="power"``: files are on the disk before the commit, the commit before the save returns.

A power cut cannot be had in a test. What it leaves follows from the order of the calls: what was written
before a sync stays, of what came after it anything may be there. So the order is recorded, call by call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.storage.local import generation
from paddlelike.storage.local.transaction import Transaction
from tests.crash import tracer
from tests.crash.models import refuse

Event = tuple[str, ...]


@pytest.fixture(autouse=True)
def _traced() -> None:
    reason = tracer.usable()
    if reason:
        pytest.skip(reason)


def save(directory: Path, count: int, fill: bytes = b"1", **options: object) -> None:
    transaction = Transaction(directory, **options)  # type: ignore[arg-type]
    for number in range(count):
        transaction.add(f"w_{number}", [fill * (10 if number else 2_000_000)])
    transaction.commit()


def events_of(work: Callable[[], object]) -> list[Event]:
    events = tracer.recorded(work)
    assert any(event[0] == "write" for event in events)
    return events


def check(events: list[Event], home: Path, commit: Callable[[Event], bool]) -> None:
    """The files were synced before the commit, and the directories after it."""
    at = next(number for number, event in enumerate(events) if commit(event))
    syncs = [number for number, event in enumerate(events[:at]) if event[0] == "sync"]
    assert syncs, "nothing was synced before the commit"
    late = [
        event
        for number, event in enumerate(events[:at])
        if number > syncs[-1] and event[0] == "write" and "dropped" not in event[1]
    ]
    assert late == [], "written after the last sync"
    after = {event[1] for event in events[at:] if event[0] == "sync"}
    assert str(home) in after, "the directory that holds the name was not synced after the commit"


def test_a_save_into_a_new_directory_is_synced_before_it_gets_its_name(tmp_path: Path) -> None:
    events = events_of(lambda: save(tmp_path / "m", 4, durability="power"))
    check(events, tmp_path, lambda e: e[0] == "rename" and e[2] == str(tmp_path / "m"))


def test_a_save_over_an_earlier_one_is_synced_before_the_exchange(tmp_path: Path) -> None:
    save(tmp_path / "m", 4)
    events = events_of(lambda: save(tmp_path / "m", 4, b"2", durability="power"))
    check(events, tmp_path, lambda e: e[0] == "rename" and e[2] == str(tmp_path / "m"))
    assert ("sync", str(tmp_path / ".m.saving-directory")) in events  # the other name of the exchange


def test_a_single_file_is_synced_before_its_rename(tmp_path: Path) -> None:
    save(tmp_path / "m", 1, manifest=False)
    events = events_of(lambda: save(tmp_path / "m", 1, b"2", durability="power", manifest=False))
    check(events, tmp_path / "m", lambda e: e[0] == "rename" and e[2] == str(tmp_path / "m" / "w_0"))


def test_a_journal_and_its_files_are_synced_before_its_name(tmp_path: Path) -> None:
    save(tmp_path / "m", 3)
    path = str(tmp_path / ".m.saving-directory" / "journal")

    def work() -> None:
        with mock.patch.object(generation, "exchange", refuse):
            save(tmp_path / "m", 3, b"2", durability="power")

    events = events_of(work)
    check(
        events,
        tmp_path,
        lambda e: e[0] == "rename" and e[2] == path,
    )
    moves = [
        n for n, e in enumerate(events) if e[0] == "rename" and e[2].startswith(str(tmp_path / "m" / "w"))
    ]
    assert len(moves) == 3
    journal = next(n for n, e in enumerate(events) if e[0] == "rename" and e[2] == path)
    between = [e for e in events[journal : moves[0]] if e[0] == "sync"]
    assert ("sync", str(tmp_path)) in between  # the journal is safe before the first file moves
    assert ("sync", str(tmp_path / "m"), "all") in events[moves[-1] :]  # and the files before it goes


def test_the_files_of_a_network_are_synced_before_the_commit(tmp_path: Path) -> None:
    program = fluid.Program()
    program.global_block().create_var(name="w", shape=[300, 1000], dtype="float32", persistable=True)
    program.global_block().create_var(name="v", shape=[3], dtype="float32", persistable=True)
    exe = fluid.Executor()

    def work(number: float, **options: object) -> None:
        with fluid.scope_guard(fluid.Scope()):
            for name, shape in (("w", (300, 1000)), ("v", (3,))):
                fluid.global_scope().var(name).get_tensor().set(np.full(shape, number, "float32"))
            fluid.io.save_persistables(exe, str(tmp_path / "m"), program, **options)  # type: ignore[arg-type]

    work(1)
    events = events_of(lambda: work(2, durability="power"))
    check(events, tmp_path, lambda e: e[0] == "rename" and e[2] == str(tmp_path / "m"))


def test_exports_prefixes_conversions_and_logs_survive_a_power_cut(tmp_path: Path) -> None:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        out = fluid.layers.scale(fluid.data("x", [None, 3]), 2.0)
        main.global_block().create_var(name="w", shape=[3], dtype="float32", persistable=True)
    exe, made, home = fluid.Executor(), tmp_path / "made", str(tmp_path / "made")

    def export(**options: Any) -> None:
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.save_inference_model(home, ["x"], [out], exe, main, **options)

    def save_prefix(**options: Any) -> None:
        with fluid.scope_guard(fluid.Scope()):
            fluid.global_scope().var("w").get_tensor().set(np.ones(3, "float32"))
            fluid.save(main, f"{home}/net", **options)

    events = events_of(lambda: export(durability="power"))
    check(events, tmp_path, lambda e: e[0] == "rename" and e[2] == home)
    events = events_of(lambda: save_prefix(durability="power"))
    check(events, made, lambda e: e[0] == "rename" and e[2].endswith("net.pdparams"))
    save_prefix()
    events = events_of(lambda: fluid.convert(f"{home}/net", f"{home}/all.npz", durability="power"))
    check(events, tmp_path, lambda e: e[0] == "rename" and e[2] == home)
    events = events_of(lambda: fluid.io.TrainingLog(f"{home}/log", durability="power").write(1, loss=2.0))
    assert ("sync", f"{home}/log") in events
    assert ("sync", home) in events  # its name


@pytest.mark.parametrize(
    "call", [fluid.io.TrainingLog, lambda path, **given: fluid.convert(path, path, **given)]
)
def test_an_unknown_durability_is_refused(tmp_path: Path, call: Any) -> None:
    with pytest.raises(ValueError, match='durability is "atomic", "process" or "power", not \'disk\''):
        call(tmp_path / "x", durability="disk")


def test_without_durability_nothing_is_synced(tmp_path: Path) -> None:
    events = events_of(lambda: save(tmp_path / "m", 4))
    assert not [event for event in events if event[0] == "sync"]
    assert (tmp_path / "m").is_dir()
