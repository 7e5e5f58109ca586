"""One library as a process of its own: trains the nets it is asked to.

    python contender.py fluid|paddlelike|fast|compiled|torch|jax|numpy [some have fewer NETS]

``paddlelike`` computes with numpy alone, ``fast`` is the same with kernels compiled by numba,
``compiled`` the same with ``FLAGS_backend=jax``, ``jax`` the nets written for JAX by hand.

It reads lines "NET STEPS" and answers each with a line of JSON: processor seconds a step, the loss of the first
step, the peak of the resident memory. Python 3.7 runs it, for Fluid 1.8.5.
"""

import gc
import importlib
import json
import os
import resource
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def prepare(library, net):
    """Return a function that trains one step."""
    if library in ("fluid", "paddlelike", "fast", "compiled"):
        name = "paddle.fluid" if library == "fluid" else "paddlelike"
        os.environ["FLAGS_use_fast_kernels"] = str(int(library == "fast"))
        if library == "compiled":
            os.environ["FLAGS_backend"] = "jax"
        return importlib.import_module("in_fluid").prepare(net, importlib.import_module(name))
    if library == "torch":
        import torch

        torch.set_num_threads(1)
    return importlib.import_module("in_" + library).prepare(net)


def answer(steps, net, library, count):
    """Return what the driver wants to know of some steps; the first call also prepares and warms up."""
    found = {}
    if net not in steps:
        begin = time.process_time()
        step = steps[net] = prepare(library, net)
        built = time.process_time()
        found["loss"] = float(np.asarray(step()).reshape(-1)[0])
        found["build"], found["first"] = built - begin, time.process_time() - built
        for _ in range(2):
            step()
    step = steps[net]
    gc.disable()
    begin = time.process_time()
    for _ in range(count):
        step()
    found["cpu"] = (time.process_time() - begin) / max(count, 1)
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0  # MiB, of all nets so far
    gc.enable()
    return found


def main():
    library = sys.argv[1]
    steps = {}
    for line in sys.stdin:
        net, count = line.split()
        if net not in steps:
            steps.clear()  # one net at a time holds memory
        try:
            found = answer(steps, net, library, int(count))
        except KeyError:
            found = {}
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
