"""After a power cut at any moment a load gives the old values, the new ones, or, where the save was not to
survive one, a clear error: every form of save, at some hundred states of the disk each.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import bundle, training
from paddlelike.errors import PaddlelikeError
from paddlelike.io.save import chains
from paddlelike.storage.local import generation
from tests.crash import tracer
from tests.crash.models import refuse
from tests.crash.power_cut import Recording, old_inodes

pytestmark = pytest.mark.slow

STATES = 120  # of each scenario
SHAPES = {"w": (40, 30), "v": (3,), "table": (50, 8), "same": (9, 9)}
SAME = "same"  # what does not change
Save = Callable[["Network", Path, int], object]
Load = Callable[["Network", Path], None]


class Network:
    """Four parameters, of which one does not change from one set of values to the next."""

    def __init__(self) -> None:
        self.main, self.exe, self.scope = fluid.Program(), fluid.Executor(), fluid.Scope()
        with fluid.program_guard(self.main, fluid.Program()), fluid.unique_name.guard():
            self.out = fluid.layers.scale(fluid.data("x", [None, 40]), 2.0)
            for name, shape in SHAPES.items():
                made = self.main.global_block().create_parameter(name=name, shape=shape, dtype="float32")
                if name == "w":
                    self.out = fluid.layers.mul(self.out, made)

    def fill(self, number: int) -> None:
        """Let the parameters of the current scope hold the values of a set."""
        for name, shape in SHAPES.items():
            if name != SAME or fluid.global_scope().find_var(name) is None:
                tensor = fluid.global_scope().var(name).get_tensor()
                tensor.set(np.full(shape, 7 if name == SAME else number, "float32"), fluid.CPUPlace())

    def read(self, names: tuple[str, ...] = tuple(SHAPES)) -> int:
        """Return which set the current scope holds."""
        arrays = {name: np.array(fluid.global_scope().find_var(name).get_tensor()) for name in names}
        same = arrays.pop(SAME, np.full(1, 7.0))
        found = {float(one) for array in arrays.values() for one in np.unique(array)}
        assert len(found) == 1, f"a mix of sets: {found}"
        assert set(np.unique(same)) == {7.0}
        return int(found.pop())


@dataclass(frozen=True)
class Scenario:
    """A form of save.

    Attributes
    ----------
    save, load
        ``save(network, home, number)`` with the values of that set in the scope; ``load(network, home)``
        gives the number of the set that is there, 0 for none.
    survives
        Whether it is to survive a power cut; else a load may refuse what it left.
    before, during
        The sets that are on the disk before, and those that are saved while the power is cut.
    """

    save: Save
    load: Callable[[Network, Path], int]
    survives: bool
    before: tuple[int, ...] = (1,)
    during: tuple[int, ...] = (2,)


def _loaded(load: Load, network: Network, home: Path) -> int:
    load(network, home)
    return network.read()


def _vars(how: str, **options: Any) -> Save:
    def save(network: Network, home: Path, number: int) -> object:
        report = getattr(fluid.io, f"save_{how}")(network.exe, str(home / "m"), network.main, **options)
        return report.wait() if isinstance(report, fluid.io.PendingSave) else report

    return save


def _load_vars(network: Network, home: Path, filename: str | None = None) -> None:
    fluid.io.load_persistables(network.exe, str(home / "m"), network.main, filename)


def _without_exchange(save: Save) -> Save:
    def saved(network: Network, home: Path, number: int) -> object:
        with mock.patch.object(generation, "exchange", refuse):
            return save(network, home, number)

    return saved


def _export(network: Network, home: Path, number: int, **options: Any) -> object:
    main = network.main.clone()
    out = main.global_block().var(network.out.name)
    return fluid.io.save_inference_model(str(home / "m"), ["x"], [out], network.exe, main, **options)


def _load_export(network: Network, home: Path) -> int:
    fluid.io.load_inference_model(str(home / "m"), network.exe)
    return network.read(("w",))


def _prefix(network: Network, home: Path, number: int, **options: Any) -> object:
    return fluid.save(network.main, str(home / "net"), **options)


def _load_prefix(network: Network, home: Path) -> None:
    network.fill(0)
    fluid.load(network.main, str(home / "net"), network.exe)


def _checkpoint(network: Network, home: Path, number: int, **options: Any) -> object:
    checkpoints = fluid.io.Checkpoints(home / "ck", keep_last=2, **options)
    checkpoints.save(network.exe, network.main, number)
    return checkpoints.list()  # waits for a save in another thread


def _restore(network: Network, home: Path) -> int:
    state = fluid.io.Checkpoints(home / "ck").restore(network.exe, network.main)
    assert state is not None, "there is no checkpoint any more"
    assert network.read() == state["step"]
    return network.read()


def _archive(kind: str) -> Save:
    def save(network: Network, home: Path, number: int) -> object:
        source = home.parent / f"source-{kind}-{number}"
        (home / "out").mkdir(exist_ok=True)
        fluid.io.save_persistables(network.exe, str(source), network.main)
        return fluid.convert(
            str(source), str(home / "out" / f"all.{kind}"), durability="power", overwrite=True
        )

    return save


def _load_archive(network: Network, home: Path, kind: str) -> None:
    target = home.parent / f"read-{kind}"
    shutil.rmtree(target, ignore_errors=True)
    fluid.convert(str(home / "out" / f"all.{kind}"), str(target))
    fluid.io.load_persistables(network.exe, str(target), network.main)


def _dump(network: Network, home: Path, number: int) -> object:
    (home / "out").mkdir(exist_ok=True)
    return bundle.dump({"w": np.full((40, 30), number)}, home / "out" / "w.zip")


def _load_dump(network: Network, home: Path) -> int:
    (found,) = np.unique(bundle.load(home / "out" / "w.zip")["w"])
    return int(found)


def _session(network: Network, home: Path, number: int, **options: Any) -> object:
    with _trainer() as trainer:
        trainer.program.global_block()
        trainer.total_number_of_samples_seen = number
        return trainer.save_checkpoint(home / "run", {"set": number}, **options)


def _load_session(network: Network, home: Path) -> int:
    with _trainer() as trainer:
        return int(trainer.restore_from_checkpoint(home / "run")["set"])


@contextlib.contextmanager
def _trainer() -> Iterator[training.Trainer]:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard(), fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("a", [None, 4]), 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(out, fluid.data("b", [None, 1])))
        yield training.Trainer(out, (loss, loss), fluid.optimizer.SGD(0.1))


def _log(network: Network, home: Path, number: int, **options: Any) -> None:
    fluid.io.TrainingLog(home / "log", **options).write(number, loss=number)


def _load_log(network: Network, home: Path) -> int:
    curves = fluid.io.TrainingLog(home / "log").curves()
    steps = curves["loss"].steps if curves else ()
    assert steps == tuple(range(1, len(steps) + 1))
    return len(steps)


def _chain(network: Network, home: Path, number: int, *, compacts: bool = False, **options: Any) -> None:
    """Save what changed, of the table five rows; with ``compacts`` also give each variable one file again."""
    table = np.full(SHAPES["table"], 7, "float32")
    table[:5] = number
    fluid.global_scope().var("table").get_tensor().set(table, fluid.CPUPlace())
    with mock.patch.object(chains, "LEAST", 0):
        fluid.io.save_persistables(network.exe, str(home / "m"), network.main, **{"delta": True} | options)
    if compacts:
        fluid.io.compact(home / "m")


def _load_chain(network: Network, home: Path) -> int:
    _load_vars(network, home)
    table = np.array(fluid.global_scope().find_var("table").get_tensor())
    assert set(np.unique(table[5:])) == {7}
    assert set(np.unique(table[:5])) == {network.read(("w", "v", SAME))}, "a mix of sets"
    return int(table[0, 0])


_READ = partial(_loaded, _load_vars)
_READ_ALL = partial(_loaded, partial(_load_vars, filename="all"))
_POWER: dict[str, Any] = {"durability": "power"}
_PROCESS: dict[str, Any] = {"durability": "process"}
_MANY: dict[str, Any] = {"before": (1, 2), "during": (3, 4, 5)}
SCENARIOS = {
    "params": Scenario(_vars("params", **_POWER), _READ, True),
    "persistables": Scenario(_vars("persistables", **_POWER), _READ, True),
    "new": Scenario(_vars("persistables", **_POWER), _READ, True, before=()),
    "twice": Scenario(_vars("persistables", **_POWER), _READ, True, during=(2, 3)),
    "spare": Scenario(_vars("persistables", keep_generation=True, **_POWER), _READ, True, during=(2, 3)),
    "thread": Scenario(_vars("persistables", blocking=False, **_POWER), _READ, True),
    "journal": Scenario(_without_exchange(_vars("persistables", **_POWER)), _READ, True),
    "one file": Scenario(_vars("persistables", filename="all", **_POWER), _READ_ALL, True),
    "export": Scenario(partial(_export, **_POWER), _load_export, True),
    "prefix": Scenario(partial(_prefix, **_POWER), partial(_loaded, _load_prefix), True),
    "checkpoints": Scenario(partial(_checkpoint, **_POWER), _restore, True, **_MANY),
    "session": Scenario(partial(_session, **_POWER), _load_session, True),
    "log": Scenario(partial(_log, **_POWER), _load_log, True, during=(2, 3, 4)),
    **{
        kind: Scenario(_archive(kind), partial(_loaded, partial(_load_archive, kind=kind)), True)
        for kind in ("npz", "safetensors")
    },
    "checkpoints, default": Scenario(_checkpoint, _restore, True, **_MANY),
    "checkpoints in a thread, default": Scenario(
        partial(_checkpoint, blocking=False), _restore, True, **_MANY
    ),
    "log, default": Scenario(_log, _load_log, False, during=(2, 3, 4)),
    "persistables, default": Scenario(_vars("persistables"), _READ, True),
    "params, default": Scenario(_vars("params"), _READ, True),
    "twice, default": Scenario(_vars("persistables"), _READ, True, during=(2, 3)),
    "spare, default": Scenario(_vars("persistables", keep_generation=True), _READ, True, during=(2, 3, 4)),
    "thread, default": Scenario(_vars("persistables", blocking=False), _READ, True),
    "no checksum, default": Scenario(_vars("persistables", checksum=None), _READ, True),
    "no manifest, default": Scenario(_vars("persistables", manifest=False), _READ, True),
    "journal, default": Scenario(_without_exchange(_vars("persistables")), _READ, True),
    "one file, default": Scenario(_vars("persistables", filename="all"), _READ_ALL, True),
    "export, default": Scenario(_export, _load_export, True),
    "prefix, default": Scenario(_prefix, partial(_loaded, _load_prefix), True),
    "session, default": Scenario(_session, _load_session, True),
    "chain": Scenario(partial(_chain, **_POWER), _load_chain, True, **_MANY),
    "chain, base": Scenario(partial(_chain, delta="base", **_POWER), _load_chain, True, **_MANY),
    "chain, default": Scenario(_chain, _load_chain, True, **_MANY),
    "chain, new": Scenario(partial(_chain, **_POWER), _load_chain, True, before=()),
    "chain, journal, default": Scenario(_without_exchange(_chain), _load_chain, True, **_MANY),
    "chain, compacted": Scenario(partial(_chain, compacts=True, **_POWER), _load_chain, True, **_MANY),
    "chain, compacted, default": Scenario(partial(_chain, compacts=True), _load_chain, True, **_MANY),
    "chain, process": Scenario(partial(_chain, **_PROCESS), _load_chain, False, **_MANY),
    "bundle, default": Scenario(_dump, _load_dump, True),
    "persistables, process": Scenario(_vars("persistables", **_PROCESS), _READ, False),
    "journal, process": Scenario(_without_exchange(_vars("persistables", **_PROCESS)), _READ, False),
    "prefix, process": Scenario(partial(_prefix, **_PROCESS), partial(_loaded, _load_prefix), False),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_power_cut_leaves_the_old_or_the_new_files(name: str, tmp_path: Path) -> None:
    if reason := tracer.usable():
        pytest.skip(reason)
    scenario, network, home = SCENARIOS[name], Network(), tmp_path / "home"
    home.mkdir()

    def save(*numbers: int) -> None:
        with fluid.scope_guard(network.scope):
            for number in numbers:
                network.fill(number)
                scenario.save(network, home, number)

    save(*scenario.before)
    seen, dice = Counter[str](), random.Random(name)
    with contextlib.closing(Recording(home, lambda: save(*scenario.during))) as recording:
        for number in range(STATES):
            place = tmp_path / "left"
            inodes = recording.leave(place, dice, ordered=not scenario.survives or number % 2 == 0)
            seen[_outcome(scenario, network, place, inodes)] += 1
            shutil.rmtree(place)
    sets = {str(number) for number in (*scenario.before, *scenario.during)}
    if not scenario.before:
        sets.add("refused")  # there was nothing before
    if not scenario.survives:
        sets |= {"refused", "said to be unverified"} if name != "log, default" else {"0"}
    assert seen.keys() <= sets
    assert len(seen) > 1, f"every one of {len(recording.moments)} moments left the same set"


def _outcome(scenario: Scenario, network: Network, home: Path, inodes: dict[int, int]) -> str:
    with warnings.catch_warnings(record=True) as said, fluid.scope_guard(fluid.Scope()), old_inodes(inodes):
        warnings.simplefilter("always")
        try:
            return str(scenario.load(network, home))
        except PaddlelikeError:
            return "refused"
        except AssertionError:
            if any("not verified" in str(one.message) for one in said):
                return "said to be unverified"  # the manifest itself was lost
            raise
