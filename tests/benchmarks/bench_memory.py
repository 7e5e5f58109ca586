"""The memory of a training step, beside what its variables need by liveness.

    python -m tests.benchmarks.bench_memory [--only lenet,lstm]

Each net is a process of its own (``nets/memory.py``). ``grown`` is by how much its resident memory grew at most
from before the startup program to the end of the third step, as Linux counts it; the ratio is to the sum of
persistables and live arrays. Kernels compiled by numba are switched off: numba itself takes a hundred megabytes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

CHILD = Path(__file__).with_name("nets") / "memory.py"
#: How many batches of each net at once: enough for arrays to be most of what a process takes.
BATCHES = {
    "lenet": 4,
    "resnet20": 1,
    "lstm": 4,
    "encoder": 4,
    "word2vec": 8,
    "wide_deep": 4,
    "vgg": 1,
    "unet": 1,
    "gelu": 1,
    "dense": 1,
}


def measure(net: str) -> dict[str, int]:
    """Return the bytes of persistables, of live arrays, and those by which the process grew."""
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "FLAGS_use_fast_kernels": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, "-W", "ignore", str(CHILD), net, str(BATCHES[net])]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(BATCHES), help="nets, separated by commas")
    nets = parser.parse_args().only.split(",")
    print(f"{'net':12}{'persistables':>14}{'live':>10}{'grown, MB':>12}{'ratio':>8}")
    for net in nets:
        found = measure(net)
        persistable, live, grown = (found[key] for key in ("persistable", "live", "grown"))
        ratio = grown / (persistable + live)
        print(
            f"{net:12}{persistable / 1e6:14.1f}{live / 1e6:10.1f}{grown / 1e6:12.1f}{ratio:8.2f}", flush=True
        )


if __name__ == "__main__":
    main()
