"""The real Theano loads our bundles, and we load what it dumps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paddlelike import bundle
from tests.interop.real import RealSystem

THEANO = RealSystem("PADDLELIKE_THEANO_PYTHON", "Theano 1.0.5")
pytestmark = THEANO.needed


def test_each_system_loads_the_bundles_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # T14, T16
    monkeypatch.setenv("THEANO_FLAGS", f"cxx=,base_compiledir={tmp_path}")
    rng = np.random.default_rng(5)
    arrays = {
        "W": rng.standard_normal((3, 4)).astype("float32"),
        "b": np.asfortranarray(rng.standard_normal((2, 3))),
        "ids": np.arange(6, dtype="int64").reshape(2, 3),
    }
    bundle.dump({"arrays": arrays, "again": arrays["W"], "epoch": 7, "text": "å"}, tmp_path / "ours")
    job = {name: str(tmp_path / name) for name in ("ours", "theirs", "found.npz")}
    THEANO.run("driver_theano.py", job | {"found": job["found.npz"]}, tmp_path)
    with np.load(tmp_path / "found.npz") as found:
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
    theirs = bundle.load(tmp_path / "theirs")
    assert theirs["epoch"] == 7
    for one in theirs["shared"]:
        np.testing.assert_array_equal(one.get_value(), arrays[one.name])
