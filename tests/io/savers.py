"""A process whose threads save into one directory, each its own values; it prints what was refused."""

from __future__ import annotations

import json
import os
import sys
import threading

import numpy as np

import paddlelike as fluid
from paddlelike.errors import PaddlelikeError


def main() -> None:
    """Save ``COUNT`` times from each of ``THREADS`` threads into ``DIR``, every third time not blocking."""
    program, refused = fluid.Program(), list[str]()
    for name in ("changes", "stays", "stays_too"):
        program.global_block().create_var(name=name, shape=[64], dtype="float32", persistable=True)

    def save(who: int) -> None:
        executor, scope = fluid.Executor(), fluid.Scope()
        with fluid.scope_guard(scope):
            for name in ("changes", "stays", "stays_too"):
                scope.var(name).get_tensor().set(np.full(64, who, "float32"))
            for count in range(int(os.environ["COUNT"])):
                scope.var("changes").get_tensor().set(np.full(64, who + count / 1000, "float32"))
                try:
                    done = fluid.io.save_persistables(
                        executor, os.environ["DIR"], program, blocking=count % 3 != 2
                    )
                    if count % 3 == 2:
                        done.wait()
                except PaddlelikeError as error:
                    refused.append(str(error))

    number = int(os.environ["NUMBER"])
    threads = [
        threading.Thread(target=save, args=(100 * number + k,)) for k in range(int(os.environ["THREADS"]))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(json.dumps(refused) + "\n")
