"""Models of Paddle 2.6.2 give the same outputs when they are compiled, by the formulas of the kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

from tests.compiled.harness.nets import use
from tests.models.archive import read_archive, run_model, write_files

pytestmark = pytest.mark.slow

#: By archive: models of operators whose kernels are expressions, and of one that writes in place.
MODELS = {
    "layers262": ("fold", "histogram", "mode", "pow", "repeat_interleave"),
    "spectra262": ("complex", "i1", "nextafter", "polygamma"),
}


@pytest.mark.parametrize(
    ("archive", "name"), [(archive, name) for archive, names in MODELS.items() for name in names]
)
def test_a_compiled_model_gives_the_outputs_of_paddle2(archive: str, name: str, tmp_path: Path) -> None:
    files = read_archive(archive)[name]
    write_files(files, tmp_path)
    with use("jax"):
        pairs = run_model(tmp_path, files)
    assert pairs
    for got, want in pairs:
        ours, real = np.array(got), np.array(want)
        assert (ours.shape, ours.dtype) == (real.shape, real.dtype)
        np.testing.assert_allclose(ours, real, rtol=2e-5, atol=2e-6)  # functions of another library
