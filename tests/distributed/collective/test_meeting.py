"""The meeting of workers before JAX joins them: who is missing is named, a port that is taken is an error."""

from __future__ import annotations

import socket
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import pytest

from paddlelike.distributed.collective import meeting
from paddlelike.distributed.collective.job import Job, make_job
from paddlelike.distributed.collective.meeting import meet
from paddlelike.errors import FaultError, RoleError
from tests.distributed.jobs import free_endpoints


@pytest.fixture(autouse=True)
def ticks_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "_TICK", 0.05)


def meet_all(jobs: list[Job], seconds: float) -> list[Future[None]]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        return [pool.submit(meet, job, seconds) for job in jobs]


def test_workers_meet_in_any_order() -> None:
    endpoints = free_endpoints(3)
    found = meet_all([make_job(endpoints, rank) for rank in (2, 0, 1)], 30)
    assert [one.exception() for one in found] == [None] * 3


def test_a_worker_that_never_arrives_is_named_by_all_others() -> None:
    endpoints = free_endpoints(4)
    for one in meet_all([make_job(endpoints, rank) for rank in (0, 1, 3)], 1):
        with pytest.raises(FaultError, match=rf"waited 1 s for worker 2 \({endpoints[2]}\), and ends"):
            one.result()


def test_an_absent_worker_0_is_named() -> None:
    endpoints = free_endpoints(2)
    with pytest.raises(FaultError, match=rf"worker 1 .* waited 0.3 s for worker 0 \({endpoints[0]}\)"):
        meet(make_job(endpoints, 1), 0.3)


@pytest.mark.obeys(
    "end the process that uses the port, or give another one in PADDLE_TRAINER_ENDPOINTS; the launcher takes "
    "another one by itself where it chose it"
)
def test_worker_0_reports_that_its_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            FaultError, match=rf"worker 0 \({endpoint}\) cannot listen at its endpoint"
        ) as info:
            meet(make_job([endpoint, "127.0.0.1:1"], 0), 1)
    assert "end the process that uses the port, or give another one in PADDLE_TR" in str(info.value.hint)
    for endpoints in ([endpoint, "127.0.0.1:1"], free_endpoints(2)):  # the port is free now; another one
        found = meet_all([make_job(endpoints, rank) for rank in (0, 1)], 30)
        assert [one.exception() for one in found] == [None] * 2


@pytest.mark.obeys("start all workers with the same PADDLE_TRAINER_ENDPOINTS")
def test_a_worker_with_another_job_size_is_refused_and_the_others_still_meet() -> None:
    endpoints = free_endpoints(2)
    jobs = [make_job([*endpoints, "127.0.0.1:1"], 1), make_job(endpoints, 0)]
    with ThreadPoolExecutor(3) as pool:
        stranger, zero = (pool.submit(meet, job, 30) for job in jobs)
        with pytest.raises(RoleError, match="its job has 2 workers, the job of worker 1 has 3") as info:
            stranger.result()
        assert str(info.value.hint).startswith("start all workers with the same PADDLE_TRAINER_ENDPOINTS")
        pool.submit(meet, make_job(endpoints, 1), 30).result()
        zero.result()


def test_a_second_process_of_one_rank_is_refused() -> None:
    endpoints = free_endpoints(3)
    with ThreadPoolExecutor(3) as pool:
        zero, *twins = (pool.submit(meet, make_job(endpoints, rank), 30) for rank in (0, 1, 1))
        (refused,) = wait(twins, return_when=FIRST_COMPLETED).done
        with pytest.raises(RoleError, match="two processes have PADDLE_TRAINER_ID=1"):
            refused.result()
        pool.submit(meet, make_job(endpoints, 2), 30).result()
        zero.result()


def test_a_connection_from_a_stranger_is_answered_and_does_no_harm() -> None:
    endpoints = free_endpoints(2)
    host, _, port = endpoints[0].rpartition(":")
    with ThreadPoolExecutor(2) as pool:
        zero = pool.submit(meet, make_job(endpoints, 0), 30)
        while True:
            try:
                stranger = socket.create_connection((host, int(port)))
                break
            except ConnectionRefusedError:
                continue
        with stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert stranger.makefile("rb").readline().startswith(b"refused this is worker 0 of a job")
        pool.submit(meet, make_job(endpoints, 1), 30).result()
        zero.result()
