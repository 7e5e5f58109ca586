"""The transpiler beside its programs: order of calls, refusals, what it notes on programs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.placement import Kind
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.framework.graph.guards import reset_name_scope
from tests.distributed.transpiler.cases import CASES, Case
from tests.distributed.transpiler.golden import records
from tests.distributed.transpiler.masking import mask_program
from tests.distributed.transpiler.networks import NETWORKS, endpoints, optimizer, transpile_case
from tests.helpers.canonical import assert_same_program

FIRST, SECOND = endpoints({})


def test_the_methods_of_a_transpiler_work_in_any_order() -> None:
    """Fluid's own order counts: a server's program after the trainer's is an error there."""
    wanted = records()["decayed"]["programs"]
    calls = ["trainer", "server", "startup"]
    for order in itertools.permutations(calls):
        reset_name_scope()
        made, _, startup = transpile_case(fluid, CASES["decayed"], current=FIRST)
        for call in [*order, *order]:  # and as often as wanted
            if call == "trainer":
                assert_same_program(
                    mask_program(made.get_trainer_program(wait_port=False)), wanted["trainer0"][0]
                )
                assert_same_program(mask_program(startup), wanted["trainer0"][1])
            elif call == "server":
                assert_same_program(mask_program(made.get_pserver_program(FIRST)), wanted["pserver0"][0])
            else:
                assert_same_program(mask_program(made.get_startup_program(SECOND)), wanted["pserver1"][1])


def test_one_call_returns_both_programs_of_a_server() -> None:
    reset_name_scope()
    made, _, _ = transpile_case(fluid, CASES["sgd"])
    for got, want in zip(
        made.get_pserver_programs(SECOND), records()["sgd"]["programs"]["pserver1"], strict=True
    ):
        assert_same_program(mask_program(got), want)


def test_the_program_of_the_trainer_is_the_one_that_was_transpiled() -> None:
    made, main, _ = transpile_case(fluid, CASES["sgd"])
    assert made.get_trainer_program(wait_port=False) is main


def test_equal_networks_give_equal_bytes() -> None:
    def encoded() -> list[bytes]:
        reset_name_scope()
        made, main, startup = transpile_case(fluid, CASES["wide_deep"])
        pair = made.get_pserver_programs(SECOND)
        made.get_trainer_program(wait_port=False)
        return [one.desc.serialize_to_string() for one in (main, startup, *pair)]

    assert encoded() == encoded()


def test_programs_are_marked_with_the_job() -> None:
    made, main, startup = transpile_case(fluid, {"network": "mlp"}, trainer_id=1, current=SECOND)
    server, begin = made.get_pserver_programs(FIRST)
    for one in (main, startup, server, begin):
        assert one._is_distributed
        assert not one._is_chief
        assert one._endpoints == [FIRST, SECOND]
        assert one._parameters_on_pservers is main._parameters_on_pservers
    assert (main._ps_endpoint, server._ps_endpoint, begin._ps_endpoint) == (SECOND, FIRST, FIRST)
    assert main.clone()._parameters_on_pservers is main._parameters_on_pservers


def test_transpiling_does_not_touch_the_random_state_of_numpy() -> None:
    np.random.seed(1)
    wanted = np.random.rand()
    np.random.seed(1)
    transpile_case(fluid, CASES["sgd_whole"])
    assert np.random.rand() == wanted


def test_other_ways_of_training_are_refused() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.enable_dc_asgd = True
    with pytest.raises(UnsupportedError, match="DC-ASGD") as caught:
        fluid.DistributeTranspiler(config)
    assert caught.value.hint


def test_a_config_checks_its_values() -> None:
    config = fluid.DistributeTranspilerConfig()
    with pytest.raises(ValueError, match="sync_mode = False"):
        config.runtime_split_send_recv = True
    config.sync_mode = False
    config.runtime_split_send_recv = True
    with pytest.raises(ValueError, match="runtime_split_send_recv = False"):
        config.sync_mode = True
    for name in ("sync_mode", "runtime_split_send_recv"):
        with pytest.raises(ValueError, match="not None"):
            setattr(config, name, None)
    config.min_block_size = 100
    with pytest.raises(ValueError, match="8192 or more"):
        fluid.DistributeTranspiler(config)
    config = fluid.DistributeTranspilerConfig()
    config.split_method = len
    with pytest.raises(TypeError, match="PSDispatcher"):
        fluid.DistributeTranspiler(config)
    assert fluid.DistributeTranspilerConfig().min_block_size == 8192  # of each config its own


