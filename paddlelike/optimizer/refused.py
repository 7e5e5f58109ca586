"""Optimizers of Fluid that need several devices or GPUs; creating one raises UnsupportedError."""

from __future__ import annotations

from paddlelike.errors import UnsupportedError

__all__ = ["DGCMomentumOptimizer", "PipelineOptimizer"]


class DGCMomentumOptimizer:
    """Deep gradient compression between GPUs; raises UnsupportedError."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedError(
            "DGCMomentumOptimizer compresses gradients between GPUs, which are not supported",
            hint="Momentum does the same steps without compression",
        )


class PipelineOptimizer:
    """Sections of a network on several devices; raises UnsupportedError."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedError(
            "PipelineOptimizer runs sections of a network on several devices, of which there is one here",
            hint="minimize with the optimizer inside; the results are the same",
        )
