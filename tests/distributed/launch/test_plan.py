"""The processes of a job, and whether scripts of every generation find their role in the environment."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from paddlelike.distributed.launch.options import make_parser, plan_job
from paddlelike.distributed.launch.processes_plan import (
    JobPlan,
    free_endpoints,
    is_this_machine,
    port_endpoints,
)
from paddlelike.distributed.launch.slurm_and_ray import expand_hosts
from paddlelike.distributed.roles import describe, read_role
from paddlelike.errors import RoleError

ONE_PORT = ("127.0.0.1:6174", "127.0.0.2:6174")
TWO_PORTS = ("127.0.0.1:6170", "127.0.0.1:6171")


@pytest.mark.parametrize("servers", [ONE_PORT, TWO_PORTS], ids=["one port", "two ports"])
@pytest.mark.parametrize("named", [(), ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")], ids=["", "named"])
def test_every_process_understands_its_environment(servers: tuple[str, ...], named: tuple[str, ...]) -> None:
    plan = JobPlan(servers, ("127.0.0.1",) * 3, named)
    processes = plan.processes()
    assert [process.log for process in processes] == [
        "serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1", "workerlog.2",
    ]  # fmt: skip
    for process in processes:
        role = read_role(process.environment({}))
        assert role.kind == {"server": "server", "worker": "trainer"}[process.kind]
        assert (role.index, role.servers, role.trainers) == (process.index, servers, 3)
        assert role.endpoint == (servers[process.index] if process.kind == "server" else None)


def test_environment_variables_of_another_job_do_not_reach_the_processes() -> None:
    plan = JobPlan(TWO_PORTS, ("127.0.0.1",))
    theirs = {
        "PADDLE_PORT": "9", "PADDLE_PSERVERS": "10.9.9.9", "PADDLE_TRAINER_ENDPOINTS": "a:1,b:1",
        "PADDLE_CURRENT_ENDPOINT": "10.9.9.9:9", "PADDLE_TRAINING_ROLE": "PSERVER", "HOME": "/root",
    }  # fmt: skip
    for process in plan.processes():
        environment = process.environment(theirs)
        assert describe(environment).problems == ()
        assert environment["HOME"] == "/root"


def test_the_launch_command_of_fluid_starts_workers_without_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = make_parser("launch", "log", "collective")
    options = ["--print_config", "1", "--log_level", "20", "train.py"]
    assert plan_job(parser, parser.parse_args(options)).servers == ()
    assert len(plan_job(parser, parser.parse_args(["--server_num", "1", *options])).servers) == 1
    monkeypatch.setenv("PADDLE_TRAINERS", "10.0.0.1,10.0.0.2")
    monkeypatch.setenv("POD_IP", "10.0.0.2")
    found = parser.parse_args(["--use_paddlecloud", "--selected_gpus", "0,1", "train.py"])
    plan = plan_job(parser, found)
    assert plan.trainer_endpoints == tuple(f"10.0.0.{n}:{port}" for n in (1, 2) for port in (6070, 6071))
    assert found.host == "10.0.0.2"
    monkeypatch.delenv("PADDLE_TRAINERS")
    with pytest.raises(SystemExit):
        plan_job(parser, parser.parse_args(["--use_paddlecloud", "train.py"]))


def test_all_workers_of_this_machine_are_at_the_address_that_scripts_name() -> None:
    parser = make_parser("launch", "log", "collective")
    options = ["--cluster_node_ips=127.0.0.1", "--node_ip=127.0.0.1", "--selected_gpus=0,1,2", "train.py"]
    found = parser.parse_args(options)
    assert [one.host for one in plan_job(parser, found).processes()] == [found.host] * 3


def test_a_job_step_of_slurm_names_its_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_STEP_NODELIST", "gpu[08-10],login")
    monkeypatch.setenv("SLURM_NODEID", "2")
    parser = make_parser("launch", "log")
    options = parser.parse_args(["--run_mode", "collective", "--nproc_per_node", "2", "train.py"])
    plan = plan_job(parser, options)
    hosts = ["gpu08", "gpu09", "gpu10", "login"]
    assert plan.trainer_endpoints == tuple(f"{host}:{port}" for host in hosts for port in (6070, 6071))
    assert options.host == "gpu10"
    monkeypatch.setenv("SLURM_NODEID", "4")
    with pytest.raises(SystemExit):
        plan_job(parser, parser.parse_args(["--run_mode", "collective", "train.py"]))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", "a"),
        ("a,b1", "a b1"),
        ("n[1-3]", "n1 n2 n3"),
        ("n[098-101,7].x,m", "n098.x n099.x n100.x n101.x n7.x m"),
        ("r[1-2]n[3-4]", "r1n3 r1n4 r2n3 r2n4"),
    ],
)
def test_host_lists_of_slurm_are_expanded(text: str, hosts: str) -> None:
    assert expand_hosts(text) == tuple(hosts.split())


@pytest.mark.parametrize("text", ["n[1-3", "n]", "n[a-b]", ",", "a,,b", "n[]", "n[1--2]", "n[3-1]"])
def test_host_lists_that_are_not_understood_are_errors(text: str) -> None:
    with pytest.raises(RoleError, match="is not understood"):
        expand_hosts(text)


def cluster_quick_start(get: Callable[..., str | None]) -> tuple[str | None, str, str, int, int]:
    """As the scripts of the first guides read their environment."""
    port = get("PADDLE_PSERVER_PORT", "6174")
    endpoints = ",".join(f"{ip}:{port}" for ip in str(get("PADDLE_PSERVER_IPS", "")).split(","))
    current = f"{get('PADDLE_CURRENT_IP', '')}:{port}"
    number, trainers = int(str(get("PADDLE_TRAINER_ID"))), int(str(get("PADDLE_TRAINERS")))
    return get("PADDLE_TRAINING_ROLE"), endpoints, current, number, trainers


def cluster_scripts(get: Callable[..., str | None]) -> tuple[str | None, str, str, int, int]:
    """As scripts for clusters did, before there was a list of ports."""
    port = get("PADDLE_PORT", "6174")
    endpoints = ",".join(f"{ip}:{port}" for ip in str(get("PADDLE_PSERVERS", "")).split(","))
    current = f"{get('POD_IP')}:{port}"
    number, trainers = int(str(get("PADDLE_TRAINER_ID", "0"))), int(str(get("PADDLE_TRAINERS_NUM")))
    return get("TRAINING_ROLE"), endpoints, current, number, trainers


def dist_train(get: Callable[..., str | None]) -> tuple[str | None, str, str, int, int]:
    """As image classification's env.py did; endpoints of trainers would mean collective training."""
    assert get("PADDLE_TRAINER_ENDPOINTS") is None
    number, trainers = int(str(get("PADDLE_TRAINER_ID", "0"))), int(str(get("PADDLE_TRAINERS_NUM")))
    current = str(get("PADDLE_CURRENT_ENDPOINT"))
    return get("PADDLE_TRAINING_ROLE"), str(get("PADDLE_PSERVER_ENDPOINTS")), current, number, trainers