def build(case: Case) -> None:
    optimizer(fluid, **case.get("optimizer", {})).minimize(NETWORKS[case["network"]](fluid))


def test_a_config_changed_later_is_checked_again() -> None:
    build({"network": "mlp"})
    made = fluid.DistributeTranspiler()
    made.config.enable_dc_asgd = True
    with pytest.raises(UnsupportedError, match="DC-ASGD"):
        made.transpile(0, trainers=2)


def test_a_config_that_contradicts_the_arguments_warns() -> None:
    build({"network": "mlp"})
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = False
    with pytest.warns(UserWarning, match="pass sync_mode=False"):
        fluid.DistributeTranspiler(config).transpile(0, trainers=2)


def test_programs_are_refused_before_transpile_is_called() -> None:
    with pytest.raises(GraphError, match="transpile") as caught:
        fluid.DistributeTranspiler().get_pserver_program(FIRST)
    assert "transpile()" in caught.value.hint


def test_a_program_is_transpiled_once() -> None:
    build({"network": "mlp"})
    fluid.DistributeTranspiler().transpile(0, trainers=2)
    with pytest.raises(GraphError, match="before"):
        fluid.DistributeTranspiler().transpile(0, trainers=2)


@pytest.mark.parametrize(
    ("arguments", "error", "what"),
    [
        ({"trainers": "a:1,b:1"}, TypeError, "trainers"),
        ({"trainers": 0}, TypeError, "trainers"),
        ({"trainer_id": -1}, ValueError, "trainer_id"),
        ({"pservers": ""}, ValueError, "endpoints"),
        ({"pservers": "a:1,a:1"}, ValueError, "different"),
    ],
)
def test_a_job_is_checked_before_anything_changes(arguments: Any, error: type, what: str) -> None:
    build({"network": "mlp"})
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(error, match=what):
        fluid.DistributeTranspiler().transpile(**{"trainer_id": 0, **arguments})
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_a_startup_program_that_does_not_fit_is_refused() -> None:
    build({"network": "mlp"})
    main = fluid.default_main_program()
    before = main.desc.serialize_to_string()
    with pytest.raises(GraphError, match=r"does not initialize 'fc_0.b_0'") as caught:
        fluid.DistributeTranspiler().transpile(0, trainers=2, startup_program=fluid.Program())
    assert "startup_program=" in caught.value.hint
    assert main.desc.serialize_to_string() == before
    assert not main._is_distributed
    fluid.DistributeTranspiler().transpile(0, trainers=2)  # it can still be


def test_an_unknown_endpoint_is_refused() -> None:
    made, _, _ = transpile_case(fluid, CASES["sgd"])
    for method in (made.get_pserver_program, made.get_pserver_programs, made.get_startup_program):
        with pytest.raises(GraphError, match=f"'localhost:6174' is not one of .*{FIRST}"):
            method("localhost:6174")


def test_a_trainer_id_beyond_the_trainers_gives_server_programs_only() -> None:
    made, _, _ = transpile_case(fluid, CASES["sgd"], trainer_id=7)
    assert made.get_pserver_program(FIRST).global_block().ops
    with pytest.raises(GraphError, match="no trainer 7"):
        made.get_trainer_program(wait_port=False)


@pytest.mark.parametrize("case", ["decayed_async", "decayed_merged"])
def test_an_id_outside_of_the_trainers_makes_a_server_count_all_steps(case: str) -> None:
    """A fleet passes the index of the server, which may be larger than that of any trainer."""
    reset_name_scope()
    made, _, _ = transpile_case(fluid, CASES[case], trainer_id=7)
    server = made.get_pserver_program(FIRST)
    (added,) = [
        op for block in server.blocks for op in block.ops if op.type == "sum" and "trainer_0" in str(op)
    ]
    assert added.input("X") == [
        f"@LR_DECAY_COUNTER@.trainer_{i}" for i in range(CASES[case].get("trainers", 2))
    ]
    wanted = records()[case]["programs"]["pserver0"][1]
    assert_same_program(mask_program(made.get_startup_program(FIRST)), wanted)


