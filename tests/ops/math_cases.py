# ruff: noqa: SIM905  (lists of names read better as text)
"""Points at which mathematical operators are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well (``tests/interop/dumps/dump_cases.py``). Left out is where Fluid's own
result is plainly wrong: reductions over all dims given one by one (it returns 0), ``keep_dim`` with
``reduce_all`` (its gradient fails), ``elementwise_pow`` with a longer Y (it returns Y ^ X).
"""

import numpy as np

from tests.ops.harness.recorded import add_case

FP32, FP64, INT64, BOOL = 5, 6, 3, 0
DTYPES = {FP64: "float64", INT64: "int64", BOOL: "bool"}
COMPARISONS = (
    "equal not_equal less_than less_equal greater_than greater_equal equal_reduce allclose "
    "isfinite isinf isnan"
).split()


def values(seed, *shape, **between):
    """Float32 numbers, the same on every numpy."""
    low, high = between.get("low", -2.0), between.get("high", 2.0)
    return np.random.RandomState(seed).uniform(low, high, shape).astype("float32")


def integers(seed, *shape):
    return np.random.RandomState(seed).randint(-9, 10, shape).astype("int64")


def numbers(*given):
    return np.array(given, "float32")


CASES = {}
LEVELED = True  # the levels of the outputs are recorded, too, when the inputs have one
BY_PRODUCTS = {"norm": ["Norm"], "squared_l2_distance": ["sub_result"], "cos_sim": ["XNorm", "YNorm"]}


def case(type, inputs, wrt=(), note="", **attrs):
    first = next(iter(inputs.values()))
    own = (first[0] if isinstance(first, list) else first).dtype.name
    outputs = dict.fromkeys(["Out", *BY_PRODUCTS.get(type, [])], DTYPES.get(attrs.get("out_dtype"), own))
    if type in COMPARISONS:
        outputs["Out"] = "bool"
    add_case(CASES, type, inputs, outputs, " ".join(wrt), note, **attrs)


def unary(type, x, note="", **attrs):
    case(type, {"X": x}, ["X"], note, **attrs)


X = values(1, 4, 5) * 3
POSITIVE = values(2, 4, 5, low=0.2)
CUBE = values(3, 3, 4, 5)

for name in (
    "relu relu6 leaky_relu elu selu gelu sigmoid logsigmoid tanh tanh_shrink softshrink hard_shrink softplus "
    "softsign swish hard_sigmoid hard_swish brelu soft_relu stanh thresholded_relu mish exp square abs ceil "
    "floor round sin cos atan erf sign softmax"
).split():
    unary(name, X)
for name in "log log1p sqrt rsqrt reciprocal".split():
    unary(name, POSITIVE)
for name in "asin acos".split():
    unary(name, X / 7)
# Where a formula bends, and where a naive one would overflow.
unary("relu", numbers(0, -0.0, 1), "bend")
unary("relu6", numbers(0, 6, 7), "bend")
unary("leaky_relu", numbers(0, -1, 1), "bend", alpha=0.25)
unary("elu", numbers(0, -1, 9), "bend", alpha=2.0)
unary("selu", numbers(0, -1, 1), "bend")
unary("softshrink", numbers(0.5, -0.5, 0), "bend")
unary("hard_shrink", numbers(0.5, -0.5, 0), "bend")
unary("hard_sigmoid", numbers(-2.5, 2.5, 0), "bend")
unary("hard_swish", numbers(-3, 3, 0), "bend")
unary("brelu", numbers(0, 24, 25), "bend")
unary("soft_relu", numbers(-41, 41, 0), "bend")
unary("soft_relu", X, "low", threshold=2.0)
unary("thresholded_relu", numbers(1, 1.5), "bend")
unary("abs", numbers(0, -1), "bend")
unary("sign", numbers(0, -2), "bend")
unary("round", numbers(0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997), "halves")
unary("mish", numbers(21, -21, -50), "far")
unary("softplus", numbers(50, -50, 0), "far")
unary("logsigmoid", numbers(50, -50, -200), "far")
unary("sigmoid", numbers(-100, -20, 100), "far")
unary("gelu", numbers(-10, 10, -3, 3), "far")
unary("swish", numbers(-100, 5), "far")
unary("gelu", X / 2, "tanh", approximate=True)
unary("leaky_relu", X, "steep", alpha=2.0)
unary("selu", X, "other", alpha=0.5, scale=2.0)
unary("softshrink", X, "other", **{"lambda": 1.0})
unary("swish", X, "other", beta=2.5)
unary("hard_swish", X, "other", threshold=4.0, scale=3.0, offset=1.0)
unary("stanh", X / 3, "other", scale_a=1.5, scale_b=2.0)
unary("mish", X, "other", threshold=1.0)
unary("softmax", CUBE, "axis-1", axis=1)
unary("softmax", CUBE, "axis-0", axis=0)
unary("softmax", numbers(100, 0, -100, 200).reshape(1, 4), "far")
for factor in (2.0, 0.5, 3.0, -1.0, 0.0, 1.0):
    unary("pow", POSITIVE, str(factor), factor=factor)
