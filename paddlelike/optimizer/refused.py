"""Optimizers of Fluid that need what is not here: several devices, or a cluster of GPUs."""

from __future__ import annotations

from typing import Any

from paddlelike.errors import UnsupportedError

__all__ = ["DGCMomentumOptimizer", "PipelineOptimizer"]


class DGCMomentumOptimizer:
    """Refused: deep gradient compression sends sparse gradients between GPUs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "DGCMomentumOptimizer compresses gradients between GPUs, which are not supported",
            hint="Momentum makes the same steps without compression",
        )


class PipelineOptimizer:
    """Refused: a pipeline runs the sections of a network on several devices."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError(
            "PipelineOptimizer runs sections of a network on several devices; there is one here",
            hint="minimize with the optimizer inside; the results are the same",
        )
