"""What Fluid has and paddlelike leaves out: why, and what to use instead.

A script may import such a name, because many scripts import more than they use. Using it raises LeftOutError,
which says why it is not here and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NamedTuple, NoReturn

from paddlelike.errors import LeftOutError

__all__ = ["MODULES", "NAMES", "LeftOutFinder", "Reason", "find_reason", "raise_left_out"]


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
_MPI: Final = Reason(
    "jobs under MPI and Hadoop's scheduler are left out",
    "start the job by python -m paddlelike.distributed.launch",
)

#: Modules, by Fluid's path without the leading "fluid."; a reason holds for everything below, too.
MODULES: Final[Mapping[str, Reason]] = {
    "contrib.quantize": _SLIM,
    "contrib.slim": _SLIM,
    "data_feed_desc": _TRAINER,
    "dataloader": _DYGRAPH,
    "device_worker": _TRAINER,
    "distributed.downpour": _PSLIB,
    "distributed.helper": _MPI,
    "distributed.node": _PSLIB,
    "distributed.ps_instance": _MPI,
    "dygraph": _DYGRAPH,
    "dygraph_utils": _DYGRAPH,
    "incubate.fleet.collective": _COLLECTIVE,
    "incubate.fleet.parameter_server.pslib": _PSLIB,
    "incubate.fleet.utils.fleet_util": _PSLIB,
    "layers.collective": _COLLECTIVE,
    "trainer_desc": _TRAINER,
    "trainer_factory": _TRAINER,
    "transpiler.collective": _COLLECTIVE,
}

#: Functions and classes, in the same way.
NAMES: Final[Mapping[str, Reason]] = {
    "ComplexVariable": _DYGRAPH,
    "DataFeedDesc": _TRAINER,
    "disable_dygraph": _DYGRAPH,
    "disable_imperative": _DYGRAPH,
    "enable_dygraph": _DYGRAPH,
    "enable_imperative": _DYGRAPH,
    "framework.ComplexVariable": _DYGRAPH,
    "io.default_collate_fn": _DYGRAPH,
    "load_dygraph": _DYGRAPH,
    "reader.default_collate_fn": _DYGRAPH,
    "save_dygraph": _DYGRAPH,
}


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


def raise_left_out(path: str) -> None:
    """Raise LeftOutError if Fluid's ``path`` is left out; else do nothing."""
    reason = find_reason(path)
    if reason is not None:
        raise LeftOutError(f"fluid.{path} is not here: {reason.why}", hint=reason.instead)


class _LeftOutName(type):
    """A class of Fluid's, or a function, that is left out: it may be named and subclassed, not used."""

    path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise_left_out(cls.path)
        raise AssertionError(cls.path)

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise_left_out(f"{cls.path}.{name}")
        raise AssertionError(cls.path)


class _LeftOutModule(ModuleType):
    """A module of Fluid's that is left out: its names may be imported, not used."""

    def __init__(self, path: str) -> None:
        super().__init__(f"paddlelike.{path}", (find_reason(path) or _DYGRAPH).why)
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _LeftOutName(name, (), {"path": f"{self._path}.{name}"})


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
