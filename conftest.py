"""The examples of the data sets read made-up samples, and write into an empty folder."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from paddlelike.dataset import common


@pytest.fixture(autouse=True)
def _make_up_samples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.is_relative_to(Path(common.__file__).parent):
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
        monkeypatch.setattr(common, "DATA_HOME", "missing")
        monkeypatch.setenv("PADDLELIKE_SYNTHETIC_DATA", "1")
        if "OpenCV" in request.node.dtest.docstring:
            pytest.importorskip("cv2", reason="OpenCV is in the extra 'datasets'")
        warnings.filterwarnings("ignore", ".*these samples are made up")
