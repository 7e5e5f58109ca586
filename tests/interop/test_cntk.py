"""The real CNTK loads what we write and computes the same, and we read what it saves of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paddlelike.formats.cntk.file import CntkFile
from tests.formats import test_cntk as suite
from tests.formats.contract import assert_same
from tests.interop.real import RealSystem

CNTK = RealSystem("PADDLELIKE_CNTK_PYTHON", "CNTK 2.7 (an interpreter with its library path set)")
pytestmark = CNTK.needed


def test_values_are_a_function_of_cntk(tmp_path: Path) -> None:  # C03, C04
    values = suite.TestCntkFile.sample()
    del values["shape.empty"]  # CNTK takes a dim of 0 for one that is not known yet
    (tmp_path / "ours").write_bytes(b"".join(CntkFile().write(values)))
    job = {name: str(tmp_path / name) for name in ("ours", "theirs")}
    CNTK.run("driver_cntk.py", job | {"task": "values", "found": str(tmp_path / "found.npz")}, tmp_path)
    with np.load(tmp_path / "found.npz") as found:
        for name, value in values.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
            assert found[name].dtype == value.dtype
    assert_same(CntkFile().read_all((tmp_path / "theirs").read_bytes()), values)
