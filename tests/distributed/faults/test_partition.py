"""A server that cannot be reached for a while, in a network of the test's own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.distributed.faults.conftest import Result
from tests.distributed.faults.jobs import Job
from tests.helpers.fork_server import start_fork_server

pytestmark = pytest.mark.slow

UP = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@pytest.fixture
def island(tmp_path) -> Iterator[tuple[str, int]]:
    """A fork_server whose processes see no network but their own loopback."""
    if not all(shutil.which(name) for name in ("unshare", "nsenter", "ip")):
        pytest.skip("needs unshare, nsenter and ip")
    tried = subprocess.run([*UP, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no network of its own: {tried.stderr.decode().strip()}")
    with start_fork_server(tmp_path / "socket", *UP) as found:
        yield found


def test_an_unreachable_server_delays_the_job_and_changes_no_result(island, tmp_path, undisturbed):
    address, pid = island

    def route(what: str) -> None:
        command = ["ip", "route", what, "blackhole", "127.0.0.2/32", "table", "local"]
        subprocess.run(["nsenter", "--target", str(pid), "--net", *command], check=True)

    settings = {"FLAGS_rpc_deadline": "1500", "FLAGS_rpc_retry_times": "20"}
    options = {"think": 0.2, "settings": settings, "hosts": ("127.0.0.1", "127.0.0.2")}
    with Job(tmp_path, address, **options) as job:
        job.until_said("trainer 0", "done", 2)
        route("add")
        reached = job.processes["trainer 0"].last("done")
        job.until_said("trainer 0", "failed", 1)
        assert job.processes["trainer 0"].last("done") <= reached + 1
        route("del")
        ended = Result(job.finish())
        assert ended == undisturbed()
        assert job.restarts == 0
