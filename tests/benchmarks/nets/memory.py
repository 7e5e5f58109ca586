"""The memory of training steps: what the operating system counts, and what liveness needs.

    python memory.py NET [BATCHES]

prints a line of JSON: the bytes of persistables, the most that feeds and temporaries take while any operator
runs, and by how much the resident memory of this process grew at most from before the startup program on.
Liveness is that of the program: a variable lives from the operator that writes it to the last one that reads
it, and an operator needs all its inputs and outputs at once; variables that are views of one array count once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import data
import in_fluid

import paddlelike as fluid
from paddlelike.executor.exchange.feeds import put_feeds
from paddlelike.executor.plans.cached import get_plan


def vgg(fluid: Any, layers: Any) -> Any:
    """A net with large images: four pairs of convolutions, dropout, two dense layers."""
    x, y = fluid.data("x", [None, 3, 64, 64]), fluid.data("y", [None, 1], "int64")
    for filters in (16, 32, 64, 128):
        for _ in range(2):
            x = layers.conv2d(x, filters, 3, padding=1, act="relu")
        x = layers.pool2d(x, 2, "max", 2)
    x = layers.fc(layers.dropout(x, 0.5), 256, act="relu")
    guess = layers.fc(x, 10, act="softmax")
    return layers.mean(layers.cross_entropy(guess, y)), fluid.optimizer.Momentum(0.01, 0.9)


def dense(fluid: Any, layers: Any) -> Any:
    """Dense layers of one width with a residual path, as of a transformer's feed-forward parts."""
    x, y = fluid.data("x", [None, 512]), fluid.data("y", [None, 1], "int64")
    for _ in range(6):
        inner = layers.fc(layers.fc(x, 512, act="relu"), 512)
        x = layers.elementwise_add(x, inner, act="relu")
    guess = layers.fc(x, 512, act="softmax")
    return layers.mean(layers.cross_entropy(guess, y)), fluid.optimizer.Adam(1e-3)


def unet(fluid: Any, layers: Any) -> Any:
    """Two levels down and up again with what was there before beside it, a class for each pixel."""

    def convolve(x: Any, filters: int) -> Any:
        return layers.batch_norm(layers.conv2d(x, filters, 3, padding=1), act="leaky_relu")

    x, y = fluid.data("x", [None, 3, 64, 64]), fluid.data("y", [None, 1, 64, 64])
    beside = []
    for filters in (16, 32):
        x = convolve(convolve(x, filters), filters)
        beside.append(x)
        x = layers.pool2d(x, 2, "max", 2)
    x = convolve(x, 64)
    for filters in (32, 16):
        x = layers.conv2d_transpose(x, filters, filter_size=2, stride=2)
        x = convolve(layers.concat([x, beside.pop()], 1), filters)
    loss = layers.sigmoid_cross_entropy_with_logits(layers.conv2d(x, 1, 1), y)
    return layers.mean(loss), fluid.optimizer.Adam(1e-3)


def gelu(fluid: Any, layers: Any) -> Any:
    """Two layers of an encoder as in BERT: gelu, dropout, layer_norm."""
    x, y = fluid.data("x", [None, 64, 256]), fluid.data("y", [None, 1], "int64")
    for _ in range(2):
        scores = layers.softmax(layers.matmul(x, x, transpose_y=True, alpha=1 / 16))
        mixed = layers.fc(layers.matmul(layers.dropout(scores, 0.1), x), 256, num_flatten_dims=2)
        x = layers.layer_norm(x + layers.dropout(mixed, 0.1), begin_norm_axis=2)
        inner = layers.fc(layers.fc(x, 1024, num_flatten_dims=2, act="gelu"), 256, num_flatten_dims=2)
        x = layers.layer_norm(x + layers.dropout(inner, 0.1), begin_norm_axis=2)
    guess = layers.fc(layers.reduce_mean(x, 1), 10)
    return layers.mean(layers.softmax_with_cross_entropy(guess, y)), fluid.optimizer.Adam(1e-3)


UNSEEN = {"vgg": vgg, "unet": unet, "gelu": gelu, "dense": dense}


