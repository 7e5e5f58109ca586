"""How much an asynchronous save slows the training beside it.

    python -m tests.benchmarks.saves.bench_beside [--megabytes 1000] [--rounds 3] [--backend numpy] [--where DIR]

Trains LeNet, a net whose wide embedding is what is saved, and a dense net, which writes all of it in every step: as
many steps alone as beside a save that never ends, for the next one begins when it has, in turns. Shown are the medians over the rounds: the median and the
slowest step beside saves over the median one alone, the slowest one alone, the steps during which a save was
asked for, and by how much the process grew, over what is saved. "cpu" is the slowest step beside saves by the
processor time of the thread that trains (with JAX, which has threads of its own, by that of the process), over the
median one alone: other work on the machine touches it least.

The embedding looks up other rows in every step, as training does: each of them writes into pages that a save
still shares, until all have been written.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import paddlelike as fluid

STEPS = 150  # at least; of a dense net a fifth
WIDE = 2048


def build(net: str, megabytes: int) -> tuple[Callable[[], None], Callable[[Path], Any]]:
    """Return what trains a step, and what begins a save of that many megabytes."""
    layers, rows = fluid.layers, megabytes * 1_000_000 // 256
    main, startup = fluid.Program(), fluid.Program()
    rng = np.random.default_rng(0)
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        if net == "lenet":
            image, label = fluid.data("image", [None, 1, 28, 28]), fluid.data("label", [None, 1], "int64")
            hidden = image
            for filters in (6, 16):
                hidden = fluid.nets.simple_img_conv_pool(hidden, filters, 5, 2, 2, act="relu")
            out = layers.fc(hidden, 10, act="softmax")
            loss = layers.mean(layers.cross_entropy(out, label))
            table = layers.create_parameter([rows, 64], "float32", name="beside")
            table.trainable = False
            feed = {"image": rng.random((64, 1, 28, 28), np.float32), "label": rng.integers(0, 10, (64, 1))}
        elif net == "dense":
            rows = 64
            x, label = fluid.data("x", [None, WIDE]), fluid.data("label", [None, 1])
            hidden = x
            for _ in range(max(megabytes * 1_000_000 // (4 * WIDE * WIDE), 1)):
                hidden = layers.fc(hidden, WIDE, act="relu")
            loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), label))
            feed = {"x": rng.random((64, WIDE), np.float32), "label": rng.random((64, 1), np.float32)}
        else:
            ids, label = fluid.data("ids", [None, 64], "int64"), fluid.data("label", [None, 1])
            words = fluid.embedding(ids, [rows, 64], is_sparse=True, param_attr="table")
            hidden = layers.fc(layers.reduce_mean(words, 1), 256, act="relu")
            loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), label))
            feed = {"label": rng.random((256, 1), np.float32)}
        fluid.optimizer.SGD(0.001).minimize(loss)
    exe = fluid.Executor()
    exe.run(startup)

    def step() -> None:
        if net == "embedding":
            feed["ids"] = rng.integers(0, rows, (256, 64))
        exe.run(main, feed=feed, fetch_list=[loss])

    def save(home: Path) -> Any:
        if (beside := fluid.global_scope().find_var("beside")) is not None:
            beside.get_tensor().touch()  # else it would be kept
        return fluid.io.save_persistables(exe, str(home / "model"), main, blocking=False)

    return step, save


def measure(
    step: Callable[[], None], save: Callable[[], Any] | None, count: int
) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of that many steps, their processor time, and the seconds of the calls that saved."""
    steps, processor, calls, pending = [], [], [], None
    clock = (
        time.process_time if fluid.get_flags("FLAGS_backend")["FLAGS_backend"] == "jax" else time.thread_time
    )
    until = time.perf_counter() + 5
    while len(steps) < count or time.perf_counter() < until:
        if save is not None and (pending is None or pending.done()):
            if pending is not None:
                pending.wait()
            begin = time.perf_counter()
            pending = save()
            calls.append(time.perf_counter() - begin)
        begin, worked = time.perf_counter(), clock()
        step()
        steps.append(time.perf_counter() - begin)
        processor.append(clock() - worked)
    if pending is not None:
        pending.wait()
    return steps, processor, calls


def read_memory(what: str) -> int:
    """Return a line of the process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(what)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="lenet,embedding,dense")
    parser.add_argument("--backend", default="numpy", help="numpy or jax")
    parser.add_argument("--where", type=Path, help="a directory of the disk to measure")
    given = parser.parse_args()
    fluid.set_flags({"FLAGS_backend": given.backend})
    if importlib.util.find_spec("numba"):  # else numba starts in a step beside a save, which takes a second
        fluid.set_flags({"FLAGS_use_fast_kernels": True})
    print(f"{'':12}{'median':>9}{'slowest':>9}{'cpu':>9}{'alone':>9}{'call, s':>9}{'saves':>9}{'memory':>9}")
    for net in given.only.split(","):
        with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory(dir=given.where) as home:
            step, save = build(net, given.megabytes)
            for _ in range(5):
                step()
            save(Path(home)).wait()
            before = read_memory("VmRSS")
            rows = []
            for _ in range(given.rounds):
                count = STEPS // 5 if net == "dense" else STEPS
                alone, processor, _ = measure(step, None, count)
                beside, processor_beside, calls = measure(step, functools.partial(save, Path(home)), count)
                usual = statistics.median(alone)
                work = max(processor_beside) / statistics.median(processor)
                steps = statistics.median(beside) / usual, max(beside) / usual, work, max(alone) / usual
                rows.append((*steps, statistics.median(calls), len(calls)))
            grown = (read_memory("VmHWM") - before) / given.megabytes / 1e6
            columns = "".join(f"{statistics.median(column):9.3f}" for column in zip(*rows, strict=True))
            print(f"{net:12}{columns}{grown:9.2f}")


if __name__ == "__main__":
    main()
