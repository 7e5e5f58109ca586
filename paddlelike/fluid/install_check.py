"""``fluid.install_check``: train a tiny network for one step."""

from __future__ import annotations

import numpy as np

from paddlelike import unique_name
from paddlelike.core import Scope, scope_guard
from paddlelike.executor import Executor
from paddlelike.framework import Program, program_guard
from paddlelike.input import data
from paddlelike.layers.linalg.products import fc
from paddlelike.layers.reduction import reduce_sum
from paddlelike.optimizer import SGD

__all__ = ["run_check"]


def run_check() -> None:
    """Train one step and print that it worked. An exception names the part that failed."""
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup), scope_guard(Scope()):
        loss = reduce_sum(fc(data("inp", [2, 2]), 2))
        SGD(learning_rate=0.01).minimize(loss)
        executor = Executor()
        executor.run(startup)
        executor.run(main, feed={"inp": np.ones((2, 2), np.float32)}, fetch_list=[loss])
    print("paddlelike is installed and works: it trained a network on the CPU.")  # noqa: T201
