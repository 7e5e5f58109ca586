"""fleet makes the same programs of a network as the transpiler, for each role and strategy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.client.trainers import find_trainer_id
from paddlelike.distributed.fleet import parameter_server
from paddlelike.distributed.fleet.base import DistributedOptimizer
from paddlelike.distributed.fleet.parameter_server import DistributedTranspiler
from paddlelike.distributed.fleet.pslib import _save_listed
from paddlelike.distributed.fleet.pslib_settings import Settings
from paddlelike.distributed.fleet.pslib_tables import find_lookups, grow_tables, keep_frozen
from paddlelike.distributed.fleet.role_maker import Role, UserDefinedRoleMaker
from paddlelike.distributed.fleet.strategy import StrategyFactory, strategy_for
from paddlelike.distributed.growing_tables import sparse_embedding
from paddlelike.errors import FormatError, GraphError, RoleError
from tests.distributed.fleet import dump_settings
from tests.helpers.fresh import fresh_programs

GOLDEN = Path(__file__).parents[2] / "golden"
SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]


def network() -> fluid.Variable:
    x, y = fluid.data("x", [None, 200]), fluid.data("y", [None, 1])
    hidden = fluid.layers.fc(x, 100, act="relu")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def a_fleet(role: Role = Role.WORKER, index: int = 0, trainers: int = 2) -> DistributedTranspiler:
    fleet = DistributedTranspiler()
    fleet.init(UserDefinedRoleMaker(index, role, trainers, SERVERS))
    return fleet


def config(**settings: Any) -> fluid.DistributeTranspilerConfig:
    made = fluid.DistributeTranspilerConfig()
    made.wait_port = False
    for name, value in settings.items():
        setattr(made, name, value)
    return made


STRATEGIES = {
    "sync": (StrategyFactory.create_sync_strategy, {}, 0),
    "async": (
        StrategyFactory.create_async_strategy, {"sync_mode": False, "runtime_split_send_recv": True}, 1,
    ),
    "half async": (
        StrategyFactory.create_half_async_strategy,
        {"sync_mode": False, "runtime_split_send_recv": True, "half_async": True},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_fleet_trainer_gets_the_program_of_the_transpiler(name: str) -> None:
    factory, settings, _ = STRATEGIES[name]
    strategy = factory()
    strategy.set_program_config({"wait_port": False})
    fleet = a_fleet(index=1)
    fleet.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9), strategy).minimize(network())
    assert fleet.main_program is fluid.default_main_program()
    assert fleet.startup_program is fluid.default_startup_program()
    ours = kinds(fleet.main_program), kinds(fleet.startup_program)
    with fresh_programs():
        fluid.optimizer.Momentum(0.1, 0.9).minimize(network())
        transpiler = fluid.DistributeTranspiler(config(**settings))
        transpiler.transpile(1, pservers=",".join(SERVERS), trainers=2, sync_mode=settings == {})
        theirs = (
            kinds(transpiler.get_trainer_program(wait_port=False)),
            kinds(fluid.default_startup_program()),
        )
    assert ours == theirs
    assert any(kind == "send" for kind, _ in ours[0])


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_fleet_server_gets_the_programs_of_the_transpiler(name: str) -> None:
    factory, settings, mode = STRATEGIES[name]
    fleet = a_fleet(Role.SERVER, 1)
    fleet.distributed_optimizer(fluid.optimizer.Momentum(0.1, 0.9), factory()).minimize(network())
    assert fleet.main_program is not None
    (serve,) = fleet.main_program.global_block().ops
    assert (serve.type, serve.attrs["endpoint"], serve.attrs["Fanin"]) == ("listen_and_serv", SERVERS[1], 2)
    if mode is not None:
        assert serve.attrs["distributed_mode"] == mode
    ours = kinds(fleet.startup_program)
    with fresh_programs():
        fluid.optimizer.Momentum(0.1, 0.9).minimize(network())
        transpiler = fluid.DistributeTranspiler(config(**settings))
        transpiler.transpile(1, pservers=",".join(SERVERS), trainers=2, sync_mode=settings == {})
        theirs = kinds(transpiler.get_pserver_programs(SERVERS[1])[1])
    assert ours == theirs


def kinds(program: fluid.Program | None) -> list[tuple[str, list[str]]]:
    assert program is not None
    return [
        (op.type, [name for name in op.output_arg_names if "__control_var" not in name])
        for op in program.global_block().ops
    ]


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_transpiler_config_is_accepted_as_a_strategy(name: str) -> None:
    factory, settings, _ = STRATEGIES[name]
    made = config(min_block_size=9000, **settings)
    found = strategy_for(made)
    assert type(found) is type(factory())
    assert found.get_program_config() is made
    assert made.min_block_size == 9000


def test_a_config_without_sync_mode_is_half_asynchronous() -> None:
    made = config(sync_mode=False)
    assert type(strategy_for(made)) is type(StrategyFactory.create_half_async_strategy())
    assert (made.half_async, made.runtime_split_send_recv) == (True, True)


def test_trainers_of_geo_sgd_keep_their_updates() -> None:
    strategy = StrategyFactory.create_geo_strategy(5)
    assert strategy.get_program_config().geo_sgd_need_push_nums == 5
    strategy.get_program_config().wait_port = False
    mine = a_fleet()
    mine.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(network())
    assert {op.type for op in mine.main_program.global_block().ops} >= {"sgd", "send"}


def test_settings_of_a_strategy_are_changed_by_name_and_checked() -> None:
    strategy = StrategyFactory.create_half_async_strategy()
    strategy.set_program_config({"slice_var_up": False, "half_async": False})
    assert strategy.get_program_config().slice_var_up is False
    assert strategy.get_program_config().half_async is True  # what makes it this strategy
    strategy.set_trainer_runtime_config({"communicator_send_wait_times": "7"})
    flags = strategy.get_trainer_runtime_config().get_communicator_flags()
    assert flags["communicator_send_wait_times"] == "7"
    strategy.set_execute_strategy({"num_threads": 2})
    assert strategy.get_execute_strategy().num_threads == 2
    for change in (strategy.set_program_config, strategy.set_server_runtime_config,
                   strategy.set_build_strategy, strategy.set_trainer_runtime_config):  # fmt: skip
        with pytest.raises(ValueError, match="no_such_setting"):
            change({"no_such_setting": 1})
        with pytest.raises(TypeError, match="or a dict"):
            change("sync")  # type: ignore[arg-type]


def test_wrong_strategies_optimizers_and_roles_are_refused() -> None:
    fleet = a_fleet()
    with pytest.raises(TypeError, match="a strategy is"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), "sync")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an optimizer"):
        fleet.distributed_optimizer("sgd")
    with pytest.raises(TypeError, match=r"fleet\.init takes a role maker"):
        fleet.init("PSERVER")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one loss"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1)).minimize([network()])  # type: ignore[arg-type]


def test_fleet_methods_before_init_or_minimize_raise() -> None:
    fleet = DistributedTranspiler()
    with pytest.raises(RoleError, match=r"call fleet\.init"):
        fleet.is_worker()
    with pytest.raises(RoleError, match=r"call fleet\.init"):
        fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
    fleet = a_fleet(Role.SERVER)
    for early in (fleet.init_server, fleet.run_server, fleet.init_worker):
        with pytest.raises(GraphError, match="fleet has no programs yet"):
            early()


def test_saving_requires_an_executor_and_a_transpiled_program() -> None:
    fleet = a_fleet()
    network()
    exe, program = fluid.Executor(), fluid.default_main_program()
    with pytest.raises(TypeError, match=r"takes a fluid\.Executor, not NoneType"):
        fleet.save_persistables(None, "models", program)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes a fluid\.Program, not CompiledProgram"):
        fleet.save_persistables(exe, "models", fluid.CompiledProgram(program))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the program was not transpiled"):
        fleet.save_persistables(exe, "models", program)


@pytest.mark.parametrize("trainers", [1, 2, 3, 5])
def test_files_are_split_so_that_each_is_read_once(trainers: int) -> None:
    files = [f"part-{number}" for number in range(7)]
    shares = [a_fleet(index=index, trainers=trainers).split_files(files) for index in range(trainers)]
    assert [name for share in shares for name in share] == files
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_only_lists_of_files_are_split() -> None:
    with pytest.raises(TypeError, match="not a tuple"):
        a_fleet().split_files(("a", "b"))  # type: ignore[arg-type]


def test_fleet_reports_roles_and_endpoints() -> None:
    fleet = a_fleet(Role.SERVER, 1, trainers=3)
    assert (fleet.is_server(), fleet.is_worker(), fleet.is_first_worker()) == (True, False, False)
    assert (fleet.server_index(), fleet.server_num(), fleet.worker_num()) == (1, 2, 3)
    assert fleet.server_endpoints() == SERVERS
    assert fleet.server_endpoints(to_string=True) == "127.0.0.1:6174,127.0.0.1:6175"
    assert fleet.worker_endpoints(to_string=True) == ""
    assert a_fleet().is_first_worker()


def test_backward_and_apply_gradients_of_a_distributed_optimizer_work_separately() -> None:
    fleet = a_fleet()
    optimizer = fleet.distributed_optimizer(fluid.optimizer.SGD(0.1))
    assert isinstance(optimizer, DistributedOptimizer)
    pairs = optimizer.backward(network())
    assert [parameter.name for parameter, _ in pairs] == ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    updates = optimizer.apply_gradients(pairs)
    assert {op.type for op in updates} == {"sgd"}
    assert fleet.main_program is None


def test_fleet_is_a_singleton() -> None:
    from paddlelike.incubate.fleet.parameter_server import distribute_transpiler  # type: ignore[import-not-found]

    assert distribute_transpiler.fleet is parameter_server.fleet


@pytest.mark.parametrize("text", [b"1\nx\n", b"-1\n", b"18446744073709551616\n", b"\xff\n"])
def test_a_whitelist_with_non_integers_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "list").write_bytes(text)
    with pytest.raises(FormatError, match=r"list: .*\n.*an id, an unsigned number, on each line"):
        _save_listed("emb", str(tmp_path / "saved"), str(tmp_path / "list"), fluid.Program())
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize(
    ("strategy", "shape", "width"),
    [
        ({}, [1, 24], 12),
        ({}, [-1, 28], 14),
        ({"emb": {"sparse_embedx_dim": 10}}, [0, -1], 11),
        ({"use_cvm": True, "emb": {"sparse_embedx_dim": 11}}, [0, -1], 14),
        ({"use_cvm": True, "emb": {"sparse_embedx_dim": 4}}, [0, -1], 7),
        ({"no_cvm": True, "emb": {"sparse_embedx_dim": 20}}, [0, -1], 23),
        (
            {"emb": {"sparse_embedx_dim": 5, "sparse_accessor_class": "DownpourSparseValueAccessor"}},
            [0, -1],
            5,
        ),
    ],
)
def test_a_table_of_pslib_has_the_columns_that_trainers_pull(
    strategy: dict[str, Any], shape: list[int], width: int
) -> None:
    with fresh_programs() as (main, startup):
        attr, numbers = fluid.ParamAttr("emb", fluid.initializer.Uniform(-1, 1, 5)), [[3, 1 << 40], [7, 3]]
        found = [
            fluid.layers.embedding(
                fluid.data(name, [None, 1], "int64", lod_level=1),
                [10, 14],
                is_distributed=True,
                param_attr=attr,
            )
            for name in "ab"
        ]
        flat = fluid.layers.reshape(fluid.layers.concat(found, 1), shape)
        grow_tables(main, startup, Settings(strategy, find_lookups(main)))
        exe = fluid.Executor()
        exe.run(startup)
        for one in numbers:
            feed = {
                name: fluid.create_lod_tensor(np.array([[number]]), [[1]])
                for name, number in zip("ab", one, strict=True)
            }
            seen = np.array(*exe.run(main, feed=feed, fetch_list=[flat], return_numpy=False))
            table = fluid.global_scope().var("emb").get_selected_rows()
            rows = dict(zip(table.rows(), np.array(table.get_tensor()), strict=True))
            np.testing.assert_array_equal(seen, [np.concatenate([rows[number] for number in one])])
            assert seen.shape == (1, 2 * width)


@pytest.mark.parametrize("case", range(12))
def test_the_settings_of_pslib_equal_the_ones_of_paddle(case: int) -> None:
    recorded = json.loads(gzip.decompress((GOLDEN / "fleet_desc.json.gz").read_bytes()))[case]
    with fresh_programs() as (main, startup):
        loss = dump_settings.build(fluid, case)
        settings = Settings(recorded["strategy"], find_lookups(main))
        loss = keep_frozen(loss)
        grow_tables(main, startup, settings)
        _, updates = fluid.optimizer.SGD(0.1).minimize(loss)
        info = settings.describe(main, (), updates)
    program = str(id(main))
    info["program_configs"] = info["program_configs"][program]
    info["program_id_to_worker"] = str(info["program_id_to_worker"][program].get_desc())
    assert info.pop("fleet_desc").SerializeToString().hex() == recorded["message"]
    assert info == recorded["info"]


def test_a_file_of_settings_replaces_the_tables_of_the_strategy(tmp_path: Path) -> None:
    with fresh_programs() as (main, _):
        dump_settings.build(fluid, 0)
        first = Settings({"use_cvm": True, "emb": {"sparse_embedx_dim": 6}}, find_lookups(main))
        (tmp_path / "desc").write_text(str(first.message))
        file = {"fleet_desc_file": str(tmp_path / "desc")}
        settings = Settings({**file, "emb": {"sparse_embedx_dim": 2}}, find_lookups(main))
        assert (settings.find_width("emb"), settings.find_accessor(0).embedx_dim) == (7, 6)
        (tmp_path / "desc").write_text("server_param { tables: 3 }")
        with pytest.raises(FormatError, match=r"desc does not describe a job of pslib: .*tables"):
            Settings(file, [])


@pytest.mark.parametrize("trainer", [0, 1])
def test_a_trainer_whose_only_parameter_is_a_growing_table_has_its_own_id(trainer: int) -> None:
    with fresh_programs() as (main, startup):
        ids = fluid.data("ids", [None, 1], "int64")
        loss = fluid.layers.mean(sparse_embedding(ids, [1, 4]))
        fluid.optimizer.SGD(0.1).minimize(loss)
        transpiler = fluid.DistributeTranspiler(config(sync_mode=False, runtime_split_send_recv=True))
        transpiler.transpile(trainer, main, ",".join(SERVERS), 2, False, startup)
        assert find_trainer_id(transpiler.get_trainer_program(wait_port=False).global_block()) == trainer
