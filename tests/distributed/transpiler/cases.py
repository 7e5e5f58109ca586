"""The cases of the golden file: networks, optimizers and configs that real Fluid 1.8.5 can transpile.

Plain values only, so that a random generator of cases and the real system can share them.
"""

from __future__ import annotations

from typing import Any

Case = dict[str, Any]

_ASYNC = [("sync_mode", False)]
_MERGED = [*_ASYNC, ("runtime_split_send_recv", True)]
_WHOLE = [("slice_var_up", False)]

_ADAM = {"name": "Adam", "rate": 0.01}
_MOMENTUM = {"name": "Momentum", "momentum": 0.9}
_DECAYED = {"rate": ["exponential_decay", [0.1, 100, 0.9, True]]}
_NORM = {"old_clip": ["GradientClipByGlobalNorm", [1.0]]}

CASES: dict[str, Case] = {
    "sgd": {"network": "mlp"},
    "sgd_whole": {"network": "mlp", "config": _WHOLE},
    "sgd_async": {"network": "mlp", "sync": False},
    "sgd_half_async": {"network": "mlp", "sync": False, "config": _ASYNC},
    "sgd_merged": {"network": "mlp", "sync": False, "config": _MERGED},
    "sgd_merged_half_async": {"network": "mlp", "sync": False, "config": [*_MERGED, ("half_async", True)]},
    "sgd_not_async": {
        "network": "mlp",
        "sync": False,
        "config": [*_MERGED, ("half_async", True), ("completely_not_async", True)],
    },
    "one_trainer": {"network": "mlp", "trainers": 1},
    "one_trainer_async": {"network": "mlp", "trainers": 1, "sync": False, "config": _ASYNC},
    "one_server": {"network": "mlp", "pservers": 1, "optimizer": _MOMENTUM},
    "uneven": {"network": "mlp", "args": {"width": 201, "sizes": [130, 77]}, "pservers": 3, "trainers": 3},
    "many_servers": {"network": "mlp", "pservers": 5, "optimizer": _ADAM, "args": {"sizes": [300]}},
    "whole_seeded": {"network": "conv_bn", "pservers": 3, "config": _WHOLE, "seed": 90},
    "large_blocks": {"network": "mlp", "args": {"sizes": [300]}, "config": [("min_block_size", 20000)]},
    "conv_momentum": {"network": "conv_bn", "optimizer": _MOMENTUM},
    "conv_adam_async": {"network": "conv_bn", "optimizer": _ADAM, "sync": False, "config": _MERGED},
    "word2vec": {"network": "word2vec", "optimizer": _ADAM},
    "word2vec_sparse": {"network": "word2vec", "args": {"is_sparse": True}},
    "word2vec_sparse_v2": {"network": "word2vec", "args": {"is_sparse": True, "old": False}},
    "word2vec_sparse_async": {
        "network": "word2vec",
        "args": {"is_sparse": True},
        "sync": False,
        "config": _ASYNC,
        "optimizer": _ADAM,
    },
    "word2vec_sparse_merged": {
        "network": "word2vec",
        "args": {"is_sparse": True},
        "sync": False,
        "config": _MERGED,
    },
    "word2vec_sparse_l2": {
        "network": "word2vec",
        "args": {"is_sparse": True},
        "optimizer": {"l2": 0.01},
        "trainers": 3,
    },
    "lstm": {"network": "lstm", "optimizer": {"name": "Adagrad"}, "pservers": 3},
    "lstm_sparse": {"network": "lstm", "args": {"is_sparse": True}, "optimizer": _MOMENTUM, "config": _WHOLE},
    "wide_deep": {"network": "wide_deep", "optimizer": {"name": "Adam", "lazy_mode": True}},
    "wide_deep_padding": {"network": "wide_deep", "args": {"padding": 0, "slots": 2}, "pservers": 1},
    "sharded": {"network": "wide_deep", "args": {"is_distributed": True, "slots": 1}},
    "sharded_shared": {
        "network": "wide_deep",
        "args": {"is_distributed": True},
        "pservers": 3,
        "trainers": 3,
    },
    "sharded_async": {
        "network": "wide_deep",
        "args": {"is_distributed": True},
        "sync": False,
        "config": _ASYNC,
    },
    "sharded_decayed": {"network": "wide_deep", "args": {"is_distributed": True}, "optimizer": _DECAYED},
    "tagger": {"network": "tagger", "optimizer": {**_ADAM, **_DECAYED}, "pservers": 3},
    "tagger_async": {"network": "tagger", "optimizer": _MOMENTUM, "sync": False, "config": _ASYNC},
    "loop": {"network": "loop", "optimizer": {**_ADAM, "l2": 0.01}},
    "loop_merged": {"network": "loop", "optimizer": _DECAYED, "sync": False, "config": _MERGED},
    "sampled": {"network": "sampled", "optimizer": {"name": "Adagrad"}, "pservers": 4},
    "sampled_tree": {"network": "sampled", "args": {"tree": True}, "config": _WHOLE, "seed": 5},
    "averaged": {"network": "mlp", "optimizer": {**_MOMENTUM, "average": True}},
    "frozen": {"network": "frozen", "optimizer": _ADAM},
    "rates": {"network": "mlp", "args": {"rate": 0.5, "l2": 0.1}, "optimizer": {**_MOMENTUM, "l2": 0.01}},
    "l1": {"network": "mlp", "optimizer": {"l1": 0.01}, "sync": False, "config": _ASYNC},
    "l2": {"network": "mlp", "optimizer": {"l2": 0.01, **_MOMENTUM}},
    "global_norm": {"network": "mlp", "optimizer": {**_ADAM, **_NORM, "l2": 0.01}},
    "global_norm_sparse": {"network": "word2vec", "args": {"is_sparse": True}, "optimizer": _NORM},
    "clip_value": {"network": "lstm", "optimizer": {"old_clip": ["GradientClipByValue", [1.0]]}},
    "clip_norm_async": {
        "network": "mlp",
        "optimizer": {"old_clip": ["GradientClipByNorm", [1.0]]},
        "sync": False,
        "config": _ASYNC,
    },
    "decayed": {"network": "mlp", "optimizer": {**_MOMENTUM, **_DECAYED}},
    "decayed_async": {
        "network": "mlp",
        "optimizer": _DECAYED,
        "sync": False,
        "config": _ASYNC,
        "trainers": 3,
    },
    "decayed_merged": {"network": "mlp", "optimizer": _DECAYED, "sync": False, "config": _MERGED},
    "decayed_sparse": {
        "network": "word2vec",
        "args": {"is_sparse": True},
        "optimizer": {**_ADAM, **_DECAYED},
    },
    "natural": {"network": "mlp", "optimizer": {"rate": ["natural_exp_decay", [0.1, 100, 0.9]]}},
    "inverse": {"network": "mlp", "optimizer": {"rate": ["inverse_time_decay", [0.1, 100, 0.9]]}},
    "polynomial": {
        "network": "mlp",
        "optimizer": {"rate": ["polynomial_decay", [0.1, 100, 0.01, 2.0, True]]},
    },
    "noam": {"network": "mlp", "optimizer": {**_ADAM, "rate": ["noam_decay", [512, 100]]}},
    "cosine": {"network": "mlp", "optimizer": {"rate": ["cosine_decay", [0.1, 100, 10]]}},
    "piecewise": {
        "network": "mlp",
        "optimizer": {"rate": ["piecewise_decay", [[10, 20], [0.1, 0.05, 0.01]]]},
    },
    "adamax": {"network": "mlp", "optimizer": {"name": "Adamax"}},
    "rmsprop": {"network": "mlp", "optimizer": {"name": "RMSProp", "momentum": 0.9}},
    "ftrl": {"network": "mlp", "optimizer": {"name": "Ftrl"}},
    "decayed_adagrad": {"network": "mlp", "optimizer": {"name": "DecayedAdagrad"}},
    "lars": {"network": "mlp", "optimizer": {"name": "LarsMomentum", "momentum": 0.9}},
    "dpsgd": {"network": "mlp", "optimizer": {"name": "Dpsgd"}},
    "initializers": {"network": "mlp", "args": {"init": "Normal", "sizes": [200, 90]}},
    "truncated": {"network": "mlp", "args": {"init": "TruncatedNormal"}, "seed": 7},
}
