"""CNTK's way of training: trainers, minibatch sources, sessions, and checkpoints that resume exactly.

>>> import numpy as np
>>> import paddlelike as fluid
>>> from paddlelike import training
>>> x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 1])
>>> loss = fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y)
>>> data = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")
>>> summary = training.train(loss, data, minibatch_size=4, parameter_learners=[fluid.optimizer.SGD(0.1)])
>>> [update["samples"] for update in summary["updates"]]
[4, 4]
"""

from paddlelike.foundation.docstrings import show_related
from paddlelike.interop.cntk.learners import AdadeltaLearner, AdagradLearner, FSAdagradLearner, RMSPropLearner
from paddlelike.training.configs import (
    CheckpointConfig,
    CrossValidationConfig,
    DataUnit,
    EarlyStopping,
    TestConfig,
)
from paddlelike.training.feeding import minibatch_size_schedule
from paddlelike.training.function import Function, ModelFormat, load_model
from paddlelike.training.learner import data_parallel_distributed_learner
from paddlelike.training.progress.bar import ProgressBar
from paddlelike.training.progress.curves import LossLog, TensorBoardWriter
from paddlelike.training.progress.printer import ProgressPrinter
from paddlelike.training.progress.writer import ProgressWriter
from paddlelike.training.session import TrainingSession, training_session
from paddlelike.training.sources.base import (
    FULL_DATA_SWEEP,
    INFINITELY_REPEAT,
    Minibatch,
    MinibatchSource as UserMinibatchSource,
    StreamInformation,
    Streams,
)
from paddlelike.training.sources.ctf import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from paddlelike.training.sources.generator import GeneratorSource, LoaderSource
from paddlelike.training.sources.memory import MinibatchSourceFromData
from paddlelike.training.train import TrainingSummary, train
from paddlelike.training.trainer import Trainer

__all__ = [
    "FULL_DATA_SWEEP",
    "INFINITELY_REPEAT",
    "AdadeltaLearner",
    "AdagradLearner",
    "CTFDeserializer",
    "CheckpointConfig",
    "CrossValidationConfig",
    "DataUnit",
    "EarlyStopping",
    "FSAdagradLearner",
    "Function",
    "GeneratorSource",
    "LoaderSource",
    "LossLog",
    "Minibatch",
    "MinibatchSource",
    "MinibatchSourceFromData",
    "ModelFormat",
    "ProgressBar",
    "ProgressPrinter",
    "ProgressWriter",
    "RMSPropLearner",
    "StreamDef",
    "StreamDefs",
    "StreamInformation",
    "Streams",
    "TensorBoardWriter",
    "TestConfig",
    "Trainer",
    "TrainingSession",
    "TrainingSummary",
    "UserMinibatchSource",
    "data_parallel_distributed_learner",
    "load_model",
    "minibatch_size_schedule",
    "train",
    "training_session",
]

show_related(__name__)
