"""What Fluid has and paddlelike leaves out: why, and what to use instead.

A script may import such a name, because many scripts import more than they use. Using it raises LeftOutError,
which says why it is not here and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple, NoReturn

from paddlelike.errors import LeftOutError

__all__ = ["MODULES", "NAMES", "LeftOutFinder", "Reason", "find_left_out", "find_reason", "make_getattr"]


class Reason(NamedTuple):
    """Why something is left out, and what to do instead."""

    why: str
    instead: str


_DYGRAPH: Final = Reason(
    "only static programs are built and run here; the dynamic graph (dygraph) is left out",
    "build the network with fluid.layers inside fluid.program_guard(main, startup) and run it by "
    "fluid.Executor; fluid.load_program_state reads the .pdparams of save_dygraph",
)
_COLLECTIVE: Final = Reason(
    "training by collectives (all-reduce between GPUs) is left out",
    "train in one process, or on parameter servers with "
    "fluid.incubate.fleet.parameter_server.distribute_transpiler",
)
_PSLIB: Final = Reason(
    "pslib, the parameter server inside Baidu's own builds of Paddle, is left out",
    "use fluid.incubate.fleet.parameter_server.distribute_transpiler",
)
_SLIM: Final = Reason(
    "compression of models (slim: pruning, distillation, quantization) is left out",
    "train and save the float32 network; paddleslim of the real Paddle reads the saved files",
)
_TRAINER: Final = Reason(
    "it is a part of the C++ trainers of Paddle, which are left out",
    "use fluid.Executor.train_from_dataset, which needs none of it",
)
_HIGH_LEVEL: Final = Reason(
    "the high-level API over the dynamic graph is left out", "use fluid.layers and fluid.Executor"
)
_PADDLE_2: Final = Reason(
    "it belongs to Paddle 2; the API here is that of Paddle 1.8", "write the script with paddle.fluid"
)
_COMPLEX: Final = Reason(
    "complex tensors belong to the dynamic graph, which is left out",
    "keep the real and the imaginary part in two variables",
)
_ENGINE: Final = Reason(
    "the C++ inference engine is left out",
    "fluid.io.load_inference_model(dirname, exe) and exe.run run the same files",
)
_DRAWING: Final = Reason(
    "drawing programs is left out", "print(program) shows it; onnx and netron show saved models"
)
_DECODER: Final = Reason(
    "the first decoders of Fluid are left out", "use layers.BeamSearchDecoder and layers.dynamic_decode"
)
_TABLES: Final = Reason(
    "tables on servers are loaded and saved with everything else",
    "use fluid.io.save_persistables and fluid.io.load_persistables",
)
_MATCHING: Final = Reason(
    "the operators for matching texts and the fused ones are left out",
    "use layers.sequence_pool, layers.sequence_conv and layers.matmul",
)
_MPI: Final = Reason(
    "jobs under MPI and Hadoop's scheduler are left out",
    "start the job by python -m paddlelike.distributed.launch",
)

#: Modules, by Fluid's path without the leading "fluid."; a reason holds for everything below, too.
MODULES: Final[Mapping[str, Reason]] = {
    "complex": _COMPLEX,
    "contrib.decoder": _DECODER,
    "contrib.quantize": _SLIM,
    "contrib.slim": _SLIM,
    "contrib.utils.lookup_table_utils": _TABLES,
    "core_avx": _ENGINE,
    "core_noavx": _ENGINE,
    "data_feed_desc": _TRAINER,
    "dataloader": _DYGRAPH,
    "debugger": _DRAWING,
    "device_worker": _TRAINER,
    "distributed.downpour": _PSLIB,
    "distributed.helper": _MPI,
    "distributed.node": _PSLIB,
    "distributed.ps_instance": _MPI,
    "dygraph": _DYGRAPH,
    "dygraph_utils": _DYGRAPH,
    "graphviz": _DRAWING,
    "incubate.fleet.collective": _COLLECTIVE,
    "incubate.fleet.parameter_server.pslib": _PSLIB,
    "incubate.fleet.utils.fleet_barrier_util": _MPI,
    "incubate.fleet.utils.fleet_util": _PSLIB,
    "incubate.fleet.utils.http_server": _MPI,
    "incubate.hapi": _HIGH_LEVEL,
    "layers.collective": _COLLECTIVE,
    "multiprocess_utils": _TRAINER,
    "net_drawer": _DRAWING,
    "trainer_desc": _TRAINER,
    "trainer_factory": _TRAINER,
    "transpiler.collective": _COLLECTIVE,
}

#: Functions and classes, in the same way.
NAMES: Final[Mapping[str, Reason]] = {
    "BackwardStrategy": _DYGRAPH,
    "VarBase": _DYGRAPH,
    "ComplexVariable": _DYGRAPH,
    "DataFeedDesc": _TRAINER,
    "Layer": _DYGRAPH,
    "contrib.BeamSearchDecoder": _DECODER,
    "contrib.InitState": _DECODER,
    "contrib.StateCell": _DECODER,
    "contrib.TrainingDecoder": _DECODER,
    "contrib.Compressor": _SLIM,
    "contrib.QuantizeTranspiler": _SLIM,
    "contrib.convert_dist_to_sparse_program": _TABLES,
    "contrib.load_persistables_for_increment": _TABLES,
    "contrib.load_persistables_for_inference": _TABLES,
    "contrib.multi_download": _TABLES,
    "contrib.multi_upload": _TABLES,
    "contrib.fused_elemwise_activation": _MATCHING,
    "contrib.fused_embedding_seq_pool": _MATCHING,
    "contrib.match_matrix_tensor": _MATCHING,
    "contrib.rank_attention": _MATCHING,
    "contrib.search_pyramid_hash": _MATCHING,
    "contrib.sequence_topk_avg_pooling": _MATCHING,
    "contrib.tree_conv": _MATCHING,
    "contrib.var_conv_2d": _MATCHING,
    "contrib.layers.fused_elemwise_activation": _MATCHING,
    "contrib.layers.fused_embedding_seq_pool": _MATCHING,
    "contrib.layers.match_matrix_tensor": _MATCHING,
    "contrib.layers.rank_attention": _MATCHING,
    "contrib.layers.search_pyramid_hash": _MATCHING,
    "contrib.layers.sequence_topk_avg_pooling": _MATCHING,
    "contrib.layers.tree_conv": _MATCHING,
    "contrib.layers.var_conv_2d": _MATCHING,
    "core.AnalysisConfig": _ENGINE,
    "core.AnalysisPredictor": _ENGINE,
    "core.NativeConfig": _ENGINE,
    "core.PaddleBuf": _ENGINE,
    "core.PaddleDType": _ENGINE,
    "core.PaddleTensor": _ENGINE,
    "core.VarBase": _DYGRAPH,
    "core.create_paddle_predictor": _ENGINE,
    "disable_dygraph": _DYGRAPH,
    "disable_imperative": _DYGRAPH,
    "enable_dygraph": _DYGRAPH,
    "enable_imperative": _DYGRAPH,
    "framework.ComplexVariable": _DYGRAPH,
    "io.default_collate_fn": _DYGRAPH,
    "load_dygraph": _DYGRAPH,
    "reader.default_collate_fn": _DYGRAPH,
    "save_dygraph": _DYGRAPH,
    "enable_static": _PADDLE_2,
    "disable_static": _PADDLE_2,
    "nn": _PADDLE_2,
    "static": _PADDLE_2,
    "tensor": _PADDLE_2,
    "to_tensor": _PADDLE_2,
}

#: Modules below those: scripts that import only the upper one reach them as attributes.
_SUBMODULES: Final = frozenset(
    "base checkpoint container jit layers learning_rate_scheduler nn parallel".split()  # noqa: SIM905
)


def find_reason(path: str) -> Reason | None:
    """Return why Fluid's ``path`` is left out; None if it is not.

    >>> find_reason("dygraph.nn.Conv2D") is find_reason("enable_dygraph")
    True
    """
    return NAMES.get(path) or _find_in_modules(path)


def _find_in_modules(path: str) -> Reason | None:
    """Return why the module of that path, or one above it, is left out; None if none is."""
    while path and path not in MODULES:
        path = path.rpartition(".")[0]
    return MODULES.get(path)


def find_left_out(path: str) -> type | None:
    """Return what stands for Fluid's ``path`` if that is a function or class that is left out; else None.

    It can be named, imported and subclassed. Calling it, or reading an attribute of it, raises LeftOutError.

    >>> find_left_out("load_dygraph")("model")
    Traceback (most recent call last):
      ...
    paddlelike.errors.LeftOutError: fluid.load_dygraph is not here: only static programs ...
    """
    return _LeftOutName(path.rpartition(".")[2], (), {"path": path}) if path in NAMES else None


def make_getattr(module: str, path: str) -> Callable[[str], type]:
    """Return ``__getattr__`` for a module that is Fluid's ``path``: it finds the names that are left out."""

    def get(name: str) -> type:
        found = find_left_out(f"{path}.{name}")
        if found is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return found

    return get


