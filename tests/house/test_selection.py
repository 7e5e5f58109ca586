"""The default selection of the tests needs the extra ``test`` alone: what needs more is slow."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.conftest import ALL_SLOW

PROJECT = Path(__file__).parent.parent.parent
EXTRAS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MORE = [
    re.split(r"\W", requirement)[0] for requirement in EXTRAS["test-all"][1:]
]  # behind "paddlelike[test]"
NEEDS_MORE = re.compile(
    rf'^ *(?:import|from) (?:{"|".join(MORE)})\b|importorskip\("(?:{"|".join(MORE)})\b|^@needs_numba',
    re.MULTILINE,
)


def test_what_needs_more_extras_is_slow() -> None:
    assert {"jax", "numba", "onnxruntime"} <= set(MORE)
    wrong = []
    for path in (PROJECT / "tests").rglob("test_*.py"):
        text = path.read_text()
        if not ALL_SLOW.search(text):
            parts = re.split(r"\n\n\n(?=@|def |class )", text)
            wrong += [
                f"{path.name}: {part.partition('def ')[2].partition('(')[0]}"
                for part in parts
                if NEEDS_MORE.search(part) and "pytest.mark.slow" not in part
            ]
    assert wrong == []
