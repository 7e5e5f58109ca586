"""Losses, functions of each element, reductions."""

import numpy as np
import paddle
from inputs import RNG, of, positive, real, unit, whole
from paddle.nn import functional as F  # noqa: N812


def losses():
    x, label = real(4, 5), whole(5, 4, 1)
    yield "cross_entropy", of(lambda x, y: F.cross_entropy(x, y), x, label)
    yield (
        "cross_entropy_none",
        of(lambda x, y: F.cross_entropy(x, y, reduction="none", ignore_index=1), x, label),
    )
    yield "softmax_with_cross_entropy", of(lambda x, y: F.softmax_with_cross_entropy(x, y), x, label)
    yield "mse", of(F.mse_loss, x, real(4, 5))
    yield "l1", of(F.l1_loss, x, real(4, 5))
    yield "smooth_l1", of(F.smooth_l1_loss, x, real(4, 5))
    yield (
        "bce",
        of(F.binary_cross_entropy, RNG.uniform(0.1, 0.9, (4, 5)).astype("float32"), positive(4, 5) / 4),
    )
    yield "bce_logits", of(F.binary_cross_entropy_with_logits, x, positive(4, 5) / 4)
    yield "nll", of(F.nll_loss, x, label[:, 0])
    yield "kl_div", of(F.kl_div, x, positive(4, 5))
    yield "margin_ranking", of(lambda a, b: F.margin_ranking_loss(a, b, paddle.sign(a)), x, real(4, 5))
    yield "label_smooth", of(F.label_smooth, positive(4, 5))
    yield "cosine_similarity", of(F.cosine_similarity, x, real(4, 5))
    yield "square_error", of(F.square_error_cost, x, real(4, 5))
    yield "accuracy", of(lambda x, y: paddle.static.accuracy(x, y, k=2), x, label)