unary("pow", numbers(-1, 0, 2), "negative", factor=3.0)
case("pow", {"X": POSITIVE, "FactorTensor": numbers(2.5)}, ["X"], "tensor")
IMAGES = values(4, 2, 6, 3, 3)
for mode, alpha in (("all", (1,)), ("channel", (1, 6, 1, 1)), ("element", (1, 6, 3, 3))):
    case("prelu", {"X": IMAGES, "Alpha": values(5, *alpha)}, ["X", "Alpha"], mode, mode=mode)
unary("maxout", IMAGES, "", groups=3)
unary("maxout", IMAGES, "axis", groups=3, axis=3)
unary("maxout", IMAGES * 0 + 1, "ties", groups=2)

SHAPES = [
    ((4, 5), (4, 5), -1),
    ((4, 5), (5,), -1),
    ((4, 5), (5,), 1),
    ((4, 5), (4,), 0),
    ((5, 5), (5,), 0),
    ((2, 3, 4), (3,), 1),
    ((2, 3, 4), (3, 1), 1),
    ((2, 3, 4, 5), (3, 4), 1),
    ((4, 5), (1,), -1),
    ((2, 3, 4), (2, 1, 4), -1),
    ((2, 3, 4), (2, 3), 0),
]
LONGER_Y = [((3, 1), (3, 4), -1), ((3,), (2, 3), -1), ((2,), (2, 3), 0), ((2, 1, 4), (3, 1), -1)]
for name in "add sub mul div max min pow".split():
    for x, y, axis in SHAPES + (LONGER_Y if name != "pow" else []):
        pair = {"X": values(6, *x, low=0.2), "Y": values(7, *y, low=0.4)}
        case("elementwise_" + name, pair, "XY", f"{x}{y}{axis}".replace(" ", ""), axis=axis)
for name in "max min".split():
    case("elementwise_" + name, {"X": numbers(1, 2, 3), "Y": numbers(2, 2, 2)}, "XY", "ties")
for name in "add sub mul div mod floordiv max min pow".split():
    divisors = np.array([1, 2, 3, -2, -3], "int64")
    case("elementwise_" + name, {"X": integers(8, 4, 5), "Y": divisors}, note="integers")
case("elementwise_mod", {"X": X, "Y": numbers(1, 2, 3.5, -2, -3)}, note="real")

