"""The counter of steps."""

from __future__ import annotations

import paddlelike as fluid

layers = fluid.layers


def test_step_counter_counts_runs() -> None:
    counter = layers.autoincreased_step_counter(begin=5, step=2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    # The first value is begin - 1 + step, as in Fluid.
    assert [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)] == [6, 8, 10]