def arithmetic():
    for name in [
        "abs",
        "ceil",
        "floor",
        "round",
        "square",
        "exp",
        "expm1",
        "sin",
        "cos",
        "tan",
        "atan",
        "sinh",
        "cosh",
        "asinh",
        "erf",
        "sign",
        "trunc",
        "frac",
        "neg",
        "stanh",
        "isnan",
        "isfinite",
        "isinf",
    ]:
        yield name, of(getattr(paddle, name), real(3, 4))
    for name in ["sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal", "lgamma", "digamma"]:
        yield name, of(getattr(paddle, name), positive(3, 4))
    for name in ["asin", "acos", "atanh", "erfinv"]:
        yield name, of(getattr(paddle, name), unit(3, 4))
    yield "acosh", of(paddle.acosh, 1 + positive(3, 4))
    for name in [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "heaviside",
        "less_than",
        "less_equal",
        "greater_than",
        "greater_equal",
        "equal",
        "not_equal",
    ]:
        yield name, of(getattr(paddle, name), real(3, 1, 4), real(2, 4))
    for name in ["divide", "mod", "floor_divide", "remainder", "pow"]:
        yield name, of(getattr(paddle, name), positive(3, 4), positive(4))
    for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide", "mod"]:
        yield f"{name}_int", of(getattr(paddle, name), whole(9, 3, 4, low=1), whole(9, 3, 4, low=1))
    yield "bitwise_not", of(paddle.bitwise_not, whole(9, 3, 4))
    for name in ["logical_and", "logical_or", "logical_xor"]:
        yield name, of(getattr(paddle, name), real(3, 4) > 0, real(3, 4) > 0)
    yield "logical_not", of(paddle.logical_not, real(3, 4) > 0)
    yield "python_operators", of(lambda x, y: (2 * x + y / 3 - x**2) * -1 // 1, real(3, 4), real(3, 4))
    yield "pow_scalar", of(lambda x: paddle.pow(x, 3), real(3, 4))
    yield "scale", of(lambda x: paddle.scale(x, 2.0, 1.0, bias_after_scale=False), real(3, 4))
    yield "clip", of(lambda x: paddle.clip(x, -1, 0.5), real(3, 4))
    yield "lerp", of(lambda x, y: paddle.lerp(x, y, 0.3), real(3, 4), real(3, 4))
    yield "nan_to_num", of(paddle.nan_to_num, np.array([np.nan, np.inf, -np.inf, 1], "float32"))
    yield "isclose", of(paddle.isclose, real(3, 4), real(3, 4))
    yield "allclose", of(paddle.allclose, real(3, 4), real(3, 4))
    yield "equal_all", of(paddle.equal_all, whole(9, 4), whole(9, 4))
    yield "logit", of(lambda x: paddle.logit(x, 1e-3), RNG.uniform(0, 1, (3, 4)).astype("float32"))
    yield (
        "multiplex",
        of(
            lambda a, b, i: paddle.multiplex([a, b], i),
            real(3, 4),
            real(3, 4),
            whole(2, 3, 1).astype("int32"),
        ),
    )


def reductions():
    for name in ["sum", "mean", "max", "min", "prod", "amax", "amin", "logsumexp"]:
        yield name, of(getattr(paddle, name), positive(2, 3, 4))
        yield (
            f"{name}_axis",
            of(
                lambda x, f=name: getattr(paddle, f)(x, axis=1 if f == "prod" else [0, 2]),
                positive(2, 3, 4),
            ),
        )
        yield (
            f"{name}_keep",
            of(lambda x, f=name: getattr(paddle, f)(x, axis=-1, keepdim=True), positive(2, 3, 4)),
        )
    yield "std", of(lambda x: paddle.std(x, axis=1), real(3, 4))
    yield "var", of(lambda x: paddle.var(x, axis=1), real(3, 4))
    yield "median", of(lambda x: paddle.median(x, axis=1), real(3, 5))
    yield "all", of(lambda x: paddle.all(x, axis=1), real(3, 4) > -1)
    yield "any", of(lambda x: paddle.any(x), real(3, 4) > 1)
    yield "norm", of(paddle.norm, real(3, 4))
    yield "norm_axis", of(lambda x: paddle.norm(x, 2, axis=1), real(3, 4))
    yield "norm_one", of(lambda x: paddle.norm(x, 1, axis=1, keepdim=True), real(3, 4))
    yield "norm_inf", of(lambda x: paddle.norm(x, np.inf), real(3, 4))
    yield "dist", of(lambda x, y: paddle.dist(x, y, 2), real(3, 4), real(3, 4))
    for name in ["cumsum", "logcumsumexp"]:
        yield name, of(lambda x, f=name: getattr(paddle, f)(x, axis=1), real(3, 4))
        yield f"{name}_all", of(getattr(paddle, name), real(3, 4))
    yield "cumprod", of(lambda x: paddle.cumprod(x, 1), real(3, 4))
    yield "argmax", of(lambda x: paddle.argmax(x, axis=1), real(3, 4))
    yield "argmax_all", of(paddle.argmax, real(3, 4))
    yield "argmin", of(lambda x: paddle.argmin(x, axis=0, keepdim=True, dtype="int32"), real(3, 4))
    yield "argsort", of(lambda x: paddle.argsort(x, descending=True), real(3, 4))
    yield "sort", of(lambda x: paddle.sort(x, axis=0), real(3, 4))
    yield "topk", of(lambda x: list(paddle.topk(x, 2)), real(3, 4))
    yield "topk_smallest", of(lambda x: list(paddle.topk(x, 2, axis=0, largest=False)), real(3, 4))
    yield "kthvalue", of(lambda x: list(paddle.kthvalue(x, 2)), real(3, 4))
    yield "mode", of(lambda x: list(paddle.mode(x)), whole(3, 3, 7).astype("float32"))
    yield "histogram", of(lambda x: paddle.histogram(x, 4, -2, 2), real(12))
    yield "bincount", of(lambda x: paddle.bincount(x, minlength=6), whole(5, 9))
    yield "count_nonzero", of(paddle.count_nonzero, whole(2, 3, 4).astype("float32"))
