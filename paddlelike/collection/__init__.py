"""DyNet's way of saving: named collections of parameters in text files, and objects that know their spec.

``import paddlelike.collection as dy`` runs the model code of a DyNet script: collections, parameters, lookup
tables, recurrent builders, the expressions between them, and trainers. Values live in the scope of the
Program, so Fluid's optimizers train them and Fluid's saves save them too. The files are DyNet's own, byte for
byte.
"""

from typing import NoReturn

from paddlelike.collection import constants, functions, parts
from paddlelike.collection.builders import (
    BiRNNBuilder,
    CompactVanillaLSTMBuilder,
    CoupledLSTMBuilder,
    GRUBuilder,
    LSTMBuilder,
    SimpleRNNBuilder,
    SparseLSTMBuilder,
    VanillaLSTMBuilder,
)
from paddlelike.collection.collection import Model, ParameterCollection
from paddlelike.collection.constants import *  # noqa: F403  (those of its __all__)
from paddlelike.collection.expressions import (
    Expression,
    average,
    cmult,
    concatenate,
    dot_product,
    esum,
    inputTensor,
    layer_norm,
    log_softmax,
    logistic,
    lookup,
    parameter,
    rectify,
    softmax,
    tanh,
)
from paddlelike.collection.functions import *  # noqa: F403
from paddlelike.collection.graph import renew_cg
from paddlelike.collection.lookup import LookupParameters
from paddlelike.collection.objects import load, load_generator, save
from paddlelike.collection.parameters import Parameters
from paddlelike.collection.parts import *  # noqa: F403
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
from paddlelike.foundation.docstrings import complete_docstring, read_shared_entries, show_related
from paddlelike.lazy import keep_names

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
    "SparseLSTMBuilder",
    "Trainer",
    "VanillaLSTMBuilder",
    "average",
    "cmult",
    "concatenate",
    "dot_product",
    "esum",
    "inputTensor",
    "layer_norm",
    "load",
    "load_generator",
    "log_softmax",
    "logistic",
    "lookup",
    "parameter",
    "rectify",
    "renew_cg",
    "save",
    "softmax",
    "tanh",
    *constants.__all__,
    *functions.__all__,
    *parts.__all__,
]


for _name in __all__:
    _thing = globals()[_name]
    complete_docstring(_thing, read_shared_entries(_thing.__module__))
show_related(__name__)
keep_names(__name__, "expressions")


def __getattr__(name: str) -> NoReturn:
    """Raise AttributeError for a name of DyNet that is not here, and name its replacement."""
    raise AttributeError(
        f"paddlelike.collection has no {name!r}; an expression is a variable of a Program: "
        "dy.Expression(fluid.layers.NAME(x.variable)) makes one of any layer"
    )
