"""A format of another package: its source, a file of it, and how a test installs the package."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from paddlelike.formats import registry

TOY = (Path(__file__).parents[1] / "plugins" / "toy" / "toy_format.py").read_text()
TOY_FILE = b"TOY1w 2 1\n" + np.float32([[1], [2]]).tobytes()


def install(home: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str, **formats: str) -> None:
    """A package of one module, installed into ``home`` with entry points for its formats."""
    home.mkdir(exist_ok=True)
    (home / f"{module}.py").write_text(text)
    facts = home / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = "\n".join(f"{name} = {module}:{value}" for name, value in formats.items())
    (facts / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}\n")
    monkeypatch.syspath_prepend(str(home))
    importlib.invalidate_caches()
    monkeypatch.delitem(sys.modules, module, raising=False)
