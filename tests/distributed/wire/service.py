"""A parameter server as users start it, for tests that send it malformed calls.

It serves until its standard input ends.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import paddlelike as fluid

TRAINERS = 5


def transpile_network(endpoint: str) -> Any:
    """Transpile a small network with a sparse embedding and Adam; return the transpiler."""
    ids = fluid.data("ids", [None, 1], "int64")
    y = fluid.data("y", [None, 1])
    found = fluid.layers.embedding(ids, [40, 4], is_sparse=True, param_attr="table")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(found, 1), y))
    fluid.optimizer.Adam(0.1).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=endpoint, trainers=TRAINERS)
    return transpiler


def end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    program, startup = transpile_network(sys.argv[1]).get_pserver_programs(sys.argv[1])
    executor = fluid.Executor()
    executor.run(startup)
    threading.Thread(target=end_with_input, daemon=True).start()
    executor.run(program)
    sys.exit(3)  # no trainer said Complete
