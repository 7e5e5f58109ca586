"""Steps of the update operators."""

from __future__ import annotations

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, HELD, LR, SPARSE, SPARSE_GRAD, G, M, P, S, V, Z, one


def _sgd(g=G):
    return lambda Param: Param - 0.1 * g


CASES = [
    Case("sgd", {"Param": P, "LearningRate": LR, "Grad": G}, _sgd()),
    Case("sgd", {"Param": P, "LearningRate": LR, "Grad": SPARSE}, _sgd(DENSE), note="sparse"),
]  # fmt: skip


def _momentum(g=G):
    def expected(Param, Velocity, mu, use_nesterov):
        v = mu * Velocity + g
        step = g + mu * v if use_nesterov else v
        return {"ParamOut": Param - 0.1 * step, "VelocityOut": v}

    return expected


def _lars(Param, Grad, Velocity, mu, lars_coeff, lars_weight_decay):
    size = lambda x: np.sum(x**2) ** 0.5
    rate = 0.1
    if size(Param) and size(Grad):
        rate *= lars_coeff * size(Param) / (size(Grad) + lars_weight_decay * size(Param))
    v = mu * Velocity + rate * Grad + rate * lars_weight_decay * Param
    return {"ParamOut": Param - v, "VelocityOut": v}


_MOMENTUM = {"Param": P, "Grad": G, "Velocity": V, "LearningRate": LR}
_NESTEROV = {"mu": 0.9, "use_nesterov": True}

CASES += [
    Case("momentum", _MOMENTUM, _momentum(), {"mu": 0.9}),
    Case("momentum", _MOMENTUM, _momentum(), _NESTEROV, note="nesterov"),
    Case("momentum", _MOMENTUM | SPARSE_GRAD, _momentum(DENSE), _NESTEROV, note="sparse"),
    Case("lars_momentum", _MOMENTUM, _lars, {"mu": 0.9}),
    Case("lars_momentum", _MOMENTUM | {"Param": 0 * P}, _lars, {"mu": 0.9}, note="zero-parameter"),
]  # fmt: skip


def _adagrad(g=G, rows=slice(None)):
    def expected(Param, Moment, epsilon):
        p, m = Param.copy(), Moment.copy()
        m[rows] += g[rows] ** 2
        p[rows] -= 0.1 * g[rows] / (m[rows] ** 0.5 + epsilon)
        return {"ParamOut": p, "MomentOut": m}

    return expected


def _decayed_adagrad(Param, Grad, Moment, decay, epsilon):
    m = decay * Moment + (1 - decay) * Grad**2
    return {"ParamOut": Param - 0.1 * Grad / (m**0.5 + epsilon), "MomentOut": m}


def _adadelta(Param, Grad, AvgSquaredGrad, AvgSquaredUpdate, rho, epsilon):
    a = rho * AvgSquaredGrad + (1 - rho) * Grad**2
    update = -(((AvgSquaredUpdate + epsilon) / (a + epsilon)) ** 0.5) * Grad
    b = rho * AvgSquaredUpdate + (1 - rho) * update**2
    p = Param - ((b + epsilon) / (a + epsilon)) ** 0.5 * Grad
    return {"ParamOut": p, "AvgSquaredGradOut": a, "AvgSquaredUpdateOut": b}


_ADAGRAD = {"Param": P, "Grad": G, "Moment": M, "LearningRate": LR}

CASES += [
    Case("adagrad", _ADAGRAD, _adagrad()),
    Case("adagrad", _ADAGRAD | SPARSE_GRAD, _adagrad(DENSE, [1, 3]), note="sparse"),
    Case("decayed_adagrad", _ADAGRAD, _decayed_adagrad),
    Case(
        "adadelta", {"Param": P, "Grad": G, "AvgSquaredGrad": M, "AvgSquaredUpdate": S}, _adadelta
    ),
]  # fmt: skip


def _adam(g=G, *, betas=None, ahead=False, moving=True):
    def expected(Param, Moment1, Moment2, Beta1Pow, Beta2Pow, beta1, beta2, epsilon):
        b1, b2 = betas or (beta1, beta2)
        m1 = np.where(moving, b1 * Moment1 + (1 - b1) * g, Moment1)
        m2 = np.where(moving, b2 * Moment2 + (1 - b2) * g**2, Moment2)
        powers = Beta1Pow * b1, Beta2Pow * b2
        one, two = powers if ahead else (Beta1Pow, Beta2Pow)
        step = 0.1 * (1 - two) ** 0.5 / (1 - one) * m1 / (m2**0.5 + epsilon)
        moments = {"Moment1Out": m1, "Moment2Out": m2}
        powers = {"Beta1PowOut": powers[0], "Beta2PowOut": powers[1]}
        return {"ParamOut": np.where(moving, Param - step, Param), **moments, **powers}

    return expected


