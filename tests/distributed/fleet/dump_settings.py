"""A network with two tables of pslib. Run by Paddle 1.8.5, this records its ``fleet_desc`` of strategies.

``python dump_settings.py GOLDEN``; Python 3 needs ``functools.reduce`` among the builtins for 1.8.5's pslib.
"""

import builtins
import functools
import json
import random
import sys

_ACCESSORS = [f"Downpour{one}Accessor" for one in ("FeatureValue", "Ctr", "SparseValue", "CtrDouble", "Unit")]
_RULES = ["adam", "adagrad", "naive"]
_SPARSE = {
    "accessor_class": _ACCESSORS, "optimizer": _RULES, "learning_rate": [0.1, 0.2], "initial_range": [0.5],
    "weight_bounds": [[-1, 1]], "nonclk_coeff": [0.25], "click_coeff": [2], "base_threshold": [3],
    "delta_threshold": [0.5], "delta_keep_days": [3], "delete_after_unseen_days": [9], "shard_num": [7],
    "show_click_decay_rate": [0.5], "delete_threshold": [0.1], "embedx_threshold": [4], "converter": ["a"],
    "deconverter": ["b"], "enable_cache": [False], "cache_rate": [0.1], "cache_file_num": [3],
    "beta1_decay_rate": [0.8], "beta2_decay_rate": [0.88], "ada_epsilon": [1e-3], "initial_g2sum": [7],
    "ssd_unseenday_threshold": [4], "compress_in_save": [False], "table_class": ["DownpourSparseSSDTable"],
}  # fmt: skip
_UNIT = {
    "embed_sparse_optimizer": _RULES,
    "embedx_sparse_optimizer": _RULES,
    "embedx_sparse_learning_rate": [3],
}
_DENSE = {
    "optimizer": ["naive"], "learning_rate": [0.5], "avg_decay": [0.4], "ada_decay": [0.3],
    "ada_epsilon": [0.2], "mom_decay": [0.1], "naive_lr": [0.05], "table_class": ["X"],
    "accessor_class": ["Y"], "compress_in_save": [False],
}  # fmt: skip
_SUMS = {"operation": ["s"], "decay_rate": [0.9], "table_class": ["X"], "compress_in_save": [False]}


def _draw_strategy(rng):
    def draw(choices, prefix=""):
        return {prefix + key: rng.choice(some) for key, some in sorted(choices.items()) if rng.random() < 0.3}

    tables = {
        name: dict({"sparse_embedx_dim": rng.choice([8, 5, 13])}, **draw(_SPARSE, "sparse_"), **draw(_UNIT))
        for name in ("emb", "other")
    }
    rules = {"dense_table": draw(_DENSE, "dense_"), "datanorm_table": draw(_SUMS, "datanorm_")}
    others = {"use_cvm": [True], "no_cvm": [True], "fs_uri": ["u"], "dump_fields": [["click"]]}
    return {**tables, **rules, **draw(others)}


def build(fluid, case):
    """Return a loss. Odd cases have no data_norm, and do not train all rows that they look up."""
    embed = fluid.layers.embedding
    click = fluid.layers.data("click", [-1, 1], dtype="int64", lod_level=1, append_batch_size=False)
    sums = []
    for slot in ("1", "2", "3"):
        ids = fluid.layers.data(slot, [1], dtype="int64", lod_level=1)
        for name in ("emb", "other"):
            attr = fluid.ParamAttr(name=name)
            rows = embed(ids, [1, 11], is_sparse=True, is_distributed=True, param_attr=attr)
            rows.stop_gradient = bool(case % 2) and (name == "other" or slot == "2")
            sums.append(fluid.layers.reduce_sum(fluid.layers.sequence_pool(rows, "sum"), 1, keep_dim=True))
    hidden = fluid.layers.concat(sums, 1)
    if not case % 2:
        hidden = fluid.layers.data_norm(hidden, name="norm")
    chance = fluid.layers.fc(fluid.layers.fc(hidden, 3), 1, act="sigmoid")
    return fluid.layers.mean(fluid.layers.log_loss(chance, fluid.layers.cast(click, "float32")))


def _record(path):
    import paddle.fluid as fluid
    from paddle.fluid.incubate.fleet.parameter_server.pslib.optimizer_factory import DistributedAdam

    builtins.reduce = functools.reduce
    found, rng = [], random.Random(5)
    for case in range(12):
        strategy = _draw_strategy(rng)
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            loss = build(fluid, case)
            info = DistributedAdam(fluid.optimizer.SGD(0.1))._minimize([loss], strategy=strategy)[2]
        message, program = info.pop("fleet_desc"), str(id(loss.block.program))
        info["program_configs"] = info["program_configs"][program]
        info["program_id_to_worker"] = str(info["program_id_to_worker"][program].get_desc())
        found.append({"strategy": strategy, "message": message.SerializeToString().hex(), "info": info})
    with open(path, "w") as file:
        json.dump(found, file, indent=1, sort_keys=True)


if __name__ == "__main__":
    _record(sys.argv[1])
