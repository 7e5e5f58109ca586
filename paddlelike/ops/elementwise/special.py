"""Special functions of the elements of one or two arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array, Bool, Float, Int, String
from paddlelike.framework.opdef.registry import LATER, LATEST
from paddlelike.ops.elementwise.binary import power
from paddlelike.ops.elementwise.overwriting import make_value
from paddlelike.ops.kernels.broadcasting import align
from paddlelike.ops.kernels.special import sigmoid
from paddlelike.ops.later import keep_attrs, register_kernel

_UNARY: Final[dict[str, Callable[[Array], Any]]] = {
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cosh": np.cosh,
    "sinh": np.sinh,
    "tan": np.tan,
    "expm1": lambda x: np.expm1(_as_real(x)),
    "log2": lambda x: np.log2(_as_real(x)),
    "log10": lambda x: np.log10(_as_real(x)),
    "trunc": np.trunc,
    "silu": lambda x: x * sigmoid(x),
    "bitwise_not": np.invert,
    "isfinite_v2": np.isfinite,
    "isinf_v2": np.isinf,
    "isnan_v2": np.isnan,
    "conj": np.conj,
    "real": lambda x: x.real.copy(),
    "imag": lambda x: x.imag.copy(),
    "angle": np.angle,
    "lgamma": lambda x: _map(_lgamma, x),
    "digamma": lambda x: _map(_digamma, x),
    "erfinv": lambda x: _map(_erfinv, x),
    "as_complex": lambda x: np.ascontiguousarray(x[..., 0] + 1j * x[..., 1]),
    "as_real": lambda x: np.stack([x.real, x.imag], -1),
    "share_data": np.copy,
    "memcpy": np.copy,
}


_BINARY: Final[dict[str, Callable[[Array, Array], Any]]] = {
    "elementwise_fmax": np.fmax,
    "elementwise_fmin": np.fmin,
    "elementwise_heaviside": lambda x, y: np.heaviside(x, y).astype(x.dtype),
}


_BITS: Final[dict[str, Callable[[Array, Array], Any]]] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}


_STEPS: Final = 256  # of a period: enough for numbers up to 100


_TERMS: Final = 32  # of a series, before its rest
_MOST_TERMS: Final = 10_000


def _as_real(x: Array) -> Array:
    return x if x.dtype.kind in "fc" else x.astype(np.float32)


def _map(function: Callable[[float], float], x: Array) -> Array:
    return np.fromiter(map(function, x.flat), np.float64, x.size).astype(x.dtype).reshape(x.shape)


def _lgamma(x: float) -> float:
    return math.inf if x <= 0 and x.is_integer() else math.lgamma(x)


def _digamma(x: float) -> float:
    """Return the logarithmic derivative of the gamma function, by recurrence up to 8 and then its series."""
    if x <= 0:
        if x == -math.inf or x.is_integer():
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * x)
    total = 0.0
    while x < 8:
        total -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return total + math.log(x) - 0.5 / x - series


def _erfinv(y: float) -> float:
    """Return the inverse of erf: Winitzki's estimate, then Newton's steps."""
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if y == 0:
        return 0.0
    tail = math.log1p(-y * y)
    part = 2 / (math.pi * 0.147) + tail / 2
    x = math.copysign(math.sqrt(math.sqrt(part * part - tail / 0.147) - part), y)
    for _ in range(3):
        x -= (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


def _wrap(function: Callable[..., Any]) -> Callable[[Array], Any]:
    return lambda x: function(x)


def _wrap_broadcast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that does not read the attribute axis, as in Paddle 2 and 3."""
    return lambda x, y, *, axis: function(x, y)


def _wrap_pair(function: Callable[..., Any]) -> Callable[[Array, Array], Any]:
    return lambda x, y: function(x, y)


for _name, _function in _UNARY.items():
    register_kernel(_name, "X -> Out")(_wrap(_function))


for _name, _pair in _BINARY.items():
    register_kernel(_name, "X Y -> Out", {"axis": Int(-1)})(_wrap_broadcast(_pair))


for _name, _pair in _BITS.items():
    register_kernel(_name, "X Y -> Out")(_wrap_pair(_pair))

register_kernel("copysign", "X Y -> Out", {"axis": Int(-1)}, since="3")(_wrap_broadcast(np.copysign))
register_kernel("bitwise_left_shift", "X Y -> Out", since="3")(_wrap_pair(np.left_shift))
register_kernel("bitwise_right_shift", "X Y -> Out", since="3")(_wrap_pair(np.right_shift))


