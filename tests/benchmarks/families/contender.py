"""One library as a process of its own, which trains and predicts with the networks it is asked for.

    python contender.py fluid|paddlelike|fast

It reads lines "NETWORK train|predict STEPS" and answers each with a line of JSON: processor seconds a step, the
first number that it computed, the peak of the resident memory in MiB. Python 3.7 runs it, for Fluid 1.8.5.
"""

import importlib
import json
import os
import resource
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import classifiers
import images
import networks

NETWORKS = dict(networks.NETWORKS, **images.NETWORKS, **classifiers.NETWORKS)


class Steps:
    """A network with its two programs."""

    def __init__(self, fluid, name):
        build = NETWORKS[name]
        main, startup = fluid.Program(), fluid.Program()
        main.random_seed = startup.random_seed = 5
        self.exe, self.scope = fluid.Executor(fluid.CPUPlace()), fluid.core.Scope()
        with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            loss, out, self.batch = build(fluid)
            predict = main.clone(for_test=True)._prune([out])
            getattr(fluid.optimizer, networks.OPTIMIZERS.get(name, "SGD"))(1e-3).minimize(loss)
            self.exe.run(startup)
        self.programs = {"train": (main, loss.name), "predict": (predict, out.name)}
        read = {name for block in predict.blocks for op in block.ops for name in op.input_arg_names}
        self.feeds = {"train": self.batch, "predict": {k: v for k, v in self.batch.items() if k in read}}

    def run(self, kind, count):
        program, fetched = self.programs[kind]
        for _ in range(count):
            found = self.exe.run(
                program, feed=self.feeds[kind], fetch_list=[fetched], scope=self.scope,
                use_program_cache=True, return_numpy=False,
            )  # fmt: skip
        return found[0]


def main():
    library = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Fluid prints warnings
    os.environ["FLAGS_use_fast_kernels"] = str(int(library == "fast"))
    fluid = importlib.import_module("paddle.fluid" if library == "fluid" else "paddlelike")
    steps = {}
    for line in sys.stdin:
        name, kind, count = line.split()
        if name not in steps:
            steps = {name: Steps(fluid, name)}
        begin = time.process_time()
        found = np.array(steps[name].run(kind, int(count))).reshape(-1)
        seconds = (time.process_time() - begin) / int(count)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        answer = {"cpu": seconds, "first": float(found[0]), "memory": memory}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
