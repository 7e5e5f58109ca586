"""A training step of workers that exchange by collectives, beside plain JAX and PyTorch's DDP over gloo.

    PADDLELIKE_TORCH_PYTHON=... python -m tests.benchmarks.distributed.bench_collective [--only wide_deep]

Every worker is a process with one thread (``nets/worker.py``). ``paddlelike`` is the executor of numpy in the mode
nccl2, ``compiled`` the same with ``FLAGS_backend=jax``, ``shared`` with ``ReduceStrategy.Reduce`` as well; ``jax`` is the
net by hand, ``shard_map`` over a mesh of the same processes, with its batch put on the device at each step. Shown are,
for the slowest worker, the median seconds of a step, the share of it that was spent waiting in exchanges, the
processor seconds of the fastest step, and the median as a multiple of that of plain JAX.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from paddlelike.distributed.launch.processes_plan import free_endpoints

WORKER = Path(__file__).parent.parent / "nets" / "worker.py"
LIBRARIES = ("paddlelike", "compiled", "shared", "jax", "torch")
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def measure(library: str, net: str, count: int, steps: int) -> dict[str, Any]:
    """Return what the slowest of ``count`` workers says of its steps."""
    python = os.environ["PADDLELIKE_TORCH_PYTHON"] if library == "torch" else sys.executable
    endpoints = free_endpoints(count)
    workers = []
    for rank in range(count):
        own = {"PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints), "PADDLE_TRAINER_ID": str(rank)}
        command = [python, str(WORKER), library, net, str(steps)]
        environ = os.environ | ONE_THREAD | own
        workers.append(
            subprocess.Popen(
                command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        )
    found = []
    for worker in workers:
        lines = worker.communicate(timeout=900)[0].splitlines()
        if worker.returncode:
            raise SystemExit(
                f"{library} {net}: worker {len(found)} of {count} ended with {worker.returncode}"
            )
        found.append(json.loads(lines[-1]))
    return max(found, key=lambda one: statistics.median(one["wall"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="resnet20,wide_deep,bert", help="nets, separated by commas")
    parser.add_argument("--libraries", default=",".join(LIBRARIES), help="separated by commas")
    parser.add_argument("--workers", default="1,2,4", help="counts, separated by commas")
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    for net in given.only.split(","):
        for count in map(int, given.workers.split(",")):
            medians: dict[str, float] = {}
            for library in given.libraries.split(","):
                if library == "torch" and "PADDLELIKE_TORCH_PYTHON" not in os.environ:
                    continue
                if library == "shared" and count == 1:
                    continue
                one = measure(library, net, count, given.steps)
                wall = medians[library] = statistics.median(one["wall"])
                share = statistics.median(w / s for w, s in zip(one["waited"], one["wall"], strict=True))
                line = f"{net:10} {count} {library:10} {wall * 1e3:9.1f} ms, waiting {share:4.0%}"
                line += f", processor {min(one['cpu']) * 1e3:9.1f} ms, loss {one['loss']:.5f}"
                print(line, flush=True)
            for library, wall in medians.items():
                if "jax" in medians and library != "jax":
                    print(
                        f"{net:10} {count} {library:10} {wall / medians['jax']:.2f} of plain JAX", flush=True
                    )


if __name__ == "__main__":
    main()
