"""A script in the manner of pslib's first users: an executor for a role, distributed look-ups, passes.

python old_pslib.py SAVES, run by the launcher. A click follows from the parity of a word's lowest bit.
"""

import random
import sys
from pathlib import Path

import numpy as np

import paddlelike as fluid
from paddlelike.incubate.fleet.parameter_server.pslib import fleet
from paddlelike.incubate.fleet.utils.fleet_util import FleetUtil

main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
main.random_seed = startup.random_seed = 3
with fluid.program_guard(main, startup):
    click = fluid.layers.data("click", [1], dtype="int64")
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    attr = [fluid.ParamAttr(name=name) for name in ("embedding", "copied")]
    found = [
        fluid.layers.embedding(words, [1, 11], is_sparse=True, is_distributed=True, param_attr=one)
        for one in attr
    ]
    found[1].stop_gradient = True
    pooled = fluid.layers.sequence_pool(found[0], "sum")
    chance = fluid.layers.sigmoid(fluid.layers.clip(fluid.layers.fc(pooled, 1), -15.0, 15.0))
    truth = fluid.layers.cast(click, "float32")
    loss = fluid.layers.mean(fluid.layers.log_loss(chance, truth))
    both = fluid.layers.concat([fluid.layers.elementwise_sub(fluid.layers.ceil(chance), chance), chance], 1)
    _, _, (_, _, positive, negative) = fluid.layers.auc(both, click, num_thresholds=4096)
    metrics = fluid.contrib.layers.ctr_metric_bundle(chance, truth)

exe, util = fluid.Executor(), FleetUtil()
fleet.init(exe)
sgd = fleet.distributed_optimizer(fluid.optimizer.SGD(0.5), strategy={"use_cvm": True, "embedding": {}})
sgd.minimize([loss], [scope])
if fleet.is_server():
    fleet.run_server()
    sys.exit()

where = (sys.argv[1], "hdfs://x:1", "me,pw")  # Hadoop's stand-in has the paths of this machine
rng = np.random.RandomState(fleet.worker_index())
numbers = [(number << 50) + (1 << 63) for number in range(20)]  # of 64 bits
part = Path(f"part-{fleet.worker_index()}")
drawn = rng.randint(0, 20, 400)
part.write_text("".join(f"1 {one % 2} 2 {numbers[one]} 0\n" for one in drawn))

with fluid.scope_guard(scope):
    exe.run(startup)
fleet.init_worker()
random.seed(fleet.worker_index())
assert util.get_last_save_model(*where)[:2] == [-1, -1]
for at in (1, 2):
    data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
    data.set_batch_size(16)
    data.set_filelist([str(part)])
    data.set_use_var([click, words])
    data.load_into_memory()
    data.global_shuffle(fleet, 12)
    assert data.get_shuffle_data_size(fleet) == 800
    assert data.get_memory_data_size() != 400  # samples of the other trainer came
    for _ in range(3):
        util.set_zero(positive.name, scope)
        util.set_zero(negative.name, scope)
        for one in metrics:
            util.set_zero(one.name, scope, param_type="float32")
        exe.train_from_dataset(main, data, scope)
    auc = util.get_global_auc(scope, positive.name, negative.name)
    names = [one.name for one in (positive, negative, *metrics)]
    totals = util.get_global_metrics(scope, *names)
    assert totals[0] == auc
    util.print_global_metrics(scope, *names, print_prefix=f"pass {at}")
    util.save_model(sys.argv[1], 20200101, at)
    util.write_model_donefile(where[0], 20200101, at, 7, *where[1:])
    util.save_delta_model(sys.argv[1], 20200101, at)
    rows = util.save_cache_model(sys.argv[1], 20200101, at)
    util.write_xbox_donefile(where[0], 20200101, at, 7, [str(part)], *where[1:])
    util.save_paddle_params(exe, scope, main, f"dense.{at}", where[0], 20200101, at, *where[1:],
                            var_names=["fc_0.w_0", "fc_0.b_0"])  # fmt: skip
    fleet.shrink_sparse_table()
stat = fleet.print_table_stat(0)
assert util.get_last_save_model(*where) == [20200101, 2, f"{where[0]}/20200101/2/", 7]
assert util.get_last_save_xbox(*where)[:2] == [20200101, 2]
util.load_model(sys.argv[1], 20200101, 1)
fleet.stop_worker()
fleet._role_maker._barrier_all()
print("ended", auc, totals[4], rows, totals[8], stat.get("shows"), stat.get("clicks"))  # noqa: T201
