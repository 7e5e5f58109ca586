"""Lazy loads: files mapped copy-on-write."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import LoadError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.io.contents import lazy
from paddlelike.storage.local import manifest_file
from paddlelike.storage.local.filesystem import mapping
from paddlelike.storage.local.transaction import Transaction
from tests.io.load.reads import counting_reads, needs_read_counts
from tests.io.loading import executor, own, program_of, value

F32 = "float32"
ALIGNED = (256, 1024)  # a header of 28 bytes
UNALIGNED = (64, 1024)  # of 27


@pytest.fixture(autouse=True)
def scope() -> Iterator[fluid.Scope]:
    with fluid.scope_guard(fluid.Scope()):
        yield fluid.global_scope()


def array(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, F32)


def held(name: str) -> fluid.LoDTensor:
    return fluid.global_scope().find_var(name).get_tensor()


def load(directory: Path, program: fluid.Program, filename: str | None = None) -> fluid.io.LoadReport:
    return fluid.io.load_persistables(executor(), directory, program, filename, lazy=True)


def is_mapped(a: np.ndarray | None) -> bool:
    import mmap

    base = a
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", base), mmap.mmap)


def test_large_values_are_views_of_their_files(tmp_path: Path) -> None:
    own(tmp_path, "w", array(ALIGNED))
    own(tmp_path, "small", array((10,)))
    report = load(tmp_path, program_of(w=(ALIGNED, F32), small=([10], F32)))
    assert report
    assert report.mapped == 1
    assert is_mapped(held("w").array)
    assert not is_mapped(held("small").array)
    np.testing.assert_array_equal(value("w"), array(ALIGNED))


def test_an_unaligned_value_is_copied_when_it_is_first_used(tmp_path: Path) -> None:
    own(tmp_path, "w", array(UNALIGNED))
    report = load(tmp_path, program_of(w=(UNALIGNED, F32)))
    assert any("1 of 1 mapped values" in note for note in report.notes)
    tensor = held("w")
    assert is_mapped(tensor._array)
    assert tensor.shape() == list(UNALIGNED)  # does not use it
    version = fluid.global_scope().find_var("w").version
    first = tensor.held_array
    assert first is not None
    assert first.flags.aligned
    assert not is_mapped(first)
    assert tensor.held_array is first
    assert fluid.global_scope().find_var("w").version == version
    np.testing.assert_array_equal(first, array(UNALIGNED))


@pytest.mark.parametrize("shape", [ALIGNED, UNALIGNED], ids=["aligned", "unaligned"])
def test_writes_to_a_lazily_loaded_value_never_change_the_file(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    own(tmp_path, "w", array(shape))
    before = (tmp_path / "w").read_bytes()
    load(tmp_path, program_of(w=(shape, F32)))
    held("w").set(np.zeros(shape, F32))
    assert not value("w").any()
    assert (tmp_path / "w").read_bytes() == before
    load(tmp_path, program_of(w=(shape, F32)))
    np.testing.assert_array_equal(value("w"), array(shape))


def test_training_continues_from_mapped_values_and_counts_its_writes(tmp_path: Path) -> None:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 256])
        loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.fc(x, 1024), 256))
        fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    exe = executor()
    feed = {"x": array((4, 256), 1)}
    exe.run(startup)
    fluid.io.save_persistables(exe, tmp_path / "a", main)
    exe.run(main, feed=feed)
    want = {v.name: value(v.name) for v in main.list_vars() if fluid.io.is_persistable(v)}
    with fluid.scope_guard(fluid.Scope()):
        report = load(tmp_path / "a", main)
        assert report.mapped == 4
        versions = {name: fluid.global_scope().find_var(name).version for name in want}
        exe.run(main, feed=feed)
        for name, expected in want.items():
            np.testing.assert_array_equal(value(name), expected)
        assert fluid.global_scope().find_var("fc_0.w_0").version > versions["fc_0.w_0"]
        # saved over the files that are mapped: written, and read back, right
        fluid.io.save_persistables(exe, tmp_path / "a", main)
        assert fluid.io.verify(tmp_path / "a")
        with fluid.scope_guard(fluid.Scope()):
            fluid.io.load_persistables(exe, tmp_path / "a", main)
            for name, expected in want.items():
                np.testing.assert_array_equal(value(name), expected)


@pytest.mark.parametrize("saves", [1, 3])
def test_saves_into_the_directory_do_not_change_mapped_values(tmp_path: Path, saves: int) -> None:
    program = program_of(w=(ALIGNED, F32), v=(UNALIGNED, F32))
    own(tmp_path / "a", "w", array(ALIGNED))
    own(tmp_path / "a", "v", array(UNALIGNED))
    load(tmp_path / "a", program)
    for number in range(saves):
        with fluid.scope_guard(fluid.Scope()):
            for name, shape in (("w", ALIGNED), ("v", UNALIGNED)):
                fluid.global_scope().var(name).get_tensor().set(np.full(shape, number, F32))
            fluid.io.save_persistables(executor(), tmp_path / "a", program)
    np.testing.assert_array_equal(value("w"), array(ALIGNED))
    np.testing.assert_array_equal(value("v"), array(UNALIGNED))


def test_values_mapped_from_a_removed_file_stay_readable(tmp_path: Path) -> None:
    own(tmp_path, "w", array(ALIGNED))
    load(tmp_path, program_of(w=(ALIGNED, F32)))
    (tmp_path / "w").unlink()
    np.testing.assert_array_equal(value("w"), array(ALIGNED))


def test_a_large_combined_file_is_mapped_once(tmp_path: Path) -> None:
    big, odd = (5000, 1000), (300, 100)
    program = program_of(a=(big, F32), b=(odd, F32), c=([3], F32))
    for name, shape in (("a", big), ("b", odd), ("c", (3,))):
        fluid.global_scope().var(name).get_tensor().set(array(shape, ord(name)))
    fluid.io.save_persistables(executor(), tmp_path, program, "all")
    with fluid.scope_guard(fluid.Scope()):
        report = load(tmp_path, program, "all")
        assert report.mapped == 2
        for name, shape in (("a", big), ("b", odd), ("c", (3,))):
            np.testing.assert_array_equal(value(name), array(shape, ord(name)))


def test_lazy_values_can_be_compared_with_the_manifest(tmp_path: Path) -> None:
    program = program_of(w=(ALIGNED, F32))
    fluid.global_scope().var("w").get_tensor().set(array(ALIGNED))
    fluid.io.save_persistables(executor(), tmp_path / "a", program)
    report = fluid.io.load_persistables(executor(), tmp_path / "a", program, lazy=True, verify=True)
    assert report.mapped == 1
    assert report.verified
    data = bytearray((tmp_path / "a" / "w").read_bytes())
    data[-1] ^= 1
    (tmp_path / "a" / "w").write_bytes(data)
    with pytest.raises(LoadError, match="w: its bytes"):
        fluid.io.load_persistables(executor(), tmp_path / "a", program, lazy=True, verify=True)


def test_rules_copy_mapped_values(tmp_path: Path) -> None:
    own(tmp_path, "w", array(ALIGNED))
    rules = fluid.io.Rules().rename("w", "t", transpose=True)
    fluid.io.load_persistables(
        executor(), tmp_path, program_of(t=(ALIGNED[::-1], F32)), rules=rules, lazy=True
    )
    np.testing.assert_array_equal(value("t"), array(ALIGNED).T)
    rules = fluid.io.Rules().rename("w", "r", rows=(100, 200))
    report = fluid.io.load_persistables(
        executor(), tmp_path, program_of(r=([100, 1024], F32)), rules=rules, lazy=True
    )
    assert report.mapped == 1
    np.testing.assert_array_equal(value("r"), array(ALIGNED)[100:200])


def test_only_the_largest_files_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy, "_count_mappable_files", lambda: 2)
    shapes = {f"w{n}": (100 + n, 1024) for n in range(5)}
    for name, shape in shapes.items():
        own(tmp_path, name, array(shape))
    report = load(tmp_path, program_of(**{name: (shape, F32) for name, shape in shapes.items()}))
    assert report.mapped == 2
    assert [name for name in shapes if is_mapped(held(name)._array)] == ["w3", "w4"]


def inodes(directory: Path) -> set[int]:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "__manifest__")
    return {path.stat().st_ino for path in files}


def write(directory: Path, number: int, base: Path | None = None, **options: Any) -> None:
    """A set of two files whose elements are all of that number."""
    transaction = Transaction(directory, **options)
    for name in ("v", "w"):
        record = None if base is None else manifest_file.read_manifest(base).files[name]
        if record is None or not transaction.keep(name, record, base=base):
            transaction.add(name, lod_tensor.encode(np.full(ALIGNED, number, "float32")))
    transaction.commit()


def mapped(directory: Path) -> list[fluid.LoDTensor]:
    """The two values, mapped and not used yet."""
    program = program_of(v=(ALIGNED, F32), w=(ALIGNED, F32))
    with fluid.scope_guard(fluid.Scope()):
        report = load(directory, program)
        assert report.mapped == 2
        return [fluid.global_scope().find_var(name).value for name in ("v", "w")]


def test_mapped_files_are_not_reused_for_a_save(tmp_path: Path) -> None:
    home = tmp_path / "m"
    write(home, 1, keep_generation=True)
    write(home, 2, keep_generation=True)
    values = mapped(home)  # of the second set, whose files the fourth would write over
    first = inodes(home)
    for number in range(3, 8):
        write(home, number, keep_generation=True)
    for tensor in values:
        assert (tensor._array == 2).all()
    assert not first & inodes(tmp_path)  # nor are they used later
    del values, tensor
    gc.collect()
    before = inodes(tmp_path) - inodes(home)
    write(home, 8, keep_generation=True)
    assert inodes(home) & before  # and files that nobody has mapped are used again


def test_files_that_directories_share_are_not_written_into(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, 1, keep_generation=True)
    write(two, 1, base=one)
    for number in range(2, 6):
        write(one, number, keep_generation=True)
    assert (fluid.io.load_slice(two, "w", (0, 3)) == 1).all()
    assert fluid.io.verify(two)
    for number in range(2, 6):
        write(two, number, keep_generation=True)
    assert (fluid.io.load_slice(one, "w", (0, 3)) == 5).all()
    assert fluid.io.verify(one)


def test_a_mapped_file_that_has_lost_its_other_name_is_not_written_into(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, 1, keep_generation=True)
    write(two, 1, base=one)
    values = mapped(two)
    shutil.rmtree(two)  # its files have one name left, in the first directory
    for number in range(2, 6):
        write(one, number, keep_generation=True)
    for tensor in values:
        assert (tensor._array == 1).all()


def test_a_file_that_is_being_written_is_read_instead(tmp_path: Path) -> None:
    write(tmp_path / "m", 1)
    fd = os.open(tmp_path / "m" / "w", os.O_RDONLY)
    try:
        assert mapping.is_free(fd)  # as a saver takes it
        report = load(tmp_path / "m", program_of(w=(ALIGNED, F32)))
    finally:
        os.close(fd)
    assert report.mapped == 0
    assert (value("w") == 1).all()


@needs_read_counts
def test_a_lazy_load_reads_next_to_nothing(tmp_path: Path) -> None:
    own(tmp_path, "w", array((4096, 1024)))
    program = program_of(w=((4096, 1024), F32))
    load(tmp_path, program)
    with counting_reads() as count:
        load(tmp_path, program)
        assert count() < 20_000
