"""What all tests share: each begins as a new process would."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

from paddlelike.core import random as core_random
from paddlelike.foundation.warn import find_user_frame
from paddlelike.framework import flags
from paddlelike.storage.local import syncing
from paddlelike.storage.local.filesystem import system
from tests.helpers.fork_server import start_fork_server
from tests.helpers.fresh import fresh_programs

collect_ignore = ["plugins"]  # tested where it is installed: nox -s plugins

# No draw depends on the modules that happen to be loaded, and no worker searches them all for numbers.
providers._get_local_constants = lambda: providers._local_constants
hypothesis.settings.register_profile("all", deadline=None, derandomize=True)
hypothesis.settings.register_profile("quick", deadline=None, derandomize=True, max_examples=30)

#: A module whose tests are all slow: it says so, or needs the real system.
ALL_SLOW = re.compile(r"^pytestmark = (?:\[\n    )?(?:pytest\.mark\.slow|[A-Z0-9]+\.needed)\b", re.MULTILINE)
HAS_JAX = importlib.util.find_spec("jax") is not None


def leaves_out_slow(config: pytest.Config) -> bool:
    """Return whether this is the default selection."""
    return bool(config.option.markexpr == "not slow")


PACKAGE = str(Path(flags.__file__).parents[1])
issue_warning = warnings.warn_explicit


def check_place(message: Any, category: Any, filename: str, *rest: Any, **options: Any) -> None:
    """Issue a warning; none of ours points into the package, unless no user has called it."""
    assert not filename.startswith(PACKAGE) or find_user_frame() is None, f"{filename}: {message}"
    issue_warning(message, category, filename, *rest, **options)


find_in_libc = system._function


def check_descriptor(fd: int) -> int:
    """Refuse what is not open, as ``fsync`` and ``syncfs`` do, but do not wait for the disk."""
    os.fstat(fd)
    return 0


def find_function(name: str) -> Any:
    """Find a function of the C library, but none that waits for the disk."""
    return check_descriptor if name == "syncfs" else find_in_libc(name)


class FreshStart:
    """A plugin, not a fixture of this folder, so that the doctests of the package get it too."""

    @pytest.fixture(autouse=True)
    def fresh_start(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.delitem(sys.modules, "paddle", raising=False)  # which an earlier test installed
        monkeypatch.setattr(flags, "_flags", dict(flags._flags))  # what a test sets ends with it
        monkeypatch.setattr(warnings, "warn_explicit", check_place)
        monkeypatch.setattr(syncing, "_PATIENCE", None)  # what waits for the disk ends with the save
        monkeypatch.setattr(syncing, "_SMALL", sys.maxsize)
        # Other processes wait for the disk: tests/crash/ kills them, or cuts the power.
        monkeypatch.setattr(os, "fsync", check_descriptor)
        monkeypatch.setattr(system, "_function", find_function)
        # What no seed decides is drawn anew in each test, and alike in each run.
        monkeypatch.setattr(core_random, "urandom", random.Random(request.node.nodeid).randbytes)
        with fresh_programs():
            yield

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Import no module that has neither tests nor examples, and none whose tests are all left out."""
        if collection_path.suffix != ".py":
            return None
        text = collection_path.read_text()
        needs_jax = "paddlelike/compiled/" in collection_path.as_posix()
        is_slow = needs_jax or ALL_SLOW.search(text) is not None
        is_test = collection_path.name.startswith("test_")
        has_examples = ">>>" in text and (HAS_JAX or not needs_jax)
        return not (is_test or has_examples) or (is_slow and leaves_out_slow(config)) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without Python's garbage collector, which then never looks at the tests themselves."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is left out."""
    return 'slow tests are left out; -m "" runs them, too' if leaves_out_slow(config) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return more workers than cores: many tests wait for other processes, most slow ones do."""
    cores = os.cpu_count() or 1
    return cores * 3 // 2 if leaves_out_slow(config) else cores * 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the one example in a docstring that needs JAX, and let each worker begin with its slow tests.

    The workers get equal parts of ``items``: so some compute, some wait for processes, and none starts the
    longest test last.
    """
    for item in items:
        if item.name.endswith("CompiledProgram.explain"):
            item.add_marker(pytest.mark.slow)
            if not HAS_JAX:
                item.add_marker(pytest.mark.skip(reason="JAX is in the extra 'jax'"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 0))
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    if workers:
        items[:] = [
            item
            for worker in range(workers)
            for part in (slow, quick)
            for item in part[len(part) * worker // workers : len(part) * (worker + 1) // workers]
        ]


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the fork server of this run of tests."""
    with start_fork_server(tmp_path_factory.mktemp("fork_server") / "socket") as (address, _):
        yield address


@pytest.fixture(scope="module")
def small_heap() -> None:
    """Let the collections of garbage of a module look at new objects only: late in a run each takes 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the textbook's way where Fluid is odd: see ``fluid.quirks()``."""
    monkeypatch.setattr(flags, "_flags", {})
    flags.set_flags({"FLAGS_fluid_quirks": False})


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("quick" if leaves_out_slow(config) else "all")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for what tests start
    config.pluginmanager.register(FreshStart(), "fresh-start")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the lines that a test reports as its property ``summary``."""
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for key, text in getattr(report, "user_properties", ()):
            if key == "summary":
                terminalreporter.write_line(text)
