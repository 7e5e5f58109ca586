"""DyNet's way of saving: named collections of parameters in text files, and objects that know their spec.

``import paddlelike.collection as dy`` runs the model code of a DyNet script: collections, parameters, lookup
tables, recurrent builders, the expressions between them, and trainers. Values live in the scope of the
Program, so Fluid's optimizers train them and Fluid's saves save them too. The files are DyNet's own, byte for
byte.
"""

from paddlelike.collection.builders import (
    BiRNNBuilder,
    CompactVanillaLSTMBuilder,
    CoupledLSTMBuilder,
    GRUBuilder,
    LSTMBuilder,
    SimpleRNNBuilder,
    VanillaLSTMBuilder,
)
from paddlelike.collection.collection import Model, ParameterCollection
from paddlelike.collection.expressions import (
    Expression,
    average,
    cmult,
    concatenate,
    dot_product,
    esum,
    inputTensor,
    inputVector,
    log_softmax,
    logistic,
    lookup,
    parameter,
    pickneglogsoftmax,
    rectify,
    scalarInput,
    softmax,
    squared_norm,
    tanh,
    vecInput,
)
from paddlelike.collection.graph import renew_cg
from paddlelike.collection.lookup import LookupParameters
from paddlelike.collection.objects import load, load_generator, save
from paddlelike.collection.parameters import Parameters
from paddlelike.collection.recurrent_builders import RNNState
from paddlelike.collection.trainers import (
    AdadeltaTrainer,
    AdagradTrainer,
    AdamTrainer,
    AmsgradTrainer,
    CyclicalSGDTrainer,
    MomentumSGDTrainer,
    RMSPropTrainer,
    SimpleSGDTrainer,
    Trainer,
)

__all__ = [
    "AdadeltaTrainer",
    "AdagradTrainer",
    "AdamTrainer",
    "AmsgradTrainer",
    "BiRNNBuilder",
    "CompactVanillaLSTMBuilder",
    "CoupledLSTMBuilder",
    "CyclicalSGDTrainer",
    "Expression",
    "GRUBuilder",
    "LSTMBuilder",
    "LookupParameters",
    "Model",
    "MomentumSGDTrainer",
    "ParameterCollection",
    "Parameters",
    "RMSPropTrainer",
    "RNNState",
    "SimpleRNNBuilder",
    "SimpleSGDTrainer",
    "Trainer",
    "VanillaLSTMBuilder",
    "average",
    "cmult",
    "concatenate",
    "dot_product",
    "esum",
    "inputTensor",
    "inputVector",
    "load",
    "load_generator",
    "log_softmax",
    "logistic",
    "lookup",
    "parameter",
    "pickneglogsoftmax",
    "rectify",
    "renew_cg",
    "save",
    "scalarInput",
    "softmax",
    "squared_norm",
    "tanh",
    "vecInput",
]
