"""What the operators of the contract's cases need to be run in another system."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["FOR_TRAINING", "narrow"]

#: Outputs for gradients and for training, which a model for prediction does not have.
FOR_TRAINING: Final = {
    "BatchSize", "Mask", "Mean", "MeanOut", "Means", "MidOut", "SavedMean", "SavedVariance", "Scales",
    "Variance", "VarianceOut", "XShape",
}  # fmt: skip


def narrow(value: Any) -> Any:
    """Return an array with real numbers as float32, which other systems compute with."""
    array = np.array(value)
    return array.astype(np.float32) if array.dtype == np.float64 else array
