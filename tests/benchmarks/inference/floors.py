"""How fast numpy could answer at best: a model's nodes by bare calls of numpy, beside onnxruntime.

    python -m tests.benchmarks.inference.models FOLDER BATCH line wide_deep
    python tests/benchmarks/inference/floors.py FOLDER/line FOLDER/wide_deep

The first command saves ``model.onnx`` and ``feed.npz``; the second imports nothing of paddlelike. The nodes run in
order on arrays that exist already, without a check or a copy: *products* are those by constant matrices (in loops
those of every step), each in as many parts as take the least time; *calls* are all nodes, where views cost nothing,
a softmax, an erf or a layer_norm less than it does, and of a loop the products alone count.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

Call = Callable[[], Any]


def _write_sigmoid(out: Any, x: Any) -> None:
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    np.reciprocal(out, out)


def _write_softmax(out: Any, x: Any) -> None:
    np.exp(x, out)
    np.divide(out, out.sum(-1, keepdims=True), out)


def _write_norm(out: Any, x: Any, scale: Any, bias: Any) -> None:
    np.subtract(x, x.mean(-1, keepdims=True), out)
    np.multiply(out, scale, out)
    np.add(out, bias, out)


WRITERS: dict[str, Callable[..., Any]] = {
    "Add": lambda out, x, y: np.add(x, y, out),
    "Concat": lambda out, *parts: np.concatenate(parts, 1, out),
    "Erf": lambda out, x: np.tanh(x, out),
    "Gather": lambda out, table, ids: table.take(ids, 0, out, "clip"),
    "LayerNormalization": _write_norm,
    "MatMul": lambda out, x, w: np.matmul(x, w, out),
    "Mul": lambda out, x, y: np.multiply(x, y, out),
    "Relu": lambda out, x: np.maximum(x, 0, out=out),
    "Sigmoid": _write_sigmoid,
    "Softmax": _write_softmax,
}


def _bind(write: Callable[..., Any], out: Any, given: list[Any]) -> Call:
    return lambda: write(out, *given)


def _bind_product(x: Any, w: Any) -> Call:
    """Return the fastest of a few ways to multiply the rows of x by a matrix."""
    x = x.reshape(-1, len(w))
    out = np.empty((len(x), w.shape[1]), w.dtype)

    def cut(parts: int) -> Call:
        edges = [w.shape[1] * part // parts for part in range(parts + 1)]
        slices = [slice(*pair) for pair in itertools.pairwise(edges)]
        pairs = [(w[:, one], out[:, one]) for one in slices]
        return lambda: [np.matmul(x, part, target) for part, target in pairs]

    ways: list[Call] = [lambda: np.dot(x, w, out), *map(cut, (2, 3, 4, 6))]
    return min(ways, key=lambda way: min(_time(way, 20) for _ in range(5)))


def _list_calls(graph: Any, values: dict[str, Any], constants: set[str]) -> tuple[list[Call], list[Call]]:
    """Return the products by constant matrices, and the calls of all nodes."""
    products, calls = [], []
    for node in graph.node:
        given = [values[name] for name in node.input if name]
        if node.op_type == "Scan":
            (body,) = (one.g for one in node.attribute if one.name == "body")
            steps, rows = given[-1].shape[:2]
            for inner in body.node:
                if inner.op_type == "MatMul" and inner.input[1] in constants:
                    w = values[inner.input[1]]
                    loop = [_bind_product(np.ones((rows, len(w)), w.dtype), w)] * steps
                    products += loop
                    calls += loop
        elif node.op_type == "MatMul" and node.input[1] in constants:
            products.append(_bind_product(*given))
            calls.append(products[-1])
        elif node.op_type in WRITERS and values[node.output[0]].ndim > 1:
            calls.append(_bind(WRITERS[node.op_type], values[node.output[0]], given))
    return products, calls


def _time(call: Call, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def measure(folder: Path, rounds: int = 20) -> str:
    """Return a line of figures: onnxruntime's milliseconds, and ratios to them."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    given = dict(np.load(folder / "feed.npz"))
    model = onnx.load(str(folder / "model.onnx"))
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    constants = {one.name: numpy_helper.to_array(one).copy() for one in model.graph.initializer}
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    every = onnxruntime.InferenceSession(model.SerializeToString(), options).run(names, given)
    values = {**constants, **given, **{name: one.copy() for name, one in zip(names, every, strict=True)}}
    products, calls = _list_calls(model.graph, values, set(constants))
    contenders = [lambda: session.run(None, given)]
    contenders += [lambda part=part: [call() for call in part] for part in (products, calls)]  # type: ignore[misc]
    count = max(1, int(0.03 / _time(contenders[0], 5)))
    seconds = [[_time(call, count) for call in contenders] for _ in range(rounds)]
    least, *ratios = (
        min(one[0] for one in seconds),
        *(statistics.median(one[at] / one[0] for one in seconds) for at in (1, 2)),
    )
    return f"{folder.name:<12} {least * 1e3:9.4f} ms  products {ratios[0]:.2f}  calls {ratios[1]:.2f}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(measure(Path(name)), flush=True)
