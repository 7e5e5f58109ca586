"""Updates of many parameters together have the bits of the blocks' operators, run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import SelectedRows
from paddlelike.distributed.placement import Kind
from paddlelike.distributed.remote import RemoteOperators
from paddlelike.distributed.server.fused_updates import find_fused_update
from paddlelike.distributed.server.grouped_updates import find_groups
from paddlelike.distributed.server.served import Served
from paddlelike.distributed.server.staging import Contribution, Staging
from paddlelike.distributed.server.variables import Variables
from tests.distributed.server.test_fused_updates import OPTIMIZERS

WIDTHS = (3, 70, 5, 9)  # of the layers: four weights, four biases
TRAINERS = 3
Given = dict[int, Any]  # gradients of one push by index of the entry
Serve = Callable[..., dict[str, bytes]]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Applies pushes, by round and trainer, on a server that has just started; returns its values."""

    def run(
        optimizer: Callable[[], Any],
        pushes: Callable[[Served], Iterable[dict[int, Given]]],
        *,
        together: bool,
    ) -> Any:
        found = {}

        def apply(self: RemoteOperators, ctx: Any) -> None:
            served = Served(ctx.op)
            variables = Variables(ctx, served)
            assert len({index for group in variables.groups for index in group.indexes}) == 2 * len(WIDTHS)
            if not together:
                variables.groups, variables._fused = [], {}
            staging = Staging(served.table, groups=[group.indexes for group in variables.groups])
            for one in pushes(served):
                given = {trainer: fill(staging, gradients) for trainer, gradients in one.items()}
                variables.apply_round(given)
                for contribution in given.values():
                    staging.give_back(contribution)
            for entry in served.table:
                if entry.kind != Kind.GRADIENT:
                    found[entry.name] = variables.value(entry).tobytes()

        monkeypatch.setattr(RemoteOperators, "serve", apply)
        main, startup = make_programs(optimizer)
        executor = fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            executor.run(startup)
            executor.run(main)
        return found

    return run


def make_programs(optimizer: Callable[[], Any]) -> Any:
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, 4])
        for width in WIDTHS:
            x = fluid.layers.fc(x, width)
        optimizer().minimize(fluid.layers.mean(x))
        config = fluid.DistributeTranspilerConfig()
        config.slice_var_up = False
        t = fluid.DistributeTranspiler(config)
        t.transpile(0, program=main, startup_program=startup, pservers="127.0.0.1:6174", trainers=TRAINERS)
        return t.get_pserver_programs("127.0.0.1:6174")


def fill(staging: Staging, gradients: Given) -> Contribution:
    rows = {index: value for index, value in gradients.items() if isinstance(value, SelectedRows)}
    into = staging.take([(index, len(value.row_array)) for index, value in rows.items()])
    for index, value in gradients.items():
        if index in rows:
            into.sparse[index].row_array[...] = value.row_array
            into.sparse[index].held_array[...] = value.array  # type: ignore[index]
        else:
            into.dense[index][...] = value
    into._filled = {index: len(view) for index, view in into.views.items()}
    into.finish(whole=True)
    return into


def draw(
    served: Served, trainers: Iterable[int] = range(TRAINERS), rounds: int = 3
) -> list[dict[int, Given]]:
    """Gradients of every trainer in every round."""
    random = np.random.default_rng(3)
    entries = served.table.having(Kind.GRADIENT)
    return [
        {
            trainer: {one.index: random.standard_normal(one.shape, np.float32) for one in entries}
            for trainer in trainers
        }
        for _ in range(3)
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_grouped_update_has_the_same_bits_as_separate_operators(name: str, serve: Serve) -> None:
    plain = serve(OPTIMIZERS[name], draw, together=False)
    assert serve(OPTIMIZERS[name], draw, together=True) == plain
    assert serve(OPTIMIZERS[name], lambda served: [], together=True) != plain


def test_a_departed_trainer_contributes_nothing(serve: Serve) -> None:
    def some(served: Served) -> list[dict[int, Given]]:
        return draw(served, [0, 2])

    found = [serve(OPTIMIZERS["momentum"], some, together=one) for one in (True, False)]
    assert found[0] == found[1]


def test_only_rounds_with_selected_rows_use_the_operators(serve: Serve) -> None:
    def some(served: Served) -> list[dict[int, Given]]:
        rounds = draw(served)
        entry = max(served.table.having(Kind.GRADIENT), key=lambda one: one.shape[0])
        rounds[1][1][entry.index] = SelectedRows(
            [2, 5], entry.shape[0], np.ones((2, *entry.shape[1:]), "float32")
        )
        return rounds

    found = [serve(OPTIMIZERS["adam"], some, together=one) for one in (True, False)]
    assert found[0] == found[1]


def test_pushes_that_were_merged_before_the_round_give_the_same_bits(serve: Serve) -> None:
    def merge(served: Served) -> Iterable[dict[int, Given]]:
        for one in draw(served):
            total = {index: one[0][index] + one[1][index] for index in one[0]}
            yield {0: total, 2: one[2]}

    found = serve(OPTIMIZERS["sgd"], merge, together=True)
    assert found == serve(OPTIMIZERS["sgd"], draw, together=False)


def test_the_gradient_of_a_sparse_embedding_is_in_no_group() -> None:
    ids = fluid.data("ids", [None, 1], "int64")
    x = fluid.layers.embedding(ids, [50, 4], is_sparse=True)
    fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 3)))
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers="127.0.0.1:6174", trainers=2)
    main, _ = t.get_pserver_programs("127.0.0.1:6174")
    (op,) = (one for one in main.global_block().ops if one.type == "listen_and_serv")
    served = Served(op)
    blocks = {index: find_fused_update(main.blocks[index]) for index in served.blocks.values()}
    (group,) = find_groups(served, {index: one for index, one in blocks.items() if one is not None})
    assert [served.table.entries[index].name for index in group.indexes] == ["fc_0.b_0@GRAD", "fc_0.w_0@GRAD"]
