"""One run of a network with the `fluid` that this interpreter has: the same lines on both sides.

    python3.7 driver.py JOB.json      (paddlepaddle 1.8.5; our own side calls `run` directly)

A job is {"network", "seed", "startup_seed", "load": directory or null, "skip": batches left out,
"steps": before saving, "save": directory or null, "more": steps after it, "infer": an inference
directory or null, "out": path without suffix}. Writes OUT.npz (`initial/<variable>`,
`final/<variable>`, `losses`, `infer/<number>`) and OUT.main.pb, OUT.startup.pb.

Keeps to what Python 3.7 understands.
"""

import json
import sys
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.helpers.networks import as_feed, network


def run(fluid, job):
    """Do what the job says with that `fluid` module."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed, startup.random_seed = job["seed"], job["startup_seed"]
    out = {}
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        with fluid.scope_guard(fluid.Scope()):
            train(fluid, job, main, startup, out)
        if job["infer"]:
            with fluid.scope_guard(fluid.Scope()):
                infer(fluid, job, out)
    np.savez(job["out"] + ".npz", **out)
    for name, program in (("main", main), ("startup", startup)):
        Path(f"{job['out']}.{name}.pb").write_bytes(program.desc.serialize_to_string())


def train(fluid, job, main, startup, out):
    net = network(job["network"])
    built = net.build(fluid)
    net.optimizer(fluid).minimize(built.loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    if job["load"]:
        fluid.io.load_persistables(exe, job["load"], main)
    out.update(values(fluid, main, "initial/"))

    rng = np.random.RandomState(job["seed"])
    batches = [as_feed(fluid, net.feeds(rng)) for _ in range(job["skip"] + job["steps"] + job["more"])]
    losses = []
    for number, feed in enumerate(batches[job["skip"] :]):
        if number == job["steps"] and job["save"]:
            save(fluid, job, main, built, exe)
        losses.append(exe.run(main, feed=feed, fetch_list=[built.loss])[0][0])
    out["losses"] = np.array(losses)
    out.update(values(fluid, main, "final/"))


def save(fluid, job, main, built, exe):
    directory = job["save"]
    fluid.io.save_persistables(exe, directory + "/persistables", main)
    fluid.io.save_persistables(exe, directory + "/combined", main, filename="all")
    clone = main.clone()
    targets = [clone.global_block().var(v.name) for v in built.infer]
    fluid.io.save_inference_model(directory + "/inference", built.infer_feed, targets, exe, clone)


def infer(fluid, job, out):
    exe = fluid.Executor(fluid.CPUPlace())
    program, feeds, targets = fluid.io.load_inference_model(job["infer"], exe)
    batch = as_feed(fluid, network(job["network"]).feeds(np.random.RandomState(99)))
    results = exe.run(program, feed={n: batch[n] for n in feeds}, fetch_list=targets)
    out.update({f"infer/{i}": result for i, result in enumerate(results)})


def values(fluid, main, prefix):
    scope = fluid.global_scope()
    return {
        prefix + v.name: np.array(scope.find_var(v.name).get_tensor())
        for v in main.list_vars()
        if fluid.io.is_persistable(v)
    }


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    import paddle.fluid

    run(paddle.fluid, json.loads(Path(sys.argv[1]).read_text()))
