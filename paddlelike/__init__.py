"""Paddle Fluid 1.8's API, small and in Python: ``import paddlelike as fluid``.

Names, argument order, defaults and return values are Fluid's, and so are the files: what Paddle writes
is read here, and the other way round.

>>> import paddlelike as fluid
>>> with fluid.program_guard(fluid.Program(), fluid.Program()):
...     x = fluid.data(name="x", shape=[None, 13], dtype="float32")
...     y = fluid.layers.fc(input=x, size=1)
>>> y.shape
(-1, 1)

``__init__.pyi`` lists the names, each with the module that defines it; that module is imported when the name
is first used.
"""

import sys as _sys
from pathlib import Path as _Path

from paddlelike import hooks as _hooks
from paddlelike import lazy as _lazy

__version__ = "0.1.0"

__all__, __getattr__, __dir__ = _lazy.attach_stub(__name__, _Path(__file__).with_suffix(".pyi"))

# What lower floors ask higher ones for.
_hooks.provide("load_operators", "paddlelike.ops:load_operators")
_hooks.provide("connect_remote", "paddlelike.distributed:connect_remote")
_hooks.provide("open_files", "paddlelike.io.save.files:open_files")
_hooks.provide("find_partition", "paddlelike.distributed:find_partition")

# Fluid's names for modules that have another name here.
_sys.meta_path.insert(
    0,
    _lazy.AliasFinder(
        {
            "paddlelike.communicator": "paddlelike.distributed.communicator",
            "paddlelike.compiler": "paddlelike.executor",
            "paddlelike.data_feeder": "paddlelike.reader",
            "paddlelike.data_generator": "paddlelike.reader.data_generator",
            "paddlelike.dataset": "paddlelike.reader.dataset",
            "paddlelike.incubate": "paddlelike.distributed.fleet.names",
            "paddlelike.layer_helper": "paddlelike.layers.helper",
            "paddlelike.lod_tensor": "paddlelike.reader",
            "paddlelike.parallel_executor": "paddlelike.executor",
            "paddlelike.transpiler": "paddlelike.distributed.transpiler",
            "paddlelike.transpiler.distribute_transpiler": "paddlelike.distributed.transpiler",
            "paddlelike.transpiler.ps_dispatcher": "paddlelike.distributed.transpiler.dispatch",
        }
    ),
)