def make_batch(net: str, times: int) -> dict[str, Any]:
    """Return the batch of a net, ``times`` as large."""
    rng = np.random.default_rng(5)
    if net == "vgg":
        images = rng.standard_normal((16 * times, 3, 64, 64), np.float32)
        return {"x": images, "y": rng.integers(0, 10, (16 * times, 1))}
    if net == "unet":
        images = rng.standard_normal((8 * times, 3, 64, 64), np.float32)
        return {"x": images, "y": (images[:, :1] > 0).astype(np.float32)}
    if net == "gelu":
        rows = rng.standard_normal((16 * times, 64, 256), np.float32)
        return {"x": rows, "y": rng.integers(0, 10, (16 * times, 1))}
    if net == "dense":
        rows = rng.standard_normal((1024 * times, 512), np.float32)
        return {"x": rows, "y": rng.integers(0, 512, (1024 * times, 1))}
    batch = {name: np.concatenate([value] * times) for name, value in data.make_batch(net).items()}
    if net == "lstm":
        lengths = [[data.STEPS] * (32 * times)]
        batch["x"] = fluid.create_lod_tensor(batch["x"], lengths, fluid.CPUPlace())
    return batch


def measure(net: str, times: int) -> dict[str, int]:
    """Train for a few steps. Return the bytes of persistables, of the rest by liveness, and the growth."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        loss, optimizer = {**in_fluid.NETS, **UNSEEN}[net](fluid, fluid.layers)
        optimizer.minimize(loss)
    batch = make_batch(net, times)
    exe, scope = fluid.Executor(), fluid.core.Scope()
    _warm_up(exe)
    before = read_memory("VmRSS")
    with contextlib.suppress(OSError):  # not allowed everywhere; what came before is less than what follows
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    exe.run(startup, scope=scope)
    for _ in range(3):
        exe.run(main, feed=batch, fetch_list=[loss], scope=scope)
    grown = read_memory("VmHWM") - before
    persistable, live = count_needed(main, exe, scope, batch, loss)
    return {"persistable": persistable, "live": live, "grown": grown}


def _warm_up(exe: Any) -> None:
    """Run a program of one product, so that what is loaded at the first run is there before."""
    program = fluid.Program()
    with fluid.program_guard(program, fluid.Program()):
        x = fluid.data("x", [None, 64])
        product = fluid.layers.matmul(x, x)
    exe.run(program, feed={"x": np.ones((64, 64), np.float32)}, fetch_list=[product])


def read_memory(what: str) -> int:
    """Return the bytes that Linux counts for this process: VmRSS now, VmHWM the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def count_needed(main: Any, exe: Any, scope: Any, batch: Any, loss: Any) -> tuple[int, int]:
    """Return the bytes of persistables, and the most that other arrays take by liveness, views once."""
    block, ops = main.global_block(), main.global_block().ops
    arrays = _run_and_hold(main, scope, batch, loss)
    held = {name for name in arrays if name in block.vars and block.vars[name].persistable}
    spans: dict[str, list[int]] = {name: [0, 0] for name in batch}
    for index, op in enumerate(ops):
        for name in (*op.input_arg_names, *op.output_arg_names):
            spans.setdefault(name, [index, index])[1] = index
    spans[loss.name][1] = len(ops)
    needed: list[dict[int, int]] = [{} for _ in range(len(ops) + 1)]
    for name in spans.keys() & arrays.keys() - held:
        owner = _find_owner(arrays[name])
        for index in range(spans[name][0], spans[name][1] + 1):
            needed[index][id(owner)] = owner.nbytes
    return sum(arrays[name].nbytes for name in held), max(sum(each.values()) for each in needed)


def _find_owner(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _run_and_hold(main: Any, scope: Any, batch: Any, loss: Any) -> dict[str, Any]:
    """Return the array of every variable of a run; because they are held, none is written over another."""
    plan = get_plan(main, batch, [loss.name], None)
    frame = plan.create_frame(scope, {})
    put_feeds(plan, frame, batch)
    found: dict[str, Any] = {}
    for step in plan.steps:
        for part in step.parts or (step,):
            before = frame.values.copy()
            part.run(frame)
            for names, values in (
                (part.op.input_arg_names, before),
                (part.op.output_arg_names, frame.values),
            ):
                for name in names:
                    position = plan.layout.get_position(part.op.block, name)
                    value = values[position] if position < len(values) else None  # a name no operator uses
                    if isinstance(value, np.ndarray):
                        found.setdefault(name, value)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
