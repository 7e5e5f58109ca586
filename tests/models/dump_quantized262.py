"""Have real Paddle 2.6.2 quantize a network, after training and during it, and run its two operators.

    python dump_quantized262.py OUT.tar.xz                         # tests/golden/quantized262.tar.xz

Runs under an interpreter with paddlepaddle 2.6.2. The archive holds ptq and qat (model.pdmodel, model.pdiparams, io.npz), and
operators/ops.npz: x<i>, s<i> and y<i> of each of the cases (operator, axis, bits, rounding), a JSON text.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

np.random.rand(1)  # before Paddle, beside which numpy's random module does not load

import paddle
from paddle import nn
from paddle.quantization import PTQ, QAT, QuantConfig
from paddle.quantization.observers import AbsmaxObserver
from paddle.quantization.quanters import FakeQuanterWithAbsMaxObserver
from writing import write_archive

X = np.random.RandomState(0).rand(4, 1, 8, 8).astype("float32")


def quantize(kind):
    network = nn.Sequential(nn.Conv2D(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 3))
    one = AbsmaxObserver() if kind == "ptq" else FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    config = QuantConfig(activation=one, weight=one)
    quantizer = PTQ(config) if kind == "ptq" else QAT(config)
    network.train() if kind == "qat" else network.eval()
    network = quantizer.quantize(network)
    for i in range(3):
        network(paddle.to_tensor(X + i))
    network.eval()
    return quantizer.convert(network)


def run(op, axis, scales, bits, rounding, rng):
    x = (rng.randn(3, 4, 2) * 2) if op == "quantize_linear" else rng.randint(-8, 8, (3, 4, 2))
    x, s = x.astype("float32"), (rng.rand(scales) + 1).astype("float32")
    if op == "quantize_linear":
        x.flat[:6] = [0.5, 1.5, -0.5, -2.5, 9, -9]
        s = s if axis >= 0 or rounding else np.float32([7 if bits == 4 else 127])
    main = paddle.static.Program()
    with paddle.static.program_guard(main, paddle.static.Program()):
        feeds = {"X": ("x", x), "Scale": ("s", s), "ZeroPoint": ("z", np.zeros_like(s))}
        inputs = {
            slot: [paddle.static.data(name, one.shape, "float32")] for slot, (name, one) in feeds.items()
        }
        block = main.global_block()
        out = block.create_var(name="y", dtype="float32", shape=x.shape)
        attrs = {"quant_axis": axis, "bit_length": bits, "round_type": rounding, "is_test": True}
        block.append_op(type=op, inputs=inputs, outputs={"Y": [out]}, attrs=attrs | {"only_observer": False})
    exe = paddle.static.Executor()
    return x, s, exe.run(main, feed=dict(feeds.values()), fetch_list=["y"])[0]


def main(out):
    paddle.seed(1)
    with tempfile.TemporaryDirectory() as home:
        for kind in ("ptq", "qat"):
            where = Path(home) / kind / "model"
            paddle.jit.save(
                quantize(kind), str(where), [paddle.static.InputSpec([None, 1, 8, 8], "float32", "x")]
            )
            (where.parent / "model.pdiparams.info").unlink()
            loaded = paddle.jit.load(str(where))
            np.savez(where.parent / "io.npz", in0=X, out0=loaded(paddle.to_tensor(X)).numpy())
        paddle.enable_static()
        cases = [
            (op, axis, bits, rounding)
            for op in ("quantize_linear", "dequantize_linear")
            for axis in (-1, 0, 1)
            for bits in (8, 4)
            for rounding in (0, 1)
        ]
        arrays, rng = {"cases": np.array(json.dumps(cases))}, np.random.RandomState(0)
        for i, (op, axis, bits, rounding) in enumerate(cases):
            found = run(op, axis, {-1: 1, 0: 3, 1: 4}[axis], bits, rounding, rng)
            arrays |= dict(zip((f"x{i}", f"s{i}", f"y{i}"), found))
        (Path(home) / "operators").mkdir()
        np.savez(Path(home) / "operators/ops.npz", **arrays)
        write_archive(out, home)


if __name__ == "__main__":
    main(sys.argv[1])
