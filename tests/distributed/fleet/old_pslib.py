"""A script in the manner of pslib's first users: an executor for a role, look-ups that are distributed.

python old_pslib.py SAVES, run by the launcher. A click follows from the parity of the first word.
"""

import sys

import numpy as np

import paddlelike as fluid
from paddlelike.incubate.fleet.parameter_server.pslib import fleet

main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
main.random_seed = startup.random_seed = 3
with fluid.program_guard(main, startup):
    click = fluid.layers.data("click", [-1, 1], False, "int64", lod_level=1)
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    same = fluid.ParamAttr(name="embedding")
    rows = fluid.layers.embedding(words, [1, 11], is_sparse=True, is_distributed=True, param_attr=same)
    chance = fluid.layers.sigmoid(fluid.layers.fc(fluid.layers.sequence_pool(rows, "sum"), 1))
    loss = fluid.layers.mean(fluid.layers.log_loss(chance, fluid.layers.cast(click, "float32")))

exe = fluid.Executor(fluid.CPUPlace())
fleet.init(exe)
sgd = fleet.distributed_optimizer(fluid.optimizer.SGD(0.5), strategy={"use_cvm": True, "embedding": {}})
sgd.minimize([loss], [scope], startup_programs=[startup])
if fleet.is_server():
    fleet.run_server()
    sys.exit()
with fluid.scope_guard(scope):
    exe.run(startup)
    fleet.init_worker()
    rng = np.random.RandomState(1)
    for _ in range(120):
        numbers = rng.randint(0, 20, (16, 2)) * (1 << 50)
        numbers[:, 1] = 0  # pslib's servers have zeros for id 0
        ids = fluid.create_lod_tensor(numbers.reshape(-1, 1), [[2] * 16], exe.place)
        truth = (numbers[:, :1] >> 50) % 2
        feed = {"words": ids, "click": fluid.create_lod_tensor(truth, [[1] * 16], exe.place)}
        (value,) = exe.run(main, feed=feed, fetch_list=[loss])
    stat = fleet.print_table_stat(0)
    fleet.save_persistables(exe, sys.argv[1])
    fleet.stop_worker()
print("ended", value.item(), int(stat["rows"]))  # noqa: T201
