"""Deltas of growing tables: rows that changed, new ones, and ids that were forgotten."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.errors import LoadError
from paddlelike.inspection.difference import compare
from paddlelike.inspection.inspect import inspect
from paddlelike.io.deltas.chain import list_chains
from paddlelike.storage.location import locate
from tests.io.deltas import test_damaged_chains as damaged
from tests.io.deltas.tables import read_files

_WIDTH = 16


class Training:
    """A network on a growing table that already has 3000 rows."""

    def __init__(self, rows: int = 3000) -> None:
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.exe = fluid.Executor()
        with fluid.unique_name.guard(), fluid.program_guard(self.main, self.startup):
            ids = fluid.data("ids", [None, 1], "int64")
            attr = fluid.ParamAttr(name="emb", initializer=fluid.initializer.Uniform(-1.0, 1.0, seed=2))
            found = tables.sparse_embedding(ids, [1, _WIDTH], param_attr=attr)
            fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(found))
        self.run(self.startup)
        if rows:
            self.step(*(np.arange(rows) * 7919 - (1 << 40)))

    def run(self, program: fluid.Program, **feed: Any) -> None:
        with fluid.scope_guard(self.scope):
            self.exe.run(program, feed=feed)

    def step(self, *ids: int) -> None:
        self.run(self.main, ids=np.array(ids, "int64").reshape(-1, 1))

    def shrink(self, **how: Any) -> None:
        with fluid.scope_guard(self.scope):
            tables.shrink(program=self.main, **how)

    def save(self, path: Path, **options: Any) -> Any:
        with fluid.scope_guard(self.scope):
            return fluid.io.save_persistables(self.exe, str(path), self.main, **options)

    def load(self, path: Path) -> None:
        with fluid.scope_guard(self.scope):
            fluid.io.load_persistables(self.exe, str(path), self.main)

    def values(self) -> dict[str, tuple[bytes, bytes]]:
        """Ids and rows of every table, in their order."""
        found = {name: self.scope.find_var(name).value for name in self.scope.local_var_names()}
        grown = {name: one for name, one in found.items() if name.startswith("emb") and one is not None}
        return {
            name: (one.row_array.tobytes(), np.asarray(one.array).tobytes()) for name, one in grown.items()
        }


def _load_elsewhere(path: Path) -> dict[str, tuple[bytes, bytes]]:
    other = Training(0)
    other.load(path)
    return other.values()


def test_a_delta_holds_only_changed_new_and_forgotten_rows(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    first = -(1 << 40)
    training.step(5, first, first + 7919, -9)
    report = training.save(tmp_path, delta=True)
    row = 4 * _WIDTH + 8
    assert report.written_bytes < 80_000 < 3000 * row  # counters of 3000 rows are too small for a chain
    (link,) = (tmp_path / "__deltas__").glob("emb.*.1")
    assert link.stat().st_size < 1.2 * 4 * row
    assert _load_elsewhere(tmp_path) == training.values()
    for _ in range(3):
        training.shrink(delete_after_unseen_days=2)
        training.step(*(np.arange(2990) * 7919 + first))
    training.save(tmp_path, delta=True)
    assert len(list((tmp_path / "__deltas__").glob("emb.*"))) in (1, 3)
    assert _load_elsewhere(tmp_path) == training.values()


def test_a_link_of_only_forgotten_rows_holds_their_ids(tmp_path: Path) -> None:
    """Proves C7."""
    training = Training()
    rows = np.arange(3000) * 7919 - (1 << 40)
    training.step(*rows[2:])
    training.save(tmp_path, delta=True)
    training.shrink(threshold=0.15)  # a show counts 0.1
    training.save(tmp_path, delta=True)
    (link,) = (tmp_path / "__deltas__").glob("emb.*.1")
    assert link.stat().st_size < 200
    assert _load_elsewhere(tmp_path) == training.values()
    with fluid.scope_guard(training.scope):
        assert tables.print_table_stat(training.main)["emb"]["rows"] == 2998


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["step", "new", "forget", "again", "save", "clear"]), min_size=2, max_size=9))
def test_after_any_sequence_of_actions_a_load_restores_the_last_save_bit_for_bit(
    tmp_path: Path, actions: list[str]
) -> None:
    shutil.rmtree(tmp_path / "d", ignore_errors=True)
    training, first = Training(1500), -(1 << 40)
    for at, action in enumerate([*actions, "save"]):
        if action == "step":
            training.step(first + 7919 * at, first)
        elif action == "new":
            training.step(100 + at, -100 - at)
        elif action == "forget":
            training.shrink(delete_after_unseen_days=at % 2)
        elif action == "again":
            training.step(first + 7919 * 1400, first + 7919 * 3)
        elif action == "clear":
            training.shrink(threshold=1e9)
        else:
            training.save(tmp_path / "d", delta=True)
            expected = training.values()
    assert _load_elsewhere(tmp_path / "d") == expected


def test_a_chain_is_compacted_restarted_and_shared(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "a", delta=True)
    training.step(3, 4)
    training.save(tmp_path / "a", delta=True)
    training.save(tmp_path / "whole")
    fluid.io.compact(tmp_path / "a")
    for name in ("emb", "emb_moment_0", "emb_counts"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert _load_elsewhere(tmp_path / "a") == training.values()
    training.save(tmp_path / "a", delta="base")
    training.step(8)
    training.save(tmp_path / "b", delta=True, base=str(tmp_path / "a"))
    chains = list_chains(locate(str(tmp_path / "b")))
    assert {name: len(chain.records) for name, chain in chains.items() if name == "emb"} == {"emb": 2}
    assert chains["emb"].shape == (3003, _WIDTH)
    assert _load_elsewhere(tmp_path / "b") == training.values()


def test_inspect_and_diff_show_the_table_after_replaying_its_links(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "a", delta=True)
    training.step(3, 4)
    training.save(tmp_path / "a", delta=True)
    training.save(tmp_path / "same")
    training.step(4)
    training.save(tmp_path / "other")
    shapes = {one.name: tuple(one.shape) for one in inspect(tmp_path / "a").variables}
    assert (shapes["emb"], shapes["emb_counts"]) == ((3002, _WIDTH), (3002, 3))
    assert not compare(tmp_path / "a", tmp_path / "same")
    changed = compare(tmp_path / "a", tmp_path / "other").changed
    assert {one.name for one in changed} == {"emb", "emb_counts", "emb_moment_0"}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> damaged.Places:
    return damaged.make_chains(tmp_path_factory.mktemp("growing"), Training)


@pytest.mark.parametrize("damage", damaged.DAMAGES)
def test_damaged_chains_are_refused(damage: Any, places: damaged.Places, tmp_path: Path) -> None:
    for seed in range(3):
        good, earlier, other = places
        shutil.rmtree(tmp_path / "d", ignore_errors=True)
        shutil.copytree(good, tmp_path / "d")
        damage(tmp_path / "d", random.Random(f"{damage.__name__} {seed}"), earlier, other)
        assert read_files(tmp_path / "d") != read_files(good)
        training = Training(2)
        before = training.values()
        with pytest.raises(LoadError, match=r"link \d+ |chain|\.0: "):
            training.load(tmp_path / "d")
        assert training.values() == before
