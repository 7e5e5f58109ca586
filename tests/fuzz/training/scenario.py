"""A random order of runs, saves, loads and other actions on one case, and what comes of it."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import paddlelike as fluid
from tests.fuzz.training.case import Case, make_case, make_feed
from tests.fuzz.training.paths import use_path

__all__ = ["Record", "run_scenario"]

L = fluid.layers
ACTIONS = ("train",) * 8 + (
    "test",
    "prune",
    "save",
    "load",
    "set",
    "hold",
    "edit",
    "clone",
    "scope",
    "executor",
    "another",
    "empty",
    "devices",
    "fail",
    "startup",
)


@dataclass
class Record:
    """What a scenario gave: values by action, and the faults that were seen on the way."""

    values: list[tuple[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


class Runner:
    """A case that is run in one way."""

    def __init__(self, case: Case, folder: Path, devices: int) -> None:
        self.case, self.folder, self.devices = case, folder, devices
        self.record = Record()
        self.exe = fluid.Executor()
        self.scopes = [fluid.Scope(), fluid.Scope()]
        self.scope = self.scopes[0]
        self.main = case.main
        self.given: list[tuple[str, Any, Any]] = []  # what earlier runs returned, and copies of it
        self.held: list[Any] = []
        self.feed: dict[str, Any] = {}
        self.edits = 0
        for scope in self.scopes:
            scope.generator.state = 77
            if case.startup.global_block().ops:
                self.exe.run(case.startup, scope=scope)

    def perform(self, action: str, rng: Random, index: int) -> None:
        """Carry out an action."""
        with fluid.scope_guard(self.scope):
            getattr(self, f"do_{action}")(rng, index)

    def _run(
        self, program: Any, names: list[str], label: str, rng: Random, *, rows: int = 0, **options: Any
    ) -> None:
        rows = rows or rng.choice([4, 4, 4, 2, 7, 1])
        feed = make_feed(self.case.fed, rng.randrange(1000), rows)
        if rng.random() < 0.3:  # into the arrays of the run before
            for name, value in feed.items():
                old = self.feed.get(name)
                if (
                    isinstance(old, np.ndarray)
                    and isinstance(value, np.ndarray)
                    and old.flags.writeable
                    and old.shape == value.shape
                ):
                    old[...] = value
                    feed[name] = old
        self.feed = feed
        copies = {name: np.array(value) for name, value in feed.items()}
        found = self.exe.run(program, feed=feed, fetch_list=names, return_numpy=False, **options)
        for name, value in feed.items():
            if not np.array_equal(np.array(value), copies[name]):
                self.record.faults.append(f"{label}: wrote into the fed {name}")
        for name, value in zip(names, found, strict=True):
            array = np.asarray(value)
            self.given.append((f"{label} {name}", array, array.copy()))
            self.record.values.append((f"{label} {name}", array.copy()))
            self.record.values.append((f"{label} {name} lod", value.lod()))

    def _choose(self, rng: Random, *, test: bool = False) -> list[str]:
        names = [*self.case.fetchable, *self.case.losses]
        if not test:
            names += self.case.gradients[:: rng.choice([1, 2])] if rng.random() < 0.4 else []
            names += [p.name for p in self.case.main.all_parameters()] if rng.random() < 0.3 else []
        names = sorted(set(names))
        chosen = rng.sample(names, rng.randrange(0, min(len(names), 6) + 1))
        return [*self.case.losses, *chosen] if rng.random() < 0.8 else chosen

    def do_train(self, rng: Random, index: int) -> None:
        self._run(self.main, self._choose(rng), f"{index} train", rng)

    def do_prune(self, rng: Random, index: int) -> None:
        self._run(self.main, self.case.losses, f"{index} prune", rng, use_prune=True)

    def do_test(self, rng: Random, index: int) -> None:
        self._run(self.case.test, self._choose(rng, test=True), f"{index} test", rng)

    def do_clone(self, rng: Random, index: int) -> None:
        self.main = self.main.clone()

    def do_save(self, rng: Random, index: int) -> None:
        fluid.io.save_persistables(self.exe, str(self.folder / "all"), self.case.main)

    def do_load(self, rng: Random, index: int) -> None:
        if (self.folder / "all").exists():
            fluid.io.load_persistables(self.exe, str(self.folder / "all"), self.case.main)

    def do_set(self, rng: Random, index: int) -> None:
        parameters = self.case.main.all_parameters()
        if parameters:
            tensor = self.scope.find_var(rng.choice(parameters).name).get_tensor()
            tensor.set(np.array(tensor) * np.float32(0.5), fluid.CPUPlace())

    def do_hold(self, rng: Random, index: int) -> None:
        """Hold, or release, what the scope has."""
        if self.held:
            self.held.clear()
        else:
            parameters = self.case.main.all_parameters()
            self.held = [self.scope.find_var(one.name).get_tensor().array for one in parameters]

    def do_edit(self, rng: Random, index: int) -> None:
        """Append an operator to the program."""
        name = rng.choice(self.case.fetchable)
        self.edits += 1
        with fluid.program_guard(self.main), fluid.unique_name.guard(f"edit{self.edits}_"):
            variable = self.main.global_block().var(name)
            if variable.dtype == fluid.core.VarDesc.VarType.FP32:
                out = L.scale(variable, 2.0)
                self.record.values.append(("edit", out.name))

    def do_scope(self, rng: Random, index: int) -> None:
        self.scope = rng.choice(self.scopes)

    def do_executor(self, rng: Random, index: int) -> None:
        self.exe = fluid.Executor()

    def do_another(self, rng: Random, index: int) -> None:
        """Run another program, which halves what this one trains."""
        program = fluid.Program()
        with fluid.program_guard(program):
            for one in self.case.main.all_parameters()[:3]:
                same = program.global_block().create_parameter(
                    name=one.name, shape=one.shape, dtype=one.dtype
                )
                L.assign(same * 0.5, output=same)
        self.exe.run(program)

    def do_devices(self, rng: Random, index: int) -> None:
        """Train on two devices, where JAX has them: with numpy two copies, one after the other."""
        if not self.devices or not self.case.losses:
            return
        program = fluid.CompiledProgram(self.main).with_data_parallel(
            self.case.losses[0], places=[fluid.CPUPlace()] * self.devices
        )
        rows = self.devices * rng.choice([1, 2, 2, 3]) + rng.choice([0, 0, 0, 1])
        self._run(program, self.case.losses, f"{index} devices", rng, rows=rows)

    def do_empty(self, rng: Random, index: int) -> None:
        """Run the test program on a batch without rows: its values, or that it is refused."""
        if any(one.levels for one in self.case.fed):
            return  # a LoD holds one sequence at least
        feed = make_feed(self.case.fed, 1, 0)
        try:
            found = self.exe.run(self.case.test, feed=feed, fetch_list=self.case.losses, return_numpy=False)
        except (fluid.core.EnforceNotMet, ValueError, RuntimeError):
            self.record.values.append((f"{index} empty", "refused"))
            return
        for name, value in zip(self.case.losses, found, strict=True):
            self.record.values.append((f"{index} empty {name}", np.array(value)))

    def do_startup(self, rng: Random, index: int) -> None:
        if self.case.startup.global_block().ops:
            self.exe.run(self.case.startup)

    def do_fail(self, rng: Random, index: int) -> None:
        """Run with a feed that is refused."""
        feed = make_feed(self.case.fed, 1, 3)
        feed.pop(self.case.fed[0].name)
        try:
            self.exe.run(self.main, feed=feed, fetch_list=self.case.losses[:1])
        except (fluid.core.EnforceNotMet, ValueError, RuntimeError) as error:
            self.record.values.append((f"{index} fail", type(error).__name__))

    def finish(self) -> Record:
        """Return the record, with all persistables."""
        for label, array, copy in self.given:
            if not np.array_equal(array, copy, equal_nan=array.dtype.kind == "f"):
                self.record.faults.append(f"{label}: changed after it was returned")
        for number, scope in enumerate(self.scopes):
            for variable in sorted(self.case.main.list_vars(), key=lambda one: one.name):
                held = scope.find_var(variable.name) if variable.persistable else None
                if held is not None and held.get_tensor()._is_initialized():
                    self.record.values.append(
                        (f"scope {number} {variable.name}", np.array(held.get_tensor()))
                    )
            self.record.values.append((f"generator {number}", scope.generator.state))
        return self.record


def run_scenario(seed: int, paths: list[str], *, actions: int = 6, devices: int = 0) -> dict[str, Record]:
    """Run the case and the scenario of a seed in several ways; return a record for each.

    ``devices``: how many some of the runs take; 0: none does.
    """
    found = {}
    for path in paths:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), use_path(path):
            warnings.simplefilter("ignore")
            runner = Runner(make_case(seed), Path(folder), devices)
            rng = Random(f"actions {seed}")
            order = [rng.choice(ACTIONS) for _ in range(actions)]
            for index, action in enumerate(["train", "train", *order]):
                runner.perform(action, Random(f"{seed} {index}"), index)
            found[path] = runner.finish()
    return found
