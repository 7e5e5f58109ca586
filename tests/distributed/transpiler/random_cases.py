"""Random cases: networks of random sizes with optimizers, schedules, decay and configs."""

from __future__ import annotations

import random
from typing import Any

from tests.distributed.transpiler.cases import Case

__all__ = ["draw_case"]

_NETWORKS = ["mlp", "mlp", "conv_bn", "word2vec", "lstm", "wide_deep", "frozen", "tagger", "loop", "sampled"]
_OPTIMIZERS: list[dict[str, Any]] = [
    {},
    {},
    {"name": "Momentum", "momentum": 0.9},
    {"name": "Momentum", "momentum": 0.5, "use_nesterov": True},
    {"name": "LarsMomentum", "momentum": 0.9},
    {"name": "Adam"},
    {"name": "Adam", "lazy_mode": True, "beta1": 0.8},
    {"name": "Adagrad"},
    {"name": "Adamax"},
    {"name": "DecayedAdagrad"},
    {"name": "RMSProp", "momentum": 0.9},
    {"name": "Ftrl", "l1": 0.1, "l2": 0.1},
]
#: Those that take no sparse gradients.
_DENSE = ("Adamax", "DecayedAdagrad")
_RATES: list[Any] = [
    0.1,
    0.1,
    0.1,
    ["exponential_decay", [0.1, 100, 0.9]],
    ["natural_exp_decay", [0.1, 100, 0.9, True]],
    ["inverse_time_decay", [0.1, 100, 0.9, True]],
    ["polynomial_decay", [0.1, 100, 0.01, 2.0, True]],
    ["polynomial_decay", [0.1, 100, 0.01, 1.0]],
    ["noam_decay", [512, 100]],
    ["cosine_decay", [0.1, 100, 10]],
    ["piecewise_decay", [[10, 20], [0.1, 0.05, 0.01]]],
]
_CLIPS: list[Any] = [
    ["GradientClipByGlobalNorm", [1.0]],
    ["GradientClipByNorm", [1.0]],
    ["GradientClipByValue", [1.0]],
]


def draw_case(seed: int) -> Case:
    """Return the case of a seed, as plain values."""
    rng = random.Random(seed)
    network = rng.choice(_NETWORKS)
    args = _arguments(rng, network)
    is_sparse = args.get("is_sparse", network in ("wide_deep", "tagger", "loop", "sampled"))
    case: Case = {
        "network": network,
        "args": args,
        "optimizer": _optimizer(rng, [o for o in _OPTIMIZERS if not (is_sparse and o.get("name") in _DENSE)]),
        "pservers": rng.randint(1, 5),
        "trainers": rng.randint(1, 4),
        "seed": rng.choice([0, 0, 1, 90, 2020]),
        "sync": rng.random() < 0.6,
        "config": [],
    }
    if not case["sync"]:
        case["config"] = _asynchronous(rng)
    if rng.random() < 0.25:
        case["config"].append(["slice_var_up", False])
    if rng.random() < 0.25:
        case["config"].append(["min_block_size", rng.choice([8192, 10000, 20000])])
    return case


def _arguments(rng: random.Random, network: str) -> dict[str, Any]:
    if network == "mlp":
        sizes = [rng.randint(1, 400) for _ in range(rng.randint(0, 3))]
        args: dict[str, Any] = {
            "width": rng.randint(1, 300),
            "sizes": sizes,
            "act": rng.choice(["tanh", "relu"]),
        }
        if rng.random() < 0.3:
            args["init"] = rng.choice(["Normal", "Xavier", "TruncatedNormal", "MSRA", "Constant"])
        if rng.random() < 0.2:
            args["rate"] = 0.5
        return args
    if network == "conv_bn":
        return {"filters": rng.randint(2, 9), "classes": rng.randint(2, 50)}
    if network == "word2vec":
        words, width = rng.randint(20, 4000), rng.randint(3, 40)
        return {"words": words, "width": width, "is_sparse": rng.random() < 0.6, "old": rng.random() < 0.6}
    if network == "lstm":
        return {"size": rng.randint(2, 80), "is_sparse": rng.random() < 0.5}
    if network == "wide_deep":
        args = {"slots": rng.randint(1, 5), "rows": rng.randint(5, 5000), "width": rng.randint(1, 20)}
        return {**args, "is_distributed": rng.random() < 0.4, "padding": rng.choice([None, None, 0, 3])}
    return {"tree": rng.random() < 0.5} if network == "sampled" else {}


def _optimizer(rng: random.Random, choice: list[dict[str, Any]]) -> dict[str, Any]:
    given = {**rng.choice(choice), "rate": rng.choice(_RATES)}
    if rng.random() < 0.3 and given.get("name") != "Ftrl":
        given["l2" if rng.random() < 0.7 else "l1"] = 0.01
    if rng.random() < 0.25:
        given["old_clip"] = rng.choice(_CLIPS)
    if rng.random() < 0.15:
        given["average"] = True
    return given


def _asynchronous(rng: random.Random) -> list[Any]:
    config: list[Any] = []
    if rng.random() < 0.8:
        config.append(["sync_mode", False])
        if rng.random() < 0.6:
            config.append(["runtime_split_send_recv", True])
            config += [["half_async", True]] * (rng.random() < 0.4)
            config += [["completely_not_async", True]] * (rng.random() < 0.3)
    return config
