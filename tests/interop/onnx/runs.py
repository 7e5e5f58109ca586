"""Run one operator, or a model, here and in onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import paddlelike as fluid
from tests.helpers.single_operators import Arrays


def run_here(program: fluid.Program, feed: Arrays, fetches: list[str]) -> list[Any]:
    with fluid.scope_guard(fluid.Scope()):
        tensors = fluid.Executor().run(program, feed=feed, fetch_list=fetches, return_numpy=False)
    return [np.array(tensor) for tensor in tensors]


def run_onnx(file: Path, feed: Arrays) -> list[Any]:
    """Check a file, and return the outputs that onnxruntime computes."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the extra 'test-all'")
    onnx.checker.check_model(str(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    given = {port.name: feed[port.name] for port in session.get_inputs()}
    return list(session.run(None, given))
