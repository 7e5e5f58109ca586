"""Saves of changed rows: what is written, and that loads bring the bits of a whole save."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import struct
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import paddlelike as fluid
from paddlelike.core import row_changes
from paddlelike.errors import LoadError, PaddlelikeError, SaveError
from paddlelike.io.deltas.chain import list_chains
from paddlelike.io.incremental import ledger
from paddlelike.io.save import chains, compact
from paddlelike.storage.location import locate
from tests.io.deltas.tables import HEIGHT, Training, read_files

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adam": lambda: fluid.optimizer.Adam(0.1),
    "adam, lazy": lambda: fluid.optimizer.Adam(0.1, lazy_mode=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
}


def link(path: Path, at: int) -> Path:
    """Return the file of a link of the table."""
    (found,) = path.glob(f"__deltas__/emb.????????.{at}")
    return found


def list_links(path: Path) -> list[str]:
    names = [name for name in read_files(path / "__deltas__") if "__manifest__" not in name]
    return sorted(".".join(name.split(".")[::2]) for name in names)


def test_a_delta_holds_only_the_changed_rows(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "d", delta=True)
    training.step(7, 3, 7)
    report = training.save(tmp_path / "d", delta=True)
    stream = link(tmp_path / "d", 1).read_bytes()
    table = np.array(training.tensor())
    assert stream[:36] == struct.pack("<IQqqq", 0, 2, 3, 7, HEIGHT)  # Paddle's SelectedRows, see its README
    assert stream.endswith(table[[3, 7]].tobytes())
    assert len(stream) < 36 + 40 + 2 * 64
    assert report.written_bytes < 2 * (36 + 40 + 2 * 64) + 400  # with the moment, and the small variables
    assert training.loaded(tmp_path / "d") == training.values()


@pytest.mark.parametrize("is_sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_with_every_optimizer_deltas_load_like_a_whole_save(
    optimizer: Any, is_sparse: bool, tmp_path: Path
) -> None:
    training = Training(optimizer(), is_sparse=is_sparse)
    for step in range(4):
        training.save(tmp_path / "d", delta=True)
        training.step(step, 5, 1999)
    training.save(tmp_path / "d", delta=True)
    training.save(tmp_path / "whole")
    assert training.loaded(tmp_path / "d") == training.loaded(tmp_path / "whole") == training.values()


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam, lazy", "ftrl"])
def test_the_rows_of_sparse_updates_are_known_without_a_comparison(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(OPTIMIZERS[name]())
    training.save(tmp_path, delta=True)
    training.step(4)
    training.step(9, 4)
    monkeypatch.setattr(chains.ChainWriter, "_read", lambda *_: pytest.fail("the table was read"))
    training.save(tmp_path, delta=True)
    assert link(tmp_path, 1).read_bytes()[4:28] == struct.pack("<Qqq", 2, 4, 9)


def test_rows_written_outside_of_updates_are_found_by_comparison(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    training.step(4)
    with training.tensor().writing() as array:
        array[1000] = 5
    assert row_changes.find_written_rows(training.tensor(), 0) is None
    training.save(tmp_path, delta=True)
    assert link(tmp_path, 1).read_bytes()[4:28] == struct.pack("<Qqq", 2, 4, 1000)
    assert training.loaded(tmp_path) == training.values()


def test_a_replaced_table_is_compared_whole(tmp_path: Path) -> None:
    """Proves C6."""
    training, other = Training(), Training(fluid.optimizer.SGD(0.1))
    for one, folder in ((other, "other"), (training, "d")):
        one.save(tmp_path / folder, delta=True)
    other.step(1, 2)
    other.step(4)  # the last rows known to have changed, but not since the save of what stood here
    training.scope.find_var("emb").set_value(other.tensor())
    training.save(tmp_path / "d", delta=True)
    assert training.loaded(tmp_path / "d") == training.values()


def test_a_new_process_continues_the_chain(tmp_path: Path) -> None:
    first = Training()
    first.save(tmp_path, delta=True)
    first.step(1)
    first.save(tmp_path, delta=True)
    ledger.forget()  # as another process
    second = Training()
    second.load(tmp_path)
    second.step(2)
    second.save(tmp_path, delta=True)
    assert link(tmp_path, 2).read_bytes()[4:20] == struct.pack("<Qq", 1, 2)
    assert second.loaded(tmp_path) == second.values()


def test_a_delta_save_without_changes_writes_nothing(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    training.step(1)
    training.save(tmp_path, delta=True)
    assert training.save(tmp_path, delta=True).written == 0


def test_a_chain_that_becomes_too_long_is_folded_or_restarted(tmp_path: Path) -> None:
    """Proves C5."""
    training = Training(fluid.optimizer.SGD(0.1))
    training.save(tmp_path, delta=True)
    for _ in range(2):
        training.step(*range(500))
        training.save(tmp_path, delta=True)  # 2 x 500 rows and their ids are more than half of 2000
        assert list_links(tmp_path) == ["emb.0", "emb.1"]
        assert training.loaded(tmp_path) == training.values()
    training.step(*range(500, 1000))
    training.save(tmp_path, delta=True)  # these are other rows
    assert list_links(tmp_path) == ["emb.0"]
    assert training.loaded(tmp_path) == training.values()


@pytest.mark.parametrize("place", ["one directory", "of its base"])
def test_links_are_folded_by_levels_as_in_a_log_structured_store(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After n saves there are as many links of each level as n has of that digit, in a system of base 4."""
    monkeypatch.setattr(chains, "_FAN", 4)
    training = Training(fluid.optimizer.SGD(0.1))
    training.save(tmp_path / "0", delta=True)
    where = tmp_path / "0"
    for count in range(1, 65):
        training.step(count, (7 * count) % 500, 1000 + count)
        base = {} if place == "one directory" else {"base": str(where)}
        where = tmp_path / ("0" if place == "one directory" else str(count))
        training.save(where, delta=True, **base)
        digits = [int(digit) for digit in np.base_repr(count, 4)]
        assert list_links(where) == sorted(f"emb.{at}" for at in range(1 + sum(digits)))
        assert training.loaded(where, verify=True) == training.values()