near = numbers(1e-9, 1e-7, 1, -1, np.inf)
for name in "equal not_equal less_than less_equal greater_than greater_equal".split():
    case(name, {"X": integers(9, 4, 5) // 4, "Y": integers(10, 4) // 4}, axis=0)
    case(name, {"X": near, "Y": numbers(0, 0, 1, 1, np.inf)}, note="near")
TRUTH = integers(11, 4, 5) > 0
for name in "logical_and logical_or logical_xor".split():
    case(name, {"X": TRUTH, "Y": integers(12, 4, 5) > 0})
case("logical_not", {"X": TRUTH})
for name in "isfinite isinf isnan".split():
    for last in (1, np.inf, np.nan):
        case(name, {"X": numbers(0, last)}, note=str(last))
case("equal_reduce", {"X": integers(13, 2, 3), "Y": integers(13, 2, 3)})
case("allclose", {"Input": numbers(1, 2), "Other": numbers(1, 2.00001)})
case("allclose", {"Input": numbers(1, np.nan), "Other": numbers(1, np.nan)}, note="nan", equal_nan=True)

WAYS = [
    ("first", {"dim": [0]}),
    ("middle", {"dim": [1]}),
    ("last", {"dim": [-1], "keep_dim": True}),
    ("two", {"dim": [2, 0]}),
    ("front", {"dim": [0, 1]}),
    ("all", {"dim": [0], "reduce_all": True}),
]
for note, way in WAYS:
    for name in "sum mean max min prod".split():
        unary("reduce_" + name, CUBE, note, **way)
    for name in "all any".split():
        case("reduce_" + name, {"X": integers(14, 3, 4, 5) > -5}, note=note, **way)
    unary("frobenius_norm", CUBE, note, **way)
unary("reduce_max", numbers(1, 3, 3).reshape(1, 3), "ties", dim=[1])
case("reduce_sum", {"X": integers(15, 3, 4)}, note="integers", dim=[1])
case("reduce_mean", {"X": integers(15, 3, 4)}, note="integers", dim=[1])
case("reduce_sum", {"X": X}, note="other-type", dim=[1], in_dtype=FP32, out_dtype=FP64)
unary("mean", CUBE)

unary("squared_l2_norm", CUBE)
unary("l1_norm", CUBE)
for axis in (0, 1, -1):
    unary("norm", CUBE, str(axis), axis=axis)
for p in (1.0, 2.0, 3.0, 1.5):
    unary("p_norm", CUBE, str(p), axis=1, porder=p)
unary("p_norm", CUBE, "keepdim", axis=-1, keepdim=True)
unary("p_norm", CUBE[:, :, 0] * 0, "zeros", axis=1)
for p in (0.0, 1.0, 2.0, 3.0, np.inf, -np.inf):
    case("dist", {"X": values(16, 3, 4), "Y": values(17, 4)}, "XY", str(p), p=p)
ROWS, OTHERS = values(18, 3, 4), values(19, 3, 4)
case("squared_l2_distance", {"X": CUBE, "Y": CUBE[::-1] * 0.5}, "XY")
case("squared_l2_distance", {"X": ROWS, "Y": OTHERS[:1]}, "XY", "one-y")
case("cos_sim", {"X": ROWS, "Y": OTHERS}, "XY")
case("cos_sim", {"X": ROWS, "Y": OTHERS[:1]}, "XY", "one-y")
case("cos_sim", {"X": ROWS * 0, "Y": OTHERS}, note="zeros")

case("mul", {"X": values(20, 3, 4), "Y": values(21, 4, 5)}, "XY")
case("mul", {"X": values(20, 3, 2, 4), "Y": values(21, 8, 5)}, "XY", "images")
blocks = {"X": values(20, 3, 2, 4), "Y": values(21, 2, 2, 5)}
case("mul", blocks, "XY", "num-col-dims", x_num_col_dims=2, y_num_col_dims=2)
STACKS = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((4, 3, 4), (2, 2, 4, 5)),
    ((2, 2, 3, 4), (4, 5)),
]
for x, y in STACKS:
    for turned in range(4):
        a, b = values(22, *x), values(23, *y)
        turn = {"transpose_X": turned % 2 == 1, "transpose_Y": turned > 1, "alpha": 0.5}
        a = np.ascontiguousarray(a.swapaxes(-1, -2)) if turn["transpose_X"] else a
        b = np.ascontiguousarray(b.swapaxes(-1, -2)) if turn["transpose_Y"] else b
        case("matmul", {"X": a, "Y": b}, "XY", f"{x}{y}{turned}".replace(" ", ""), **turn)
for x, y in (((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (2, 3, 4)), ((2, 4, 3), (3,))):
    pair = {"X": values(24, *x), "Y": values(25, *y)}
    case("matmul", pair, "XY", f"{x}{y}".replace(" ", ""))
vectors = {"X": values(24, 3), "Y": values(25, 3)}
case("matmul", vectors, "XY", "outer", transpose_X=True, transpose_Y=True)
case("bmm", {"X": values(26, 2, 3, 4), "Y": values(27, 2, 4, 5)}, "XY")
case("dot", {"X": values(28, 4), "Y": values(29, 4)}, "XY")
case("dot", {"X": ROWS, "Y": OTHERS}, "XY", "rows")
for shape in ((3, 4), (1, 4), (3, 1)):
    terms = {"Input": values(30, *shape), "X": values(31, 3, 2), "Y": values(32, 2, 4)}
    case("addmm", terms, ["Input", "X", "Y"], str(shape).replace(" ", ""), Alpha=2.0, Beta=0.5)
for x, y in (((2, 3), (4, 2)), ((3,), (4, 2)), ((2, 2, 3), (4, 2))):
    case("kron", {"X": values(33, *x), "Y": values(34, *y)}, "XY", str(len(x)))
case("cross", {"X": values(35, 4, 3), "Y": values(36, 4, 3)}, "XY")
case("cross", {"X": values(35, 3, 2, 3), "Y": values(36, 3, 2, 3)}, "XY", "first")
case("cross", {"X": values(35, 3, 2, 3), "Y": values(36, 3, 2, 3)}, "XY", "dim", dim=2)
case("fsp", {"X": values(37, 2, 3, 4, 4), "Y": values(38, 2, 5, 4, 4)}, "XY")
product = {"X": values(39, 3, 2), "Y": values(40, 3, 4), "Weight": values(41, 5, 2, 4)}
case("bilinear_tensor_product", product, ["X", "Y", "Weight"])
product = dict(product, Bias=values(42, 1, 5))
case("bilinear_tensor_product", product, ["X", "Y", "Weight", "Bias"], "bias")
case("trace", {"Input": CUBE}, ["Input"], "stack")
case("trace", {"Input": X}, ["Input"], "matrix", offset=2)
case("trace", {"Input": CUBE}, ["Input"], "turned", offset=-1, dim1=2, dim2=1)
unary("tril_triu", CUBE, "lower", lower=True)
unary("tril_triu", CUBE, "upper", lower=False, diagonal=1)

case("sum", {"X": [ROWS, OTHERS, ROWS]}, ["X"])
unary("scale", X, "", scale=2.0, bias=1.5)
unary("scale", X, "bias-before", scale=2.0, bias=1.5, bias_after_scale=False)
case("scale", {"X": X, "ScaleTensor": numbers(3)}, ["X"], "tensor", bias=1.0)
case("scale", {"X": integers(43, 3, 4)}, note="integers", scale=2.5, bias=1.5)
case("minus", {"X": ROWS, "Y": OTHERS}, "XY")
unary("clip", X, "", min=-1.0, max=1.0)
unary("clip", numbers(1, 2, 1.5), "bend", min=1.0, max=2.0)
case("clip", {"X": X, "Min": numbers(-3), "Max": numbers(3)}, ["X"], "tensors", min=-1.0, max=1.0)
case("clip_by_norm", {"X": X}, max_norm=1.0)
case("clip_by_norm", {"X": X}, note="short", max_norm=100.0)
unary("cumsum", ROWS)
unary("cumsum", ROWS, "first", axis=0)
unary("cumsum", ROWS, "exclusive", exclusive=True)
unary("cumsum", ROWS, "reverse", reverse=True)
unary("cumsum", ROWS, "both", axis=0, exclusive=True, reverse=True)
unary("cast", X, "", in_dtype=FP32, out_dtype=FP64)
case("cast", {"X": X}, note="integers", in_dtype=FP32, out_dtype=INT64)
case("cast", {"X": X}, note="truth", in_dtype=FP32, out_dtype=BOOL)
