"""Operators that run blocks, or work on arrays and rank tables: their tests stand elsewhere."""

from __future__ import annotations

import numpy as np

from tests.ops.contract import Case

rng = np.random.default_rng(0)

_BLOCK = "tests/golden_runs/test_control.py: it runs a block of a program"
_ARRAY = "tests/ops/test_arrays.py: it works on an array of tensors"
_TABLE = "tests/ops/test_dynamic.py: it works on a rank table"

ELSEWHERE = {
    "array_to_lod_tensor": _TABLE,
    "conditional_block": _BLOCK,
    "conditional_block_grad": _BLOCK,
    "lod_array_length": _ARRAY,
    "lod_rank_table": _TABLE,
    "lod_tensor_to_array": _TABLE,
    "max_sequence_len": _TABLE,
    "merge_lod_tensor": "tests/ops/test_dynamic.py: split and merged again",
    "merge_lod_tensor_infer": "tests/ops/test_dynamic.py: split and merged again",
    "read_from_array": _ARRAY,
    "recurrent": _BLOCK,
    "recurrent_grad": _BLOCK,
    "reorder_lod_tensor_by_rank": _TABLE,
    "reorder_lod_tensor_by_rank_grad": _TABLE,
    "select_input": "tests/ops/test_arrays.py: its gradient has no value for what was not chosen",
    "select_output": "tests/ops/test_arrays.py: it leaves outputs without a value",
    "shrink_rnn_memory": _TABLE,
    "split_lod_tensor": "tests/ops/test_dynamic.py: split and merged again",
    "tensor_array_to_tensor": _ARRAY,
    "while": _BLOCK,
    "while_grad": _BLOCK,
    "write_to_array": _ARRAY,
}

CASES = [
    Case("rnn_memory_helper", {"X": rng.random((2, 3))}, lambda X: X, wrt=["X"]),
]
