"""Have real Paddle 3 export what its versions write differently, one model each.

    python dump_pir_versions.py OUT.tar.xz VERSION

Runs under an interpreter with paddlepaddle 3.0.0, 3.1.1, 3.2.2 or 3.3.1, which write versions 1 to 4 of the
form; tests/golden/pir_versions.tar.xz joins the archives of the four. Each holds VERSION-NAME/inference.json,
inference.pdiparams and io.npz, as dump_exports331.py makes them.
"""

import sys
import tempfile
from pathlib import Path

import dump_exports331 as exports
import numpy as np
import paddle
import paddle.incubate.nn.functional as fused
import paddle.nn.functional as F
from paddle import nn
from paddle.quantization import PTQ, QuantConfig
from paddle.quantization.observers import AbsmaxObserver
from writing import write_archive

real, whole = exports.real, exports.whole
MAPS = real(1, 2, 7, 8)
CASES = {
    "bernoulli": (lambda x: paddle.bernoulli(x), np.round(real(3, 4, lo=0))),
    "expand_as": (lambda x, y: paddle.expand_as(x, y), real(1, 3), real(2, 3)),
    "fractional": (lambda x: F.fractional_max_pool2d(x, 3, random_u=0.3), MAPS),
    "fractional_3d": (lambda x: F.fractional_max_pool3d(x, 2, random_u=0.6), real(1, 1, 5, 4, 5)),
    "fractional_mask": (
        lambda x: F.fractional_max_pool2d(x, (2, 3), kernel_size=2, random_u=0.6, return_mask=True),
        MAPS,
    ),
    "fused_norm": (
        lambda x, w, b, y: fused.fused_layer_norm(
            x, w, b, 1e-5, residual=y, residual_alpha=0.5, begin_norm_axis=1
        ),
        real(3, 4),
        real(4),
        real(4, seed=2),
        real(3, 4, seed=3),
    ),
    "gammainc": (
        lambda x, y: paddle.gammainc(x, y),
        real(3, 4, lo=0.5, hi=4),
        real(3, 4, lo=0.1, hi=9, seed=1),
    ),
    "group_norm": (lambda x: F.group_norm(x, 2), real(2, 4, 3, 3)),
    "gumbel": (lambda x: F.gumbel_softmax(x, hard=True), real(3, 4)),
    "kthvalue": (lambda x: paddle.kthvalue(x, 2)[0], real(3, 4)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), real(3, 4)),
    "logit": (lambda x: paddle.logit(x, 1e-6), real(3, 4, lo=0.1, hi=0.9)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2.0, 2), real(1, 2, 4, 4)),
    "masked_fill": (lambda x: paddle.masked_fill(x, x > 0, 2.0), real(3, 4)),
    "maximum": (lambda x, y: paddle.maximum(x, y), real(3, 4), real(3, 4, seed=1)),
    "median": (lambda x: paddle.median(x), real(3, 4)),
    "median_axis": (lambda x: paddle.median(x, axis=1), real(3, 4)),
    "median_min": (lambda x: paddle.median(x, axis=1, mode="min"), real(3, 4)),
    "nanmedian_min": (lambda x: paddle.nanmedian(x, axis=0, keepdim=True, mode="min"), real(4, 3)),
    "pad3d": (lambda x: F.pad(x, [1, 1, 0, 2, 1, 0], value=0.1, data_format="NCDHW"), real(1, 1, 2, 3, 2)),
    "pool2d": (lambda x: F.avg_pool2d(x, 2, stride=1, padding=1), real(1, 2, 4, 4)),
    "pool3d": (lambda x: F.avg_pool3d(x, 2, stride=1, padding=1), real(1, 1, 4, 4, 4)),
    "repeat": (lambda x: paddle.repeat_interleave(x, 2, axis=1), real(3, 4)),
    "repeat_each": (lambda x, n: paddle.repeat_interleave(x, n, axis=0), real(3, 4), whole(3, hi=3)),
    "resize_1d": (
        lambda x: F.interpolate(x, scale_factor=[2.0], mode="linear", data_format="NCW"),
        real(1, 2, 3),
    ),
    "resize_2d": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), real(1, 2, 3, 4)),
    "resize_3d": (
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear", data_format="NCDHW"),
        real(1, 1, 2, 2, 3),
    ),
    "resize_cubic": (lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), real(1, 2, 4, 4)),
    "resize_nearest": (lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest"), real(1, 2, 3, 4)),
    "round": (lambda x: paddle.round(x, decimals=2), real(3, 4)),
    "softplus": (lambda x: F.softplus(x, 2.0, 15.0), real(3, 4)),
}


def quantize(network, x):
    """Return a network whose numbers are quantized, by what it computes of x."""
    config = QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver())
    quantizer = PTQ(config)
    observed = quantizer.quantize(network)
    observed(paddle.to_tensor(x))
    return quantizer.convert(observed)


def main(out, version):
    paddle.seed(1)
    kinds = {1: exports.Call1, 2: exports.Call2, 4: exports.Call4}
    calls = {name: kinds[len(fed)](one) for name, (one, *fed) in CASES.items()}
    network = nn.Sequential(nn.Conv2D(1, 2, 3), nn.BatchNorm2D(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    network.eval()
    quantized = quantize(network, real(2, 1, 4, 4))
    with tempfile.TemporaryDirectory() as home:
        for name, layer in {**calls, "network": network, "quantized": quantized}.items():
            folder = Path(home) / f"{version}-{name}"
            folder.mkdir()
            image = real(2, 1, 4, 4)
            # once it is loaded again, its quantized numbers stay at their bounds
            outs = [layer(paddle.to_tensor(image)).numpy()] if name == "quantized" else None
            exports.save_model(folder, layer, CASES[name][1:] if name in CASES else [image], outs)
        write_archive(out, home)


if __name__ == "__main__":
    main(*sys.argv[1:])
