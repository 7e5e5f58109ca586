"""What all tests share: each begins as a new process would."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from paddlelike.framework import flags
from tests.helpers.fork_server import start_fork_server
from tests.helpers.fresh import fresh_programs

hypothesis.settings.register_profile("house", deadline=None, derandomize=True)
hypothesis.settings.load_profile("house")

# Scripts for the interpreters of the real systems.
collect_ignore_glob = [
    "*/dump_*.py",
    "*/drive*.py",
    "*/layers262/*.py",
    "benchmarks/nets/*.py",
    "benchmarks/images/*.py",
]


_IMPORTS_JAX = re.compile(
    r"paddlelike/compiled/(lowering/|(engine|formulas|parallel|pieces|table|tracing|values)\.py)"
    r"|tests/compiled/harness/sweep\.py"
)


@functools.cache
def has_jax() -> bool:
    """Return whether JAX can be imported."""
    try:
        import jax  # noqa: F401
    except ImportError:
        return False
    return True


class FreshStart:
    """A plugin, not a fixture of this folder, so that the doctests of the package get it too."""

    @pytest.fixture(autouse=True)
    def fresh_start(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.delitem(sys.modules, "paddle", raising=False)  # which an earlier test installed
        monkeypatch.setattr(flags, "_flags", dict(flags._flags))  # what a test sets ends with it
        with fresh_programs():
            yield

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out, without the extra ``jax``, the modules that import it, which hold no doctests."""
        return True if _IMPORTS_JAX.search(str(collection_path)) and not has_jax() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, without the extra ``jax``, the one example in a docstring that needs it."""
    for item in items:
        if item.name.endswith("CompiledProgram.explain") and not has_jax():
            item.add_marker(pytest.mark.skip(reason="the extra `jax` is not installed"))


@pytest.fixture(scope="session")
def fork_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the fork server of this run of tests."""
    with start_fork_server(tmp_path_factory.mktemp("fork_server") / "socket") as (address, _):
        yield address


@pytest.fixture
def textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the textbook's way where Fluid is odd: see ``fluid.quirks()``."""
    monkeypatch.setattr(flags, "_flags", {})
    flags.set_flags({"FLAGS_fluid_quirks": False})


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FreshStart(), "fresh-start")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many programs of the real system's layer and optimizer zoos are met, and what tests report.

    A test reports lines as its property ``summary``.
    """
    for report in terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", []):
        for key, text in getattr(report, "user_properties", ()):
            if key == "summary":
                terminalreporter.write_line(text)
    for zoo in ("zoo/test_layers.py::test_layer[", "zoo/test_optimizers.py::test_programs["):
        outcomes = {
            outcome: [
                report.nodeid.split("[")[-1].rstrip("]")
                for report in terminalreporter.stats.get(outcome, [])
                if zoo in getattr(report, "nodeid", "")
            ]
            for outcome in ("passed", "failed", "xfailed")
        }
        total = sum(map(len, outcomes.values()))
        if total:
            name = zoo.split(".")[0].replace("/test_", " of ")
            differ = sorted(outcomes["failed"] + outcomes["xfailed"])
            rest = f"; differ: {', '.join(differ)}" if differ else ""
            terminalreporter.write_line(f"{name}: {len(outcomes['passed'])} of {total} equal{rest}")
