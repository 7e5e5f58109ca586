"""Networks whose predictions are measured: what builds each, and what it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import paddlelike as fluid

__all__ = ["MODELS", "save"]

L = fluid.layers


class Model(NamedTuple):
    build: Callable[..., Any]  # of its inputs: the output
    inputs: dict[str, tuple[list[int | None], str, int]]  # shape without the batch, dtype, number of ids


def _convolve(
    x: Any, count: int, size: int, stride: int = 1, act: str | None = "relu", groups: int = 1
) -> Any:
    y = L.conv2d(x, count, size, stride, (size - 1) // 2, groups=groups, bias_attr=False)
    return L.batch_norm(y, act=act, is_test=True)


def _build_line(x: Any) -> Any:
    return L.fc(x, 1)


def _build_wide_deep(ids: Any, dense: Any) -> Any:
    x = L.concat([L.reshape(L.embedding(ids, [100_000, 16]), [-1, 26 * 16]), dense], 1)
    for _ in range(3):
        x = L.fc(x, 400, act="relu")
    return L.sigmoid(L.fc(x, 1) + L.fc(dense, 1))


def _build_mobilenet(x: Any) -> Any:
    x = _convolve(x, 32, 3, 2)
    rest = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for count, stride in rest:
        x = _convolve(_convolve(x, x.shape[1], 3, stride, groups=x.shape[1]), count, 1)
    return L.fc(L.pool2d(x, pool_type="avg", global_pooling=True), 1000, act="softmax")


def _build_vgg16(x: Any) -> Any:
    for depth, count in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(depth):
            x = L.conv2d(x, count, 3, padding=1, act="relu")
        x = L.pool2d(x, 2, "max", 2)
    return L.fc(L.fc(L.fc(x, 4096, act="relu"), 4096, act="relu"), 1000, act="softmax")


def _build_resnet50(x: Any) -> Any:
    x = L.pool2d(_convolve(x, 64, 7, 2), 3, "max", 2, 1)
    for depth, count, first in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(depth):
            stride = 1 if i else first
            y = _convolve(_convolve(x, count, 1), count, 3, stride)
            short = x if i else _convolve(x, 4 * count, 1, stride, None)
            x = L.elementwise_add(short, _convolve(y, 4 * count, 1, 1, None), act="relu")
    return L.fc(L.pool2d(x, pool_type="avg", global_pooling=True), 1000, act="softmax")


def _build_yolov3(x: Any) -> Any:
    """Darknet-53, three heads, boxes of 80 classes without their suppression."""

    def convolve(x: Any, count: int, size: int, stride: int = 1) -> Any:
        return L.leaky_relu(_convolve(x, count, size, stride, None), 0.1)

    x, stages = convolve(x, 32, 3), []
    for depth, count in ((1, 64), (2, 128), (8, 256), (8, 512), (4, 1024)):
        x = convolve(x, count, 3, 2)
        for _ in range(depth):
            x = L.elementwise_add(x, convolve(convolve(x, count // 2, 1), count, 3))
        stages.append(x)
    outs = []
    for count, stage in zip((512, 256, 128), stages[:1:-1], strict=True):
        x = stage if not outs else L.concat([L.resize_nearest(convolve(x, count, 1), scale=2.0), stage], 1)
        for size in (1, 3, 1, 3, 1):
            x = convolve(x, count if size == 1 else 2 * count, size)
        outs.append(L.reshape(L.conv2d(convolve(x, 2 * count, 3), 255, 1), [0, 255, -1]))
    return L.concat(outs, 2)


def _build_ssd(x: Any) -> Any:
    """MobileNetV1 at 300 with six maps of features: places and scores of 21 classes."""
    x = _convolve(x, 32, 3, 2)
    maps = []
    rest = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    for at, (count, stride) in enumerate(rest):
        x = _convolve(_convolve(x, x.shape[1], 3, stride, groups=x.shape[1]), count, 1)
        if at in (10, 12):
            maps.append(x)
    for count in (512, 256, 256, 128):
        x = _convolve(_convolve(x, count // 2, 1), count, 3, 2)
        maps.append(x)
    outs = [
        L.reshape(L.transpose(L.conv2d(one, 6 * size, 1), [0, 2, 3, 1]), [0, -1, size])
        for one in maps
        for size in (4, 21)
    ]
    return L.concat([L.concat(outs[::2], 1), L.softmax(L.concat(outs[1::2], 1))], 2)


def _make_encoder(words: int, layers: int, size: int, heads: int) -> Callable[[Any], Any]:
    def project(x: Any) -> Any:
        return L.transpose(L.reshape(_connect(x, size), [0, 0, heads, size // heads]), [0, 2, 1, 3])

    def build(ids: Any) -> Any:
        x = L.layer_norm(L.embedding(ids, [words, size]), begin_norm_axis=2)
        for _ in range(layers):
            q, k, v = (project(x) for _ in range(3))
            shares = L.softmax(L.matmul(q, k, transpose_y=True, alpha=(size // heads) ** -0.5))
            seen = L.reshape(L.transpose(L.matmul(shares, v), [0, 2, 1, 3]), [0, 0, size])
            x = L.layer_norm(x + _connect(seen, size), begin_norm_axis=2)
            x = L.layer_norm(x + _connect(_connect(x, 4 * size, "gelu"), size), begin_norm_axis=2)
        return _connect(x, 2)

    return build


def _connect(x: Any, size: int, act: str | None = None) -> Any:
    return L.fc(x, size, num_flatten_dims=2, act=act)


def _make_loops(cell: str, layers: int) -> Callable[[Any], Any]:
    def build(x: Any) -> Any:
        for _ in range(layers):
            x, _ = L.rnn(getattr(L, cell)(256), x)
        return _connect(x, 10)

    return build


def _build_crnn(x: Any) -> Any:
    """Convolutions over a line of text, 32 pixels high, and a loop over its columns."""
    for count, pool in ((64, [2, 2]), (128, [2, 2]), (256, [2, 1]), (256, [2, 1])):
        x = L.pool2d(_convolve(x, count, 3), pool, "max", pool)
    x = L.transpose(L.reshape(x, [0, 512, 25]), [0, 2, 1])
    return _connect(L.rnn(L.GRUCell(96), x)[0], 96, "softmax")


_IMAGE: Final = {"x": ([3, 224, 224], "float32", 0)}
MODELS: Final[dict[str, Model]] = {
    "line": Model(_build_line, {"x": ([13], "float32", 0)}),
    "wide_deep": Model(_build_wide_deep, {"ids": ([26, 1], "int64", 100_000), "dense": ([13], "float32", 0)}),
    "mobilenet": Model(_build_mobilenet, _IMAGE),
    "vgg16": Model(_build_vgg16, _IMAGE),
    "resnet50": Model(_build_resnet50, _IMAGE),
    "yolov3": Model(_build_yolov3, {"x": ([3, 320, 320], "float32", 0)}),
    "ssd": Model(_build_ssd, {"x": ([3, 300, 300], "float32", 0)}),
    "crnn": Model(_build_crnn, {"x": ([1, 32, 100], "float32", 0)}),
    "ernie_tiny": Model(_make_encoder(18_000, 4, 312, 12), {"ids": ([64, 1], "int64", 18_000)}),
    "bert": Model(_make_encoder(30_522, 12, 768, 12), {"ids": ([128, 1], "int64", 30_522)}),
    "lstm": Model(_make_loops("LSTMCell", 2), {"x": ([100, 128], "float32", 0)}),
    "gru_tagger": Model(_make_loops("GRUCell", 1), {"x": ([30, 128], "float32", 0)}),
}


def save(name: str, folder: Path, batch: int) -> None:
    """Save a model as Paddle and as ONNX have it, and what it is given."""
    model, rng = MODELS[name], np.random.default_rng(4)
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    main.random_seed = startup.random_seed = 4
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        ports = [fluid.data(key, [None, *shape], dtype) for key, (shape, dtype, _) in model.inputs.items()]
        out, exe = model.build(*ports), fluid.Executor()
        exe.run(startup)
        names = list(model.inputs)
        fluid.io.save_inference_model(str(folder), names, [out], exe, main, "__model__", "__params__")
        fluid.export_onnx(main, folder / "model.onnx", names, [out])
    feed = {
        key: rng.integers(0, ids, (batch, *shape)) if ids else rng.random((batch, *shape), "float32")
        for key, (shape, _, ids) in model.inputs.items()
    }
    np.savez(folder / "feed.npz", **feed)


if __name__ == "__main__":
    for name in sys.argv[3:]:
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True)
        save(name, folder, int(sys.argv[2]))
