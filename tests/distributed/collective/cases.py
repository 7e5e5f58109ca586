"""Networks, optimizers and jobs whose transpiled programs are recorded; Paddle 1.8.5 runs this file, too."""

from __future__ import annotations

import importlib
from typing import Any

PAIR = ["127.0.0.1:6170", "127.0.0.1:6171"]
FOUR = ["10.0.0.1:6170", "10.0.0.2:6170", "10.0.0.3:6170", "10.0.0.4:6170"]

CASES: dict[str, dict[str, Any]] = {
    "grad_sgd_rank0": {"network": "line", "optimizer": "sgd"},
    "grad_sgd_rank1": {"network": "line", "optimizer": "sgd", "rank": 1},
    "grad_momentum_3_rings": {"network": "normalized", "optimizer": "momentum", "rings": 3},
    "grad_adam_2_rings_rank1": {"network": "normalized", "optimizer": "adam", "rank": 1, "rings": 2},
    "grad_clip_shared": {"network": "shared", "optimizer": "clipped", "rings": 2},
    "grad_embedding_4_workers": {"network": "embedded", "optimizer": "adam", "rank": 2, "endpoints": FOUR},
    "local_sgd_rank0": {"network": "line", "optimizer": "sgd", "how": "local_sgd"},
    "local_momentum_2_rings_rank1": {
        "network": "normalized",
        "optimizer": "momentum",
        "how": "local_sgd",
        "rings": 2,
        "rank": 1,
    },
    "local_adam_shared": {"network": "shared", "optimizer": "adam", "how": "local_sgd"},
    "threads": {"network": "line", "optimizer": "sgd", "how": "single_process_multi_thread"},
    "nccl2_rank0": {"network": "line", "optimizer": "sgd", "mode": "nccl2"},
    "nccl2_hierarchical_rank1": {
        "network": "normalized",
        "optimizer": "momentum",
        "mode": "nccl2",
        "rank": 1,
        "rings": 2,
        "endpoints": FOUR,
        "inter": 2,
    },
    "grad_decayed_adam": {"network": "normalized", "optimizer": "decayed adam"},
    "grad_lamb": {"network": "normalized", "optimizer": "lamb"},
    "grad_sparse_decayed": {"network": "sparse", "optimizer": "decayed adam", "rings": 2},
    "grad_convolved": {"network": "convolved", "optimizer": "clipped"},
    "local_lamb": {"network": "normalized", "optimizer": "lamb", "how": "local_sgd"},
    "local_sparse": {"network": "sparse", "optimizer": "sgd", "how": "local_sgd", "rank": 1},
    "nccl2_3_workers": {
        "network": "convolved",
        "optimizer": "lamb",
        "mode": "nccl2",
        "rank": 2,
        "endpoints": FOUR[:3],
    },
    "fleet": {"network": "normalized", "optimizer": "decayed adam", "fleet": {}},
    "fleet_rings": {
        "network": "normalized",
        "optimizer": "sgd",
        "endpoints": FOUR,
        "fleet": {
            "nccl_comm_num": 2,
            "use_hierarchical_allreduce": True,
            "hierarchical_allreduce_inter_nranks": 2,
        },
    },
    "fleet_one_machine": {
        "network": "normalized",
        "optimizer": "sgd",
        "rank": 1,
        "fleet": {"nccl_comm_num": 2, "use_hierarchical_allreduce": True},
    },
    "fleet_local_sgd": {
        "network": "convolved",
        "optimizer": "momentum",
        "rank": 1,
        "fleet": {"use_local_sgd": True},
    },
    "fleet_operators": {
        "network": "sparse",
        "optimizer": "sgd",
        "endpoints": FOUR,
        "rank": 3,
        "fleet": {"_ut4grad_allreduce": True, "nccl_comm_num": 2},
    },
    "grad_split": {"network": "split", "optimizer": "momentum", "rings": 2},
    "local_split": {"network": "split", "optimizer": "sgd", "how": "local_sgd"},
    "grad_devices": {"network": "devices", "optimizer": "adam"},
    "fleet_recompute": {
        "network": "deep",
        "optimizer": "decayed adam",
        "fleet": {"forward_recompute": True, "recompute_checkpoints": ["fc_1.tmp_2", "fc_3.tmp_2"]},
    },
    "fleet_recompute_operators": {
        "network": "deep",
        "optimizer": "momentum",
        "rank": 1,
        "fleet": {
            "forward_recompute": True,
            "recompute_checkpoints": ["fc_1.tmp_2", "fc_3.tmp_2"],
            "mode": "collective",
            "collective_mode": "grad_allreduce",
        },
    },
}


def build(fluid: Any, case: dict[str, Any]) -> None:
    """Append the network of a case and its updates to the default programs, and transpile those of fleet."""
    optimizer, loss = _OPTIMIZERS[case["optimizer"]](fluid), _NETWORKS[case["network"]](fluid)
    if "fleet" not in case:
        optimizer.minimize(loss)
        return
    module = importlib.import_module(f"{fluid.__name__}.incubate.fleet.collective")
    roles = importlib.import_module(f"{fluid.__name__}.incubate.fleet.base.role_maker")
    endpoints = case.get("endpoints", PAIR)
    module.fleet.init(roles.UserDefinedCollectiveRoleMaker(case.get("rank", 0), endpoints))
    strategy = module.DistributedStrategy()
    for name, value in case["fleet"].items():
        if name == "recompute_checkpoints":
            value = [loss.block.var(checkpoint) for checkpoint in value]
        setattr(strategy, name, value)
    module.fleet.distributed_optimizer(optimizer, strategy).minimize(loss)