def _adamax(Param, Grad, Moment, InfNorm, Beta1Pow, beta1, beta2, epsilon):
    m = beta1 * Moment + (1 - beta1) * Grad
    u = np.where(np.abs(Grad) > beta2 * InfNorm + epsilon, np.abs(Grad), beta2 * InfNorm + epsilon)
    p = Param - 0.1 / (1 - Beta1Pow) * m / u
    return {"ParamOut": p, "MomentOut": m, "InfNormOut": u}


def _lamb(g=G):
    def expected(Param, Moment1, Moment2, weight_decay, beta1, beta2, epsilon):
        m1 = beta1 * Moment1 + (1 - beta1) * g
        m2 = beta2 * Moment2 + (1 - beta2) * g**2
        r = m1 / (m2**0.5 + epsilon) + weight_decay * Param
        trust = np.linalg.norm(Param) / np.linalg.norm(r) if Param.any() else 1.0
        return {"ParamOut": Param - 0.1 * trust * r, "Moment1Out": m1, "Moment2Out": m2}

    return expected


_ADAM = {"Param": P, "Grad": G, "LearningRate": LR, "Moment1": V, "Moment2": M}
_ADAM |= {"Beta1Pow": one(0.81), "Beta2Pow": one(0.998)}
_ADAMAX = {"Param": P, "Grad": G, "LearningRate": LR, "Moment": V, "InfNorm": M}
_ADAMAX |= {"Beta1Pow": one(0.81)}
_HALF_LIFE = {"Beta1Tensor": one(0.5), "Beta2Tensor": one(0.75)}

CASES += [
    Case("adam", _ADAM, _adam()),
    Case("adam", _ADAM | _HALF_LIFE, _adam(betas=(0.5, 0.75)), note="beta-tensors"),
    Case("adam", _ADAM | SPARSE_GRAD, _adam(DENSE, ahead=True), note="sparse"),
    Case(
        "adam",
        _ADAM | SPARSE_GRAD,
        _adam(DENSE, ahead=True, moving=HELD),
        {"lazy_mode": True},
        note="lazy",
    ),
    Case("adamax", _ADAMAX, _adamax),
    Case("lamb", _ADAM, _lamb(), {"weight_decay": 0.01}),
    Case("lamb", _ADAM | {"Param": 0 * P}, _lamb(), {"weight_decay": 0.01}, note="zero-parameter"),
    Case("lamb", _ADAM | SPARSE_GRAD, _lamb(DENSE), {"weight_decay": 0.01}, note="sparse"),
]  # fmt: skip


def _rmsprop(g=G):
    def expected(Param, MeanSquare, MeanGrad, Moment, decay, epsilon, momentum, centered):
        s = decay * MeanSquare + (1 - decay) * g**2
        a = decay * MeanGrad + (1 - decay) * g if centered else MeanGrad
        v = momentum * Moment + 0.1 * g / (s - (a**2 if centered else 0) + epsilon) ** 0.5
        return {"ParamOut": Param - v, "MomentOut": v, "MeanSquareOut": s, "MeanGradOut": a}

    return expected


_RMSPROP = {"Param": P, "Grad": G, "MeanSquare": S + 3, "MeanGrad": Z / 9, "Moment": V}
_RMSPROP |= {"LearningRate": LR}
_RMS = {"momentum": 0.9, "decay": 0.95, "epsilon": 1e-6}

CASES += [
    Case("rmsprop", _RMSPROP, _rmsprop(), _RMS),
    Case("rmsprop", _RMSPROP, _rmsprop(), _RMS | {"centered": True}, note="centered"),
    Case("rmsprop", _RMSPROP | SPARSE_GRAD, _rmsprop(DENSE), _RMS | {"centered": True}, note="sparse"),
]  # fmt: skip