def fleet(get: Callable[..., str | None]) -> tuple[str | None, str, str, int, int]:
    """As fleet of 1.6 and later does."""
    current = f"{get('POD_IP')}:{get('PADDLE_PORT')}"
    number, trainers = int(str(get("PADDLE_TRAINER_ID"))), int(str(get("PADDLE_TRAINERS_NUM")))
    return get("TRAINING_ROLE"), str(get("PADDLE_PSERVERS_IP_PORT_LIST")), current, number, trainers


@pytest.mark.parametrize("script", [cluster_quick_start, cluster_scripts, dist_train, fleet])
def test_environment_variables_of_every_fluid_version_are_set(script: Callable[..., object]) -> None:
    processes = JobPlan(ONE_PORT, ("127.0.0.1", "127.0.0.1")).processes()
    for process in processes:
        environment: Mapping[str, str] = process.environment({})
        role, endpoints, current, number, trainers = script(environment.get)  # type: ignore[misc]
        assert (endpoints, trainers) == (",".join(ONE_PORT), 2)
        if process.kind == "server":
            assert (role, current) == ("PSERVER", ONE_PORT[process.index])
        else:
            assert (role, number) == ("TRAINER", process.index)


def test_free_endpoints_are_unused_and_distinct() -> None:
    endpoints = free_endpoints(4)
    assert len(set(endpoints)) == 4
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        with socket.socket() as probe:
            probe.bind((host, int(port)))
    if sys.platform == "linux":
        assert len({endpoint.rpartition(":")[2] for endpoint in endpoints}) == 1


def test_ports_count_up_from_the_first() -> None:
    assert port_endpoints(6170, 3) == ("127.0.0.1:6170", "127.0.0.1:6171", "127.0.0.1:6172")


def test_a_launcher_recognizes_the_addresses_of_its_machine() -> None:
    assert is_this_machine("127.0.0.1")
    assert is_this_machine("localhost")
    assert not is_this_machine("198.51.100.7")  # kept for documentation by RFC 5737
    assert not is_this_machine("no such host")


def test_workers_without_servers_get_the_variables_of_collective_training() -> None:
    endpoints = ("10.0.0.1:6070", "10.0.0.1:6071", "10.0.0.2:6070", "10.0.0.2:6071")
    hosts = tuple(one.rpartition(":")[0] for one in endpoints)
    plan = JobPlan((), hosts, endpoints, devices=("4", "5"))
    stale = {"PADDLE_PSERVERS_IP_PORT_LIST": "10.0.0.9:1", "PADDLE_PSERVER_ENDPOINTS": "10.0.0.9:1"}
    for index, process in enumerate(plan.processes()):
        environ = process.environment(stale)
        role = read_role(environ)
        assert (role.kind, role.index, role.trainer_endpoints) == ("worker", index, endpoints)
        assert environ["FLAGS_selected_gpus"] == ("4", "5")[index % 2]
        assert environ["PADDLE_CURRENT_ENDPOINT"] == endpoints[index]
    fewer = plan.shrink(3)
    assert fewer.trainer_endpoints == fewer.shrink(3).trainer_endpoints == endpoints[:3]


def test_workers_get_other_ports_at_a_restart_where_the_launcher_chose_them() -> None:
    endpoints = free_endpoints(2, "127.0.0.1")
    plan = JobPlan((), ("127.0.0.1",) * 2, endpoints, has_free_ports=True)
    host, _, port = endpoints[0].rpartition(":")
    with socket.create_server((host, int(port))):  # the other process, which has taken it
        again = plan.renew()
    assert endpoints[0] not in again.trainer_endpoints
    assert {one.rpartition(":")[0] for one in again.trainer_endpoints} == {"127.0.0.1"}
    assert replace(again, trainer_endpoints=endpoints) == plan
    assert JobPlan((), ("10.0.0.1",), ("10.0.0.1:6070",)).renew().trainer_endpoints == ("10.0.0.1:6070",)