def raise_left_out(path: str, reason: Reason) -> NoReturn:
    """Raise LeftOutError, which says why Fluid's ``path`` is not here and what to do."""
    package = "paddle" if reason in (_HIGH_LEVEL, _PADDLE_2) else "fluid"
    raise LeftOutError(f"{package}.{path} is not here: {reason.why}", hint=reason.instead)


class _LeftOutName(type):
    """A class of Fluid's, or a function, that is left out: it may be named and subclassed, not used."""

    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise_left_out(cls.path, find_reason(cls.path) or _DYGRAPH)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise_left_out(f"{cls.path}.{name}", find_reason(cls.path) or _DYGRAPH)

    def __repr__(cls) -> str:
        return f"<{cls.path}: {(find_reason(cls.path) or _DYGRAPH).why}>"


class _LeftOutModule(ModuleType):
    """A module of Fluid's that is left out: its names may be imported, not used."""

    def __init__(self, path: str) -> None:
        self._why = (find_reason(path) or _DYGRAPH).why
        super().__init__(f"paddlelike.{path}", self._why)
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> type | ModuleType:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}"
        return _LeftOutModule(path) if name in _SUBMODULES else _LeftOutName(name, (), {"path": path})

    def __repr__(self) -> str:
        return f"<module {self._path}: {self._why}>"


class LeftOutFinder(MetaPathFinder, Loader):
    """Imports the modules of Fluid's that are left out, as ``paddlelike.dygraph.nn``."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return a spec for a module below ``paddlelike`` that is left out; None for every other name."""
        package, _, below = fullname.partition(".")
        if package != "paddlelike" or _find_in_modules(below.removeprefix("fluid.")) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module."""
        return _LeftOutModule(spec.name.removeprefix("paddlelike.").removeprefix("fluid."))

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has no code."""
