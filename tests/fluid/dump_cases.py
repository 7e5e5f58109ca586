"""What scripts compute with the modules of fluid/; run by the real 1.8.5, this file writes golden.json.

path/to/python3.7 tests/fluid/dump_cases.py
"""

import json
import warnings
from pathlib import Path

import numpy as np


def ids(fluid, rng, lengths, low, high):
    values = rng.randint(low, high, (sum(lengths), 1)).astype("int64")
    return fluid.create_lod_tensor(values, [lengths], fluid.CPUPlace())


def evaluator(fluid):
    """Names, and what two evaluators give per batch and per pass."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        a = fluid.data("a", [None, 1], "int64", lod_level=1)
        b = fluid.data("b", [None, 1], "int64", lod_level=1)
        distance = fluid.evaluator.EditDistance(a, b, ignored_tokens=[6])
        chunks = fluid.evaluator.ChunkEvaluator(a, b, "IOB", 3)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    metrics = distance.metrics + chunks.metrics
    out = [[op.type for op in main.global_block().ops], sorted(main.global_block().vars)]
    out.append([metric.name for metric in metrics])
    for turn in range(2):
        distance.reset(exe)
        chunks.reset(exe)
        for step in range(3):
            rng = np.random.RandomState(step + 10 * turn)
            feed = {"a": ids(fluid, rng, [3, 4, 2], 0, 6), "b": ids(fluid, rng, [3, 4, 2], 0, 6)}
            if step == 1:
                feed["b"] = feed["a"]
            out.append([np.array(x).tolist() for x in exe.run(main, feed=feed, fetch_list=metrics)])
        out.append([np.array(x).tolist() for x in distance.eval(exe) + chunks.eval(exe)])
    return out


CASES = [evaluator]


def run(case, fluid):
    """The result of a case, in programs and a scope of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
            return case(fluid)


if __name__ == "__main__":
    import paddle.fluid

    found = {case.__name__: run(case, paddle.fluid) for case in CASES}
    Path(__file__).with_name("golden.json").write_text(json.dumps(found))
