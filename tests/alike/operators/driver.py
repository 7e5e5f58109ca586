"""Answer cases one after the other: `python -m tests.alike.operators.driver CASES ANSWERS FIRST`.

Runs under a Python that has paddlepaddle 1.8.5, 2.6.2 or 3.3.1. Each answer is written as soon as it is
known, so that the one who asks sees at which case this process ended.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", GLOG_minloglevel="3", CPU_NUM="1", FLAGS_enable_pir_api="0")
warnings.simplefilter("ignore")

import numpy as np

np.random.rand(1)  # numpy loads it late, which 2.6.2 does not survive

import paddle

from tests.alike.operators import asking


def load_fluid():
    """Return Fluid; of later versions, an object with what ``asking`` needs of it."""
    try:
        import paddle.fluid as fluid
    except ImportError:
        from types import SimpleNamespace

        from paddle.base import core

        paddle.enable_static()
        asking._record = lambda t: (
            asking.encode(np.array(t), t.lod() if hasattr(t, "lod") else ())
            if t is not None and t._is_initialized()
            else None
        )
        static = paddle.static
        names = ("Program", "Executor", "scope_guard", "global_scope", "gradients")
        return SimpleNamespace(
            core=core,
            LoDTensor=core.LoDTensor,
            Scope=core.Scope,
            CPUPlace=paddle.CPUPlace,
            **{name: getattr(static, name) for name in names},
        )
    return fluid


def main(cases, answers, first):
    fluid = load_fluid()
    todo = json.loads(Path(cases).read_text())
    with open(answers, "a") as file:
        file.write("\n")
        file.flush()
        for index in range(int(first), len(todo)):
            file.write(json.dumps([index, asking.ask(fluid, todo[index])]) + "\n")
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)
