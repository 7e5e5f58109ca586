"""A script for pslib: python clicks.py SAVES, run by the launcher."""

import sys
from pathlib import Path

import numpy as np

import paddlelike.fluid as fluid
import paddlelike.fluid.incubate.fleet.base.role_maker as role_maker
from paddlelike.fluid.incubate.fleet.parameter_server.pslib import fleet, fleet_embedding

saves = Path(sys.argv[1])
fleet.init(role_maker.PaddleCloudRoleMaker())

words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
user = fluid.layers.data("user", [1], dtype="int64")
label = fluid.layers.data("label", [1], dtype="int64")
with fleet_embedding(click_name=label.name):
    attr = fluid.ParamAttr(name="embedding")
    rows = [
        fluid.layers.embedding(one, size=[-1, 9], is_sparse=True, is_distributed=True, param_attr=attr)
        for one in (words, user)
    ]
flat = fluid.layers.concat([fluid.layers.sequence_pool(rows[0], "sum"), rows[1]], axis=1)
predict = fluid.layers.fc(flat, 2, act="softmax")
loss = fluid.layers.mean(fluid.layers.cross_entropy(predict, label))

adam = fluid.optimizer.Adam(0.05)
strategy = {"embedding": {"sparse_delete_threshold": 0.25, "sparse_show_click_decay_rate": 1.0}}
adam = fleet.distributed_optimizer(adam, strategy=strategy)
adam.minimize([loss], [fluid.global_scope()])

if fleet.is_server():
    fleet.run_server()
else:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fleet.init_worker()
    rng = np.random.RandomState(fleet.worker_index())
    for day in range(3):
        for _ in range(30):
            lengths = rng.randint(1, 4, 16).tolist()
            ids = rng.randint(1, 40, (sum(lengths), 1)) * (1 << 50)
            users = rng.randint(1, 20, (16, 1))
            feed = {
                "words": fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace()),
                "user": users,
                "label": users % 2,
            }
            (value,) = exe.run(fluid.default_main_program(), feed=feed, fetch_list=[loss])
        sys.stdout.write(f"day {day}: loss {value.item():.6f}\n")
        fleet.save_persistables(exe, str(saves / f"day{day}"), mode=0)
        fleet.shrink_sparse_table()
    stat = fleet.print_table_stat(0)
    fleet.save_one_table(0, str(saves / "table"))
    fleet.clear_one_table(0)
    empty = fleet.print_table_stat(0)
    fleet.load_model(str(saves / "day2"))
    again = fleet.print_table_stat(0)
    count = fleet.save_cache_model(exe, str(saves / "cache"))
    if fleet.is_first_worker():
        found = [int(one["rows"]) for one in (stat, empty, again)]
        sys.stdout.write(" ".join(map(str, [*found, count, again["clicks"] > 0])) + "\n")
    fleet.stop_worker()