register_kernel("i0", "x -> out")(lambda x: np.i0(x).astype(x.dtype))


register_kernel("i0e", "x -> out")(lambda x: (np.i0(x) * np.exp(-np.abs(x))).astype(x.dtype))


register_kernel("nextafter", "x y -> out", ends_gradients=True)(lambda x, y: np.nextafter(x, y))


@register_kernel("i1e", "x -> out")
def _bessel(x: Array) -> Array:
    """Return the modified Bessel function of order 1, times ``exp(-|x|)``.

    It is the mean of ``cos(t) exp(x cos(t))`` over a period; equal steps give all digits.
    """
    turns = np.cos(np.arange(_STEPS) * (2 * math.pi / _STEPS))
    exponents = x[..., None].astype(np.float64) * turns - np.abs(x)[..., None]
    return np.asarray((turns * np.exp(exponents)).mean(-1), x.dtype)


@register_kernel("i1", "x -> out")
def _bessel_unscaled(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    return np.asarray(_bessel(x.astype(np.float64)) * np.exp(np.abs(x.astype(np.float64))), x.dtype)


@register_kernel("polygamma", "x -> out", {"n": Int(0)})
def _polygamma(x: Array, *, n: int) -> Array:
    """Derivative ``n`` of digamma, for positive X: ``(-1)^(n + 1) n! sum (x + k)^-(n + 1)``."""
    if n == 0:
        return _map(_digamma, x)
    start = x[..., None].astype(np.float64) + np.arange(_TERMS)
    end = x.astype(np.float64) + _TERMS  # the rest by Euler and Maclaurin
    rest = end**-n / n + end ** -(n + 1) / 2 + (n + 1) * end ** -(n + 2) / 12
    total = (start ** -(n + 1)).sum(-1) + rest
    return np.asarray((-1) ** (n + 1) * math.factorial(n) * total, x.dtype)


@register_kernel("gammaincc", "x y -> out", since="3")
def _gammaincc(x: Array, y: Array) -> Array:
    """The regularized upper incomplete gamma function of a = X and Y, in float64.

    Below ``Y = a + 1`` it is one minus the series of the lower function, above that Legendre's continued
    fraction.
    """
    a, z = np.broadcast_arrays(x.astype(np.float64), y.astype(np.float64))
    with np.errstate(all="ignore"):
        front = np.exp(a * np.log(z) - z - _map(math.lgamma, np.where(np.isfinite(a) & (a > 0), a, 1.0)))
        below = z < a + 1
        out = np.where(below, 1 - front * _sum_series(a, np.where(below, z, 0.0)), 0.0)
        out = np.where(below, out, front * _divide_on(a, np.where(below, a + 2, z)))
    out = np.where((a == 0) | (z == 0), 1.0, out)
    return np.asarray(np.where((a < 0) | (z < 0) | ~np.isfinite(a + z), np.nan, out), x.dtype)


def _sum_series(a: Array, z: Array) -> Array:
    """Return the sum of ``z^n / (a (a + 1) ... (a + n))``."""
    term = total = 1 / a
    n = 0
    while n < _MOST_TERMS and np.any(term > total * 1e-16):
        n += 1
        term = term * z / (a + n)
        total = total + term
    return total


def _divide_on(a: Array, z: Array) -> Array:
    """Return ``1 / (z + 1 - a - 1 (1 - a) / (z + 3 - a - 2 (2 - a) / ...))``, by Lentz."""
    b = z + 1 - a
    c = np.full(b.shape, 1e300)
    d = out = 1 / b
    for n in range(1, _MOST_TERMS):
        step = n * (a - n)
        b = b + 2
        d = 1 / (b + step * d)
        c = b + step / c
        out = out * c * d
        if not np.any(np.abs(c * d - 1) > 1e-15):
            break
    return out


register_kernel("atan2", "X1 X2 -> Out")(_wrap_pair(np.arctan2))


@register_kernel("celu", "X -> Out", {"alpha": Float(1.0)})
def _celu(x: Array, *, alpha: float) -> Array:
    """``max(X, 0) + min(0, alpha (e^(X / alpha) - 1))``."""
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))


@register_kernel("logit", "X -> Out", {"eps": Float(1e-6)})
def _logit(x: Array, *, eps: float) -> Array:
    """``ln(X / (1 - X))`` with X kept within [eps, 1 - eps]."""
    inside = np.clip(x, eps, 1 - eps) if eps > 0 else x
    return np.log(inside / (1 - inside)).astype(x.dtype)


