"""Thousands of single bits flipped anywhere in what was saved, its manifest included: verify finds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

import paddlelike as fluid
from paddlelike.storage.local.manifest_file import manifest_path
from tests.io.loading import executor, network, save


def _separate(home: Path) -> None:
    save(home / "m", network())


def _combined(home: Path) -> None:
    save(home / "m", network(), "all")


def _beside(home: Path) -> None:
    main, startup = network()
    executor().run(startup)
    fluid.save(main, str(home / "m"))


def _inference(home: Path) -> None:
    main, startup = network()
    executor().run(startup)
    block = main.global_block()
    (mean,) = (op for op in block.ops if op.type == "mean")
    target = block.var(mean.output("Out")[0])
    fluid.io.save_inference_model(str(home / "m"), ["ids"], [target], executor(), main)


FORMS = {"separate": _separate, "combined": _combined, "beside": _beside, "inference": _inference}


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with fluid.scope_guard(fluid.Scope()):
        yield


def _flip_and_look(home: Path, make: Callable[[Path], None], count: int, seed: int) -> None:
    make(home)
    assert fluid.io.verify(home / "m")
    files = {path: path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}
    manifest = Path(manifest_path(home / "m"))
    assert manifest in files
    dice = Random(seed)
    for _ in range(count):
        path = dice.choice(list(files))
        data = bytearray(files[path])
        at = dice.randrange(len(data)) if dice.random() < 0.7 else dice.randrange(min(len(data), 40))
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        found = fluid.io.verify(home / "m")
        path.write_bytes(files[path])
        assert not found, (path, at)
        if path == manifest:
            assert found.problem is not None, at
        else:
            assert [Path(name).name for name in found.changed] == [path.name], at
            assert (found.missing, found.cut, found.extra) == ((), (), ())
    assert fluid.io.verify(home / "m")


@pytest.mark.parametrize("form", FORMS)
def test_a_hundred_flipped_bits_are_found(form: str, tmp_path: Path) -> None:
    _flip_and_look(tmp_path / "home", FORMS[form], 100, 0)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_two_thousand_flipped_bits_are_found(form: str, tmp_path: Path) -> None:
    _flip_and_look(tmp_path / "home", FORMS[form], 2000, 1)
