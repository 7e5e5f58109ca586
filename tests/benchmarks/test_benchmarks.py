"""The benchmarks find what they measure; their figures are nothing for a test."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
FILES = [*HERE.glob("bench_*.py"), *HERE.glob("saves/bench_*.py")]
NAMES = sorted(".".join(path.relative_to(HERE).with_suffix("").parts) for path in FILES)


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_names_its_command_and_is_on_the_page(name: str) -> None:
    module = import_module(f"tests.benchmarks.{name}")
    assert callable(module.main)
    assert f"python -m tests.benchmarks.{name}" in module.__doc__
    assert f"`{module.__name__.rpartition('.')[2]}`" in (HERE / "README.md").read_text()


def test_programs_and_direct_calls_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--count", "3", "--rounds", "1", "--where", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["bench_programs", *arguments])
    import_module("tests.benchmarks.bench_programs").main()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:20].strip() for line in lines[1:]] == [
        "save, a file each", "load, a file each", "save, one file", "load, one file",
    ]  # fmt: skip


NETS = HERE / "nets"


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Fluid's quirks, and of feeds that chain does not have
@pytest.mark.parametrize(
    "net",
    [
        "fit_a_line",
        "chain",
        "mlp",
        "lenet",
        "word2vec",
        pytest.param("resnet20", marks=pytest.mark.slow),
        "lstm",
        "encoder",
        pytest.param("wide_deep", marks=pytest.mark.slow),
    ],
)
def test_a_net_written_by_hand_has_the_losses_of_the_same_net_built_with_fluid(
    net: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import paddlelike

    monkeypatch.syspath_prepend(str(NETS))
    interface, by_hand = (import_module(name) for name in ("in_fluid", "in_numpy"))
    ours, theirs = interface.prepare(net, paddlelike), by_hand.prepare(net)
    for _ in range(2):
        # float32 sums in another order, and a step of training on them
        assert np.ravel(theirs()) == pytest.approx(np.ravel(ours()), rel=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of Fluid's quirks, and of feeds that chain does not have
@pytest.mark.parametrize("net", ["fit_a_line", "chain", "mlp", "lenet", "word2vec", "lstm", "wide_deep"])
def test_a_net_written_by_hand_in_jax_has_the_losses_of_the_same_net_built_with_fluid(
    net: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)
    import paddlelike

    monkeypatch.syspath_prepend(str(NETS))
    interface, by_hand = (import_module(name) for name in ("in_fluid", "in_jax"))
    ours, theirs = interface.prepare(net, paddlelike), by_hand.prepare(net)
    for _ in range(2):
        # float32 sums in another order, and a step of training on them
        assert np.ravel(theirs()) == pytest.approx(np.ravel(ours()), rel=1e-5)
