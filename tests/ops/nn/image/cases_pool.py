"""Cases of the pools, against a formula that cuts out one window at a time."""

import itertools

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(6)
X = _rng.standard_normal((2, 3, 6, 7))
X3 = _rng.standard_normal((2, 2, 5, 4, 6))
LAST = {"NHWC", "NDHWC"}


def _spans(spatial, attrs):
    """Per dim the start and end of every window, not yet clipped to the data."""
    if attrs["adaptive"] and attrs.get("pooling_type") == "max":  # Fluid's windows, see fluid.quirks()
        steps = zip(attrs["ksize"], attrs["strides"], strict=True)
        return [[(i * s, i * s + k) for i in range(k)] for k, s in steps]
    if attrs["adaptive"]:
        return [
            [(int(np.floor(i * n / k)), int(np.ceil((i + 1) * n / k))) for i in range(k)]
            for n, k in zip(spatial, attrs["ksize"], strict=True)
        ]
    if attrs["global_pooling"]:
        return [[(0, n)] for n in spatial]
    rank, algorithm = len(spatial), attrs.get("padding_algorithm", "EXPLICIT")
    paddings = np.array(attrs["paddings"])
    pads = (np.repeat(paddings, 2) if len(paddings) == rank else paddings).reshape(rank, 2)
    spans = []
    for n, k, s, (low, high) in zip(spatial, attrs["ksize"], attrs["strides"], pads, strict=True):
        if algorithm == "VALID":
            low = high = 0
        if algorithm == "SAME":
            total = max((int(np.ceil(n / s)) - 1) * s + k - n, 0)
            low, high = total // 2, total - total // 2
        steps = (n + low + high - k) / s
        count = int(np.ceil(steps) if attrs.get("ceil_mode") else np.floor(steps)) + 1
        spans.append([(i * s - low, i * s - low + k) for i in range(count)])
    return spans


def _pool(x, attrs, reduce):
    spans = _spans(x.shape[2:], attrs)
    out = np.empty((*x.shape[:2], *(len(along) for along in spans)))
    for cell in itertools.product(*(range(len(along)) for along in spans)):
        box = [along[i] for along, i in zip(spans, cell, strict=True)]
        inside = [slice(max(a, 0), min(b, n)) for (a, b), n in zip(box, x.shape[2:], strict=True)]
        area = np.prod([b - a for a, b in box])
        out[(..., *cell)] = reduce(x[(..., *inside)].reshape(*x.shape[:2], -1), area)
    return out


def _expected(
    X,
    pooling_type,
    ksize,
    strides,
    paddings,
    global_pooling,
    adaptive,
    exclusive,
    ceil_mode,
    padding_algorithm,
    data_format,
):
    attrs = {k: v for k, v in locals().items() if k != "X"}
    if pooling_type == "max":
        reduce = lambda window, area: window.max(-1)
    elif exclusive or adaptive:
        reduce = lambda window, area: window.mean(-1)
    else:
        reduce = lambda window, area: window.sum(-1) / area
    if data_format in LAST:
        return np.moveaxis(_pool(np.moveaxis(X, -1, 1), attrs, reduce), 1, -1)
    return _pool(X, attrs, reduce)


def _with_index(X, ksize, strides, paddings, global_pooling, adaptive):
    attrs = {k: v for k, v in locals().items() if k != "X"}
    out = _pool(X, attrs, lambda window, area: window.max(-1))
    mask = np.empty(out.shape, np.int32)
    for n, c in np.ndindex(*out.shape[:2]):  # the numbers are all different: a maximum is one place
        place = {value: i for i, value in enumerate(X[n, c].ravel())}
        mask[n, c] = np.vectorize(place.get)(out[n, c])
    return {"Out": out, "Mask": mask}


def _both(type: str, x, note: str, **attrs) -> list[Case]:
    return [
        Case(type, {"X": x}, _expected, attrs | {"pooling_type": kind}, note=f"{kind}-{note}")
        for kind in ("max", "avg")
    ]


_LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))
_LAST3 = np.ascontiguousarray(np.moveaxis(X3, 1, -1))

CASES = [
    *_both("pool2d", X, "2x2", ksize=[2, 2], strides=[2, 2]),
    *_both("pool2d", X, "overlapping", ksize=[3, 2], strides=[1, 1], paddings=[1, 1]),
    *_both("pool2d", X, "gaps", ksize=[1, 2], strides=[2, 3]),
    *_both("pool2d", X, "four-pads", ksize=[3, 3], strides=[2, 2], paddings=[1, 0, 2, 1]),
    *_both("pool2d", X, "ceil", ksize=[3, 3], strides=[2, 2], paddings=[1, 1], ceil_mode=True),
    *_both("pool2d", X, "inclusive", ksize=[3, 3], strides=[2, 3], paddings=[1, 1], exclusive=False),
    *_both("pool2d", X, "ceil-inclusive", ksize=[3, 2], strides=[2, 2], ceil_mode=True, exclusive=False),
    *_both("pool2d", X, "same", ksize=[3, 3], strides=[2, 2], padding_algorithm="SAME"),
    *_both("pool2d", X, "valid", ksize=[3, 3], paddings=[1, 1], padding_algorithm="VALID"),
    *_both("pool2d", X, "global", ksize=[2, 2], global_pooling=True, paddings=[1, 1]),
    *_both("pool2d", X, "adaptive", ksize=[4, 3], adaptive=True),
    *_both("pool2d", X, "adaptive-even", ksize=[3, 1], adaptive=True),
    *_both("pool2d", _LAST, "channels-last", ksize=[2, 3], strides=[2, 2], data_format="NHWC"),
    *_both("pool3d", X3, "3d", ksize=[2, 2, 3], strides=[1, 2, 2], paddings=[1, 0, 1]),
    *_both("pool3d", X3, "adaptive", ksize=[3, 2, 2], adaptive=True),
    *_both("pool3d", _LAST3, "channels-last", ksize=[2, 2, 2], strides=[2, 2, 2], data_format="NDHWC"),
    # check_shape: Mask is declared like X, as in Paddle, but holds int32.
    *(
        Case(type, {"X": x}, _with_index, attrs, through=["Out"], check_shape=False, note=note)
        for type, x, note, attrs in (
            ("max_pool2d_with_index", X, "2x2", {"ksize": [2, 2], "strides": [2, 2]}),
            ("max_pool2d_with_index", X, "padded", {"ksize": [3, 2], "paddings": [1, 1]}),
            ("max_pool2d_with_index", X, "adaptive", {"ksize": [4, 3], "adaptive": True}),
            ("max_pool2d_with_index", X, "global", {"ksize": [1, 1], "global_pooling": True}),
            ("max_pool3d_with_index", X3, "3d", {"ksize": [2, 2, 3], "strides": [1, 2, 1]}),
            ("max_pool3d_with_index", X3, "adaptive", {"ksize": [2, 3, 2], "adaptive": True}),
        )
    ),
]  # fmt: skip
