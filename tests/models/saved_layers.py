"""A layer saved as a model for prediction, and inputs for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import VarType, numpy_dtype


def save_layer(build: Callable[[], Any], folder: Path, exe: Any) -> None:
    """Build a layer in the default program, start it, and save it with all its data variables as feeds."""
    made = build()
    outs = [one for one in (made if isinstance(made, list | tuple) else [made]) if hasattr(one, "block")]
    program = fluid.default_main_program()
    feeds = [one.name for one in program.global_block().vars.values() if one.is_data]
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    dense = [one for one in outs if one.type == VarType.LOD_TENSOR]
    fluid.io.save_inference_model(str(folder), feeds, dense, exe)


def make_input(var: Any) -> Any:
    """Return values that fit a data variable: small, so that integers are valid numbers of anything."""
    rng = np.random.RandomState(3)
    shape = [2 if size < 0 else size for size in var.shape]
    if var.dtype in (VarType.FP32, VarType.FP64):
        return rng.rand(*shape).astype(numpy_dtype(var.dtype))
    return rng.randint(0, 2, shape).astype(numpy_dtype(var.dtype))
