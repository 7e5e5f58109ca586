"""Cases of the convolutions, against the sum as it is written in books: one output at a time."""

import itertools

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(5)
_normal = lambda *shape: _rng.standard_normal(shape)
LAST = {"NHWC": True, "NDHWC": True}


def _pads(spatial, kernel, strides, paddings, padding_algorithm):
    rank = len(spatial)
    if padding_algorithm == "SAME":
        totals = [
            max((int(np.ceil(n / s)) - 1) * s + k - n, 0)
            for n, k, s in zip(spatial, kernel, strides, strict=True)
        ]
        return [(t // 2, t - t // 2) for t in totals]
    if padding_algorithm == "VALID":
        return [(0, 0)] * rank
    pairs = np.repeat(paddings, 2) if len(paddings) == rank else np.array(paddings)
    return [tuple(pair) for pair in pairs.reshape(rank, 2)]


def _counts(spatial, kernel, strides, pads, dilations):
    return [
        (n + sum(p) - (d * (k - 1) + 1)) // s + 1
        for n, p, d, k, s in zip(spatial, pads, dilations, kernel, strides, strict=True)
    ]


def _products(spatial, counts, kernel, strides, pads, dilations):
    """(output place, kernel place, input place) of every product that is not with padding."""
    for out in itertools.product(*map(range, counts)):
        for place in itertools.product(*map(range, kernel)):
            at = tuple(
                o * s + k * d - p[0]
                for o, s, k, d, p in zip(out, strides, place, dilations, pads, strict=True)
            )
            if all(0 <= a < n for a, n in zip(at, spatial, strict=True)):
                yield out, place, at


def _first(x, data_format):
    return np.moveaxis(x, -1, 1) if data_format in LAST else x


def _last(x, data_format):
    return np.moveaxis(x, 1, -1) if data_format in LAST else x


def _conv(Input, Filter, strides, paddings, dilations, groups, padding_algorithm, data_format):
    x = _first(Input, data_format)
    pads = _pads(x.shape[2:], Filter.shape[2:], strides, paddings, padding_algorithm)
    if padding_algorithm == "SAME":
        dilations = [1] * len(strides)
    steps = Filter.shape[2:], strides, pads, dilations
    counts = _counts(x.shape[2:], *steps)
    products = list(_products(x.shape[2:], counts, *steps))
    y = np.zeros((len(x), len(Filter), *counts))
    per_group, taken = len(Filter) // groups, Filter.shape[1]
    for o in range(len(Filter)):
        channels = slice(o // per_group * taken, (o // per_group + 1) * taken)
        for out, place, at in products:
            y[(slice(None), o, *out)] += x[(slice(None), channels, *at)] @ Filter[(o, ..., *place)]
    return _last(y, data_format)


def _transpose(
    Input, Filter, strides, paddings, dilations, groups, padding_algorithm, data_format, output_size
):
    x = _first(Input, data_format)
    pads = _pads(x.shape[2:], Filter.shape[2:], strides, paddings, padding_algorithm)
    size = output_size or [
        (n - 1) * s + d * (k - 1) + 1 - sum(p)
        for n, s, d, k, p in zip(x.shape[2:], strides, dilations, Filter.shape[2:], pads, strict=True)
    ]
    y = np.zeros((len(x), Filter.shape[1] * groups, *size))
    per_group, given = len(Filter) // groups, Filter.shape[1]
    products = list(_products(size, x.shape[2:], Filter.shape[2:], strides, pads, dilations))
    for c in range(len(Filter)):
        channels = slice(c // per_group * given, (c // per_group + 1) * given)
        for at, place, out in products:
            y[(slice(None), channels, *out)] += np.outer(x[(slice(None), c, *at)], Filter[(c, ..., *place)])
    return _last(y, data_format)


def _with_bias(Input, Filter, Bias, **attrs):
    return _conv(Input, Filter, **attrs) + Bias.reshape(-1, 1, 1)


def _fused(
    Input,
    Filter,
    Bias,
    ResidualData,
    strides,
    paddings,
    dilations,
    groups,
    padding_algorithm,
    data_format,
):
    y = _conv(Input, Filter, strides, paddings, dilations, groups, padding_algorithm, data_format)
    return y + Bias.reshape(-1, 1, 1) + ResidualData


def _transpose_with_bias(
    Input,
    Filter,
    Bias,
    strides,
    paddings,
    dilations,
    groups,
    padding_algorithm,
    data_format,
    output_size,
):
    y = _transpose(
        Input,
        Filter,
        strides,
        paddings,
        dilations,
        groups,
        padding_algorithm,
        data_format,
        output_size,
    )
    return y + Bias.reshape(-1, 1, 1)


X, W = _normal(2, 4, 6, 7), _normal(6, 4, 3, 2)
X3, W3 = _normal(2, 2, 4, 5, 4), _normal(4, 2, 2, 3, 2)
XT, WT = _normal(2, 4, 4, 3), _normal(4, 3, 3, 2)
_with = lambda **attrs: attrs

CASES = [
    Case("conv2d", {"Input": X, "Filter": W}, _conv),
    Case(
        "conv2d",
        {"Input": X, "Filter": W},
        _conv,
        _with(strides=[2, 1], paddings=[1, 2], dilations=[2, 1]),
        note="steps",
    ),
    Case(
        "conv2d",
        {"Input": X, "Filter": W},
        _conv,
        _with(strides=[2, 2], paddings=[0, 1, 2, 0]),
        note="four-pads",
    ),
    Case(
        "conv2d",
        {"Input": X, "Filter": W},
        _conv,
        _with(strides=[2, 3], dilations=[2, 2], padding_algorithm="SAME"),
        note="same",
    ),
    Case(
        "conv2d",
        {"Input": X, "Filter": W},
        _conv,
        _with(paddings=[1, 1], padding_algorithm="VALID"),
        note="valid",
    ),
    Case(
        "conv2d",
        {"Input": X, "Filter": _normal(6, 2, 3, 2)},
        _conv,
        _with(groups=2, paddings=[1, 1]),
        note="groups",
    ),
    Case(
        "conv2d",
        {"Input": np.ascontiguousarray(np.moveaxis(X, 1, -1)), "Filter": W},
        _conv,
        _with(data_format="NHWC", strides=[1, 2], paddings=[1, 1]),
        note="channels-last",
    ),
    Case("conv2d", {"Input": X, "Filter": _normal(5, 4, 1, 1)}, _conv, note="1x1"),
    Case(
        "conv2d",
        {"Input": X, "Filter": W, "Bias": _normal(6), "ResidualData": _normal(2, 6, 4, 6)},
        _fused,
        _with(fuse_residual_connection=True),
        note="bias-residual",
    ),
    Case(
        "depthwise_conv2d",
        {"Input": X, "Filter": _normal(8, 1, 3, 3)},
        _conv,
        _with(groups=4, paddings=[1, 1], strides=[1, 2]),
    ),
    Case("conv3d", {"Input": X3, "Filter": W3}, _conv, _with(paddings=[1, 0, 1])),
    Case(
        "conv3d",
        {"Input": np.ascontiguousarray(np.moveaxis(X3, 1, -1)), "Filter": W3[:, :1]},
        _conv,
        _with(data_format="NDHWC", groups=2, strides=[2, 1, 1], padding_algorithm="SAME"),
        note="channels-last",
    ),
    Case("conv2d_transpose", {"Input": XT, "Filter": WT}, _transpose, _with(strides=[2, 1])),
    Case(
        "conv2d_transpose",
        {"Input": XT, "Filter": WT, "Bias": _normal(6)},
        _transpose_with_bias,
        _with(groups=2, strides=[2, 3], paddings=[1, 0], output_size=[8, 9]),
        note="output-size",
    ),
    Case(
        "conv2d_transpose",
        {"Input": np.ascontiguousarray(np.moveaxis(XT, 1, -1)), "Filter": WT},
        _transpose,
        _with(data_format="NHWC", dilations=[1, 2], strides=[2, 2], paddings=[0, 1, 1, 0]),
        note="channels-last",
    ),
    Case(
        "depthwise_conv2d_transpose",
        {"Input": XT, "Filter": _normal(4, 1, 3, 3)},
        _transpose,
        _with(groups=4, strides=[2, 2], paddings=[1, 1]),
    ),
    Case(
        "conv3d_transpose",
        {"Input": X3, "Filter": _normal(2, 3, 2, 3, 2)},
        _transpose,
        _with(strides=[1, 2, 1], paddings=[1, 0, 0]),
    ),
]