def test_a_network_without_updates_is_refused() -> None:
    NETWORKS["mlp"](fluid)
    with pytest.raises(GraphError, match="no updates") as caught:
        fluid.DistributeTranspiler().transpile(0, trainers=2)
    assert "minimize" in caught.value.hint


class Heap(fluid.transpiler.PSDispatcher):
    def dispatch(self, varlist: Any) -> list[str]:
        return [self.eps[0] for _ in varlist]


def test_blocks_of_one_variable_go_to_different_servers() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.split_method = Heap
    build({"network": "mlp"})
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(GraphError, match=r"Heap placed the 2 blocks of 'fc_0.w_0'"):
        fluid.DistributeTranspiler(config).transpile(0, pservers=f"{FIRST},{SECOND}", trainers=2)
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_a_user_may_pass_a_dispatcher() -> None:
    config = fluid.DistributeTranspilerConfig()
    config.slice_var_up, config.split_method = False, Heap
    build({"network": "mlp"})
    made = fluid.DistributeTranspiler(config)
    made.transpile(0, pservers=f"{FIRST},{SECOND}", trainers=2)
    with pytest.warns(UserWarning, match=f"server {SECOND} keeps no variable"):
        assert len(made.get_pserver_program(SECOND).blocks) == 2
    assert len(made.get_pserver_program(FIRST).blocks) == 5


def test_a_sharded_table_is_trained_by_sgd() -> None:
    """With any optimizer ``minimize`` gives it an update of its own."""
    made, main, _ = transpile_case(
        fluid, {"network": "wide_deep", "args": {"is_distributed": True}, "optimizer": {"name": "Adam"}}
    )
    server = made.get_pserver_program(FIRST)
    types = [op.type for block in server.blocks for op in block.ops]
    assert types.count("sgd") == 1
    assert main._distributed_lookup_table == "table"
    shards = main._parameters_on_pservers.of("table")
    assert [(s.kind, s.first_row, s.stride, s.rows) for s in shards] == [
        (Kind.TABLE, 0, 2, 1501),
        (Kind.TABLE, 1, 2, 1501),
    ]


def test_two_sharded_tables_are_refused() -> None:
    ids = fluid.data("ids", [None, 1], "int64")
    tables = [
        fluid.layers.embedding(ids, [100, 8], is_sparse=True, is_distributed=True, param_attr=name)
        for name in ("a", "b")
    ]
    loss = fluid.layers.mean(fluid.layers.concat(tables, 1))
    fluid.optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(GraphError, match=r"\['a', 'b'\] are all distributed"):
        fluid.DistributeTranspiler().transpile(0, trainers=2)


def sharded(*, is_sparse: bool = True, padding: int | None = None, new: bool = False) -> None:
    embedding = fluid.embedding if new else fluid.layers.embedding
    found = embedding(
        fluid.data("ids", [None, 1], "int64"),
        [100, 8],
        is_sparse=is_sparse,
        is_distributed=True,
        padding_idx=padding,
        param_attr="table",
    )
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(found))


def test_a_sharded_table_takes_sparse_gradients() -> None:
    sharded(is_sparse=False)
    with pytest.raises(GraphError, match=r"'table' is distributed, but .* whole table") as caught:
        fluid.DistributeTranspiler().transpile(0, trainers=2)
    assert "is_sparse=True" in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "what"),
    [({"padding": 3}, "padding_idx has no effect on .*'table'"), ({"new": True}, "'table' is not sharded")],
)
def test_unreported_limits_of_sharded_tables_in_fluid_cause_warnings(arguments: Any, what: str) -> None:
    sharded(**arguments)
    with pytest.warns(UserWarning, match=what):
        fluid.DistributeTranspiler().transpile(0, trainers=2)


def test_lookups_with_different_padding_stay_separate() -> None:
    """Fluid looks all of them up with the padding of the first."""
    ids = fluid.data("ids", [None, 1], "int64")
    size = [2000, 8]
    found = [
        fluid.layers.embedding(ids, size, is_sparse=True, padding_idx=p, param_attr="t") for p in (0, None, 0)
    ]
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.concat(found, 1)))
    made = fluid.DistributeTranspiler()
    made.transpile(0, trainers=2)
    ops = made.get_trainer_program(wait_port=False).global_block().ops
    lookups = [op for op in ops if op.type == "distributed_lookup_table"]
    assert sorted((op.attr("padding_idx"), len(op.output("Outputs"))) for op in lookups) == [(-1, 1), (0, 2)]


