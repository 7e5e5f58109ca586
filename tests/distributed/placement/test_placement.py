"""The table of slices: variables are covered once, in one order, and other ends compute the same digest."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.distributed.placement import Kind, Placement, Slice, base_name
from paddlelike.distributed.server.served import Served
from paddlelike.distributed.transpiler.slicing import (
    block_name,
    count_block_rows,
    origin_name,
    slice_variable,
)
from paddlelike.errors import GraphError
from tests.distributed.transpiler.cases import CASES
from tests.distributed.transpiler.networks import endpoints, transpile_case
from tests.distributed.transpiler.random_cases import draw_case

JOBS = {**CASES, **{f"random-{seed}": draw_case(seed) for seed in range(20)}}
SHAPES = st.lists(st.integers(1, 300), min_size=1, max_size=3)


@given(shape=SHAPES, servers=st.integers(1, 9), least=st.sampled_from([8192, 10000, 50000]))
def test_blocks_cover_every_row_once_and_have_a_minimum_size(
    shape: list[int], servers: int, least: int
) -> None:
    rows = count_block_rows(shape, servers=servers, min_block_size=least)
    assert sum(rows) == shape[0]
    assert 1 <= len(rows) <= servers
    assert all(0 < n <= rows[0] for n in rows)
    assert len(set(rows[:-1])) <= 1
    width = math.prod(shape[1:])
    assert len(rows) == 1 or rows[0] * width >= least


def test_slices_of_variables_are_described_as_in_fluid() -> None:
    """The texts are those of real Paddle 1.8.5."""
    fluid.layers.fc(fluid.data("x", [None, 4]), 32500)
    assert slice_variable(fluid.default_main_program().all_parameters(), 3, 8192) == [
        "fc_0.w_0:0:65000", "fc_0.w_0:1:65000", "fc_0.b_0:0:10834", "fc_0.b_0:1:10834", "fc_0.b_0:2:10832",
    ]  # fmt: skip


@given(st.from_regex(r"[a-z_]+(@GRAD)?", fullmatch=True), st.integers(0, 9), st.integers(2, 9))
def test_the_variable_follows_from_the_name_of_a_block(name: str, block: int, blocks: int) -> None:
    assert origin_name(block_name(name, block, blocks)) == name
    assert origin_name(block_name(name, block, blocks) + ".trainer_3") == name
    assert block_name(name, 0, 1) == name


@pytest.mark.filterwarnings("ignore:.*set_gradient_clip", "ignore:padding_idx has no effect")
@pytest.mark.filterwarnings("ignore:server .* keeps no variable", "ignore:.*takes the value of l1")
@pytest.mark.parametrize("name", JOBS)
def test_every_row_has_one_server_whose_program_matches_the_table(name: str) -> None:
    job, main, _ = transpile_case(fluid, JOBS[name])
    table = main._parameters_on_pservers
    assert table.endpoints == tuple(endpoints(JOBS[name]))
    trained = {p.name for p in main.all_parameters() if p.trainable}
    assert set(table.origins(Kind.PARAMETER, Kind.REMOTE, Kind.TABLE)) == trained
    check_rows(table)
    begun = {n for op in main_startup(job) for n in op.output_arg_names}
    for endpoint in endpoints(JOBS[name]):
        block = job.get_pserver_program(endpoint).global_block()
        check_variables(table.on(endpoint), block, begun)
        check_derived(table.on(endpoint), block)


def check_rows(table: Placement) -> None:
    """Each row of each variable is in one slice."""
    for origin in table.origins(Kind.PARAMETER, Kind.REMOTE, Kind.TABLE):
        slices = table.of(origin)
        rows = [s.first_row + i * s.stride for s in slices for i in range(s.rows)]
        whole = slices[0].whole[0]
        declared = len(slices) * slices[0].rows if slices[0].kind == Kind.TABLE else whole
        assert sorted(rows) == list(range(declared))  # shards are declared with equal heights
        assert declared - whole < len(slices)
        assert all(table.find_endpoint(origin, row=row) for row in (0, whole // 2, whole - 1))


def check_variables(slices: Sequence[Slice], block: Any, begun: set[str]) -> None:
    """A server's program has the variables of its slices, and no others that the script initializes."""
    for one in slices:
        var = block.var(one.name)
        assert (var.shape, var.dtype, var.persistable) == (one.shape, one.dtype, True), one
        assert not one.gradient or block.has_var(one.gradient)
    state = {v.name for v in block.vars.values() if v.persistable and v.type == VarType.LOD_TENSOR}
    known = {one.name for one in slices}
    assert {n for n in state - known if n in begun} == set()


