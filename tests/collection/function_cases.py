"""Functions of DyNet on small inputs, for DyNet itself and for the collection: ``make_cases(module)``.

``python function_cases.py OUT.json``, run by a Python with DyNet, writes what it computes:
``tests/golden/dynet/functions.json``. So nothing of this project is imported here.
"""

import json
import sys

import numpy as np

RNG = np.random.RandomState(0)
A = RNG.randn(3, 4).astype("float32")
B = np.abs(RNG.randn(3, 4)).astype("float32") + 0.5
V = RNG.randn(4).astype("float32")
W = RNG.randn(3).astype("float32")
P = np.array([0.2, 0.5, 0.9, 0.4], "float32")

ELEMENTWISE = (
    "abs acos asin atan cos cosh cube erf exp log log_sigmoid selu silu sin sinh sqrt square tan"
    " tanh logistic rectify softmax log_softmax"
)


def make_cases(dy):
    """Return functions without arguments that make an expression in the present graph."""
    t = dy.inputTensor
    cases = {
        "transpose": lambda: dy.transpose(t(A)),
        "reshape": lambda: dy.reshape(t(A), (4, 3)),
        "reshape-flat": lambda: dy.reshape(t(A), (12,)),
        "columns": lambda: dy.concatenate_cols([t(W), t(W) * 2]),
        "beside": lambda: dy.concatenate([t(A), t(A)], d=1),
        "pick": lambda: dy.pick(t(A), 1),
        "pick-column": lambda: dy.pick(t(A), 1, dim=1),
        "pick-element": lambda: dy.pick(t(V), 2),
        "range": lambda: dy.pick_range(t(V), 1, 3),
        "range-columns": lambda: dy.pick_range(t(A), 1, 3, d=1),
        "rows": lambda: dy.select_rows(t(A), [2, 0]),
        "cols": lambda: dy.select_cols(t(A), [1, 3]),
        "row": lambda: t(A)[1],
        "sum": lambda: dy.sum_elems(t(A)),
        "mean": lambda: dy.mean_elems(t(A)),
        "norm": lambda: dy.l2_norm(t(A)),
        "sums": lambda: dy.sum_dim(t(A), [0]),
        "row-sums": lambda: dy.sum_dim(t(A), [1]),
        "row-means": lambda: dy.mean_dim(t(A), [1], False),
        "largest": lambda: dy.max_dim(t(A), 0),
        "row-largest": lambda: dy.max_dim(t(A), 1),
        "smallest": lambda: dy.min_dim(t(A), 0),
        "logsumexp-dim": lambda: dy.logsumexp_dim(t(A), 0),
        "softmax-rows": lambda: dy.softmax(t(A), d=1),
        "emax": lambda: dy.emax([t(A), t(B)]),
        "bmax": lambda: dy.bmax(t(A), t(B)),
        "bmin": lambda: dy.bmin(t(A), t(B)),
        "cdiv": lambda: dy.cdiv(t(A), t(B)),
        "pow": lambda: dy.pow(t(B), dy.scalarInput(2.5)),
        "logsumexp": lambda: dy.logsumexp([t(V), t(P)]),
        "colwise": lambda: dy.colwise_add(t(A), t(W)),
        "affine": lambda: dy.affine_transform([t(W), t(A), t(V)]),
        "affine-columns": lambda: dy.affine_transform([t(W), t(A), t(A.T.copy())]),
        "squared-distance": lambda: dy.squared_distance(t(A), t(B)),
        "l1-distance": lambda: dy.l1_distance(t(A), t(B)),
        "huber-distance": lambda: dy.huber_distance(t(A), t(B)),
        "trace": lambda: dy.trace_of_product(t(A), t(B)),
        "hinge": lambda: dy.hinge(t(V), 1),
        "binary-log-loss": lambda: dy.binary_log_loss(t(P), t(P[::-1].copy())),
        "layer-norm": lambda: dy.layer_norm(t(V), t(P), t(V)),
        "elu": lambda: dy.elu(t(A), 0.7),
        "softsign": lambda: dy.softsign(t(V)),
        "zeros": lambda: dy.zeros((2, 3)),
        "ones": lambda: dy.ones(3),
        "constant": lambda: dy.constant((2,), 1.5),
        "one-hot": lambda: dy.one_hot(4, 2),
        "through": lambda: dy.nobackprop(t(V)),
    }
    for name in ELEMENTWISE.split():
        cases[name] = lambda name=name: getattr(dy, name)(t(B if name in ("log", "sqrt") else P))
    return cases


def compute(dy):
    """Return value, dims and flat list of every case."""
    found = {}
    for name, make in make_cases(dy).items():
        dy.renew_cg()
        out = make()
        found[name] = {"value": out.npvalue().tolist(), "dim": str(out.dim()), "flat": out.vec_value()}
    return found


if __name__ == "__main__":
    import dynet

    with open(sys.argv[1], "w") as file:
        json.dump(compute(dynet), file, indent=0)
