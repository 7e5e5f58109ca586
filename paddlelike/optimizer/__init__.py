"""Optimizers: they append the backward pass and the operators that update the parameters."""

from paddlelike.optimizer.adagrad import (
    Adadelta,
    AdadeltaOptimizer,
    Adagrad,
    AdagradOptimizer,
    DecayedAdagrad,
    DecayedAdagradOptimizer,
)
from paddlelike.optimizer.adam import (
    Adam,
    Adamax,
    AdamaxOptimizer,
    AdamOptimizer,
    Lamb,
    LambOptimizer,
)
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.ftrl import Ftrl, FtrlOptimizer
from paddlelike.optimizer.lookahead import LookaheadOptimizer
from paddlelike.optimizer.model_average import ModelAverage
from paddlelike.optimizer.momentum import (
    LarsMomentum,
    LarsMomentumOptimizer,
    Momentum,
    MomentumOptimizer,
)
from paddlelike.optimizer.moving_average import ExponentialMovingAverage
from paddlelike.optimizer.recompute import RecomputeOptimizer
from paddlelike.optimizer.refused import DGCMomentumOptimizer, PipelineOptimizer
from paddlelike.optimizer.rmsprop import RMSProp, RMSPropOptimizer
from paddlelike.optimizer.sgd import SGD, Dpsgd, DpsgdOptimizer, SGDOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "DGCMomentumOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
    "Dpsgd",
    "DpsgdOptimizer",
    "ExponentialMovingAverage",
    "Ftrl",
    "FtrlOptimizer",
    "Lamb",
    "LambOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "LookaheadOptimizer",
    "ModelAverage",
    "Momentum",
    "MomentumOptimizer",
    "Optimizer",
    "PipelineOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "RecomputeOptimizer",
    "SGDOptimizer",
]
