"""The names of ``paddlelike`` and where each is defined.

Type checkers and editors read this file. At run time ``__init__.py`` imports a name as this file says, when
it is first used.
"""

from paddlelike import (
    average,
    backward,
    bundle,
    clip,
    collection,
    core,
    dataset,
    distributed,
    evaluator,
    executor,
    fluid,
    framework,
    initializer,
    input,
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
    training,
    unique_name,
)
from paddlelike import executor as compiler
from paddlelike import executor as parallel_executor
from paddlelike import reader as data_feeder
from paddlelike import reader as lod_tensor
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
from paddlelike.distributed.transpiler import DistributeTranspiler, DistributeTranspilerConfig
from paddlelike.executor import BuildStrategy, CompiledProgram, ExecutionStrategy, Executor, ParallelExecutor
from paddlelike.fluid import contrib, dygraph, incubate, wrapped_decorator
from paddlelike.fluid.dygraph.base import disable_dygraph
from paddlelike.fluid.dygraph.base import disable_imperative as disable_imperative
from paddlelike.fluid.dygraph.layers import Layer as Layer
from paddlelike.fluid.dygraph.nn import (
    NCE as NCE,
)
from paddlelike.fluid.dygraph.nn import (
    BatchNorm as BatchNorm,
)
from paddlelike.fluid.dygraph.nn import (
    BCELoss as BCELoss,
)
from paddlelike.fluid.dygraph.nn import (
    BilinearTensorProduct as BilinearTensorProduct,
)
from paddlelike.fluid.dygraph.nn import (
    Conv2D as Conv2D,
)
from paddlelike.fluid.dygraph.nn import (
    Conv2DTranspose as Conv2DTranspose,
)
from paddlelike.fluid.dygraph.nn import (
    Conv3D as Conv3D,
)
from paddlelike.fluid.dygraph.nn import (
    Conv3DTranspose as Conv3DTranspose,
)
from paddlelike.fluid.dygraph.nn import (
    Dropout as Dropout,
)
from paddlelike.fluid.dygraph.nn import (
    Embedding as Embedding,
)
from paddlelike.fluid.dygraph.nn import (
    GroupNorm as GroupNorm,
)
from paddlelike.fluid.dygraph.nn import (
    GRUUnit as GRUUnit,
)
from paddlelike.fluid.dygraph.nn import (
    InstanceNorm as InstanceNorm,
)
from paddlelike.fluid.dygraph.nn import (
    L1Loss as L1Loss,
)
from paddlelike.fluid.dygraph.nn import (
    LayerNorm as LayerNorm,
)
from paddlelike.fluid.dygraph.nn import (
    Linear as Linear,
)
from paddlelike.fluid.dygraph.nn import (
    MSELoss as MSELoss,
)
from paddlelike.fluid.dygraph.nn import (
    NLLLoss as NLLLoss,
)
from paddlelike.fluid.dygraph.nn import (
    Pool2D as Pool2D,
)
from paddlelike.fluid.dygraph.nn import (
    PRelu as PRelu,
)
from paddlelike.fluid.dygraph.nn import (
    SpectralNorm as SpectralNorm,
)
from paddlelike.fluid.dygraph.nn import (
    TreeConv as TreeConv,
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
from paddlelike.framework.quirks import quirks
from paddlelike.import_paddle import install
from paddlelike.input import data, embedding, one_hot
from paddlelike.interop import (
    build_param_setters,
    convert,
    export_cntk,
    export_cntk_checkpoint,
    export_onnx,
    import_cntk,
    import_cntk_checkpoint,
    import_onnx,
    load_hdf5,
    save_hdf5,
)
from paddlelike.io import load, load_program_state, save, set_program_state
from paddlelike.layers import helper as layer_helper
from paddlelike.param_attr import ParamAttr, WeightNormParamAttr
from paddlelike.reader import (
    DataFeeder,
    DataLoader,
    DatasetFactory,
    InMemoryDataset,
    QueueDataset,
    batch,
    create_lod_tensor,
    create_random_int_lodtensor,
    data_generator,
)
from paddlelike.reader.data_feed_desc import DataFeedDesc

__version__: str

__all__ = [
    "BuildStrategy",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "CompiledProgram",
    "DataFeedDesc",
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
    "batch",
    "build_param_setters",
    "bundle",
    "clip",
    "collection",
    "communicator",
    "compiler",
    "contrib",
    "convert",
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
    "disable_dygraph",
    "distributed",
    "dygraph",
    "embedding",
    "evaluator",
    "executor",
    "export_cntk",
    "export_cntk_checkpoint",
    "export_onnx",
    "fluid",
    "framework",
    "get_flags",
    "global_scope",
    "gradients",
    "import_cntk",
    "import_cntk_checkpoint",
    "import_onnx",
    "in_dygraph_mode",
    "incubate",
    "initializer",
    "input",
    "install",
    "io",
    "is_compiled_with_cuda",
    "layer_helper",
    "layers",
    "load",
    "load_hdf5",
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
    "quirks",
    "reader",
    "regularizer",
    "release_memory",
    "require_version",
    "save",
    "save_hdf5",
    "scope_guard",
    "set_flags",
    "set_program_state",
    "training",
    "transpiler",
    "unique_name",
    "wrapped_decorator",
]
