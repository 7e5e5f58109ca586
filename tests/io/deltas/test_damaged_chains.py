"""Damaged chains: a link that is missing, doubled, out of order, stale, cut, flipped or of another run."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.errors import LoadError, SaveError
from paddlelike.formats.paddle import selected_rows
from paddlelike.interop import repack
from paddlelike.io.incremental import ledger
from paddlelike.storage import hashing, manifest
from paddlelike.storage.local.manifest_file import read_manifest
from paddlelike.storage.manifest import Record
from tests.io.deltas.tables import HEIGHT, Training, read_files

Places = tuple[Path, Path, Path]


def make_chains(home: Path, make: Callable[[], Any]) -> Places:
    """A directory with chains of four links, itself one save earlier, and another run of the training."""
    for name, first in (("other", 100), ("good", 0)):
        training = make()
        for step in range(first, first + 5):
            training.save(home / name, delta=True)
            if (name, step) == ("good", 4):
                break
            shutil.rmtree(home / "earlier", ignore_errors=True)
            shutil.copytree(home / name, home / "earlier")
            training.step(step, step + 1, 1500 + step)
    return home / "good", home / "earlier", home / "other"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return make_chains(tmp_path_factory.mktemp("chains"), Training)


def list_links(path: Path, *, whole: bool = False) -> list[Path]:
    """Return the links of both tables, without or with the whole values."""
    found = (path / "__deltas__").glob("*.????????.*")  # earlier manifests are there as well
    return sorted(each for each in found if whole or not each.name.endswith(".0"))


def of_same_table(path: Path, link: Path) -> list[Path]:
    """Return the links of another directory for the table of this one, by their places."""
    table, _, _ = link.name.rsplit(".", 2)
    return [each for each in list_links(path) if each.name.rsplit(".", 2)[0] == table]


def remove(path: Path, dice: random.Random, *_: Path) -> None:
    dice.choice(list_links(path, whole=True)).unlink()


def double(path: Path, dice: random.Random, *_: Path) -> None:
    link = dice.choice(list_links(path))
    other = dice.choice([each for each in of_same_table(path, link) if each != link])
    other.write_bytes(link.read_bytes())


def swap(path: Path, dice: random.Random, *_: Path) -> None:
    one, other = dice.sample(of_same_table(path, dice.choice(list_links(path))), 2)
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def append(path: Path, dice: random.Random, *_: Path) -> None:
    link = dice.choice(list_links(path))
    table, run, _ = link.name.rsplit(".", 2)
    (link.parent / f"{table}.{run}.{dice.choice([5, 6, 77])}").write_bytes(link.read_bytes())


def take_from_another_run(path: Path, dice: random.Random, earlier: Path, other: Path) -> None:
    link = dice.choice(list_links(path))
    link.write_bytes(dice.choice(of_same_table(other, link)).read_bytes())


def take_its_manifest(path: Path, dice: random.Random, earlier: Path, other: Path) -> None:
    shutil.copy(dice.choice([earlier, other]) / "__manifest__", path)


def lose_the_manifest(path: Path, dice: random.Random, *_: Path) -> None:
    if dice.random() < 0.5:
        (path / "__manifest__").unlink()
    else:
        flip_bit(path / "__manifest__", dice)


def cut(path: Path, dice: random.Random, *_: Path) -> None:
    link = dice.choice(list_links(path))
    data = link.read_bytes()
    link.write_bytes(data[: dice.randrange(len(data))] if dice.random() < 0.7 else data + b"more")


def flip(path: Path, dice: random.Random, *_: Path) -> None:
    flip_bit(dice.choice(sorted((path / "__deltas__").iterdir())), dice)


def flip_bit(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


DAMAGES = [
    remove,
    double,
    swap,
    append,
    take_from_another_run,
    take_its_manifest,
    lose_the_manifest,
    cut,
    flip,
]


def check(damage: Callable[..., None], seed: int, places: Places, tmp_path: Path) -> None:
    """Damage a copy; its load names a link or the chain, and changes nothing."""
    good, earlier, other = places
    dice = random.Random(f"{damage.__name__} {seed}")
    shutil.rmtree(tmp_path / "d", ignore_errors=True)
    shutil.copytree(good, tmp_path / "d")
    damage(tmp_path / "d", dice, earlier, other)
    assert read_files(tmp_path / "d") != read_files(good)
    training = Training()
    before = training.values()
    with pytest.raises(LoadError, match=r"link \d+ |chain|\.0: ") as caught:
        training.load(tmp_path / "d")
    assert "emb" in str(caught.value)
    assert caught.value.hint
    assert training.values() == before


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 113), marks=pytest.mark.slow)])
def test_a_damaged_chain_is_refused(
    damage: Callable[..., None], seeds: range, places: Places, tmp_path: Path
) -> None:
    """Proves C2."""
    for seed in seeds:
        check(damage, seed, places, tmp_path)


@pytest.mark.parametrize("damage", [double, swap, take_from_another_run, cut, append, take_its_manifest])
def test_links_are_verified_even_with_verify_false(
    damage: Callable[..., None], places: Places, tmp_path: Path
) -> None:
    """Proves C3."""
    shutil.copytree(places[0], tmp_path / "d")
    damage(tmp_path / "d", random.Random(3), *places[1:])
    with pytest.raises(LoadError, match="link"):
        Training().load(tmp_path / "d", verify=False)


def test_a_damaged_link_is_found_before_a_load_in_place_overwrites_values(
    places: Places, tmp_path: Path
) -> None:
    shutil.copytree(places[0], tmp_path / "d")
    flip_bit(list_links(tmp_path / "d")[-1], random.Random(0))
    training = Training()
    before = training.values()
    with pytest.raises(LoadError, match=r"link \d+ "):
        training.load(tmp_path / "d", in_place=True)
    assert training.values() == before


def change_record(path: Path, at: int, change: Callable[[Record, dict[int, Record]], Record]) -> None:
    """Change what the manifest says of a link of ``emb``; ``change`` gets its record and those by place."""
    read = read_manifest(path)
    names = {int(name.rpartition(".")[2]): name for name in read.files if name.startswith("__deltas__/emb.")}
    read.files[names[at]] = change(read.files[names[at]], {at: read.files[names[at]] for at in names})
    (path / "__manifest__").write_bytes(manifest.encode(read.files, author=read.author, token=read.token))


@pytest.mark.parametrize("other", [0, 2])
def test_a_link_with_the_wrong_predecessor_is_refused(other: int, places: Places, tmp_path: Path) -> None:
    """Proves C2."""
    shutil.copytree(places[0], tmp_path / "d")

    def follow(record: Record, records: dict[int, Record]) -> Record:
        link = {**record.facts["link"], "after": records[other].checksum}
        return record._replace(facts={**record.facts, "link": link})

    change_record(tmp_path / "d", 2, follow)
    with pytest.raises(LoadError, match=r"follows a link .*, link 1 is"):
        Training().load(tmp_path / "d")


@pytest.mark.parametrize("values", [np.zeros((2, 8), "f4"), np.zeros((2, 8), "f8"), np.zeros((1, 16), "f4")])
def test_a_link_of_other_rows_is_refused_though_its_checksum_fits(
    values: Any, places: Places, tmp_path: Path
) -> None:
    shutil.copytree(places[0], tmp_path / "d")
    data = b"".join(map(bytes, selected_rows.encode(SelectedRows(np.array([3, 7]), HEIGHT, values))))
    (link,) = (tmp_path / "d").glob("__deltas__/emb.*.4")
    link.write_bytes(data)

    def fit(record: Record, _: object) -> Record:
        assert record.algorithm is not None
        return record._replace(size=len(data), checksum=hashing.hash_bytes(data, record.algorithm))

    change_record(tmp_path / "d", 4, fit)
    training = Training()
    before = training.values()
    with pytest.raises(LoadError, match=r"link 4 of 4 of 'emb' .* does not hold rows of the whole value"):
        training.load(tmp_path / "d")
    assert training.values() == before


@pytest.mark.parametrize(
    "facts",
    [
        {"link": None}, {"link": [1]}, {"link": {}},
        {"link": {"run": 3, "at": "0", "after": None}}, {"shape": []},
        {"shape": None}, {"shape": ["a", {}]}, {"variable": ["emb"]}, {"dtype": 7}, {"height": "x"},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 2])
def test_a_manifest_that_describes_no_chain_is_refused(
    facts: dict[str, object], at: int, places: Places, tmp_path: Path
) -> None:
    shutil.copytree(places[0], tmp_path / "d")
    change_record(tmp_path / "d", at, lambda one, _: one._replace(facts={**one.facts, **facts}))
    with pytest.raises(LoadError, match="emb"):
        Training().load(tmp_path / "d")
    Training().save(tmp_path / "d")
    Training().load(tmp_path / "d")


@pytest.mark.parametrize(
    "load",
    [
        lambda path, exe, program: fluid.load(program, path, exe),
        lambda path, exe, program: fluid.io.load_persistables(exe, path, program),
        lambda path, *_: repack.merge(path, path + "-merged"),
        lambda path, *_: repack.split(path, path + "-split"),
    ],
    ids=["fluid.load", "load_persistables", "merge", "split"],
)
def test_a_copy_without_the_folder_of_the_links_is_refused(load: Any, places: Places, tmp_path: Path) -> None:
    shutil.copytree(places[0], tmp_path / "d", ignore=shutil.ignore_patterns("__deltas__"))
    training = Training()
    before = training.values()
    with fluid.scope_guard(training.scope), pytest.raises(LoadError, match="continues __deltas__/") as info:
        load(str(tmp_path / "d"), training.exe, training.main)
    assert "copy the whole directory again" in info.value.hint
    assert training.values() == before
    assert [one.name for one in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_saving_deltas_beside_a_file_without_a_manifest_entry_is_refused(tmp_path: Path, damage: str) -> None:
    """C1: it would not load; what is there stays."""
    training = Training()
    training.save(tmp_path / "m")
    path = tmp_path / "m" / "__manifest__"
    path.write_bytes(b"") if damage == "cut" else path.unlink()
    before = read_files(tmp_path / "m")
    ledger.forget()
    with pytest.raises(SaveError, match=r"saved as a chain of deltas: \S+ may be of another program"):
        training.save(tmp_path / "m", delta="base")
    assert read_files(tmp_path / "m") == before
    training.save(tmp_path / "m")
    training.save(tmp_path / "m", delta="base")