def test_a_damaged_link_is_not_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_FAN", 4)
    training = Training(fluid.optimizer.SGD(0.1))
    training.save(tmp_path, delta=True)
    for row in range(3):
        training.step(row)
        training.save(tmp_path, delta=True)
    path = link(tmp_path, 2)
    facts, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # as a bit that rots
    training.step(9)
    training.save(tmp_path, delta=True)
    assert list_links(tmp_path) == [f"emb.{at}" for at in range(5)]
    with pytest.raises(LoadError, match="link 2 of 4"):
        training.loaded(tmp_path)


def test_a_chain_of_very_many_links_is_folded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "_MOST_LINKS", 6)
    training = Training(fluid.optimizer.SGD(0.1))
    for step in range(9):
        training.save(tmp_path, delta=True)
        training.step(step)
    assert list_links(tmp_path) == ["emb.0", "emb.1", "emb.2"]
    training.save(tmp_path, delta=True)
    assert training.loaded(tmp_path) == training.values()


def test_a_save_of_whole_values_ends_the_chain(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    training.step(1)
    training.save(tmp_path, delta=True)
    report = training.save(tmp_path)
    assert not (tmp_path / "__deltas__").exists()
    assert not report.stale
    assert training.loaded(tmp_path, verify=True) == training.values()
    training.step(2)
    training.save(tmp_path, delta=True)
    assert not (tmp_path / "emb").exists()  # which Paddle would take for the value
    assert training.loaded(tmp_path, verify=True) == training.values()


def test_a_new_base_writes_only_rows_changed_since_the_last_base(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    for day in range(3):
        for row in (day, 100 + day, 200 + day):
            training.step(row)
            training.save(tmp_path, delta=True)
        training.step(day, 300 + day)
        report = training.save(tmp_path, delta="base")
        assert report.written_bytes < 6_000  # 4 rows of each variable; a whole value has 64 KiB or more
        assert list_links(tmp_path) == sorted(
            f"{name}.{at}" for name in ("emb", "emb_moment_0") for at in range(day + 2)
        )
        assert training.loaded(tmp_path, verify=True) == training.values()
    levels = [
        record.facts["link"].get("level", 0) for record in list_chains(locate(str(tmp_path)))["emb"].records
    ]
    assert levels == [0, 1, 1, 1]
    training.step(5)
    training.save(tmp_path, delta=True)
    link(tmp_path, 4).write_bytes(b"other")  # since the last base: what cannot be folded begins anew
    training.save(tmp_path, delta="base")
    assert len(list_chains(locate(str(tmp_path)))["emb"].records) == 1  # type: ignore[union-attr]
    assert training.loaded(tmp_path) == training.values()


def test_a_copied_directory_can_be_loaded_and_saved_into(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "d", delta=True)
    training.step(1)
    training.save(tmp_path / "d", delta=True)
    for name, data in read_files(tmp_path / "d").items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    assert training.loaded(tmp_path / "copy", verify=True) == training.values()
    training.step(2)
    training.save(tmp_path / "copy", delta=True)
    assert training.loaded(tmp_path / "copy") == training.values()


def test_a_save_into_another_directory_shares_the_chain_of_its_base(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "1", delta=True)
    training.step(1)
    report = training.save(tmp_path / "2", delta=True, base=tmp_path / "1")
    assert report.written_bytes < 2000
    first, second = (link(tmp_path / number, 0) for number in "12")
    assert first.read_bytes() == second.read_bytes()
    assert training.loaded(tmp_path / "2", verify=True) == training.values()
    assert fluid.io.verify(tmp_path / "1")


def test_a_save_in_the_background_holds_the_values_of_its_call(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True, blocking=False).wait()
    training.step(1)
    before = training.values()
    pending = training.save(tmp_path, delta=True, blocking=False)
    training.step(2)
    pending.wait()
    assert training.loaded(tmp_path) == before
    training.save(tmp_path, delta=True)
    assert training.loaded(tmp_path) == training.values()
    assert link(tmp_path, 2).read_bytes()[4:20] == struct.pack("<Qq", 1, 2)


def test_slices_are_read_from_the_replayed_table(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    for row in (10, 20, 30):
        training.step(row, 1)
        training.save(tmp_path, delta=True)
    table = np.array(training.tensor())
    for rows in [(0, HEIGHT), (9, 21), (20, 20), (1999, 2000)]:
        assert fluid.io.load_slice(tmp_path, "emb", rows).tobytes() == table[slice(*rows)].tobytes()


def test_a_remote_directory_has_chains_too() -> None:
    pytest.importorskip("fsspec")
    training = Training()
    training.save("memory://deltas/model", delta=True)
    training.step(1)
    report = training.save("memory://deltas/model", delta=True)
    assert report.written_bytes < 2000
    assert training.loaded("memory://deltas/model") == training.values()
    training.save("memory://deltas/model")
    assert training.loaded("memory://deltas/model") == training.values()


def test_a_file_that_another_program_saved_beside_the_chain_is_refused(tmp_path: Path) -> None:
    """Proves C1."""
    training = Training()
    training.save(tmp_path, delta=True)
    (tmp_path / "emb").write_bytes(link(tmp_path, 0).read_bytes())
    with pytest.raises(LoadError, match="beside its chain"):
        training.load(tmp_path)
    with pytest.raises(LoadError, match="beside its chain"):
        fluid.io.load_slice(tmp_path, "emb", (0, 1))


def test_a_save_refuses_to_continue_a_chain_whose_link_was_replaced(tmp_path: Path) -> None:
    """Proves C4."""
    training = Training()
    training.save(tmp_path, delta=True)
    training.step(1)
    training.save(tmp_path, delta=True)
    link(tmp_path, 1).write_bytes(b"other")
    with pytest.raises(SaveError, match=r"link 1 of 'emb'"):
        training.save(tmp_path, delta=True)
    training.save(tmp_path, delta="base")
    assert training.loaded(tmp_path) == training.values()


@pytest.mark.parametrize("wrong", [{"manifest": False}, {"checksum": None}, {"delta": "all"}])
def test_options_incompatible_with_deltas_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="delta"):
        Training().save(tmp_path, **{"delta": True, **wrong})


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.lists(st.integers(0, HEIGHT - 1), min_size=1, max_size=30)),
        st.tuples(st.just("write"), st.lists(st.integers(0, HEIGHT - 1), max_size=3)),
        st.tuples(st.just("replace"), st.just([])),
        st.tuples(st.just("save"), st.sampled_from([False, True, True, True, "base"])),
        st.tuples(st.just("load"), st.booleans()),
    ),
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(ACTIONS)
def test_after_any_sequence_of_actions_a_load_restores_the_last_save_bit_for_bit(actions: list[Any]) -> None:
    training = Training()
    with tempfile.TemporaryDirectory() as home:
        training.save(home, delta=True)
        saved = training.values()
        for what, how in actions:
            if what == "step":
                training.step(*how)
            elif what == "write":
                with training.tensor().writing() as array:
                    array[how] += 1
            elif what == "replace":
                training.tensor().adopt(np.array(training.tensor()) * 2)
            elif what == "save":
                training.save(home, delta=how)
                saved = training.values()
                assert training.loaded(home) == saved
            else:
                if how:
                    ledger.forget()
                training.load(home)
                assert training.values() == saved
        assert training.loaded(home) == saved


