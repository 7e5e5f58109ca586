"""Paddle Fluid 1.8's API, small and in Python: ``import paddlelike as fluid``.

Names, argument order, defaults and return values are Fluid's, and so are the files: what Paddle writes
is read here, and the other way round.

>>> import paddlelike as fluid
>>> with fluid.program_guard(fluid.Program(), fluid.Program()):
...     x = fluid.data(name="x", shape=[None, 13], dtype="float32")
...     y = fluid.layers.fc(input=x, size=1)
>>> y.shape
(-1, 1)
"""

import sys
from types import ModuleType

# Modules under the names that scripts use.
from paddlelike import (
    average,
    backward,
    clip,
    core,
    distributed,
    executor,
    framework,
    initializer,
    input,  # noqa: A004  (Fluid's name)
    io,
    layers,
    metrics,
    nets,
    ops,
    optimizer,
    param_attr,
    profiler,
    reader,
    regularizer,
    unique_name,
)
from paddlelike.backward import gradients
from paddlelike.core import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    LoDTensor,
    LoDTensorArray,
    Scope,
    is_compiled_with_cuda,
)
from paddlelike.core import LoDTensor as Tensor
from paddlelike.core.places import cpu_places, cuda_pinned_places, cuda_places
from paddlelike.core.scope import global_scope, scope_guard
from paddlelike.distributed import communicator, transpiler
from paddlelike.distributed.fleet.names import FLEET_MODULES as _FLEET_MODULES
from paddlelike.distributed.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from paddlelike.executor import (
    BuildStrategy,
    CompiledProgram,
    ExecutionStrategy,
    Executor,
    ParallelExecutor,
)
from paddlelike.framework import (
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    get_flags,
    in_dygraph_mode,
    load_op_library,
    name_scope,
    program_guard,
    require_version,
    set_flags,
)
from paddlelike.framework.environment import memory_optimize, release_memory
from paddlelike.framework.opdef import provide_operators as _provide_operators
from paddlelike.input import data, embedding, one_hot
from paddlelike.io import load, load_program_state, save, set_program_state
from paddlelike.param_attr import ParamAttr, WeightNormParamAttr
from paddlelike.reader import (
    DataFeeder,
    DataLoader,
    DatasetFactory,
    InMemoryDataset,
    QueueDataset,
    create_lod_tensor,
    create_random_int_lodtensor,
)

__version__ = "0.1.0"

_provide_operators(ops.load_operators)  # at the first look-up

__all__ = [
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "DataFeeder",
    "DataLoader",
    "DatasetFactory",
    "DistributeTranspiler",
    "DistributeTranspilerConfig",
    "ExecutionStrategy",
    "Executor",
    "InMemoryDataset",
    "LoDTensor",
    "LoDTensorArray",
    "ParallelExecutor",
    "ParamAttr",
    "Program",
    "QueueDataset",
    "Scope",
    "Tensor",
    "Variable",
    "WeightNormParamAttr",
    "average",
    "backward",
    "clip",
    "communicator",
    "compiler",
    "core",
    "cpu_places",
    "create_lod_tensor",
    "create_random_int_lodtensor",
    "cuda_pinned_places",
    "cuda_places",
    "data",
    "data_feeder",
    "data_generator",
    "dataset",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "distributed",
    "embedding",
    "executor",
    "framework",
    "get_flags",
    "global_scope",
    "gradients",
    "in_dygraph_mode",
    "incubate",
    "initializer",
    "input",
    "io",
    "is_compiled_with_cuda",
    "layer_helper",
    "layers",
    "load",
    "load_op_library",
    "load_program_state",
    "lod_tensor",
    "memory_optimize",
    "metrics",
    "name_scope",
    "nets",
    "one_hot",
    "ops",
    "optimizer",
    "parallel_executor",
    "param_attr",
    "profiler",
    "program_guard",
    "reader",
    "regularizer",
    "release_memory",
    "require_version",
    "save",
    "scope_guard",
    "set_flags",
    "set_program_state",
    "transpiler",
    "unique_name",
]


def _also_known_as(name: str, module: ModuleType) -> ModuleType:
    """Fluid's name for a module of ours, for ``fluid.name`` and ``from paddlelike.name import ...``."""
    found = sys.modules.setdefault(f"{__name__}.{name}", module)
    parent, _, last = name.rpartition(".")
    if parent:
        above = ModuleType(f"{__name__}.{parent}", "Names of Fluid's, one level deeper.")
        setattr(_also_known_as(parent, above), last, found)
    return found


for _name, _module in _FLEET_MODULES.items():
    _also_known_as(_name, _module)
incubate = sys.modules[f"{__name__}.incubate"]
communicator = _also_known_as("communicator", communicator)
compiler = _also_known_as("compiler", executor)
parallel_executor = _also_known_as("parallel_executor", executor)
transpiler = _also_known_as("transpiler", transpiler)
_also_known_as("transpiler.ps_dispatcher", transpiler.dispatch)
_also_known_as("transpiler.distribute_transpiler", transpiler)
data_feeder = _also_known_as("data_feeder", reader)
data_generator = _also_known_as("data_generator", reader.data_generator)
dataset = _also_known_as("dataset", reader.dataset)
lod_tensor = _also_known_as("lod_tensor", reader)
layer_helper = _also_known_as("layer_helper", layers.helper)
