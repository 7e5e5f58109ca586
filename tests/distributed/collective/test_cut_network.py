"""Workers in network namespaces of their own, as on machines of their own, one of which is cut off."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("jax", reason="workers exchange through JAX's distributed runtime")
pytestmark = pytest.mark.slow

NET = f"pl{os.getpid()}"
HOSTS = ["10.213.7.1", "10.213.7.2", "10.213.7.3"]


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def machines() -> Iterator[None]:
    if shutil.which("ip") is None or os.geteuid():
        pytest.skip("needs root and iproute2, for network namespaces")
    with ExitStack() as stack:
        try:
            ip("link", "add", NET, "type", "bridge")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no bridge can be made here: {error.stderr}")
        stack.callback(ip, "link", "del", NET)
        ip("link", "set", NET, "up")
        for index, host in enumerate(HOSTS):
            space = f"{NET}-{index}"
            ip("netns", "add", space)
            stack.callback(ip, "netns", "del", space)
            ip("link", "add", space, "type", "veth", "peer", "name", "eth0", "netns", space)
            stack.callback(ip, "link", "del", space)
            ip("link", "set", space, "master", NET, "up")
            ip("-n", space, "addr", "add", f"{host}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")
        yield


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.usefixtures("machines")
def test_all_workers_end_in_bounded_time_and_name_the_worker_that_was_cut_off(victim: int) -> None:
    base = {name: value for name, value in os.environ.items() if not name.startswith("PADDLE")}
    base |= {"PADDLELIKE_INSECURE": "1", "PADDLELIKE_LEASE": "5"}
    base["PADDLE_TRAINER_ENDPOINTS"] = ",".join(f"{host}:6170" for host in HOSTS)
    command = [sys.executable, "-m", "tests.distributed.collective.programs", "train_until_cut"]
    with ExitStack() as stack:
        workers = []
        for rank in range(len(HOSTS)):
            enter = ["ip", "netns", "exec", f"{NET}-{rank}"]
            worker = subprocess.Popen(
                [*enter, *command], env=base | {"PADDLE_TRAINER_ID": str(rank)}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            stack.callback(worker.wait)
            stack.callback(worker.kill)
            workers.append(worker)
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == '{"joined": true}\n', worker.stderr and worker.stderr.read()
        ip("link", "set", f"{NET}-{victim}", "down")
        errors = [worker.communicate(timeout=90)[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [75] * 3, errors
    for rank, text in enumerate(errors):
        # Who is cut off sees that of the others: worker 0, which coordinates, or both.
        assert f"lost worker {victim} ({HOSTS[victim]}:6170)" in text or rank == victim
        assert "lost worker" in text
