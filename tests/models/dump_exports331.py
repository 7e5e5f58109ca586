"""Have real Paddle 3.3.1 export functions and layers of its own (`paddle.jit.save`), one model each.

    python3 dump_exports331.py OUT.tar.xz                          # tests/golden/exports331.tar.xz

Runs under an interpreter that has paddlepaddle 3.3.1. The archive holds NAME/inference.json, inference.pdiparams and io.npz
(feeds, in<i>, and out<i>, what Paddle 3 computes).
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import paddle
import paddle.incubate.nn.functional as fused
import paddle.nn.functional as F
from paddle import nn
from paddle.vision import ops
from writing import write_archive


def real(*shape, lo=-1, hi=1, seed=0):
    return np.random.RandomState(seed).uniform(lo, hi, shape).astype("float32")


def whole(*shape, hi=5, seed=0):
    return np.random.RandomState(seed).randint(0, hi, shape).astype("int64")


def whole32(*shape, hi=5, seed=0):
    return whole(*shape, hi=hi, seed=seed).astype("int32")


def truth(*shape, seed=0):
    return np.random.RandomState(seed).rand(*shape) > 0.5


BOXES = np.array([[0, 0, 4, 4], [1, 1, 6, 6], [2, 0, 7, 5], [0, 0, 4.2, 4.1]], "float32")
CASES = {
    "histogramdd": (lambda x: paddle.histogramdd(x, bins=[3, 2])[0], real(9, 2)),
    "histogramdd_weights": (
        lambda x, w: paddle.histogramdd(x, bins=[2, 3, 2], weights=w)[0],
        real(8, 3, seed=1),
        real(8, lo=0),
    ),
    "linspace_whole": (lambda x: paddle.linspace(x[0, 0], x[0, 1], 7, "int64"), np.array([[-30, 49]])),
    "linspace_real": (lambda x: paddle.linspace(x[0, 0], x[0, 1], 9), real(1, 2)),
    "average_pads": (lambda x: F.avg_pool2d(x, 3, 2, [0, 2, 1, 2], exclusive=False), real(1, 2, 7, 6)),
    "average_same": (lambda x: F.avg_pool2d(x, 2, 1, "SAME", exclusive=False), real(1, 2, 4, 5)),
    "lp_pool_ceil": (lambda x: F.lp_pool2d(x, 2.0, [4, 3], [3, 2], [0, 1], ceil_mode=True), real(2, 3, 8, 8)),
    "baddbmm": (lambda a, b, c: paddle.baddbmm(a, b, c), real(2, 2, 2), real(2, 2, 3), real(2, 3, 2)),
    "bcel": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=paddle.to_tensor(2.0)),
        real(3, 4),
        truth(3, 4).astype("float32"),
    ),
    "bf16": (lambda x: (x.astype("bfloat16") * 2).astype("float32"), real(3)),
    "bitwise_shift": (lambda x: x << 2, whole32(4)),
    "bn_f": (lambda x: F.batch_norm(x, paddle.zeros([2]), paddle.ones([2])), real(2, 2, 3, 3)),
    "deform_conv1": (
        lambda x, o, w: ops.deform_conv2d(x, o, w),
        real(1, 2, 5, 5),
        real(1, 18, 3, 3),
        real(3, 2, 3, 3),
    ),
    "deform_conv2": (
        lambda x, o, w, m: ops.deform_conv2d(x, o, w, mask=m),
        real(1, 2, 5, 5),
        real(1, 18, 3, 3),
        real(3, 2, 3, 3),
        real(1, 9, 3, 3, lo=0),
    ),
    "every_second": (lambda x: paddle.strided_slice(x, [0, 1], [0, 4], [3, -10], [2, -2]), real(3, 5)),
    "einsum2": (lambda x, y: paddle.einsum("bhid,bhjd->bhij", x, y), real(2, 2, 3, 4), real(2, 2, 5, 4)),
    "float16": (lambda x: (x.astype("float16") * 2).astype("float32"), real(3)),
    "first_token": (
        lambda x: paddle.concat(
            [paddle.ones([1, 1, 2]).expand([paddle.shape(x)[0], -1, -1]), x.flatten(2).transpose([0, 2, 1])],
            1,
        ),
        real(2, 2, 3, 3),
        [[None, 2, 3, 3]],
    ),
    "gather_tree": (lambda x, y: F.gather_tree(x, y), whole(3, 2, 2, hi=5), whole(3, 2, 2, hi=2)),
    "grid_sample5": (F.grid_sample, real(1, 2, 3, 4, 5), real(1, 2, 3, 3, 3)),
    "grid_sample_ac": (
        lambda x, g: F.grid_sample(x, g, "bilinear", "border", True),
        real(1, 2, 4, 5),
        real(1, 3, 3, 2, lo=-1.5, hi=1.5),
    ),
    "grid_sample_n": (
        lambda x, g: F.grid_sample(x, g, "nearest", "border", False),
        real(1, 2, 4, 5),
        real(1, 3, 3, 2, lo=-1.2, hi=1.2),
    ),
    "grid_sample_r": (
        lambda x, g: F.grid_sample(x, g, "bilinear", "reflection", False),
        real(1, 2, 4, 5),
        real(1, 3, 3, 2, lo=-1.5, hi=1.5),
    ),
    "grid_sample_rac": (
        lambda x, g: F.grid_sample(x, g, "nearest", "reflection", True),
        real(1, 2, 4, 5),
        real(1, 3, 3, 2, lo=-1.5, hi=1.5),
    ),
    "hsig": (
        lambda x, y, w, b: F.hsigmoid_loss(x, y, 5, w, b),
        real(3, 4),
        whole(3, 1, hi=5),
        real(4, 4),
        real(4, 1),
    ),
    "idx_bool": (lambda x, m: x[m], real(3, 4), truth(3, 4)),
    "idx_slice_t": (lambda x, i: x[:i], real(3, 4), np.array(2, "int64")),
    "index_put": (
        lambda x, i, v: paddle.index_put(x, (i,), v),
        real(3, 4),
        np.array([0, 2], "int64"),
        real(2, 4),
    ),
    "instance_f": (lambda x: F.instance_norm(x), real(2, 2, 3, 3)),
    "int8": (lambda x: x.astype("int8") + 1, whole(4)),
    "interp_dyn": (
        lambda x, y: F.interpolate(x, paddle.shape(y)[2:], mode="bilinear"),
        real(1, 2, 3, 4),
        real(1, 2, 5, 6),
        [[None, 2, None, None], [None, 2, None, None]],
    ),
    "is_empty": (paddle.is_empty, real(3, 4)),
    "kl_log": (
        lambda x, y: F.kl_div(F.log_softmax(x), F.log_softmax(y), log_target=True),
        real(3, 4),
        real(3, 4, seed=1),
    ),
    "lin_house": (lambda x: paddle.linalg.householder_product(x, paddle.ones([3]) * 0.3), real(4, 3)),
    "lin_tensorinv": (lambda x: paddle.linalg.svdvals(x), real(4, 3)),
    "log_loss": (lambda x, y: F.log_loss(F.sigmoid(x), y), real(3, 1), truth(3, 1).astype("float32")),
    "masked_fill": (lambda x, m: paddle.masked_fill(x, m, 3.0), real(3, 4), truth(3, 4)),
    "masked_scatter": (paddle.masked_scatter, real(3, 4), truth(3, 4), real(12)),
    "matrix_nms": (lambda b, s: ops.matrix_nms(b, s, 0.05, 0.05, 10, 5), BOXES[None], real(1, 2, 4, lo=0)),
    "max_unpool": (lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_mask=True), 2), real(1, 1, 4, 6)),
    "nms_cat": (lambda b, s, c: ops.nms(b, 0.5, s, c, [0, 1], 3), BOXES, real(4, lo=0), whole(4, hi=2)),
    "numpy_const": (
        lambda x: x + paddle.to_tensor(np.arange(300).reshape(3, 100).astype("float32")),
        real(3, 100),
    ),
    "pixel_shuffle_nhwc": (lambda x: F.pixel_shuffle(x, 2, "NHWC"), real(1, 2, 3, 4)),
    "psroi_pool": (
        lambda x, b: ops.psroi_pool(x, b, paddle.to_tensor([4], "int32"), 2),
        real(1, 8, 8, 8),
        BOXES,
    ),
    "put_along_axis_mean": (
        lambda x, i, v: paddle.put_along_axis(x, i, v, 1, "mean", include_self=False),
        real(3, 4),
        whole(3, 2, hi=4),
        real(3, 2),
    ),
    "put_amax": (
        lambda x, i, v: paddle.put_along_axis(x, i, v, 1, "amax"),
        real(3, 4),
        whole(3, 2, hi=4),
        real(3, 2),
    ),
    "reduce_as": (paddle.reduce_as, real(2, 3, 4), real(3, 1)),
    "roi_align": (
        lambda x, b: ops.roi_align(x, b, paddle.to_tensor([4], "int32"), 2),
        real(1, 2, 8, 8),
        BOXES,
    ),
    "scatter_nd_add": (paddle.scatter_nd_add, real(5, 2), whole(3, 1, hi=5), real(3, 2)),
    "send_u_recv": (
        lambda x, s, d: paddle.geometric.send_u_recv(x, s, d, "sum"),
        real(4, 3),
        whole(5, hi=4),
        whole(5, hi=4, seed=1),
    ),
    "send_ue_recv": (
        lambda x, y, s, d: paddle.geometric.send_ue_recv(x, y, s, d, "add", "mean"),
        real(4, 3),
        real(5, 3),
        whole(5, hi=4),
        whole(5, hi=4, seed=1),
    ),
    "send_uv": (
        lambda x, y, s, d: paddle.geometric.send_uv(x, y, s, d, "mul"),
        real(4, 3),
        real(4, 3, seed=1),
        whole(5, hi=4),
        whole(5, hi=4, seed=1),
    ),
    "shard_index": (lambda x: paddle.shard_index(x, 20, 2, 0), whole(4, 1, hi=20)),
    "softmax_mask": (
        lambda x, m: paddle.incubate.softmax_mask_fuse(x, m),
        real(1, 2, 8, 32),
        real(1, 1, 8, 32),
    ),
    "stft": (lambda x: paddle.as_real(paddle.signal.stft(x, 8, 4)), real(2, 32)),
    "swiglu": (lambda x: paddle.incubate.nn.functional.swiglu(x), real(3, 4)),
    "swiglu2": (lambda x, y: paddle.incubate.nn.functional.swiglu(x, y), real(3, 4), real(3, 4, seed=1)),
    "take_clip": (lambda x, i: paddle.take(x, i, mode="clip"), real(3, 4), whole(3, 2, hi=20)),
    "topk_small": (lambda x: paddle.topk(x, 2, 0, largest=False), real(3, 4)),
    "uint8": (lambda x: x.astype("uint8") + 1, whole(4)),
    "truth_parts": (
        lambda x: paddle.where(paddle.concat([x > 0, x > 1], 0).unsqueeze([1, 2]), 1.0, 0.0),
        real(2, 3, hi=2),
    ),
    "unique": (
        lambda x: paddle.unique(x, return_index=True, return_inverse=True, return_counts=True),
        whole(8),
    ),
    "viterbi": (
        lambda x, t, l: paddle.text.viterbi_decode(x, t, l),
        real(2, 3, 4),
        real(4, 4),
        np.array([3, 2], "int64"),
    ),
    "where_scalar": (lambda m, x: paddle.where(m, x, 0.0), truth(3, 4), real(3, 4)),
    "yolo_loss": (
        lambda x, b, l: ops.yolo_loss(x, b, l, [10, 13, 16, 30], [0, 1], 2, 0.7, 8),
        real(1, 14, 4, 4),
        real(1, 2, 4, lo=0.1, hi=0.5),
        whole32(1, 2, hi=2),
    ),
    **{f"unary_{name}": (getattr(paddle, name), real(3, 4)) for name in ("gammaln", "signbit", "isneginf")},
    "copysign": (paddle.copysign, real(3, 4), real(3, 4, seed=1)),
    "right_shift": (paddle.bitwise_right_shift, whole(3, 4, hi=50), whole(3, 4, seed=1)),
    **{
        f"{name}_{axis}": (lambda x, name=name, axis=axis: getattr(paddle, name)(x, axis=axis), real(3, 4))
        for name in ("median", "nanmedian", "nanmean", "count_nonzero")
        for axis in (None, 1)
    },
    "median_kept": (lambda x: paddle.median(x, axis=-1, keepdim=True), real(2, 3, 4)),
    "quantile": (lambda x: paddle.quantile(x, 0.4, axis=1), real(3, 4)),
    "vander": (lambda x: paddle.vander(x, 3), real(4)),
    "sum_of_bool": (lambda x: (x > 0).sum(), real(3, 4)),
    "sum_of_int32": (lambda x: x.sum(0), whole32(3, 4)),
    "average_ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, exclusive=False, ceil_mode=True), real(2, 3, 8, 8)),
    "rrelu": (lambda x: F.rrelu(x, training=False), real(3, 4)),
    "binomial": (lambda n, p: paddle.binomial(n, p), whole(4), np.round(real(4, lo=0))),
    "class_center": (lambda x: F.class_center_sample(x, 20, 3), whole(6, hi=9)),
    "eig": (  # builds of LAPACK differ in order and signs
        lambda x: [paddle.sort(paddle.abs(one).flatten()) for one in paddle.linalg.eig(x)],
        real(2, 3, 3),
    ),
    "eigvals": (lambda x: paddle.sort(paddle.real(paddle.linalg.eigvals(x))), real(3, 3)),
    "fused_rms": (
        lambda x, w, b: fused.fused_rms_norm(x, w, b, 1e-5, 1, residual=x * 2)[:2],
        real(3, 4),
        real(4),
        real(4, seed=2),
    ),
    "gaussian_seed": (lambda x: paddle.tensor.random.gaussian([40, 20], 1.0, 2.0, seed=5) + x, real(1)),
    "identity_loss": (
        lambda x: [paddle.incubate.identity_loss(x, way) for way in ("none", "mean", "sum")],
        real(3, 4),
    ),
    "lstsq": (lambda x, y: paddle.linalg.lstsq(x, y, driver="gelsd"), real(5, 3), real(5, 2, seed=1)),
    "lstsq_gels": (lambda x, y: paddle.linalg.lstsq(x, y, driver="gels")[0], real(3, 5), real(3, 2, seed=1)),
    "lu_solve": (lambda x, y: paddle.linalg.lu_solve(y, *paddle.linalg.lu(x)), real(3, 3), real(3, 2)),
    "lu_solve_t": (
        lambda x, y: paddle.linalg.lu_solve(y, *paddle.linalg.lu(x), "T"),
        real(3, 3),
        real(3, 2),
    ),
    "lu_unpack": (lambda x: paddle.linalg.lu_unpack(*paddle.linalg.lu(x)), real(2, 4, 3)),
    "multinomial": (lambda x: paddle.multinomial(x, 3, True), np.eye(4, dtype="float32")),
    "random": (lambda x: (x * 1).random_(7, 8), real(3, 4)),
    "rank_atol": (lambda x: paddle.linalg.matrix_rank(x, atol=0.1, rtol=0.4), real(2, 4, 4)),
    "rank_tol": (lambda x: paddle.linalg.matrix_rank(x, paddle.to_tensor(0.4)), real(2, 4, 4)),
    "randint_one": (lambda x: paddle.randint(-3, -2, [2, 3]) + x, whole(3)),
    "reindex": (
        paddle.geometric.reindex_graph,
        np.array([3, 1, 2]),
        np.array([8, 9, 3, 4, 7, 1, 7]),
        np.array([2, 3, 2], "int32"),
    ),
    "rnnt": (
        lambda x, y, t, u: F.rnnt_loss(x, y, t, u, reduction="none"),
        real(2, 4, 3, 5),
        whole32(2, 2, hi=4) + 1,
        np.array([4, 3], "int32"),
        np.array([2, 1], "int32"),
    ),
    **{
        f"send_u_{way}": (
            lambda x, s, d, way=way: paddle.geometric.send_u_recv(x, s, d, way, out_size=6),
            real(4, 3),
            whole(5, hi=4),
            whole(5, hi=5, seed=1),
        )
        for way in ("max", "min", "mean")
    },
    "send_ue_max": (
        lambda x, y, s, d: paddle.geometric.send_ue_recv(x, y, s, d, "div", "max"),
        real(4, 3),
        real(5, 1),
        whole(5, hi=4),
        whole(5, hi=4, seed=1),
    ),
    "squeeze_kept": (
        lambda x: paddle.squeeze(x, [0, 1, 2]),
        real(3, 1, 2),
        [[3, None, 2]],
    ),
    "uniform_seed": (lambda x: paddle.uniform([40, 20], min=-2, max=3, seed=7) + x, real(1)),
}
MANY = np.ones(600, "float32")
ROWS = np.tile(np.float32([1, 2, 0, 3]), (600, 1))
#: Functions whose results are drawn anew in each run.
DRAWN = {
    "bernoulli": (lambda x: paddle.bernoulli(x * 0.3), MANY),
    "binomial": (lambda x: paddle.binomial((x * 10).astype("int64"), x * 0.3), MANY),
    "dirichlet": (lambda x: paddle.distribution.Beta(x * 2, x * 3).sample(), MANY),
    "exponential": (lambda x: (x * 1).exponential_(2.0), MANY),
    "gamma": (lambda x: paddle.standard_gamma(x * 3), MANY),
    "gaussian": (lambda x: paddle.normal(1.0, 2.0, [600]) * x, MANY),
    "gumbel_first": (lambda x: F.gumbel_softmax(x.T, hard=True, axis=0)[1], np.log(ROWS[:, :2])),
    "multinomial": (lambda x: paddle.multinomial(x)[:, 0], ROWS),
    "multinomial_second": (lambda x: paddle.multinomial(x, 2)[:, 1], ROWS),
    "poisson": (lambda x: paddle.poisson(x * 4), MANY),
    "randint": (lambda x: paddle.randint(-3, 7, [600]) * x.astype("int64"), MANY),
    "random": (lambda x: (x * 1).random_(2, 6), MANY),
}
LAYERS = {
    "lstm_cells": (lambda: nn.RNN(nn.LSTMCell(4, 5)), real(2, 3, 4)),
    "both_ways": (lambda: nn.BiRNN(nn.GRUCell(4, 5), nn.GRUCell(4, 5)), real(2, 3, 4)),
    "projected": (lambda: nn.LSTM(4, 5, proj_size=3), real(2, 3, 4)),
    "lp_pool": (lambda: nn.LPPool2D(2.0, 3), real(2, 3, 9, 9)),
    "spectral_norm": (lambda: nn.SpectralNorm([3, 4], power_iters=2), real(3, 4)),
    "decoder": (
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 1),
        real(2, 3, 8),
        real(2, 4, 8),
    ),
    "bilinear": (lambda: nn.Bilinear(4, 5, 3), real(2, 4), real(2, 5)),
}


def if2(x):
    y = x * 1
    if x.mean() > 0:
        y = y + 1
        if x.max() > 0.5:
            y = y * 3
    elif x.min() < -0.5:
        y = y - 4
    else:
        y = -y
    return y


def cf_while(x):
    i = paddle.zeros([], "int64")
    while i < 5:
        x = x * 1.1
        i = i + 1
    return (x, i)


def cf_list(x):
    outs = []
    for i in range(x.shape[0]):
        outs.append(x[i] * i)
    return paddle.stack(outs)


def cf_break(x):
    i = paddle.zeros([], "int64")
    s = paddle.zeros([])
    while i < 10:
        s = s + x[i % 4]
        if s > 1:
            break
        i = i + 1
    return (s, i)


def case(x):
    return paddle.static.nn.case(
        [(x.sum() > 5, lambda: x + 1), (x.sum() > 0, lambda: x + 2)], default=lambda: x - 1
    )


def switch(x, i):
    return paddle.static.nn.switch_case(
        i, {0: lambda: x + 1, 1: lambda: x * 2, 3: lambda: x - 5}, default=lambda: x
    )


def wl(x):
    return paddle.static.nn.while_loop(
        lambda i, a: i < 4, lambda i, a: [i + 1, a * x], [paddle.zeros([], "int32"), x]
    )


def nested(x):
    i = paddle.zeros([], "int64")
    while i < 3:
        j = paddle.zeros([], "int64")
        while j < i:
            if x.sum() > 0:
                x = x - 0.5
            else:
                x = x + 0.25
            j = j + 1
        i = i + 1
    return x


def setitem(x):
    y = paddle.zeros([4, 4])
    y[1] = x
    y[:, 2] = 5.0
    y[0, 0:2] = x[:2]
    return y


def setitem_t(x, i):
    y = x * 1
    y[i] = 7.0
    return y


def setitem_m(x):
    y = x * 1
    y[y > 0] = 0.0
    return y


def setdyn(x):
    y = paddle.zeros([4, 4])
    i = paddle.zeros([], "int64")
    while i < 4:
        y[i] = x[i] * 2
        i = i + 1
    return y


def grow(x):
    out = x[:1]
    i = paddle.zeros([], "int64")
    while i < 3:
        out = paddle.concat([out, x[:1] * (i + 1).astype("float32")])
        i += 1
    return out


def array(x):
    a = paddle.tensor.create_array("float32")
    i = paddle.zeros([1], "int64")
    while i < 3:
        paddle.tensor.array_write(x * i.astype("float32"), i, a)
        i = i + 1
    return (paddle.tensor.array_read(a, paddle.to_tensor([1])), paddle.tensor.array_length(a))


CONTROL = {
    "branches": (if2, real(4)),
    "loop": (cf_while, real(4, lo=0.1)),
    "leave": (cf_break, real(4, lo=0.1)),
    "nested": (nested, real(4, lo=0.1)),
    "case": (case, real(4, lo=0.1)),
    "switch": (switch, real(4), np.array(1, "int32")),
    "while_loop": (wl, real(4)),
    "set_item": (setitem, real(4)),
    "set_at_index": (setitem_t, real(4, 3), whole(2, hi=4)),
    "set_where": (setitem_m, real(4, 3)),
    "set_in_loop": (setdyn, real(4, 4)),
    "grow": (grow, real(2, 4)),
    "array": (array, real(4, lo=0.1)),
    "list": (cf_list, real(3, 4)),
}


class Call1(nn.Layer):
    """A function of one tensor as a layer."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a):
        return self.function(a)