def test_checkpoints_have_complete_chains_of_their_own(tmp_path: Path) -> None:
    training = Training()
    with fluid.scope_guard(training.scope):
        checkpoints = fluid.io.Checkpoints(tmp_path, keep_last=3, delta=True)
        written, values = [], {}
        for number in range(8):
            report = checkpoints.save(training.exe, training.main, step=number)
            written.append(report.written_bytes)
            values[number] = training.values()
            training.step(number, 1000 + number)
    assert sum(size < 2_000 for size in written) >= 5  # the others begin chains, or renew them in their turn
    kept = sorted(tmp_path.glob("*[0-9]"))
    assert len(kept) == 3
    for number, path in zip((5, 6, 7), kept, strict=True):
        assert fluid.io.verify(path)
        assert training.loaded(path, verify=True) == values[number]


def test_compact_gives_the_files_of_a_whole_save(tmp_path: Path) -> None:
    training = Training()
    for row in (1, 2):
        training.save(tmp_path / "d", delta=True)
        training.step(row)
    training.save(tmp_path / "d", delta=True)
    training.save(tmp_path / "whole")
    done = fluid.io.compact(tmp_path / "d")
    assert sorted(done.files) == ["emb", "emb_moment_0"]
    compacted, whole = read_files(tmp_path / "d"), read_files(tmp_path / "whole")
    assert {**compacted, "__manifest__": b""} == {**whole, "__manifest__": b""}
    assert training.loaded(tmp_path / "d", verify=True) == training.values()
    assert fluid.io.compact(tmp_path / "d").written == 0
    training.step(3)
    training.save(tmp_path / "d", delta=True)
    assert training.loaded(tmp_path / "d") == training.values()


