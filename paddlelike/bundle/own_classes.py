"""The classes of this package that pickles may contain: their states are versioned and plain data.

An object is made without calling its class, and gets its state by ``__setstate__``, which executes nothing
from the file. Objects that could act later are restricted: operators that reach files or processes are marked
as not trusted, as in a program read from bytes, and a dataset with a shell command is refused.

When a module moves, its old name goes into ``lazy.MOVED``, and when a class moves, into ``_MOVED``; so old
files stay readable.
"""

from __future__ import annotations

import enum
import reprlib
from importlib import import_module
from typing import Final, TypeGuard

from paddlelike.errors import FormatError
from paddlelike.framework import Operator
from paddlelike.lazy import MOVED
from paddlelike.reader.dataset import DatasetBase

_TABLE: Final = {
    "clip": "ErrorClipByValue GradientClipByGlobalNorm GradientClipByNorm GradientClipByValue",
    "core.dtypes": "AttrType VarType",
    "core.places": "CPUPlace CUDAPinnedPlace CUDAPlace",
    "core.random": "Generator MersenneGenerator",
    "core.scope": "Scope ScopeVariable",
    "core.tensor": "LoDTensor LoDTensorArray SelectedRows",
    "framework.graph.block": "Block",
    "framework.graph.operator": "Operator",
    "framework.graph.program": "Program",
    "framework.graph.variable": "Parameter Variable",
    "initializer": "BilinearInitializer ConstantInitializer MSRAInitializer NormalInitializer "
    "NumpyArrayInitializer TruncatedNormalInitializer UniformInitializer XavierInitializer",
    "interop.cntk.learners": "AdadeltaLearner AdagradLearner FSAdagradLearner RMSPropLearner",
    "ops.kernels.growing_rows": "GrowingRows RowRule",
    "optimizer.adagrad": "AdadeltaOptimizer AdagradOptimizer DecayedAdagradOptimizer "
    "FtrlOptimizer RMSPropOptimizer",
    "optimizer.adam": "AdamOptimizer AdamaxOptimizer LambOptimizer",
    "optimizer.averages": "ExponentialMovingAverage ModelAverage",
    "optimizer.sgd": "DpsgdOptimizer LarsMomentumOptimizer MomentumOptimizer SGDOptimizer",
    "optimizer.state": "Accumulator",
    "optimizer.wrapping": "LookaheadOptimizer RecomputeOptimizer",
    "param_attr": "ParamAttr WeightNormParamAttr",
    "reader.dataset": "BoxPSDataset InMemoryDataset QueueDataset",
    "reader.feeder": "DataFeeder",
    "reader.generator_loader": "GeneratorLoader",
    "reader.loader": "DatasetLoader PyReader",
    "reader.program_reader": "BatchQueue",
    "regularizer": "L1DecayRegularizer L2DecayRegularizer",
}

_NAMES: Final = {
    f"paddlelike.{module}.{name}": (f"paddlelike.{module}", name)
    for module, names in _TABLE.items()
    for name in names.split()
}
_MOVED: Final = {  # old full name: new full name
    "paddlelike.reader.loader.GeneratorLoader": "paddlelike.reader.generator_loader.GeneratorLoader"
}


def find_own(module: str, name: str) -> type | None:
    """Return the class of this package called ``module.name``, or None when it is not in the table."""
    full = f"{MOVED.get(module, module)}.{name}"
    known = _NAMES.get(_MOVED.get(full, full))
    return None if known is None else getattr(import_module(known[0]), known[1])


def find_name(module: str, name: str) -> str:
    """Return the full name that a class or function of this package has now."""
    try:
        found = getattr(import_module(module), name)
    except (AttributeError, ImportError):
        return f"{module}.{name}"
    return f"{getattr(found, '__module__', module)}.{getattr(found, '__qualname__', name)}"


def is_own(kind: object) -> TypeGuard[type]:
    """Return whether a class is in the table."""
    return isinstance(kind, type) and f"{kind.__module__}.{kind.__qualname__}" in _NAMES


def is_own_enum(kind: object) -> bool:
    """Return whether a class is an enum of the table; calling it with a value finds a member."""
    return is_own(kind) and issubclass(kind, enum.Enum)


def is_own_tuple(kind: object) -> bool:
    """Return whether a class is a named tuple of the table, which is made from its items."""
    return is_own(kind) and issubclass(kind, tuple)


def restrict(made: object) -> None:
    """Remove from an object the parts that could act outside the process.

    Raises FormatError for a dataset whose files are read through a shell command.
    """
    if isinstance(made, Operator):
        made.trusted = False
    if isinstance(made, DatasetBase) and made.pipe_command != "cat":
        raise FormatError(
            f"the pickle holds a {type(made).__name__} that runs the shell command "
            f"{reprlib.repr(made.pipe_command)[:80]}",
            hint="pass trusted=True if you know who wrote the file",
        )
