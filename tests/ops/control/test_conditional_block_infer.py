"""conditional_block_infer, which inference programs have in place of conditional_block, does the same."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.fresh import fresh_programs


@pytest.mark.parametrize(("value", "wanted"), [(1.0, 2.0), (5.0, 4.0)], ids=["true", "false"])
def test_a_branch_of_an_inference_program_runs(value: float, wanted: float) -> None:
    with fresh_programs() as (main, _):
        x = fluid.data("x", [1], "float32")
        limit = fluid.layers.fill_constant([1], "float32", 3.0)
        out = fluid.layers.cond(fluid.layers.less_than(x, limit), lambda: x + 1.0, lambda: x - 1.0)
        changed = [op for op in main.global_block().ops if op.type == "conditional_block"]
        for op in changed:
            op.type = "conditional_block_infer"
        assert len(changed) == 2
        exe = fluid.Executor()
        (got,) = exe.run(main, {"x": np.array([value], "float32")}, [out])
    assert got.tolist() == [wanted]
