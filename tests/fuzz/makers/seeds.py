"""The real files that mutations begin with, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.helpers.golden_data import GOLDEN

__all__ = ["COMBINED", "DENSE", "NETWORKS", "PICKLES", "PROGRAMS", "ROWS", "real_files"]

NETWORKS = ("fit_a_line", "mnist_conv_bn", "sentiment_lstm", "word2vec_shared")
LARGEST = 24_000  # bytes: small files are read, and broken, more often

DENSE = ("tensors/dtype_*", "tensors/lod*", "tensors/sh*", "tensors/sp*", "*/persistables/*")
ROWS = ("tensors/selected_rows*",)
COMBINED = ("*/combined/*", "*/inference_combined/params")
PICKLES = ("*/fluid_save/*", "paddle262/*/*/*.pdparams", "paddle262/*/*/*.pdopt")
PROGRAMS = ("*/programs/*.pb", "*/inference/__model__", "paddle262/*/*/*.pdmodel")


@cache
def real_files(*patterns: str) -> tuple[bytes, ...]:
    """The contents of the golden files that match, small ones only, no two alike."""
    paths: Iterable[Path] = sorted({path for pattern in patterns for path in GOLDEN.glob(pattern)})
    return tuple(dict.fromkeys(p.read_bytes() for p in paths if 0 < p.stat().st_size < LARGEST))
