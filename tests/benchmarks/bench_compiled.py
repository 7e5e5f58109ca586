"""A training step of BERT base and of ResNet-50, compiled, and how near it comes to what the device can do.

    PADDLELIKE_TORCH_PYTHON=... python -m tests.benchmarks.bench_compiled [--device gpu] [--only bert,lstm]

Each library trains each net in a process of its own (``nets/trainer.py``): ``paddlelike`` is the executor of
numpy, which stays on the CPU, ``compiled`` this package with ``FLAGS_backend=jax``, ``jax`` the net written for
JAX by hand, ``torch`` the eager one. The processes of a net take turns, each with ``--steps`` steps a round; feeds
and fetches belong to a step, but the nets by hand keep their batch on the device. On a CPU numpy and PyTorch compute
on one thread, XLA on all cores that it finds.

Shown are the steps a second (the median of the rounds), processor seconds a step, the seconds of the first step
with its compilation beyond another step, and the peak of the memory. For what XLA compiles: the operations of a step
(a multiply-add is two) and the bytes that it reads and writes, as XLA counts them, in shares of what the device
does at most in the time of the fastest round. The limits are given by ``--gflops`` and ``--gbytes``, else a product of
matrices and a sum of vectors measure them. A share of bytes beyond 1 says that arrays stayed in a cache.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from tests.benchmarks.bench_nets import Library, list_libraries

PROGRAM = "nets/trainer.py"
LIBRARIES = ("paddlelike", "compiled", "jax", "torch")


def find_limits(device: str, gflops: float | None, gbytes: float | None) -> dict[str, float]:
    """Return operations and bytes a second of a device: as given, else as measured."""
    found = {}
    if gflops is None or gbytes is None:
        trainer = Library("jax", sys.executable, PROGRAM, "none", device)
        found = trainer.ask("limits")
        trainer.close()
    given = {"flops": gflops, "bytes": gbytes}
    return found | {name: each * 1e9 for name, each in given.items() if each is not None}


def measure(net: str, device: str, without: list[str], rounds: int, steps: int) -> dict[str, dict[str, Any]]:
    """Return by library what its trainer says of a net; times are medians over the rounds."""
    trainers, told = {}, {}
    for name, python in list_libraries().items():
        if name not in LIBRARIES or name in without:
            continue
        trainer = Library(name, python, PROGRAM, net, device)
        found = trainer.ask("start")
        if found:
            trainers[name], told[name] = trainer, found
        else:
            trainer.close()
    times: dict[str, list[dict[str, Any]]] = {name: [] for name in trainers}
    for _ in range(rounds):
        for name, trainer in trainers.items():
            times[name].append(trainer.ask(str(steps)))
    for name, trainer in trainers.items():
        trainer.close()
        for key in ("wall", "cpu"):
            told[name][key] = statistics.median(one[key] / steps for one in times[name])
        told[name] |= {key: times[name][-1][key] for key in ("resident", "device")}
        told[name]["least"] = min(one["wall"] / steps for one in times[name])
    return told


def show(net: str, told: dict[str, dict[str, Any]], limits: dict[str, float]) -> None:
    print(f"\n{net}")
    for name, one in told.items():
        line = (
            f"  {name:12}{1 / one['wall']:10.3f} steps/s{one['cpu']:10.4f} s of processor"
            f"  first + {one['first'] - one['wall']:6.2f} s  loss {one['loss']:.5f}  {one['resident']:6.0f} MiB"
        )
        if one["device"] is not None:
            line += f", device {one['device']:6.0f} MiB"
        if one["flops"]:
            shares = [one[key] / limits[key] / one["least"] for key in ("flops", "bytes")]
            line += f"  {one['flops'] / 1e9:8.2f} GFLOP, {shares[0]:.2f} of the limit"
            line += f"  {one['bytes'] / 1e9:7.3f} GB, {shares[1]:.2f} of the limit"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", default="bert,resnet50", help="nets, separated by commas")
    parser.add_argument("--without", default="", help="libraries, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1, help="in a round")
    parser.add_argument("--gflops", type=float, help="10^9 operations a second that the device does at most")
    parser.add_argument("--gbytes", type=float, help="10^9 bytes a second that its memory moves at most")
    given = parser.parse_args()
    limits = find_limits(given.device, given.gflops, given.gbytes)
    print(f"limits: {limits['flops'] / 1e9:.1f} GFLOP/s, {limits['bytes'] / 1e9:.1f} GB/s")
    for net in given.only.split(","):
        show(net, measure(net, given.device, given.without.split(","), given.rounds, given.steps), limits)


if __name__ == "__main__":
    main()
