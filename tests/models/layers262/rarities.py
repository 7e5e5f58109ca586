"""Functions that few models hold."""

import numpy as np
import paddle
from inputs import IMAGE, VOLUME, of, positive, real, whole
from paddle import nn
from paddle.nn import functional as F  # noqa: N812


def rarities():
    x = real(3, 4)
    pairs = lambda x: paddle.as_complex(paddle.reshape(x, [3, 2, 2]))
    yield "atan2", of(paddle.atan2, x, real(3, 4))
    yield (
        "complex_parts",
        of(lambda x: [paddle.real(pairs(x)), paddle.imag(pairs(x)), paddle.angle(pairs(x))], x),
    )
    yield "conj", of(lambda x: paddle.as_real(paddle.conj(pairs(x))), x)
    yield "i0", of(lambda x: [paddle.i0(x), paddle.i0e(x)], x)
    yield "broadcast_tensors", of(lambda x, y: paddle.broadcast_tensors([x, y]), real(3, 1), real(1, 4))
    yield "multi_dot", of(lambda x, y, z: paddle.linalg.multi_dot([x, y, z]), x, real(4, 2), real(2, 3))
    yield "slogdet", of(paddle.linalg.slogdet, real(2, 3, 3))
    yield "triu_indices", of(lambda x: paddle.triu_indices(3, 4, 1) + paddle.cast(x[0, 0] * 0, "int64"), x)
    yield "expand_as", of(paddle.expand_as, real(1, 4), x)
    yield (
        "max_unpool3d",
        of(lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, return_mask=True), 2), real(*VOLUME)),
    )
    yield (
        "depthwise_transpose",
        of(lambda x: nn.Conv2DTranspose(3, 3, 3, stride=2, groups=3)(x), real(*IMAGE)),
    )
    yield "unique_rows", of(lambda x: paddle.unique(paddle.cast(x, "int64"), axis=0), real(5, 2))
    yield "cumsum_axis0", of(lambda x: paddle.cumsum(x, axis=0), x)
    yield (
        "transposed_size",
        of(lambda x: nn.Conv2DTranspose(3, 2, 3, stride=2)(x, output_size=[14, 13]), real(*IMAGE)),
    )
    yield (
        "int_arithmetic",
        of(lambda x, y: [x // y, x % y, x + y], whole(9, 3, 4, low=-9), whole(9, 3, 4, low=1)),
    )
    yield "max_with_index", of(lambda x: [paddle.max(x, axis=1), paddle.argmax(x, axis=1, keepdim=True)], x)
    yield "cummax", of(lambda x: list(paddle.cummax(x, axis=1)), x)
    yield "cummin", of(lambda x: list(paddle.cummin(x, axis=0)), x)
    yield "gumbel_free_softmax", of(lambda x: F.softmax(x * 3, axis=0), x)
    yield (
        "triangular_solve",
        of(
            lambda x, y: paddle.linalg.triangular_solve(x, y),
            np.triu(real(3, 3)) + 2 * np.eye(3, dtype="float32"),
            real(3, 2),
        ),
    )
    yield "fill_diagonal", of(lambda x: paddle.diag(paddle.diag(x[:, :3])) + x[:, :3], x)
    yield "nansum", of(lambda x: paddle.nansum(paddle.log(x)), x)
    yield "diff", of(lambda x: paddle.diff(x, axis=1), x)
    yield "quantile", of(lambda x: paddle.quantile(x, 0.3, axis=1), x)
    yield "renorm", of(lambda x: paddle.renorm(x, 2.0, 0, 1.0), x)
    yield "tensordot", of(lambda x, y: paddle.tensordot(x, y, axes=1), x, real(4, 2))
    yield "unfold_conv", of(lambda x: F.unfold(x, [2, 3], 2, [1, 0]), real(*IMAGE))
    yield "dropout_axis", of(lambda x: F.dropout3d(x, 0.3, training=False), real(*VOLUME))
    yield "gaussian_nll", of(lambda x, y, v: F.gaussian_nll_loss(x, y, v), x, real(3, 4), positive(3, 4))
    yield "hinge", of(lambda x, y: F.hinge_embedding_loss(x, paddle.sign(y)), x, real(3, 4))
    yield "triplet", of(F.triplet_margin_loss, x, real(3, 4), real(3, 4))
    yield (
        "ctc",
        of(
            lambda x, y, n, m: F.ctc_loss(x, y, n, m, reduction="none"),
            real(5, 2, 4),
            whole(3, 2, 2, low=1).astype("int32"),
            np.array([5, 4]),
            np.array([2, 1]),
        ),
    )
    yield (
        "viterbi",
        of(
            lambda x, t, n: list(paddle.text.viterbi_decode(x, t, n, False)),
            real(2, 4, 3),
            real(3, 3),
            np.array([4, 2]),
        ),
    )
    yield "rms_norm", of(lambda x: x * paddle.rsqrt(paddle.mean(x * x, -1, keepdim=True) + 1e-6), x)
    yield "erf_gelu", of(lambda x: x * 0.5 * (1.0 + paddle.erf(x / 1.4142135)), x)
    yield "swiglu", of(lambda x: F.silu(x[:, :2]) * x[:, 2:], x)
    yield "where_scalar", of(lambda x: paddle.where(x > 0, x, paddle.to_tensor(0.0)), x)
    yield (
        "full_like_int",
        of(lambda x: paddle.full_like(paddle.cast(x, "int64"), 7) + paddle.ones([4], "int64"), x),
    )
    yield (
        "vision_yolo_box",
        of(
            lambda x, n: list(paddle.vision.ops.yolo_box(x, n, [10, 13, 16, 30], 2, 0.01, 8)),
            real(1, 14, 3, 3),
            np.array([[24, 24]], "int32"),
        ),
    )
    yield (
        "vision_nms",
        of(
            lambda b, s: paddle.vision.ops.nms(b, 0.3, s),
            np.array([[0, 0, 4, 4], [1, 1, 4, 4], [5, 5, 8, 8]], "float32"),
            positive(3),
        ),
    )
    yield (
        "vision_roi_align",
        of(
            lambda x, b, n: paddle.vision.ops.roi_align(x, b, n, 2),
            real(1, 2, 6, 6),
            np.array([[0, 0, 4, 4], [1, 1, 5, 4]], "float32"),
            np.array([2], "int32"),
        ),
    )
    yield (
        "vision_roi_pool",
        of(
            lambda x, b, n: paddle.vision.ops.roi_pool(x, b, n, 2),
            real(1, 2, 6, 6),
            np.array([[0, 0, 4, 4], [1, 1, 5, 4]], "float32"),
            np.array([2], "int32"),
        ),
    )
    yield (
        "vision_deform_conv",
        of(
            lambda x, o, w: paddle.vision.ops.deform_conv2d(x, o, w),
            real(1, 2, 5, 5),
            real(1, 18, 3, 3) / 4,
            real(2, 2, 3, 3),
        ),
    )
    yield (
        "vision_prior_box",
        of(
            lambda x, y: list(paddle.vision.ops.prior_box(x, y, [4.0], [6.0], [2.0], flip=True)),
            real(1, 2, 3, 3),
            real(1, 3, 12, 12),
        ),
    )
    yield (
        "vision_box_coder",
        of(
            lambda p, v, t: paddle.vision.ops.box_coder(p, v, t),
            positive(3, 4),
            positive(3, 4),
            positive(2, 4),
        ),
    )