_SOFTPLUS: Final = {"beta": Float(1.0), "threshold": Float(20.0)}


@register_kernel("softplus_grad", "X Out@GRAD -> X@GRAD", _SOFTPLUS, changed=True, by_row=True)
def _softplus_grad(x: Array, d_out: Array, *, beta: float, threshold: float) -> Array:
    """Return the gradient of ``softplus``; where ``beta X`` is over the threshold, the gradient of Out."""
    scaled = x * x.dtype.type(beta)
    return np.where(scaled > threshold, d_out, d_out * sigmoid(scaled))


@register_kernel("softplus", "X -> Out", _SOFTPLUS, changed=True, make_grad=classmethod(keep_attrs))
def _softplus(x: Array, *, beta: float, threshold: float) -> Array:
    """``ln(1 + e^(beta X)) / beta``; X itself where ``beta X`` is over the threshold."""
    scaled = x * x.dtype.type(beta)
    return np.where(
        scaled > threshold, x, np.log1p(np.exp(np.minimum(scaled, threshold))) / x.dtype.type(beta)
    )


@register_kernel(
    "rrelu", "X -> Out Noise?", {"is_test": Bool(False), "lower": Float(0.125), "upper": Float(1 / 3)}
)
def _rrelu(x: Array, *, is_test: bool, lower: float, upper: float) -> tuple[Array, None]:
    """Return the leaky relu used in prediction, whose slope is the middle of the range used in training."""
    return np.where(x >= 0, x, x * x.dtype.type((lower + upper) / 2)), None


@register_kernel("lerp", "X Y Weight -> Out")
def _lerp(x: Array, y: Array, weight: Array) -> Array:
    """``X + Weight (Y - X)``."""
    return x + weight * (y - x)


def _register_later(
    type: str, function: Callable[[Array, Array], Array], text: str, mark: str = LATER
) -> None:
    def run(x: Array, y: Array, *, axis: int) -> Array:
        return function(*align(x, y, axis))

    run.__doc__ = text
    register_kernel(type, "X Y -> Out", {"axis": Int(-1)}, changed=True, mark=mark)(run)


def _register_real(type: str, function: np.ufunc, formula: str) -> None:
    def run(x: Array) -> Array:
        out: Array = function(_as_real(x))
        return out

    run.__doc__ = f"``{formula}``, as float32 where X holds integers."
    register_kernel(
        type,
        "X -> Out",
        changed=True,
        lod="X",
        any_order=True,
        by_element=True,
        make_overwriting_kernel=staticmethod(functools.partial(make_value, type)),
    )(run)


_register_real("exp", np.exp, "e^X")
_register_real("log", np.log, "ln(X)")
_register_real("log1p", np.log1p, "ln(1 + X)")


_LEAKY: Final = {"alpha": Float(0.02)}


@register_kernel("leaky_relu_grad", "X? Out? Out@GRAD -> X@GRAD", _LEAKY, changed=True, by_row=True)
def _leaky_relu_grad(x: Array | None, out: Array | None, d_out: Array, *, alpha: float) -> Array:
    """Return the gradient of ``leaky_relu``; unlike in Fluid, the gradient of Out where X is 0."""
    below = np.asarray(out if x is None else x) < 0
    return np.where(below, d_out * d_out.dtype.type(alpha), d_out)


_SHRINK: Final = {"threshold": Float(0.5)}


@register_kernel("hard_shrink", "X -> Out", _SHRINK, changed=True, mark=LATEST)
def _hard_shrink(x: Array, *, threshold: float) -> Array:
    """X where ``|X| >= threshold``, else 0; unlike before Paddle 3, X at the threshold stays."""
    return np.where(np.abs(x) < threshold, x * 0, x)


@register_kernel("hard_shrink_grad", "X Out@GRAD -> X@GRAD", _SHRINK, changed=True, mark=LATEST, by_row=True)
def _hard_shrink_grad(x: Array, d_out: Array, *, threshold: float) -> Array:
    return d_out * (np.abs(x) >= threshold)


_MISH: Final = {"threshold": Float(20.0)}


@register_kernel("mish", "X -> Out", _MISH, changed=True, make_grad=classmethod(keep_attrs))
def _mish(x: Array, *, threshold: float) -> Array:
    """``X tanh(s)`` with ``s = ln(1 + e^X)``; s is X itself where that is over the threshold."""
    return x * np.tanh(_soften(x, threshold))


