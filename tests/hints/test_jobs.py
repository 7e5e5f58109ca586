"""The advice of errors of distributed jobs that one process can make, followed to the letter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed import growing_tables, roles
from paddlelike.distributed.collective.job import make_job
from paddlelike.distributed.collective.transpiler import GradAllReduce, LocalSGD
from paddlelike.distributed.fleet import pslib
from paddlelike.distributed.fleet.optimizer import load_program
from paddlelike.distributed.fleet.parameter_server import DistributedTranspiler
from paddlelike.distributed.fleet.pslib_settings import Settings
from paddlelike.distributed.fleet.role_maker import (
    GeneralRoleMaker,
    PaddleCloudRoleMaker,
    Role,
    UserDefinedCollectiveRoleMaker,
    UserDefinedRoleMaker,
)
from paddlelike.distributed.growing_tables import CountFilterEntry, sparse_embedding
from paddlelike.distributed.launch.slurm_and_ray import expand_hosts
from paddlelike.distributed.training_workers import distribute_training
from paddlelike.distributed.wire.security import parse_endpoint
from paddlelike.formats.paddle.directory import VariableDirectory
from paddlelike.storage.location import locate
from tests.distributed.protocol.test_trainer import finish_join, join_at
from tests.distributed.test_growing_tables import Job as GrowingJob
from tests.distributed.transpiler.loopback import Servers, Trainer
from tests.hints.advice import Advice, each, fill, new_network, read_rows

layers = fluid.layers
ENDPOINTS = ["127.0.0.1:6174", "127.0.0.1:6175"]
IDS = np.array([[1], [3]], "int64")
ROWS = np.ones((2, 4), "float32")


def mlp() -> fluid.Variable:
    return layers.mean(layers.fc(read_rows(), 1, param_attr=fill(1.0), bias_attr=False))


def look_up(*options: dict[str, bool], tables: int = 1) -> Callable[[], fluid.Variable]:
    """Return a network that looks ids up, each time with other options, in one table or several."""

    def build() -> fluid.Variable:
        ids, found = fluid.data("ids", [None, 1], "int64"), []
        for at, one in enumerate(options):
            attr = fluid.ParamAttr(name=f"table{at % tables}", initializer=fluid.initializer.Constant(1.0))
            found.append(layers.embedding(ids, [10, 2], param_attr=attr, **one))
        return layers.mean(layers.concat(found, 1))

    return build


def look_up_twice(**options: bool) -> Callable[[], fluid.Variable]:
    """Return a network whose second look-up depends on the first one."""

    def build() -> fluid.Variable:
        ids = fluid.data("ids", [None, 1], "int64")
        attr = fluid.ParamAttr(name="table0", initializer=fluid.initializer.Constant(1.0))
        found = layers.embedding(ids, [10, 2], param_attr=attr, **options)
        best = layers.reshape(layers.argmax(found, axis=1), [-1, 1])
        best.stop_gradient = True
        return layers.mean(
            layers.concat([found, layers.embedding(best, [10, 2], param_attr=attr, **options)], 1)
        )

    return build


def transpile(network: Callable[[], fluid.Variable], **options: Any) -> Any:
    """Return the transpiler of a job of one trainer, after ``network`` was built."""
    config = fluid.DistributeTranspilerConfig()
    arguments = {"trainer_id": 0, "pservers": ",".join(ENDPOINTS), "trainers": 1}
    minimize = options.pop("minimize", True)
    for name in [name for name in options if hasattr(config, name) and name != "trainers"]:
        setattr(config, name, options.pop(name))
    fluid.default_main_program().random_seed = 1
    loss = network()
    if minimize:
        fluid.optimizer.SGD(0.5).minimize(loss)
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(**{**arguments, **options})
    return transpiler


def compare(network: Callable[[], fluid.Variable], **options: Any) -> Any:
    """Return the largest difference of the values after a step, from those of the same network trained alone."""
    name = "fc_0.w_0" if network is mlp else "table0"
    feed = {"x": ROWS} if network is mlp else {"ids": IDS}
    with new_network():
        loss = network()
        fluid.optimizer.SGD(0.5).minimize(loss)
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        exe.run(feed=feed, fetch_list=[loss])
        alone = np.array(fluid.global_scope().find_var(name).get_tensor())
    with new_network():
        transpiler = transpile(network, **options)
        servers = Servers({one: transpiler.get_pserver_programs(one) for one in ENDPOINTS})
        trainer = Trainer(transpiler.get_trainer_program(wait_port=False), fluid.default_startup_program())
        trainer.start(servers)
        trainer.step(servers, feed, [])
        servers.apply()
        held = [
            servers.value(one, own)
            for one in ENDPOINTS
            for own in servers.scopes[one].local_var_names()
            if own == name or own.startswith(f"{name}.block")
        ]
    return float(np.abs(np.concatenate(held) - alone).max())


def transpile_twice(new: bool) -> Any:
    transpile(mlp)
    if not new:
        fluid.DistributeTranspiler().transpile(0, pservers=ENDPOINTS[0], trainers=1)
    return compare(mlp)


def get_early(called: bool) -> Any:
    if called:
        return compare(mlp)
    return fluid.DistributeTranspiler().get_trainer_program()


def append_update(guarded: bool) -> Any:
    """Append an update of one's own, scaled by -0.5, and return the value that a server computes."""
    loss = mlp()
    ((param, grad),) = fluid.backward.append_backward(loss)
    program = fluid.default_main_program()
    block = program.global_block()
    rate = layers.create_global_var([1], 0.5, "float32", persistable=True, name="rate")
    inputs = {"Param": param, "Grad": grad, "LearningRate": rate}
    if guarded:
        with program._optimized_guard([param, grad]):
            block.append_op("sgd", inputs, {"ParamOut": param})
    else:
        op = block.append_op("sgd", inputs, {"ParamOut": param})
        op._set_attr("op_role", 2)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(0, pservers=ENDPOINTS[0], trainers=1)
    (main, startup) = transpiler.get_pserver_programs(ENDPOINTS[0])
    servers = Servers({ENDPOINTS[0]: (main, startup)})
    trainer = Trainer(transpiler.get_trainer_program(wait_port=False), fluid.default_startup_program())
    trainer.start(servers)
    trainer.step(servers, {"x": ROWS}, [])
    servers.apply()
    return servers.value(ENDPOINTS[0], param.name).ravel()


