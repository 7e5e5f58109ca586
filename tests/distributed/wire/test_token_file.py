"""Jobs that are started by hand on the loopback share a token that other users cannot read."""

from __future__ import annotations

import concurrent.futures
import os
import stat
from pathlib import Path

import pytest

from paddlelike.distributed.wire import Channel, Security, Server
from paddlelike.distributed.wire.token_file import VARIABLE, read_or_create_token, token_paths
from paddlelike.errors import EndpointError, RejectedError
from tests.distributed.wire.certificates import Authority, write
from tests.distributed.wire.verbs import Verb

BY_HAND = Security(use_token_file=True)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of this test's token file."""
    found = tmp_path / "state" / "job_token"
    monkeypatch.setenv(VARIABLE, str(found))
    return found


def test_a_server_started_by_hand_serves_only_clients_with_the_token(path: Path) -> None:
    pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")
    with Server("127.0.0.1:0", {"Echo": Verb()}, security=BY_HAND) as server:
        endpoint = f"127.0.0.1:{server.port}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with Channel(endpoint, security=BY_HAND) as channel:
            assert channel.call("Echo", {"a": 1}) == {"a": 1}
        with Channel(endpoint, security=Security()) as other, pytest.raises(RejectedError, match="job token"):
            other.call("Echo", {"a": 1})


def test_processes_that_start_together_find_one_token(path: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        tokens = set(pool.map(lambda _: read_or_create_token(), range(64)))
    assert len(tokens) == 1
    assert len(tokens.pop()) >= 32
    assert [entry.name for entry in path.parent.iterdir()] == ["job_token"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, True),
        ({"PADDLELIKE_JOB_TOKEN": ""}, True),
        ({"PADDLELIKE_JOB_TOKEN": "t"}, False),
        ({"PADDLELIKE_INSECURE": "1"}, False),
    ],
    ids=["nothing", "an empty token", "a token", "insecure"],
)
def test_the_token_file_is_used_if_no_environment_variable_is_set(
    environment: dict[str, str], expected: bool
) -> None:
    assert Security.from_environment(environment).use_token_file is expected


def test_tls_needs_no_token_file(tmp_path: Path) -> None:
    assert not Security.from_environment(write(Authority().issue(), tmp_path)).use_token_file


def test_the_token_file_is_not_used_for_other_hosts(path: Path) -> None:
    with pytest.raises(EndpointError, match="clear text may not leave"):
        BY_HAND.for_endpoint("10.1.2.3:6174")
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o604])
def test_a_file_that_others_can_use_is_refused(path: Path, mode: int) -> None:
    read_or_create_token()
    path.chmod(mode)
    with pytest.raises(EndpointError, match=f"(?s)has mode {mode:o}, expected 600.*remove it"):
        read_or_create_token()


def test_a_link_an_empty_file_and_a_directory_are_refused(path: Path) -> None:
    path.parent.mkdir()
    path.symlink_to("/dev/null")
    with pytest.raises(EndpointError, match="cannot be read"):
        read_or_create_token()
    path.unlink()
    path.touch(0o600)
    with pytest.raises(EndpointError, match="is empty"):
        read_or_create_token()
    path.unlink()
    path.mkdir(0o700)
    with pytest.raises(EndpointError, match="is not a regular file"):
        read_or_create_token()


def test_directories_for_the_token_file_are_tried_in_order(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    first, second, third = token_paths(environment)
    assert first == tmp_path / "home/.local/state/paddlelike/job_token"
    assert second == tmp_path / "run/paddlelike/job_token"
    assert third.parent.name == f"paddlelike-{os.getuid()}"
    (tmp_path / "home").touch()  # nothing can be written below it
    token = read_or_create_token([first, second])
    assert second.read_text().strip() == token
    with pytest.raises(EndpointError, match=r"cannot be written: .*home"):
        read_or_create_token([first])
