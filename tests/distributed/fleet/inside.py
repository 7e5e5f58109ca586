"""A script that reaches into pslib's fleet, as Baidu's own do: python inside.py SAVES, run by the launcher.

The bodies of ``pull_all`` and ``shrink_all`` are the calls that ``FleetUtil.pull_all_dense_params`` and
``PSLib.shrink_sparse_table`` of Paddle 1.8.5 make.
"""

import json
import sys
from pathlib import Path

import numpy as np

import paddlelike.fluid as fluid
from paddlelike.fluid.incubate.fleet.base.role_maker import GeneralRoleMaker
from paddlelike.fluid.incubate.fleet.parameter_server.pslib import fleet

hints = []


def refuse(call, *arguments, **options):
    """Note the hint of a call that is refused; what follows in this script obeys it."""
    try:
        call(*arguments, **options)
    except fluid.errors.PaddlelikeError as error:
        hints.append(error.hint)


role = GeneralRoleMaker()
refuse(role.barrier_worker)
fleet.init(role)
words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
user = fluid.layers.data("user", [1], dtype="int64", lod_level=1)
click = fluid.layers.data("click", [1], dtype="int64")
rows = [
    fluid.layers.embedding(
        one, [1, 11], is_sparse=True, is_distributed=True, param_attr=fluid.ParamAttr(name=name)
    )
    for one, name in ((user, "users"), (words, "embedding"), (words, "copied"))
]
rows[2].stop_gradient = True
norm = fluid.layers.concat([fluid.layers.sequence_pool(one, "sum") for one in rows[:2]], 1)
norm = fluid.layers.data_norm(norm, name="norm")
hidden = fluid.layers.fc(norm, 4, name="a")
chance = fluid.layers.fc(hidden, 1, act="sigmoid", name="b")
truth = fluid.layers.cast(click, "float32")
loss = fluid.layers.mean(fluid.layers.log_loss(fluid.layers.clip(chance, 1e-3, 1 - 1e-3), truth))
late = fluid.layers.create_global_var([11 * 2, 4], 0.0, "float32", persistable=True, name="late")
lately = fluid.layers.sequence_pool(rows[2], "sum")

copies = {
    "need_copy": True, "batch_num": 5, "src_sparse_tables": ["embedding"], "dest_sparse_tables": ["copied"],
    "src_var_list": "a.w_0", "dest_var_list": "late",
}  # fmt: skip
strategy = {"embedding": {}, "use_cvm": True, "copy_table": copies}
main, scope = fluid.default_main_program(), fluid.global_scope()
dense = {"copy_table": {"src_dense_tables": [3], "dest_dense_tables": [4]}}
refuse(fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), dense).minimize, [loss], [scope])
refuse(fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize, [loss], [scope], [fluid.Program()])
startups = [fluid.default_startup_program()]
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy=strategy).minimize([loss], [scope], startups)
if fleet.is_server():
    fleet.run_server()
    sys.exit()


def pull_all():
    fleet._role_maker._barrier_worker()
    if fleet._role_maker.is_first_worker():
        program = str(id(main))
        tables = fleet._opt_info["program_id_to_worker"][program].get_desc().dense_table
        config = fleet._opt_info["program_configs"][program]
        wanted = {int(table) for key in config if "dense" in key for table in config[key]}
        for table in tables:
            if int(table.table_id) in wanted:
                names = list(table.dense_variable_name)
                assert all(scope.find_var(name) is not None for name in names)
                fleet._fleet_ptr.pull_dense(scope, int(table.table_id), names)
    fleet._role_maker._barrier_worker()


def shrink_all():
    fleet._role_maker._barrier_worker()
    if fleet._role_maker.is_first_worker():
        tables = [i.table_id for one in fleet._opt_info["fleet_desc"].trainer_param for i in one.sparse_table]
        for table in sorted(set(tables)):
            fleet._fleet_ptr.shrink_sparse_table(table)
    fleet._role_maker._barrier_worker()


saves = Path(sys.argv[1])
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
fleet.init_worker()
part = Path(f"part-{fleet.worker_index()}")
drawn = np.random.RandomState(fleet.worker_index()).randint(1, 20, (80, 2))
part.write_text("".join(f"1 {u} 2 {w} {w + 1} 1 {u % 2}\n" for u, w in drawn))
data = fluid.DatasetFactory().create_dataset("QueueDataset")
data.set_batch_size(8)
data.set_filelist([str(part)])
data.set_use_var([user, words, click])
exe.train_from_dataset(main, data, scope)
fleet._role_maker._barrier_worker()
said = {}
if fleet.is_first_worker():
    said["late"] = bool(np.any(np.array(scope.find_var("late").get_tensor())))
    said["same"] = np.array_equal(
        np.array(scope.find_var("late").get_tensor()), np.array(scope.find_var("a.w_0").get_tensor())
    )
fleet._role_maker._barrier_worker()
scope.find_var("b.w_0").get_tensor().set(np.full((4, 1), 7, "float32"))  # what only this trainer has
refuse(lambda: fleet._fleet_ptr.push_dense)
pull_all()
tables = [(name, growing) for growing, name in enumerate(("users", "embedding", "copied"))]
for name, table in tables:
    fleet.save_one_table(table, str(saves / name))
Path("list").write_text("3\n5\n18446744073709551615\n")
fleet.save_model_with_whitelist(exe, str(saves / "listed"), "list", mode=0, table_id=1)
stat = fleet.print_table_stat(1)
shrink_all()
shrunk = fleet.print_table_stat(1)
fleet.clear_one_table(1)
fleet.load_pslib_whitelist(1, str(saves / "listed"))
listed = fleet.print_table_stat(1)
if fleet.is_first_worker():
    fleet._fleet_ptr.client_flush()
    refuse(lambda: fleet.confirm)
    back = [fleet._fleet_ptr.print_table_stat(0)["users"]]
    fleet._fleet_ptr.save_model(str(saves / "all"), 0)
    fleet._fleet_ptr.clear_model()
    fleet._fleet_ptr.load_model(str(saves / "all"), 0)
    back.append(fleet._fleet_ptr.print_table_stat(0)["users"])
    fleet._fleet_ptr.clear_model()
    fleet._fleet_ptr.load_model_one_table(0, str(saves / "users"), 0)
    info = fleet._opt_info
    assert main._fleet_opt is info
    said |= {
        "hints": hints,
        "back": back,
        "pulled": np.array(scope.find_var("b.w_0").get_tensor()).tolist(),
        "rows": [int(one["rows"]) for one in (stat, listed)],
        "shows": [one["shows"] for one in (stat, shrunk)],
        "loaded": fleet._fleet_ptr.print_table_stat(0)["users"]["rows"],
        "config": info["program_configs"][str(id(main))],
        "dense": [[one.table_id, [*one.dense_variable_name], [*one.dense_gradient_variable_name]]
                  for one in info["fleet_desc"].trainer_param[0].dense_table],
        "keys": sorted(info),
    }  # fmt: skip
    print("said", json.dumps(said))  # noqa: T201
fleet._role_maker._barrier_worker()
fleet.stop_worker()