@pytest.mark.parametrize("name", ["write", "rename", "fsync", "open", "link"])
def test_a_compaction_that_fails_at_any_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    training = Training()
    for row in (1, 2):
        training.save(tmp_path / "chain", delta=True)
        training.step(row)
    training.save(tmp_path / "chain", delta=True)
    real = getattr(os, name)
    for number in range(1, 200):
        place, calls = tmp_path / str(number), list[int]()
        shutil.copytree(tmp_path / "chain", place, copy_function=os.link)

        def sometimes(*args: Any, calls: list[int] = calls, number: int = number, **given: Any) -> Any:
            calls.append(1)
            if len(calls) == number:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*args, **given)

        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(os, name, sometimes)
            if name == "open":
                patch.setattr(os, "supports_dir_fd", {*os.supports_dir_fd, sometimes})
            with contextlib.suppress(PaddlelikeError):
                fluid.io.compact(place)
        assert training.loaded(place, verify=True) == training.values(), f"{name} {number}"
        fluid.io.compact(place)
        assert not (place / "__deltas__").exists()
        assert training.loaded(place, verify=True) == training.values()
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
        shutil.rmtree(place)
        if len(calls) < number:
            return
    raise AssertionError(f"{name} is called more than {number} times")


def test_a_save_during_compaction_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    training.step(1)
    original = compact.encode_value

    def save_meanwhile(value: Any) -> Any:
        monkeypatch.setattr(compact, "encode_value", original)
        training.save(tmp_path, delta=True)
        return original(value)

    monkeypatch.setattr(compact, "encode_value", save_meanwhile)
    with pytest.raises(SaveError, match="saved again"):
        fluid.io.compact(tmp_path)
    assert training.loaded(tmp_path) == training.values()


@pytest.mark.parametrize("servers", [1, 3])
def test_any_number_of_servers_load_their_rows(servers: int, tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path, delta=True)
    for row in (0, 700, 1999):
        training.step(row, 1000)
        training.save(tmp_path, delta=True)
    places = [f"127.0.0.1:{6174 + number}" for number in range(servers)]
    with fluid.unique_name.guard():
        transpiler = fluid.DistributeTranspiler()
        transpiler.transpile(0, training.main, ",".join(places), 1, startup_program=training.startup)
    found: dict[str, list[bytes]] = {"emb": [], "emb_moment_0": []}
    for place in places:
        program, _ = transpiler.get_pserver_programs(place)
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_persistables(training.exe, str(tmp_path), program)
            for name, parts in found.items():
                held = [
                    each
                    for each in fluid.global_scope().local_var_names()
                    if each.partition(".block")[0] == name
                ]
                parts += [
                    np.array(fluid.global_scope().find_var(each).get_tensor()).tobytes() for each in held
                ]
    assert {name: b"".join(parts) for name, parts in found.items()}.items() <= training.values().items()
