"""Why modules, functions and classes of Fluid are left out; ``names.txt`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from paddlelike.foundation.text_tables import read_table

__all__ = ["DYGRAPH", "MODULES", "NAMES", "OF_OTHERS", "PADDLE_NAMES", "Reason"]


class Reason(NamedTuple):
    """Why something is left out, and what to do instead."""

    why: str
    instead: str


_REASONS: Final = {
    "dygraph": Reason(
        "only static programs are built and run here; the dynamic graph (dygraph) is left out",
        "build the network with fluid.layers inside fluid.program_guard(main, startup) and run it by "
        "fluid.Executor; fluid.load_program_state reads the .pdparams of save_dygraph",
    ),
    "pslib": Reason(
        "pslib, the parameter server inside Baidu's own builds of Paddle, is left out",
        "use fluid.incubate.fleet.parameter_server.distribute_transpiler",
    ),
    "slim": Reason(
        "compression of models (slim: pruning, distillation, quantization) is left out",
        "train and save the float32 network; paddleslim of the real Paddle reads the saved files",
    ),
    "trainer": Reason(
        "it is a part of the C++ trainers of Paddle, which are left out",
        "use fluid.Executor.train_from_dataset, which needs none of it",
    ),
    "high_level": Reason(
        "the high-level API over the dynamic graph is left out", "use fluid.layers and fluid.Executor"
    ),
    "paddle_2": Reason(
        "it belongs to Paddle 2; the API here is that of Paddle 1.8", "write the script with paddle.fluid"
    ),
    "ir_graph": Reason(
        "the graph of the C++ core, which its passes rewrite, is left out",
        "program.global_block().ops holds the same operators",
    ),
    "complex": Reason(
        "complex tensors belong to the dynamic graph, which is left out",
        "keep the real and the imaginary part in two variables",
    ),
    "engine": Reason(
        "the C++ inference engine is left out",
        "fluid.io.load_inference_model(dirname, exe) and exe.run run the same files",
    ),
    "drawing": Reason(
        "drawing programs is left out", "print(program) shows it; onnx and netron show saved models"
    ),
    "decoder": Reason(
        "the first decoders of Fluid are left out", "use layers.BeamSearchDecoder and layers.dynamic_decode"
    ),
    "tables": Reason(
        "tables on servers are loaded and saved with everything else",
        "use fluid.io.save_persistables and fluid.io.load_persistables",
    ),
    "matching": Reason(
        "it has a kernel for GPUs alone, or belongs to Baidu's search engine",
        "use layers.embedding and layers.hash",
    ),
    "float16": Reason(
        "there is no float16 arithmetic on the CPU", "contrib.mixed_precision.decorate trains in float32"
    ),
    "core": Reason(
        "it builds or reaches operators of Paddle's C++ core, which is not here",
        "layers.py_func runs a Python function as an operator",
    ),
    "images": Reason(
        "it belongs to Paddle before Fluid", "paddle.dataset.image and paddle.utils.Ploter do the same"
    ),
    "inner": Reason(
        "it belongs to the inside of Fluid, which is built otherwise here",
        "the public functions of fluid.layers, fluid.transpiler and the launcher do what it is for",
    ),
    "mpi": Reason(
        "jobs under MPI and Hadoop's scheduler are left out",
        "start the job by python -m paddlelike.distributed.launch",
    ),
}
DYGRAPH: Final = _REASONS["dygraph"]


def _read_names() -> dict[str, dict[str, Reason]]:
    found: dict[str, dict[str, Reason]] = {"modules": {}, "names": {}}
    for section in read_table("paddlelike.left_out", "names.txt").split("\n\n")[1:]:
        header, _, names = section.partition("\n")
        kind, reason, *prefixes = header.split()
        found[kind] |= {
            start + name: _REASONS[reason] for name in names.split() for start in prefixes or [""]
        }
    return found


_FOUND: Final = _read_names()
#: Modules, by Fluid's path without the leading "fluid."; a reason holds for everything below, too.
MODULES: Final[Mapping[str, Reason]] = _FOUND["modules"]
#: Functions and classes, in the same way.
NAMES: Final[Mapping[str, Reason]] = _FOUND["names"]

#: Reasons for names of ``paddle`` itself, not of ``paddle.fluid``.
PADDLE_NAMES: Final = tuple(_REASONS[key] for key in ("high_level", "paddle_2", "complex", "images"))

_SEED: Final = "set fluid.default_startup_program().random_seed = 1, and the main program's, before they run"
_NETWORK: Final = "networks are built by functions: y = fluid.layers.fc(x, 10, act='relu')"
#: Names of other frameworks and of Paddle 2, in lower case, which no function here resembles: the next step.
OF_OTHERS: Final[Mapping[str, str]] = {
    "disable_static": "programs are static here: build them with fluid.layers, run them by fluid.Executor",
    "from_numpy": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
    "manual_seed": _SEED,
    "model": f"{_NETWORK}; paddlelike.training.train fits them",
    "module": _NETWORK,
    "nn": _NETWORK,
    "no_grad": "what minimize is not called for has no gradients; variable.stop_gradient = True ends them",
    "seed": _SEED,
    "sequential": _NETWORK,
    "set_seed": _SEED,
    "to_tensor": "feed the array, exe.run(feed={name: array}); layers.assign makes it a constant",
}
