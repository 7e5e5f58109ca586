"""The real PyTorch loads what we write, and we read what it saves of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paddlelike.formats.torch import Torch
from paddlelike.testing.formats import assert_same
from tests.formats import test_torch as suite
from tests.interop.real import RealSystem

TORCH = RealSystem("PADDLELIKE_TORCH_PYTHON", "PyTorch 1.6 or newer")
pytestmark = TORCH.needed


def test_each_system_loads_the_files_of_the_other(tmp_path: Path) -> None:
    values = suite.TestTorch.sample()
    (tmp_path / "ours").write_bytes(b"".join(Torch().write(values)))
    job = {name: str(tmp_path / name) for name in ("ours", "theirs", "found.npz")}
    TORCH.run("driver_torch.py", job | {"found": job["found.npz"]}, tmp_path)
    with np.load(tmp_path / "found.npz") as found:
        for name, value in values.items():
            same = value.view("int16") if value.dtype == np.uint16 else value
            np.testing.assert_array_equal(found[name], same, err_msg=name)
    assert_same(Torch().read_all((tmp_path / "theirs").read_bytes()), values)