@register_kernel("mish_grad", "X Out@GRAD -> X@GRAD", _MISH, changed=True, by_row=True)
def _mish_grad(x: Array, d_out: Array, *, threshold: float) -> Array:
    inside = _soften(x, threshold)
    gate = np.tanh(inside)
    return d_out * (gate + x * (1 - gate * gate) * -np.expm1(-inside))


def _soften(x: Array, threshold: float) -> Array:
    return np.where(x > threshold, x, np.log1p(np.exp(np.minimum(x, threshold))))


@register_kernel("digamma", "X -> Out", changed=True, mark=LATEST, traceable=False)
def _digamma_of_zero(x: Array) -> Array:
    """The digamma function; at 0 it is -inf and at -0 inf, not NaN as in Paddle 2."""
    return np.where(x == 0, np.copysign(np.inf, -x).astype(x.dtype), _map(_digamma, x))


@register_kernel("round", "X -> Out", {"decimals": Int(0)}, changed=True, mark=LATEST)
def _round(x: Array, *, decimals: int) -> Array:
    """The nearest number with that many decimals; halves go to the even one."""
    if not decimals:
        return x if x.dtype.kind in "iu" else np.rint(x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


_register_later("elementwise_floordiv", np.floor_divide, "``X / Y`` rounded towards minus infinity.")
_register_later("elementwise_mod", np.mod, "The remainder of ``X / Y`` with the sign of Y.")
_register_later("elementwise_pow", power, "``X ^ Y``, of whichever has more dims.")
_register_later("elementwise_max", np.maximum, "``max(X, Y)``; NaN where one of them is NaN.", LATEST)
_register_later("elementwise_min", np.minimum, "``min(X, Y)``; NaN where one of them is NaN.", LATEST)


_CLOSENESS: Final = {"rtol": String("1e-5"), "atol": String("1e-8"), "equal_nan": Bool(False)}


@register_kernel("isclose", "Input Other Rtol? Atol? -> Out", _CLOSENESS)
def _isclose(
    x: Array, y: Array, rtol_tensor: Any, atol_tensor: Any, *, rtol: str, atol: str, equal_nan: bool
) -> Array:
    """Whether ``|Input - Other| <= atol + rtol |Other|``, for each element."""
    relative = float(rtol) if rtol_tensor is None else rtol_tensor.item()
    absolute = float(atol) if atol_tensor is None else atol_tensor.item()
    return np.isclose(x, y, relative, absolute, equal_nan)


@register_kernel("allclose", "Input Other Rtol? Atol? -> Out", _CLOSENESS, changed=True)
def _allclose(
    x: Array, y: Array, rtol_tensor: Any, atol_tensor: Any, *, rtol: str, atol: str, equal_nan: bool
) -> Array:
    """Whether every element is close."""
    return np.asarray(
        _isclose(x, y, rtol_tensor, atol_tensor, rtol=rtol, atol=atol, equal_nan=equal_nan).all()
    )


@register_kernel("equal_all", "X Y -> Out")
def _equal_all(x: Array, y: Array) -> Array:
    """Whether shapes and all elements are equal."""
    return np.asarray(np.array_equal(x, y))


_COMPARED: Final = {"axis": Int(-1), "force_cpu": Bool(False)}


@register_kernel("equal", "X Y -> Out", _COMPARED, changed=True)
def _equal(x: Array, y: Array, *, axis: int) -> Array:
    """Whether ``X = Y``; real numbers within 1e-8, and infinities of one sign."""
    a, b = align(x, y, axis)
    return (a == b) | (np.abs(a - b) < 1e-8) if x.dtype.kind == "f" else a == b


@register_kernel("equal", "X Y -> Out", _COMPARED, changed=True, mark=LATEST)
def _equal_exactly(x: Array, y: Array, *, axis: int) -> Array:
    """Whether ``X = Y``."""
    return np.equal(*align(x, y, axis))


@register_kernel("not_equal", "X Y -> Out", _COMPARED, changed=True, mark=LATEST)
def _differ(x: Array, y: Array, *, axis: int) -> Array:
    """Whether X and Y differ."""
    return np.not_equal(*align(x, y, axis))


@register_kernel("not_equal", "X Y -> Out", _COMPARED, changed=True)
def _not_equal(x: Array, y: Array, *, axis: int) -> Array:
    """Whether X and Y differ."""
    return ~_equal(x, y, axis=axis)
