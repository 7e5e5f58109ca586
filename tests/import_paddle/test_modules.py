"""``paddle.compat``, ``paddle.version`` and ``paddle.utils``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlelike.errors import ExtraMissingError
from paddlelike.import_paddle import compat, version
from paddlelike.import_paddle.plot import Ploter


@pytest.mark.parametrize(
    ("given", "text", "data"),
    [
        (b"a", "a", b"a"),
        ("\u00e9", "\u00e9", b"\xc3\xa9"),
        (None, None, None),
        ([b"a", "b"], ["a", "b"], [b"a", b"b"]),
        ({b"a"}, {"a"}, {b"a"}),
    ],
    ids=["bytes", "text", "none", "list", "set"],
)
def test_compat_converts_text_and_bytes(given: Any, text: Any, data: Any) -> None:
    assert compat.to_text(given) == text
    assert compat.to_bytes(given) == data


def test_containers_are_changed_in_place() -> None:
    words = [b"a"]
    assert compat.to_text(words, inplace=True) is words == ["a"]
    table = {b"a": b"b"}
    assert compat.to_text(table) == {"a": "b"}
    assert compat.to_text(table, inplace=True) == {b"a": b"b", "a": "b"}  # as in Paddle
    letters = {"a"}
    assert compat.to_bytes(letters, inplace=True) is letters == {b"a"}
    assert (compat.to_text(3), compat.to_text(True)) == (3, True)
    with pytest.raises(TypeError, match="to_bytes takes str or bytes, got 3"):
        compat.to_bytes(3)


@pytest.mark.parametrize(
    ("x", "d", "wanted"), [(0.5, 0, 1.0), (-0.5, 0, -1.0), (2.5, 0, 3.0), (1.235, 2, 1.24), (0.0, 1, 0.0)]
)
def test_compat_round_rounds_halves_away_from_zero(x: float, d: int, wanted: float) -> None:
    assert compat.round(x, d) == wanted
    assert compat.floor_division(7, 2) == 3
    assert compat.get_exception_message(ValueError("why")) == "why"


def test_the_installed_paddle_reports_version_1_8_5(capsys: pytest.CaptureFixture[str]) -> None:
    version.show()
    assert capsys.readouterr().out.startswith("full_version: 1.8.5\nmajor: 1\nminor: 8\npatch: 5\n")
    assert version.mkl() == "OFF"


def test_curves_are_drawn_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is in the extra 'tutorials'")
    matplotlib.use("Agg")
    monkeypatch.delenv("DISABLE_PLOT", raising=False)
    plot = Ploter("train", "test")
    plot.append("train", 0, 1.5)
    plot.append("train", 1, 1.0)
    plot.plot(str(tmp_path / "curve.png"))
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    plot.reset()
    with pytest.raises(KeyError):
        plot.append("other", 0, 1)


def test_ploter_draws_nothing_when_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    monkeypatch.setenv("DISABLE_PLOT", "True")
    Ploter("train").plot(str(tmp_path / "curve.png"))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("DISABLE_PLOT", "False")
    with pytest.raises(ExtraMissingError, match="needs the package matplotlib"):
        Ploter("train")