def check_derived(slices: Sequence[Slice], block: Any) -> None:
    """A server derives its table from its program alone; the transpiler's placement must agree with it.

    Two things its program does not say: of a schedule's variables, trainers add to the counter; and a program
    as Fluid makes it lists a table in blocks of rows only if the gradient stays sparse on the server.
    """
    known = {("counter", "schedule"), ("parameter", "remote")}
    table = Served(next(op for op in block.ops if op.type == "listen_and_serv")).table
    for one in slices:
        entry = table[one.name]
        assert (entry.shape, entry.dtype) == (one.shape, one.dtype), one
        assert entry.kind == one.kind or (entry.kind, one.kind) in known, one
        assert not one.gradient or table[base_name(one.gradient)].kind == Kind.GRADIENT


def main_startup(made: fluid.DistributeTranspiler) -> list[object]:
    assert made._result is not None
    return made._result.source_startup.global_block().ops


def some_slices() -> list[Slice]:
    made = [
        Slice("w", f"w.block{i}", f"e:{i}", i, 2 * i, (2, 3), (6, 3), VarType.FP32, Kind.PARAMETER)
        for i in range(3)
    ]
    made += [Slice("rate", "rate", f"e:{i}", 0, 0, (1,), (1,), VarType.FP32, Kind.SCHEDULE) for i in range(3)]
    made += [
        Slice("t", "t", f"e:{i}", i, i, (4, 8), (10, 8), VarType.FP32, Kind.TABLE, stride=3) for i in range(3)
    ]
    return made


ENDPOINTS = ["e:0", "e:1", "e:2"]


@given(st.integers(0, 1000))
def test_the_order_of_given_slices_does_not_matter(seed: int) -> None:
    slices = some_slices()
    random.Random(seed).shuffle(slices)
    one, other = Placement(slices, endpoints=ENDPOINTS), Placement(some_slices(), endpoints=ENDPOINTS)
    assert one == other
    assert hash(one) == hash(other)
    assert [s.name for s in one.on("e:1")] == ["t", "w.block1", "rate"]


def test_each_row_has_one_server() -> None:
    table = Placement(some_slices(), endpoints=ENDPOINTS)
    assert [table.find_endpoint("w", row=row) for row in range(6)] == [e for e in ENDPOINTS for _ in range(2)]
    assert [table.find_endpoint("t", row=row) for row in range(4)] == ["e:0", "e:1", "e:2", "e:0"]
    with pytest.raises(GraphError, match="no server keeps row 6 of 'w'"):
        table.find_endpoint("w", row=6)
    assert table.find("e:2", "w.block2") is table.of("w")[2]
    assert table.find("e:2", "w.block1") is None
    assert table.origins(Kind.SCHEDULE) == ["rate"]


def test_a_placement_table_is_sent_as_plain_values() -> None:
    table = Placement(some_slices(), endpoints=ENDPOINTS, trainers=4)
    again = Placement.from_json(table.to_json())
    assert again == table
    assert (again.trainers, again.endpoints) == (4, tuple(ENDPOINTS))
    assert [one.kind for one in again] == [one.kind for one in table]


def test_a_slice_on_an_unknown_server_is_refused() -> None:
    with pytest.raises(GraphError, match=r"'w.block2' is placed on e:2, which is not one of"):
        Placement(some_slices(), endpoints=ENDPOINTS[:2])
    with pytest.raises(GraphError, match="'e:9' is not one of the parameter servers"):
        Placement(some_slices(), endpoints=ENDPOINTS).on("e:9")