def test_an_untrained_table_is_initialized_on_the_trainers() -> None:
    """Fluid's trainers leave it without any."""
    ids = fluid.data("ids", [None, 1], "int64")
    still = fluid.ParamAttr(name="still", trainable=False)
    found = fluid.layers.embedding(ids, [100, 8], is_sparse=True, param_attr=still)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(found, 1)))
    made = fluid.DistributeTranspiler()
    made.transpile(0, trainers=2)
    made.get_trainer_program(wait_port=False)
    writers = [
        op for op in fluid.default_startup_program().global_block().ops if op.output("Out") == ["still"]
    ]
    assert [op.type for op in writers] == ["uniform_random"]


def test_a_beta_that_is_a_variable_moves_to_the_servers() -> None:
    """Fluid's servers go on with the default."""
    x = fluid.data("x", [None, 4])
    beta = fluid.layers.create_global_var([1], 0.8, "float32", persistable=True, name="beta")
    fluid.optimizer.Adam(0.1, beta1=beta).minimize(fluid.layers.mean(fluid.layers.fc(x, 1)))
    made = fluid.DistributeTranspiler()
    made.transpile(0, trainers=2)
    server, begin = made.get_pserver_programs(FIRST)
    updates = [op for block in server.blocks for op in block.ops if op.type == "adam"]
    assert [op.input("Beta1Tensor") for op in updates] == [["beta"]] * 2
    assert any(op.output("Out") == ["beta"] for op in begin.global_block().ops)
    placement = server._parameters_on_pservers
    assert placement.find(FIRST, "beta").kind == Kind.SCHEDULE


def test_averages_are_cut_like_their_parameters() -> None:
    """Fluid can only transpile them uncut."""
    hidden = fluid.layers.fc(fluid.data("x", [None, 130]), 128)
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(hidden, 1)))
    fluid.optimizer.ExponentialMovingAverage(0.9).update()
    made = fluid.DistributeTranspiler()
    made.transpile(0, pservers=f"{FIRST},{SECOND}", trainers=2)
    table = fluid.default_main_program()._parameters_on_pservers
    averages = [s for s in table if s.kind == Kind.AVERAGE and s.owner == "fc_0.w_0"]
    assert sorted((s.first_row, s.shape) for s in averages) == [(0, (65, 128)), (65, (65, 128))]
    for one in averages:
        for program in made.get_pserver_programs(one.endpoint):
            assert program.global_block().var(one.name).shape == one.shape


def test_any_optimizer_that_updates_single_rows_is_allowed() -> None:
    """Fluid moves adadelta nowhere, and refuses lamb, which needs whole parameters."""
    for name, cut in (("Adadelta", True), ("Lamb", False)):
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            _, main, _ = transpile_case(fluid, {"network": "mlp", "optimizer": {"name": name}})
        table = main._parameters_on_pservers
        assert (len(table.of("fc_0.w_0")) == 2) is cut
        state = [s for s in table.on(FIRST, Kind.OPTIMIZER) if s.owner == "fc_0.w_0"]
        states = state or [s for s in table.on(SECOND, Kind.OPTIMIZER) if s.owner == "fc_0.w_0"]
        assert {s.shape for s in states if s.shape != (1,)} == ({(65, 128)} if cut else {(130, 128)})


def test_waiting_for_servers_names_the_silent_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_rpc_deadline", "100")
    build({"network": "mlp"})
    made = fluid.DistributeTranspiler()
    made.transpile(0, pservers="127.0.0.1:1", trainers=2)
    with pytest.raises(fluid.errors.DeadlineError, match=r"127.0.0.1:1"):
        made.get_trainer_program()


def test_an_empty_program_is_transpiled_with_a_warning() -> None:
    """As the examples in Fluid's own text do; a program with operators and without updates stays an error."""
    transpiler = fluid.DistributeTranspiler()
    with pytest.warns(UserWarning, match="the program is empty"):
        transpiler.transpile(0, fluid.Program(), FIRST, 1, startup_program=fluid.Program())
    with pytest.warns(UserWarning, match="keeps no variable"):
        assert [op.type for op in transpiler.get_pserver_program(FIRST).global_block().ops] == [
            "listen_and_serv"
        ]
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()):
        fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    with pytest.raises(GraphError, match="no updates that servers could run"):
        fluid.DistributeTranspiler().transpile(0, main, FIRST, 1)
