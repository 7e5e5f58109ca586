"""Have real Paddle 3.3.1 write models in its own form (PIR).

    python3 dump_paddle3.py OUT.tar.xz                             # tests/golden/models331.tar.xz
    python3 dump_paddle3.py OUT.tar.xz LAYERS262.tar.xz            # tests/golden/layers331.tar.xz

Runs under an interpreter that has paddlepaddle 3.3.1. The first archive holds small networks that `paddle.jit.save` wrote:
NAME/inference.json, inference.pdiparams and io.npz (feeds, in<i>, and out<i>, what Paddle 3 computes). The second holds
NAME/inference.json, what Paddle 3 makes of each model of Paddle 2.6.2; the others of its files are there.
"""

import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.base import core
from writing import write_archive

RNG = np.random.default_rng(0)


class Call(nn.Layer):
    """A function as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def loop(x):
    i = paddle.zeros([1], "int32")
    while i < 3:
        x = x * 2 + 1
        i += 1
    return x


def swap(x):
    a, b, i = x, x * 2, paddle.zeros([1], "int32")
    while i < 3:
        a, b = b, a + b
        i += 1
    return a, b


def branch(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x * 2
    return y


def assign_column(x):
    x = x * 1
    x[:, 1] = 0.0
    return x


def many(x):
    return (
        paddle.round(x), paddle.std(x), paddle.rsqrt(x.abs()), x.max(axis=1), x.argmax(-1), paddle.cumsum(x, 1),
        F.one_hot(x.argmax(-1), 6), x.norm(), paddle.logical_and(x > 0, x < 1), paddle.flip(x, [1]),
        paddle.concat([x, x], 0), paddle.stack([x, x]), F.pad(x, [1, 1]), paddle.gather(x, paddle.to_tensor([1, 0])),
        paddle.nonzero(x > 0), paddle.any(x > 0, axis=1), paddle.floor_divide(x, x), paddle.triu(x),
    )  # fmt: skip


def networks():
    """Yield name, layer, shape of the input (None: any size) and feed."""
    image = nn.Sequential(
        nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Dropout(),
        nn.Linear(4, 3), nn.Softmax(),
    )  # fmt: skip
    norms = nn.Sequential(
        nn.GroupNorm(2, 4), nn.InstanceNorm2D(4), nn.Hardswish(), nn.GELU(), nn.Swish(), nn.Upsample(scale_factor=2),
        nn.MaxPool2D(2),
    )  # fmt: skip
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2)
    rest = nn.Sequential(nn.Conv2DTranspose(3, 4, 2, stride=2), nn.Sigmoid(), nn.PReLU(), nn.LeakyReLU())
    yield "bn", image, [None, 3, 8, 8], [2, 3, 8, 8]
    yield "norms", norms, [None, 4, 8, 8], [2, 4, 8, 8]
    yield "transformer", encoder, [None, None, 16], [2, 5, 16]
    yield "crnn", rest, [None, 3, 4, 4], [2, 3, 4, 4]
    yield "lstm", nn.LSTM(8, 5, 2, direction="bidirect"), [None, None, 8], [2, 4, 8]
    yield "gru", nn.GRU(8, 5), [None, None, 8], [2, 4, 8]
    yield "embed", nn.Embedding(10, 4), [None, 3], np.array([[1, 2, 3]])
    for name, function, shape, fed in (
        ("while", loop, [None, 4], [2, 4]),
        ("swap", swap, [None, 4], [2, 4]),
        ("if", branch, [None, 4], [2, 4]),
        ("setv", assign_column, [None, 6], [2, 6]),
        ("misc", many, [None, 6], [2, 6]),
        ("index", lambda x: x[:, 1:3, ::2], [None, 4, 6], [2, 4, 6]),
        (
            "view",
            lambda x: paddle.reshape(x, [paddle.shape(x)[0], -1]).astype("float64"),
            [None, 4, 6],
            [2, 4, 6],
        ),
        ("split", lambda x: paddle.split(x, [1, 3], axis=1), [None, 4, 6], [2, 4, 6]),
        ("inf", lambda x: paddle.where(x > 0, x, paddle.full_like(x, float("-inf"))), [None, 4], [2, 4]),
        ("clipinf", lambda x: paddle.clip(x, min=0.0), [None, 4], [2, 4]),
        ("attn", lambda x: F.scaled_dot_product_attention(x, x, x), [None, 5, 2, 8], [2, 5, 2, 8]),
        ("topk", lambda x: paddle.topk(x, 2), [None, 6], [2, 6]),
        ("pool", lambda x: F.max_pool2d(x, 2, return_mask=True), [None, 2, 6, 6], [2, 2, 6, 6]),
        ("ar", lambda x: x + paddle.arange(6, dtype="float32"), [None, None], [2, 6]),
        ("sqz", lambda x: paddle.tile(x.unsqueeze(1), [1, 3, 1]), [None, 6], [2, 6]),
        ("f16", lambda x: (x.astype("float16") * 2).astype("float32"), [None, 6], [2, 6]),
        ("einsum", lambda x: paddle.einsum("ij,kj->ik", x, x), [None, 6], [2, 6]),
    ):
        yield name, Call(function), shape, fed


def save_network(folder, layer, shape, fed):
    """Save a network, and what it computes once it is loaded again."""
    layer.eval()
    x = fed if isinstance(fed, np.ndarray) else RNG.standard_normal(fed).astype("float32")
    spec = [paddle.static.InputSpec(shape, str(x.dtype))]
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=spec, full_graph=True), f"{folder}/inference")
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(f"{folder}/inference", exe)
        outs = exe.run(program, feed={feeds[0]: x}, fetch_list=fetches)
    paddle.disable_static()
    np.savez(
        f"{folder}/io.npz", feeds=feeds, in0=x, **{f"out{i}": np.asarray(one) for i, one in enumerate(outs)}
    )


def translate(archive, folder):
    """Have Paddle 3 translate each model of an archive."""
    paddle.enable_static()
    with tarfile.open(archive) as tar:
        tar.extractall(folder.parent / "old")
    exe = paddle.static.Executor(paddle.CPUPlace())
    for old in sorted((folder.parent / "old").iterdir()):
        try:
            with paddle.pir_utils.OldIrGuard(), paddle.static.scope_guard(paddle.static.Scope()):
                program, _, _ = paddle.static.load_inference_model(f"{old}/model", exe)
                translated = paddle.pir.translate_to_pir(program.desc)
            (folder / old.name).mkdir()
            core.serialize_pir_program(
                translated, f"{folder / old.name}/inference.json", 1, True, False, True
            )
        except (RuntimeError, ValueError) as error:
            print("failed:", old.name, str(error)[-200:])


def main(out, archive=None):
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "new"
        folder.mkdir()
        if archive is None:
            for name, layer, shape, fed in networks():
                (folder / name).mkdir()
                save_network(folder / name, layer, shape, fed)
        else:
            translate(archive, folder)
        write_archive(out, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
