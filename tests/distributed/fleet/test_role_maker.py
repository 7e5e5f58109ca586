"""Role makers: what they ask of their arguments and of the environment, and what they answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.distributed.fleet.role_maker import (
    GeneralRoleMaker,
    MPISymetricRoleMaker,
    PaddleCloudRoleMaker,
    Role,
    RoleMakerBase,
    UserDefinedCollectiveRoleMaker,
    UserDefinedRoleMaker,
)
from paddlelike.errors import RoleError, UnsupportedError

SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]


@pytest.fixture(autouse=True)
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith(("PADDLE_", "TRAINING_ROLE", "POD_IP")):
            monkeypatch.delenv(name)


def in_job(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    job = {"PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS), "PADDLE_TRAINERS_NUM": "3"}
    for name, value in (job | variables).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("maker", [PaddleCloudRoleMaker, GeneralRoleMaker])
def test_the_environment_defines_a_trainer(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    in_job(monkeypatch, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="2")
    role = maker()
    assert (role.is_worker(), role.is_server(), role.is_first_worker()) == (True, False, False)
    assert (role.worker_index(), role.worker_num(), role.server_num()) == (2, 3, 2)
    assert role.get_pserver_endpoints() == SERVERS
    assert role.get_trainer_endpoints() == []


@pytest.mark.parametrize("own", [{"PADDLE_PSERVER_ID": "1"}, {"POD_IP": "127.0.0.1", "PADDLE_PORT": "6175"}])
def test_the_environment_defines_a_server(own: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    in_job(monkeypatch, TRAINING_ROLE="PSERVER", **own)
    role = GeneralRoleMaker(path="/afs", init_timeout_seconds=10)
    role.generate_role()
    assert (role.is_worker(), role.is_server(), role.is_first_worker()) == (False, True, False)
    assert (role.server_index(), role.get_local_endpoint()) == (1, SERVERS[1])


def test_the_environment_is_read_when_the_role_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    role = PaddleCloudRoleMaker()
    with pytest.raises(RoleError, match="no environment variable defines the role"):
        role.is_worker()
    in_job(monkeypatch, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0")
    assert role.is_first_worker()


def test_a_wrong_environment_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    in_job(monkeypatch, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT="6176")
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:6176, which is not in the list of servers"):
        PaddleCloudRoleMaker().generate_role()


def test_a_script_defines_its_own_role() -> None:
    role = UserDefinedRoleMaker(current_id=0, role=Role.WORKER, worker_num=2, server_endpoints=SERVERS)
    assert role.is_first_worker()
    assert role.worker_num() == 2
    assert UserDefinedRoleMaker(1, Role.SERVER, 2, SERVERS).server_index() == 1
    assert "server_endpoints: ['127.0.0.1:6174', '127.0.0.1:6175']" in role.to_string()


WRONG = {
    "no servers": ({"server_endpoints": None}, TypeError, "list of 'host:port' texts, got None"),
    "an empty list": ({"server_endpoints": []}, ValueError, "name at least one"),
    "text for a list": ({"server_endpoints": "a:1"}, TypeError, "list of 'host:port'"),
    "numbers in the list": ({"server_endpoints": [6174]}, TypeError, "got 6174 in it"),
    "one server twice": ({"server_endpoints": ["a:1", "a:1"]}, ValueError, "names an endpoint twice"),
    "a role by name": ({"role": "WORKER"}, TypeError, r"Role\.WORKER or Role\.SERVER"),
    "a number as text": ({"current_id": "0"}, TypeError, "current_id must be an int"),
    "a number below 0": ({"current_id": -1}, ValueError, "expected 0 or more"),
    "a server too many": (
        {"role": Role.SERVER, "current_id": 2},
        ValueError,
        "current_id is 2, expected 0 to 1 for 2 servers",
    ),
    "a worker too many": ({"current_id": 2}, ValueError, "current_id is 2, expected 0 to 1 for 2 workers"),
    "no workers": ({"worker_num": 0}, ValueError, "expected 1 or more"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_role_is_refused(name: str) -> None:
    changed, error, text = WRONG[name]
    arguments: dict[str, Any] = {
        "current_id": 0,
        "role": Role.WORKER,
        "worker_num": 2,
        "server_endpoints": SERVERS,
    }
    with pytest.raises(error, match=text):
        UserDefinedRoleMaker(**arguments | changed)


def test_the_environment_defines_collective_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = PaddleCloudRoleMaker(is_collective=True)
    assert (alone.is_first_worker(), alone.worker_num(), len(alone.get_trainer_endpoints())) == (True, 1, 1)
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:6170,127.0.0.1:6171")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    role = PaddleCloudRoleMaker(is_collective=True)
    assert (role.is_worker(), role.worker_index(), role.worker_num()) == (True, 1, 2)
    with pytest.raises(RoleError, match="needs a job with servers, but the environment names none"):
        PaddleCloudRoleMaker().generate_role()
    with pytest.raises(ValueError, match="current_id is 1, expected 0 to 0"):
        UserDefinedCollectiveRoleMaker(1, ["a:1"])
    with pytest.raises(ValueError, match="worker_endpoints names an endpoint twice"):
        UserDefinedCollectiveRoleMaker(0, ["a:1", "a:1"])


def test_unknown_settings_of_gloo_are_refused() -> None:
    with pytest.raises(TypeError, match="iface"):
        GeneralRoleMaker(iface="eth0")


def test_the_role_maker_of_mpi_reads_the_role_of_a_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "1")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    monkeypatch.setenv("PADDLE_PSERVERS_IP_PORT_LIST", SERVERS[0])
    role = MPISymetricRoleMaker()
    role.generate_role()
    found = np.zeros(2)
    role._node_type_comm.Allreduce(np.array([3.0, 4]), found)
    assert (role.worker_num(), found.tolist()) == (1, [3, 4])


def test_a_barrier_that_does_not_wait_warns() -> None:
    role = UserDefinedRoleMaker(0, Role.WORKER, 2, SERVERS)
    with pytest.warns(UserWarning, match=r"barrier_worker\(\) has no effect"):
        role.barrier_worker()
    with pytest.warns(UserWarning, match="all_reduce_worker"):
        role.all_reduce_worker([1], [0])


def test_a_barrier_that_scripts_rely_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    in_job(monkeypatch, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0")
    with pytest.raises(UnsupportedError, match=r"barrier_worker\(\) among 3 trainers"):
        GeneralRoleMaker().barrier_worker()
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "1")
    alone, output = GeneralRoleMaker(), [0.0, 0.0]
    alone.barrier_worker()
    alone.all_reduce_worker([1.0, 2.0], output)
    assert output == [1.0, 2.0]


def test_a_role_maker_may_be_subclassed() -> None:
    class Own(RoleMakerBase):
        def generate_role(self) -> None:
            self._role, self._current_id, self._trainers_num = Role.WORKER, 1, 2
            self._server_endpoints = SERVERS

    role = Own()
    assert (role.worker_index(), role.server_num()) == (1, 2)
    with pytest.raises(NotImplementedError, match="RoleMakerBase has no generate_role"):
        RoleMakerBase().is_worker()