def start_otherwise(own: bool) -> Any:
    """Transpile with the startup program of the network, or with another one."""
    startup = fluid.default_startup_program()
    loss = mlp()
    fluid.optimizer.SGD(0.5).minimize(loss)
    transpiler = fluid.DistributeTranspiler()
    transpiler.transpile(
        0, pservers=",".join(ENDPOINTS), trainers=1, startup_program=startup if own else fluid.Program()
    )
    return compare(mlp)


def grow(*entries: Any, trained: bool = True, **options: Any) -> Any:
    """Return the operators of a trainer that looks rows up in a growing table."""

    def network() -> fluid.Variable:
        ids = fluid.data("ids", [None, 1], "int64")
        found = [sparse_embedding(ids, [1, 2], param_attr="table", entry=one) for one in entries]
        if not trained:
            for one in found:
                one.stop_gradient = True
        return layers.mean(layers.concat([*found, layers.fc(read_rows(), 2)], 1))

    program = transpile(network, **options).get_trainer_program(wait_port=False)
    return "distributed_sparse_embedding" in str([op.type for op in program.global_block().ops]) or sorted(
        {op.type for op in program.global_block().ops if "embedding" in op.type or "lookup" in op.type}
    )


def share(kind: Any, how: str) -> Any:
    """Transpile for collective training of two workers; return the number of exchanges."""
    loss = mlp()
    if how != "no updates":
        fluid.optimizer.SGD(0.5).minimize(loss)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    transpiler = kind()
    for _ in range(2 if how == "twice" else 1):
        transpiler.transpile(
            fluid.Program() if how == "another" else startup, main, rank=0, endpoints=",".join(ENDPOINTS),
            current_endpoint=ENDPOINTS[0], wait_port=False,
        )  # fmt: skip
    return [op.type for op in main.global_block().ops].count("c_allreduce_sum")


