"""Which trainer a program is, and receivers of bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

import paddlelike as fluid
from paddlelike.distributed.client.receivers import Pieces, Sink
from paddlelike.distributed.client.trainers import find_trainer_id, resumable_steps, root_scope
from paddlelike.errors import FrameError
from tests.distributed.jobs import MOMENTUM, SEED, Job
from tests.helpers.fresh import fresh_programs


@pytest.mark.parametrize("trainer", [0, 1, 4])
def test_a_program_records_the_id_of_its_trainer(trainer: int) -> None:
    with fresh_programs(SEED):
        job, _ = Job(MOMENTUM, trainers=5).transpiler(trainer=trainer)
        program = job.get_trainer_program(wait_port=False)
    assert find_trainer_id(program.global_block()) == trainer


def test_an_ordinary_program_counts_as_trainer_0() -> None:
    assert find_trainer_id(fluid.Program().global_block()) == 0


def test_without_servers_resumable_steps_begin_at_0() -> None:
    assert list(resumable_steps(3, fluid.Scope())) == [0, 1, 2]


def test_inner_scopes_share_the_clients_of_the_outermost() -> None:
    scope = fluid.Scope()
    assert root_scope(scope.new_scope().new_scope()) is scope


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_pieces_of_any_size_arrive_whole_and_in_order(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    came: list[tuple[int, bytes]] = []
    sink, whole = Sink(len(data), lambda at, some: came.append((at, bytes(some)))), Pieces(len(data))
    offset = 0
    for piece in pieces:
        for receiver in (sink, whole):
            receiver.place(0, offset, len(piece))[:] = piece
        offset += len(piece)
    sink.check()
    whole.check()
    assert whole.join_pieces() == b"".join(some for _, some in came) == data
    assert [at for at, _ in came] == [sum(len(some) for _, some in came[:i]) for i in range(len(came))]


def test_gaps_between_pieces_and_bytes_above_the_limit_are_refused() -> None:
    pieces = Pieces(10)
    pieces.place(0, 0, 4)
    with pytest.raises(FrameError, match="expected one at 4"):
        pieces.place(0, 5, 1)
    with pytest.raises(FrameError, match="at most 10 bytes"):
        pieces.place(0, 4, 7)
    assert pieces.join_pieces() == bytes(4)


def test_a_sink_refuses_pieces_out_of_order() -> None:
    sink = Sink(10, lambda offset, data: None)
    sink.place(0, 0, 4)
    with pytest.raises(fluid.core.EnforceNotMet, match="4 bytes at 6 of 10 bytes, but 4 arrived"):
        sink.place(0, 6, 4)
    with pytest.raises(fluid.core.EnforceNotMet, match="11 bytes at 4 of 10"):
        sink.place(0, 4, 11)
    with pytest.raises(fluid.core.EnforceNotMet, match="4 of 10 bytes arrived"):
        sink.check()