def _ftrl(g=G, rows=slice(None)):
    def expected(Param, SquaredAccumulator, LinearAccumulator, l1, l2, lr_power):
        p, n, z = Param.copy(), SquaredAccumulator.copy(), LinearAccumulator.copy()
        n[rows] += g[rows] ** 2
        sigma = (n**-lr_power - SquaredAccumulator**-lr_power) / 0.1
        z[rows] += (g - sigma * Param)[rows]
        shrunk = (np.where(z > 0, l1, -l1) - z) / (n**-lr_power / 0.1 + 2 * l2)
        p[rows] = np.where(np.abs(z) > l1, shrunk, 0)[rows]
        return {"ParamOut": p, "SquaredAccumOut": n, "LinearAccumOut": z}

    return expected


_FTRL = {"Param": P, "SquaredAccumulator": S, "LinearAccumulator": Z, "Grad": G, "LearningRate": LR}

CASES += [
    # The operator adds 1e-10 to l1 and l2.
    Case("ftrl", _FTRL, _ftrl(), {"l1": 1.5, "l2": 0.2}, rtol=1e-8),
    Case("ftrl", _FTRL, _ftrl(), {"l1": 0.1, "lr_power": -0.7}, rtol=1e-8, note="power"),
    Case("ftrl", _FTRL, _ftrl(), {"l1": -1.5}, rtol=1e-8, note="negative"),
    Case("ftrl", _FTRL | SPARSE_GRAD, _ftrl(DENSE, [1, 3]), {"l1": 0.1}, rtol=1e-8, note="sparse"),
]  # fmt: skip


def _proximal(p, rate, l1, l2):
    """The minimum of |p' - p|^2 / 2 + rate (l1 |p'| + l2 p'^2 / 2)."""
    return np.where(p > 0, (p - rate * l1).clip(0), (p + rate * l1).clip(None, 0)) / (1 + rate * l2)


def _proximal_gd(Param, Grad, l1, l2):
    return _proximal(Param - 0.1 * Grad, 0.1, l1, l2)


def _proximal_adagrad(Param, Moment, Grad, l1, l2):
    m = Moment + Grad**2
    return {"ParamOut": _proximal(Param - 0.1 * Grad / m**0.5, 0.1, l1, l2), "MomentOut": m}


_ADAGRAD = {"Param": P, "Grad": G, "Moment": M, "LearningRate": LR}

CASES += [
    Case("proximal_gd", {"Param": P, "Grad": G, "LearningRate": LR}, _proximal_gd, {"l2": 0.5}),
    Case(
        "proximal_gd",
        {"Param": P, "Grad": G, "LearningRate": LR},
        _proximal_gd,
        {"l1": 3.0, "l2": 0.5},
        note="l1",
    ),
    Case("proximal_adagrad", _ADAGRAD, _proximal_adagrad, {"l1": 3.0, "l2": 0.5}),
]  # fmt: skip


def _average(window_full: bool, moved: bool):
    def expected(param, in_sum_1, in_sum_2, in_sum_3, in_num_accumulates, in_num_updates):
        one, two, count = in_sum_1 + param, in_sum_2, in_num_accumulates + 1
        if moved:
            one, two = 0 * one, one + two
        out = {"out_sum_1": one, "out_sum_2": two, "out_sum_3": in_sum_3}
        out |= {"out_num_accumulates": count, "out_num_updates": in_num_updates + 1}
        if window_full:
            out |= {"out_sum_1": 0 * one, "out_sum_2": 0 * two, "out_sum_3": one + two}
            out |= {"out_num_accumulates": 0 * count, "out_old_num_accumulates": count}
        return out

    return expected


def _average_case(accumulated: int, updates: int, note: str, **happens: bool) -> Case:
    count = lambda value: np.array([value], np.int64)
    sums = {"in_sum_1": G, "in_sum_2": V, "in_sum_3": Z}
    inputs = {"param": P, **sums, "in_num_accumulates": count(accumulated)}
    inputs |= {"in_old_num_accumulates": count(4), "in_num_updates": count(updates)}
    attrs = {"average_window": 0.5, "max_average_window": 12, "min_average_window": 4}
    return Case("average_accumulates", inputs, _average(**happens), attrs, note=note)


CASES += [
    _average_case(2, 6, "window-open", window_full=False, moved=False),
    _average_case(4, 9, "window-full", window_full=True, moved=False),
    _average_case(2, 16383, "moves-sums", window_full=False, moved=True),
]  # fmt: skip