def use_fleet(how: str) -> Any:
    """Save by a fleet whose programs are made or not."""
    fleet = DistributedTranspiler()
    if how != "no role":
        fleet.init(UserDefinedRoleMaker(0, Role.WORKER, 1, ENDPOINTS))
    if how == "minimize":
        strategy = fluid.DistributeTranspilerConfig()
        strategy.wait_port = False
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(mlp())
        return "send" in [op.type for op in fleet.main_program.global_block().ops]
    if how == "no role" or how == "role":
        return fleet.worker_num()
    return fleet.save_persistables(fluid.Executor(), "m")


def save_network(by: str) -> Any:
    fleet = DistributedTranspiler()
    fleet.init(UserDefinedRoleMaker(0, Role.WORKER, 1, ENDPOINTS))
    mlp()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    if by == "fleet":
        return fleet.save_persistables(exe, "m", fluid.default_main_program())
    fluid.io.save_persistables(exe, "m", fluid.default_main_program())
    return fluid.load_program_state("m")["fc_0.w_0"].ravel()


def make_role(environ: dict[str, str], **options: Any) -> Any:
    with mock.patch.dict(os.environ, environ):
        role = PaddleCloudRoleMaker(**options)
        role.generate_role()
        return [role.worker_num(), role.worker_index()]


def read_text_program(is_text: bool) -> Any:
    mlp()
    Path("program").write_bytes(fluid.default_main_program().desc.serialize_to_string())
    return [op.type for op in load_program("program", is_text=is_text).global_block().ops]


SERVERS = {
    "TRAINING_ROLE": "TRAINER",
    "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(ENDPOINTS),
    "PADDLE_TRAINERS_NUM": "2",
    "PADDLE_TRAINER_ID": "1",
}
WORKERS = {
    "PADDLE_TRAINER_ENDPOINTS": ",".join(ENDPOINTS),
    "PADDLE_CURRENT_ENDPOINT": ENDPOINTS[1],
    "PADDLE_TRAINER_ID": "1",
    "PADDLE_TRAINERS_NUM": "2",
}
BOTH = {"is_sparse": True, "is_distributed": True}
SPARSE = {"is_sparse": True}


def load(exact: bool = True, as_bytes: bool = False, by: Any = fluid.io.load_persistables) -> Any:
    """Load a save into a server's program; return the value that it has then."""
    exe = fluid.Executor()
    with new_network():
        mlp()
        exe.run(fluid.default_startup_program())
        fluid.io.save_persistables(exe, "saved")
    transpiler = transpile(mlp)
    (holder,) = (
        one for one in ENDPOINTS if "fc_0.w_0" in transpiler.get_pserver_program(one).global_block().vars
    )
    main, startup = transpiler.get_pserver_programs(
        holder if exact else holder.replace("127.0.0.1", "localhost")
    )
    if as_bytes:
        main = fluid.Program.parse_from_string(main.desc.serialize_to_string())
    exe.run(startup)
    by(exe, "saved", main)
    return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor()).ravel()


def look_up_in_branch(is_inside: bool) -> Any:
    """Transpile a network that looks rows of a growing table up, inside or outside of a branch."""

    def network() -> fluid.Variable:
        ids = fluid.data("ids", [None, 1], "int64")

        def find() -> fluid.Variable:
            return layers.reduce_sum(sparse_embedding(ids, [1, 2], param_attr="table"))

        found = find()
        if is_inside:
            yes = layers.less_than(
                layers.fill_constant([1], "float32", 0), layers.fill_constant([1], "float32", 1)
            )
            found = layers.elementwise_add(found, layers.cond(yes, find, find))
        return layers.mean(layers.elementwise_add(layers.fc(read_rows(), 1), found))

    kinds = [op.type for op in transpile(network).get_trainer_program(wait_port=False).global_block().ops]
    return "distributed_sparse_embedding" in kinds


def minimize_by_fleet(**options: Any) -> Any:
    """Return the operators of a program that a fleet of two workers made."""
    from paddlelike.fluid.incubate.fleet.collective import Collective, DistributedStrategy

    fleet, strategy = Collective(), DistributedStrategy()
    fleet.init(UserDefinedCollectiveRoleMaker(0, ENDPOINTS))
    for name, value in options.items():
        setattr(strategy, name, value)
    fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(mlp())
    kinds = [op.type for op in fluid.default_main_program().global_block().ops]
    return "c_allreduce_sum" in kinds or strategy.mode