def transpile(fluid: Any, case: dict[str, Any], main: Any, startup: Any) -> None:
    """Transpile both programs as the case says, unless fleet has done so."""
    if "fleet" in case:
        return
    rank, endpoints = case.get("rank", 0), case.get("endpoints", PAIR)
    config = fluid.DistributeTranspilerConfig()
    config.mode = case.get("mode", "collective")
    config.nccl_comm_num = case.get("rings", 1)
    if config.mode == "collective":
        config.collective_mode = case.get("how", "grad_allreduce")
    if "inter" in case:
        config.use_hierarchical_allreduce = True
        config.hierarchical_allreduce_inter_nranks = case["inter"]
    fluid.DistributeTranspiler(config).transpile(
        rank,
        program=main,
        trainers=",".join(endpoints),
        startup_program=startup,
        current_endpoint=endpoints[rank],
    )


def _line(fluid: Any) -> Any:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))


def _normalized(fluid: Any) -> Any:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.batch_norm(fluid.layers.fc(x, 8, act="relu"))
    return fluid.layers.mean(fluid.layers.cross_entropy(fluid.layers.fc(hidden, 3, act="softmax"), y))


def _shared(fluid: Any) -> Any:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    attr = fluid.ParamAttr(name="w")
    hidden = fluid.layers.fc(x, 4, param_attr=attr, bias_attr=False)
    hidden = fluid.layers.fc(hidden, 4, param_attr=attr, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def _embedded(fluid: Any) -> Any:
    ids, y = fluid.data("ids", [None, 1], "int64"), fluid.data("y", [None, 1])
    rows = fluid.layers.embedding(ids, [10, 4])
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(rows, 1), y))


def _sparse(fluid: Any) -> Any:
    ids, y = fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1])
    rows = fluid.embedding(ids, [10, 4], is_sparse=True, param_attr="table")
    pooled = fluid.layers.sequence_pool(fluid.layers.reshape(rows, [-1, 4]), "sum")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(pooled, 1), y))


def _convolved(fluid: Any) -> Any:
    image, y = fluid.data("image", [None, 1, 8, 8]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.conv2d(image, 4, 3, bias_attr=False)
    hidden = fluid.layers.pool2d(fluid.layers.batch_norm(hidden, act="relu"), 2, "max", 2)
    hidden = fluid.layers.dropout(hidden, 0.1)
    return fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(fluid.layers.fc(hidden, 3), y))


def split_classes(fluid: Any, workers: int = 2, rank: int = 0) -> Any:
    """Return the loss of six classes: each worker has columns of the last layer's parameter of its own."""
    collective = importlib.import_module(f"{fluid.__name__}.layers.collective")
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1], "int64")
    hidden = fluid.layers.fc(x, 8, act="tanh")
    if workers > 1:
        hidden = collective._c_allgather(hidden, workers, use_calc_stream=True)
        y = collective._c_allgather(y, workers, use_calc_stream=True)
        y.stop_gradient = True
    own = 6 // workers
    scores = fluid.layers.fc(hidden, own, bias_attr=False, param_attr="own")
    for program in (fluid.default_main_program(), fluid.default_startup_program()):
        program.global_block().vars["own"].is_distributed = True
    total = fluid.layers.reduce_sum(fluid.layers.exp(scores), dim=1, keep_dim=True)
    labels = fluid.layers.shard_index(y, 6, workers, rank)
    mine = scores * fluid.layers.one_hot(labels, own, allow_out_of_range=True)
    score = fluid.layers.reduce_sum(mine, dim=1, keep_dim=True)
    if workers > 1:
        total = collective._c_allreduce(total, use_calc_stream=True)
        score = collective._c_allreduce(score, use_calc_stream=True)
    return fluid.layers.mean(fluid.layers.log(total) - score)


def _devices(fluid: Any) -> Any:
    x, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    with fluid.device_guard("cpu"):
        hidden = fluid.layers.fc(x, 4, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def _deep(fluid: Any) -> Any:
    hidden, y = fluid.data("x", [None, 4]), fluid.data("y", [None, 1])
    for _ in range(5):
        hidden = fluid.layers.fc(hidden, 4, act="relu")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def _adam(fluid: Any) -> Any:
    return fluid.optimizer.Adam(fluid.layers.exponential_decay(0.1, 10, 0.5, staircase=True))


def _momentum(fluid: Any) -> Any:
    return fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(1e-4))


_NETWORKS = {
    "line": _line,
    "normalized": _normalized,
    "shared": _shared,
    "embedded": _embedded,
    "sparse": _sparse,
    "convolved": _convolved,
    "split": split_classes,
    "devices": _devices,
    "deep": _deep,
}
_OPTIMIZERS = {
    "sgd": lambda fluid: fluid.optimizer.SGD(0.1),
    "momentum": _momentum,
    "adam": _adam,
    "decayed adam": lambda fluid: fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(1e-4)),
    "lamb": lambda fluid: fluid.optimizer.Lamb(0.002, lamb_weight_decay=0.02),
    "clipped": lambda fluid: fluid.optimizer.SGD(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)),
}
