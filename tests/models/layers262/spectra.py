"""Spectra and decompositions; what detectors choose from their boxes."""

import numpy as np
import paddle
from inputs import RNG, of, positive, real
from paddle.base.layer_helper import LayerHelper


def both(x):
    """Complex numbers as two real ones."""
    return paddle.as_real(x)


def pairs(x):
    return paddle.as_complex(paddle.reshape(x, [*x.shape[:-1], x.shape[-1] // 2, 2]))


def spectra():
    fft, x, z = paddle.fft, real(3, 6), real(3, 8)
    table = {
        "fft_real": lambda x: both(fft.fft(x)),
        "rfft": lambda x: both(fft.rfft(x, norm="ortho")),
        "rfft2": lambda x: both(fft.rfft2(x, norm="forward")),
        "rfftn_sized": lambda x: both(fft.rfftn(x, s=[4, 5])),
        "ihfft": lambda x: both(fft.ihfft(x)),
        "fftshift": lambda x: fft.fftshift(x),
        "stft": lambda x: both(paddle.signal.stft(x, n_fft=4, hop_length=2)),
        "frame": lambda x: paddle.signal.frame(x, frame_length=3, hop_length=2),
        "frame_first": lambda x: paddle.signal.frame(x[0], frame_length=3, hop_length=1, axis=0),
        "overlap_add": lambda x: paddle.signal.overlap_add(x, hop_length=2),
        "svd_values": lambda x: paddle.linalg.svd(x)[1],
        "svd_product": lambda x: paddle.matmul(*scaled(paddle.linalg.svd(x, full_matrices=False))),
        "svd_full": lambda x: paddle.abs(paddle.linalg.svd(x, full_matrices=True)[0]),
        "pinv": paddle.linalg.pinv,
        "qr": lambda x: paddle.matmul(*paddle.linalg.qr(x)),
        "matrix_rank": paddle.linalg.matrix_rank,
        "matrix_rank_tol": lambda x: paddle.linalg.matrix_rank(x, tol=1.5),
        "nextafter": lambda x: paddle.nextafter(x, x + 1),
        "i1": lambda x: [paddle.i1(x), paddle.i1e(x)],
        "index_put": lambda x: paddle.index_put(x, (ints([0, 2]), ints([1, 3])), x[0, :2]),
        "fill_diagonal_tensor": lambda x: paddle.Tensor.fill_diagonal_tensor(x, x[0, :3]),
        "logspace": lambda x: paddle.logspace(0, 3, 4, base=2.0) + x[0, 0],
    }  # fmt: skip
    for name, function in table.items():
        yield name, of(function, x)
    complex_table = {
        "fft_complex": lambda z: both(fft.fft(pairs(z))),
        "ifft": lambda z: both(fft.ifft(pairs(z))),
        "ifft2": lambda z: both(fft.ifft2(pairs(z), norm="ortho")),
        "irfft": lambda z: fft.irfft(pairs(z)),
        "irfft_odd": lambda z: fft.irfft(pairs(z), n=5),
        "irfft2": lambda z: fft.irfft2(pairs(z)),
        "hfft": lambda z: fft.hfft(pairs(z)),
        "complex": lambda z: both(paddle.complex(z, z * 2)),
    }
    for name, function in complex_table.items():
        yield name, of(function, z)
    square = real(2, 3, 3)
    even = square @ square.transpose(0, 2, 1) + 3 * np.eye(3, dtype="float32")
    yield "eigh", of(lambda x: paddle.linalg.eigh(x)[0], even)
    yield "eigvalsh", of(paddle.linalg.eigvalsh, even)
    yield "cholesky_solve", of(lambda x, y: paddle.linalg.cholesky_solve(y, x), even[0], real(3, 2))
    yield "lu", of(lambda x: list(paddle.linalg.lu(x)), square)
    yield (
        "segments",
        of(lambda x, y: [f(x, y) for f in segments()], real(5, 3), np.array([0, 0, 1, 3, 3], "int64")),
    )
    yield "polygamma", of(lambda x: paddle.polygamma(x, 1), positive(2, 3))


def detectors():
    corners = RNG.uniform(0, 40, (2, 30, 2)).astype("float32")
    boxes = np.concatenate([corners, corners + RNG.uniform(4, 20, (2, 30, 2)).astype("float32")], 2)
    scores = RNG.uniform(0, 1, (2, 4, 30)).astype("float32")
    yield "multiclass_nms3", of(lambda b, s: suppress(b, s, keep_top_k=12), boxes, scores)
    yield "multiclass_nms3_none", of(lambda b, s: suppress(b, s, score_threshold=2.0), boxes, scores)
    rows = np.repeat(boxes[0][:, None], 4, 1)
    yield (
        "multiclass_nms3_counts",
        of(
            lambda b, s, n: suppress(b, s, n, nms_top_k=9),
            rows, scores[0].T.copy(), np.array([12, 18], "int32"),
        ),
    )  # fmt: skip
    for offset in (False, True):
        yield (
            f"generate_proposals_{offset}",
            of(
                lambda s, d, i, a, v, offset=offset: paddle.vision.ops.generate_proposals(
                    s, d, i, a, v, pre_nms_top_n=20, post_nms_top_n=8, nms_thresh=0.5, min_size=3.0,
                    pixel_offset=offset, return_rois_num=True,
                ),
                RNG.uniform(0, 1, (2, 3, 4, 5)).astype("float32"), real(2, 12, 4, 5) / 4,
                np.array([[40, 50], [30, 44]], "float32"), boxes.reshape(-1, 4)[:60].reshape(4, 5, 3, 4),
                np.ones((4, 5, 3, 4), "float32"),
            ),
        )  # fmt: skip
        yield (
            f"distribute_fpn_{offset}",
            of(
                lambda r, n, offset=offset: without_levels(paddle.vision.ops.distribute_fpn_proposals(
                    r, 2, 4, 3, 12, pixel_offset=offset, rois_num=n
                )),
                boxes.reshape(-1, 4), np.array([30, 30], "int32"),
            ),
        )  # fmt: skip


def without_levels(parts):
    """What is fetched without a LoD: the index of each region, and the counts of each level."""
    _, restore, counts = parts
    return [restore, *counts]


def scaled(parts):
    u, s, vh = parts
    return u * s, vh


def ints(values):
    return paddle.assign(np.array(values, "int64"))


def segments():
    g = paddle.geometric
    return g.segment_sum, g.segment_mean, g.segment_max, g.segment_min


def suppress(boxes, scores, counts=None, **options):
    helper = LayerHelper("multiclass_nms3")
    out = helper.create_variable_for_type_inference("float32")
    index, rows = (helper.create_variable_for_type_inference("int32") for _ in range(2))
    attrs = {
        "background_label": 0, "score_threshold": 0.3, "nms_top_k": 20, "nms_threshold": 0.4, "nms_eta": 1.0,
        "keep_top_k": -1, "normalized": True,
    }  # fmt: skip
    inputs = {"BBoxes": boxes, "Scores": scores} | ({} if counts is None else {"RoisNum": counts})
    outputs = {"Out": out, "Index": index, "NmsRoisNum": rows}
    helper.append_op(type="multiclass_nms3", inputs=inputs, outputs=outputs, attrs=attrs | options)
    return [out, index, rows]