def load_checkpoint(*, saved: bool, damaged: bool = False, mended: str = "") -> Any:
    """Return the epoch of the newest checkpoint of a fleet, and the value that it loads."""
    from paddlelike.fluid.incubate.fleet.collective import Collective, TrainStatus

    fleet, exe = Collective(), fluid.Executor()
    fleet.init(UserDefinedCollectiveRoleMaker(0, ENDPOINTS[:1]))
    mlp()
    exe.run(fluid.default_startup_program())
    main = fluid.default_main_program()
    if saved:
        for epoch in (3, 4):
            fleet.save_check_point(exe, "saved", TrainStatus(epoch), main)
    if damaged:
        newest = max(Path("saved").rglob("fleet_train_status"))
        kept = newest.read_text()
        newest.write_text(kept if mended == "restored" else "{")
        if mended == "deleted":
            shutil.rmtree(newest.parent)
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weight.set(np.zeros((4, 1), "float32"), fluid.CPUPlace())
    status = fleet.load_check_point(exe, "saved", 0, main, ignore_empty=False)
    return [float(status._epoch_no), *np.array(weight).ravel()]


def save_table(name: str) -> Any:
    """Save a growing table, and return whether another job that loads it finds the same rows."""
    job, other = (GrowingJob(lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    job.train(2)
    job.call(growing_tables.save_one_table, job.exe, name, "table")
    other.call(growing_tables.load_one_table, other.exe, name, "table")
    ids = np.arange(48)
    return np.array_equal(job.look_up(ids), other.look_up(ids))


def push_to(*rounds: int, follows: bool = False, **options: Any) -> str:
    """Join servers that began at round 4 and are at these rounds; return the name of the request after it."""
    trainer = join_at(list(rounds), **options)
    if trainer.outcome is None:
        finish_join(trainer, rounds[0])
        trainer.push(0.4, follows_servers=follows)
    if isinstance(trainer.outcome, Exception):
        raise trainer.outcome
    return trainer.next_step(0, 0.4).request.verb


def count_rows(*, is_inside: bool) -> Any:
    """Count the rows of a growing table, in the scope of the training or in another one."""
    job = GrowingJob(lambda: fluid.optimizer.SGD(0.1))
    job.train(1, seed=3)
    if is_inside:
        return job.call(growing_tables.print_table_stat)["emb"]["rows"]
    return growing_tables.print_table_stat(job.main, "emb")


def save_listed(text: str) -> Any:
    """Save the rows whose ids are in a file."""
    job = GrowingJob(lambda: fluid.optimizer.SGD(0.1))
    job.look_up(np.arange(48))
    job.train(9)
    Path("list").write_text(text)
    with mock.patch.object(pslib.fleet, "_executor", job.exe), fluid.scope_guard(job.scope):
        pslib._save_listed("emb", "saved", "list", job.main)
    return sorted(VariableDirectory().read_all(locate("saved"))["emb"].rows())


def train_workers() -> Any:
    """Share a network that is trained by ``fluid.training`` with other workers."""
    fluid.optimizer.SGD(0.1).minimize(mlp())
    with mock.patch.dict(os.environ, WORKERS):
        programs = fluid.default_main_program(), fluid.default_startup_program()
        return distribute_training(*programs, sync_mode=True)


def join_workers(**environ: str) -> Any:
    """Return the size of a job of workers on two machines."""
    with mock.patch.dict(os.environ, environ):
        return make_job(["10.0.0.1:6174", "10.0.0.2:6174"], 0).size


def find_endpoint(**environ: str) -> Any:
    job = {
        "TRAINING_ROLE": "TRAINER",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6170",
    }
    with mock.patch.dict(os.environ, {**job, **environ}):
        role = GeneralRoleMaker()
        role.generate_role()
        return role.get_local_endpoint()


ADVICE: dict[str, Advice] = {
    "a trainer that counts its own steps": Advice(
        lambda: push_to(8, 8),
        "end the servers and start all processes from the same save; or loop over "
        "paddlelike.distributed.resumable_steps, which begins at the servers' round",
        lambda: [push_to(4, 4), push_to(8, 8, follows=True)],
        ["Push", "Push"],
    ),
    "servers that began at different rounds": Advice(
        lambda: push_to(4, 3, bases=[4, 3]),
        "load the same save on every server",
        lambda: push_to(4, 4),
        "Push",
    ),
    "servers at different rounds": Advice(
        lambda: push_to(6, 4),
        "start all servers and trainers again from the last save",
        lambda: push_to(4, 4),
        "Push",
    ),
    "a table of another scope": Advice(
        lambda: count_rows(is_inside=False),
        "run the startup program; is it the right scope_guard?",
        lambda: count_rows(is_inside=True),
        len(np.unique(np.random.default_rng(3).integers(0, 50, (8, 3)))),
    ),
    "ids that are words": Advice(
        lambda: save_listed("3\nx\n"),
        "it has an id, an unsigned number, on each line",
        lambda: save_listed("3\n5\n18446744073709551615\n"),
        [3, 5],
    ),
    "a fleet without checkpoints": Advice(
        lambda: load_checkpoint(saved=False),
        "save_check_point writes them",
        lambda: load_checkpoint(saved=True),
        [4, 1, 1, 1, 1],
    ),
    "a damaged checkpoint of a fleet": Advice(
        lambda: load_checkpoint(saved=True, damaged=True),
        "delete the checkpoint, or restore the file",
        lambda: each(
            lambda: load_checkpoint(saved=True, damaged=True, mended="restored"),
            lambda: [shutil.rmtree("saved"), load_checkpoint(saved=True, damaged=True, mended="deleted")][1],
        ),
        [[4, 1, 1, 1, 1], [3, 1, 1, 1, 1]],
    ),
    "workers on several machines": Advice(
        lambda: join_workers(),
        "set PADDLELIKE_INSECURE=1 in all processes, on a network that only they can reach",
        lambda: join_workers(PADDLELIKE_INSECURE="1"),
        2,
    ),
    "a growing table of another name": Advice(
        lambda: save_table("fc"),
        "use one of its tables: {}",
        lambda: save_table("emb"),
        True,
    ),
    "training by workers without servers": Advice(
        lambda: train_workers(),
        "fluid.incubate.fleet.collective trains without servers",
        lambda: minimize_by_fleet(mode="collective", collective_mode="grad_allreduce"),
        True,
    ),
    "an endpoint that no variable says": Advice(
        lambda: find_endpoint(),
        "set PADDLE_TRAINER_ENDPOINTS",
        lambda: find_endpoint(PADDLE_TRAINER_ENDPOINTS=",".join(ENDPOINTS)),
        ENDPOINTS[1],
    ),
    "a server's rows loaded by names": Advice(
        lambda: load(by=fluid.io.load_params),
        "load_persistables(exe, dirname, program) with the program of this server",
        lambda: load(),
        np.ones(4),
    ),
    "an endpoint in other words": Advice(
        lambda: load(exact=False),
        "write the endpoint exactly as in transpile(pservers=...)",
        lambda: load(),
        np.ones(4),
    ),
    "a server's program read from bytes": Advice(
        lambda: load(as_bytes=True),
        "a program read from bytes has no placement: load with the one of "
        "DistributeTranspiler.get_pserver_program(endpoint)",
        lambda: load(),
        np.ones(4),
    ),
    "a growing table with geo-SGD": Advice(
        lambda: grow(None, geo_sgd_mode=True, sync_mode=False),
        "train it synchronously or asynchronously, or use embedding(is_sparse=True) with a size",
        lambda: each(
            lambda: grow(None),
            lambda: bool(transpile(look_up(SPARSE), geo_sgd_mode=True, sync_mode=False)),
        ),
        [True, True],
    ),
    "a growing table that is not trained": Advice(
        lambda: grow(None, trained=False),
        "let the loss depend on its rows, or look them up by embedding",
        lambda: grow(None),
        True,
    ),
    "a growing table in a branch": Advice(
        lambda: look_up_in_branch(is_inside=True),
        "look rows up by sparse_embedding, outside of loops and branches",
        lambda: look_up_in_branch(is_inside=False),
        True,
    ),
    "a layer that workers share": Advice(
        lambda: minimize_by_fleet(use_dist_fc=True),
        "leave it False; a large embedding fits parameter servers",
        lambda: minimize_by_fleet(use_dist_fc=False),
        "nccl2",
    ),
    "statistics of all workers in a plain program": Advice(
        lambda: minimize_by_fleet(mode="collective", collective_mode="grad_allreduce", sync_batch_norm=True),
        'strategy.mode = "nccl2"',
        lambda: minimize_by_fleet(mode="nccl2", sync_batch_norm=True),
        "nccl2",
    ),
    "a program that was transpiled": Advice(
        lambda: transpile_twice(new=False),
        "build the network again, in a program of its own, to transpile it differently",
        lambda: transpile_twice(new=True),
        0.0,
    ),
    "a program that is not transpiled yet": Advice(
        lambda: get_early(called=False),
        "call transpile() first",
        lambda: get_early(called=True),
        0.0,
    ),
    "a trainer that is not there": Advice(
        lambda: transpile(mlp, trainer_id=2, trainers=2).get_trainer_program(wait_port=False),
        "trainers are numbered from 0 to {}",
        lambda: compare(mlp, trainer_id=0, trainers=1),
        0.0,
    ),
    "servers in a list": Advice(
        lambda: transpile(mlp, pservers=ENDPOINTS),
        "','.join(endpoints)",
        lambda: compare(mlp, pservers=",".join(ENDPOINTS)),
        0.0,
    ),
    "late gradients": Advice(
        lambda: transpile(mlp, enable_dc_asgd=True),
        "leave it False; to train asynchronously without it, set config.sync_mode = False and pass sync_mode=False to transpile()",
        lambda: each(lambda: compare(mlp, enable_dc_asgd=False), lambda: asynchronous()),
        [0.0, 1.0],
    ),
    "look-ups that depend on each other": Advice(
        lambda: transpile(look_up_twice(**BOTH)),
        "use is_sparse=True without is_distributed=True, which has no such limit",
        lambda: compare(look_up_twice(**SPARSE)),
        0.0,
    ),
    "two tables by id": Advice(
        lambda: transpile(look_up(BOTH, BOTH, tables=2)),
        "is_sparse=True alone also keeps a table on the servers, cut into blocks of rows",
        lambda: compare(look_up(SPARSE, SPARSE, tables=2)),
        0.0,
    ),
    "a table by id and not": Advice(
        lambda: transpile(look_up(BOTH, SPARSE)),
        "pass is_distributed=True to every embedding that uses it",
        lambda: count_lookups(BOTH, BOTH),
        2,
    ),
    "a table by id with dense gradients": Advice(
        lambda: transpile(look_up({"is_distributed": True})),
        "pass is_sparse=True together with is_distributed=True",
        lambda: count_lookups(BOTH),
        1,
    ),
    "a program without updates": Advice(
        lambda: transpile(mlp, minimize=False),
        "call minimize() of an optimizer first",
        lambda: compare(mlp),
        0.0,
    ),
    "an update of one's own": Advice(
        lambda: append_update(guarded=False),
        "append it under program._optimized_guard([parameter, gradient])",
        lambda: append_update(guarded=True),
        np.full(4, 1 - 0.5 * 1.0),
    ),
    "the startup program of another network": Advice(
        lambda: start_otherwise(own=False),
        "transpile() takes the startup program of the network as startup_program=",
        lambda: start_otherwise(own=True),
        0.0,
    ),
    "an entry that is a number": Advice(
        lambda: grow(3),
        "expected CountFilterEntry, ProbabilityEntry or ShowClickEntry of this module, or None",
        lambda: bool(grow(CountFilterEntry(3))),
        True,
    ),
    "look-ups of several entries": Advice(
        lambda: grow(CountFilterEntry(3), None),
        "a table on servers has one rule for new ids: pass one entry= to all sparse_embedding",
        lambda: bool(grow(CountFilterEntry(3), CountFilterEntry(3))),
        True,
    ),
    "exchanges that are there already": Advice(
        lambda: share(GradAllReduce, "twice"),
        "build the network again, in a program of its own, to transpile it differently",
        lambda: [share(GradAllReduce, "once"), each(lambda: share(LocalSGD, "once"))[0]],
        [1, 1],
    ),
    "a startup program of nothing": Advice(
        lambda: share(GradAllReduce, "another"),
        "pass the startup program of the network that is trained",
        lambda: share(GradAllReduce, "once"),
        1,
    ),
    "local steps without updates": Advice(
        lambda: share(LocalSGD, "no updates"),
        "call minimize() of an optimizer first",
        lambda: share(LocalSGD, "once"),
        1,
    ),
    "a fleet without a role": Advice(
        lambda: use_fleet("no role"),
        "call fleet.init(role_maker) first",
        lambda: use_fleet("role"),
        1,
    ),
    "a fleet without programs": Advice(
        lambda: use_fleet("role and nothing more"),
        "fleet.distributed_optimizer(...).minimize(loss) makes them",
        lambda: use_fleet("minimize"),
        True,
    ),
    "a network that is not of the fleet": Advice(
        lambda: save_network("fleet"),
        "pass fleet.main_program, or use fluid.io.save_persistables",
        lambda: save_network("io"),
        np.ones(4),
    ),
    "a program in text": Advice(
        lambda: read_text_program(is_text=True),
        "save the program with is_text=False",
        lambda: read_text_program(is_text=False),
        ["mul", "mean"],
    ),
    "a role that nothing defines": Advice(
        lambda: make_role({}),
        "start it by python -m paddlelike.distributed.launch, or set TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST and PADDLE_TRAINERS_NUM",
        lambda: make_role(SERVERS),
        [2, 1],
    ),
    "a role without servers": Advice(
        lambda: make_role(WORKERS),
        "PaddleCloudRoleMaker(is_collective=True) is for jobs without servers, which the launcher starts with --run_mode collective",
        lambda: make_role(WORKERS, is_collective=True),
        [2, 1],
    ),
    "a file of settings of pslib": Advice(
        lambda: Settings({"fleet_desc_file": __file__}, []),
        'str(program._fleet_opt["fleet_desc"]) gives an example',
        lambda: str(Settings({}, []).message).splitlines()[0],
        "server_param {",
    ),
    "environment variables that contradict": Advice(
        lambda: roles.read_role({**SERVERS, "PADDLE_TRAINER_ID": "nine"}),
        "paddlelike.distributed.roles.describe() shows every variable that was read; python -m paddlelike.distributed.launch sets all of them",
        lambda: "nine" in str(roles.describe({**SERVERS, "PADDLE_TRAINER_ID": "nine"})),
        True,
    ),
    "a list of hosts of another form": Advice(
        lambda: expand_hosts("gpu[01"),
        "give --cluster_node_ips and --node_ip; `scontrol show hostnames` prints the hosts",
        lambda: expand_hosts("gpu[01-02]"),
        ("gpu01", "gpu02"),
    ),
    "an endpoint without a port": Advice(
        lambda: parse_endpoint("127.0.0.1"),
        "write host:port, as in 127.0.0.1:6174",
        lambda: parse_endpoint("127.0.0.1:6174"),
        ("127.0.0.1", 6174),
    ),
}


def asynchronous() -> float:
    """Return 1 if a job without synchronous steps sends each gradient by itself."""
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = False
    fluid.optimizer.SGD(0.5).minimize(mlp())
    transpiler = fluid.DistributeTranspiler(config)
    transpiler.transpile(0, pservers=ENDPOINTS[0], trainers=1, sync_mode=False)
    program = transpiler.get_trainer_program(wait_port=False)
    kinds = [op.type for op in program.global_block().ops]
    return float(kinds.count("send") == 1 and "send_barrier" not in kinds)


def count_lookups(*options: dict[str, bool]) -> int:
    """Return how many look-ups of a trainer are remote."""
    program = transpile(look_up(*options)).get_trainer_program(wait_port=False)
    return sum(len(op.output_arg_names) for op in program.global_block().ops if op.type == "merge_ids")


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings(
    "ignore:.*FLAGS_fluid_quirks", "ignore:.*keeps no variable", "ignore:the program to run is empty"
)
def test_following_a_hint_of_a_job_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
