"""Without JAX the refusal of an export names the extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError


def test_the_refusal_without_jax_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    out = fluid.layers.l2_normalize(fluid.data("x", [None, 8]), axis=1)
    with pytest.raises(UnsupportedError, match=r"norm\n.*JAX, which is not installed.*paddlelike\[jax\]"):
        fluid.export_onnx(fluid.default_main_program(), str(tmp_path / "m.onnx"), ["x"], [out])