class Call2(Call1):
    def forward(self, a, b):
        return self.function(a, b)


class Call3(Call1):
    def forward(self, a, b, c):
        return self.function(a, b, c)


class Call4(Call1):
    def forward(self, a, b, c, d):
        return self.function(a, b, c, d)


def save_model(folder, layer, fed, outs=None):
    """Save a layer, and what it computes once it is loaded again; a list behind the arrays is their shapes.

    `outs`: what it should compute, where the loaded one gives something else.
    """
    layer.eval()
    shapes = fed.pop() if isinstance(fed[-1], list) else None
    names = [f"x{i}" for i in range(len(fed))]
    shapes = shapes or [one.shape for one in fed]
    specs = [
        paddle.static.InputSpec(list(shape), str(one.dtype), name)
        for name, one, shape in zip(names, fed, shapes, strict=True)
    ]
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), f"{folder}/inference")
    feed = dict(zip(names, fed, strict=True))
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(f"{folder}/inference", exe)
        again = exe.run(program, feed={name: feed[name] for name in feeds}, fetch_list=fetches)
    outs = outs or again
    paddle.disable_static()
    arrays = {f"in{i}": feed[name] for i, name in enumerate(feeds)}
    np.savez(
        f"{folder}/io.npz",
        feeds=feeds,
        **arrays,
        **{f"out{i}": np.asarray(one) for i, one in enumerate(outs)},
    )


def main(out):
    paddle.seed(1)
    np.random.seed(1)
    with tempfile.TemporaryDirectory() as home:
        drawn = {f"drawn_{name}": case for name, case in DRAWN.items()}
        calls = {
            name: (
                (Call1, Call2, Call3, Call4)[sum(isinstance(one, np.ndarray) for one in fed) - 1](function),
                fed,
            )
            for name, (function, *fed) in (CASES | CONTROL | drawn).items()
        }
        layers = {name: (make(), fed) for name, (make, *fed) in LAYERS.items()}
        for name, (layer, fed) in (calls | layers).items():
            folder = Path(home) / name
            folder.mkdir()
            save_model(folder, layer, fed)
        write_archive(out, home)


if __name__ == "__main__":
    main(sys.argv[1])
