"""The examples for Kubernetes: every pod that they make understands its part."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddlelike.distributed.collective.job import read_job
from paddlelike.distributed.roles import describe, read_role
from paddlelike.errors import RoleError

TUTORIALS = Path(__file__).parents[3] / "tutorials"
MANIFEST = TUTORIALS / "04_kubernetes.yaml"
INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    (document,) = yaml.safe_load_all(MANIFEST.read_text())
    assert isinstance(document, dict)
    return document


def pods(manifest: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The environment of every pod by its host name, as Kubernetes makes them."""
    found = {}
    name, subdomain = manifest["metadata"]["name"], manifest["spec"]["network"]["subdomain"]
    for job in manifest["spec"]["replicatedJobs"]:
        spec = job["template"]["spec"]
        assert spec["completionMode"] == "Indexed"
        assert spec["completions"] == spec["parallelism"]
        (container,) = spec["template"]["spec"]["containers"]
        for index in range(spec["completions"]):
            found[f"{name}-{job['name']}-0-{index}.{subdomain}"] = expanded(container["env"], index)
    return found


def expanded(env: list[dict[str, Any]], index: int) -> dict[str, str]:
    """$(NAME) stands for a variable that comes before it."""
    made: dict[str, str] = {}
    for one in env:
        source = one.get("valueFrom", {})
        if source.get("fieldRef", {}).get("fieldPath") == INDEX:
            made[one["name"]] = str(index)
        elif "secretKeyRef" in source:
            made[one["name"]] = "from the secret"
        else:
            assert isinstance(one["value"], str), f"{one['name']}: values are text"
            made[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: made[name[1]], one["value"])
    return made


def test_every_pod_gets_its_role(manifest: dict[str, Any]) -> None:
    roles = {host: read_role(environment) for host, environment in pods(manifest).items()}
    servers = [role for role in roles.values() if role.kind == "server"]
    trainers = [role for role in roles.values() if role.kind == "trainer"]
    assert sorted(role.index for role in servers) == list(range(len(servers)))
    assert sorted(role.index for role in trainers) == list(range(len(trainers)))
    assert {role.trainers for role in roles.values()} == {len(trainers)}
    assert len({role.servers for role in roles.values()}) == 1
    assert set(servers[0].servers) == {role.endpoint for role in servers}


def test_servers_listen_where_kubernetes_finds_them(manifest: dict[str, Any]) -> None:
    for host, environment in pods(manifest).items():
        role = read_role(environment)
        if role.endpoint is not None:
            assert role.endpoint.rpartition(":")[0] == host


def test_nothing_goes_over_the_network_in_clear_text(manifest: dict[str, Any]) -> None:
    needed = {"PADDLELIKE_TLS_CA", "PADDLELIKE_TLS_CERT", "PADDLELIKE_TLS_KEY", "PADDLELIKE_JOB_TOKEN"}
    for environment in pods(manifest).values():
        assert needed <= environment.keys()
        assert "PADDLELIKE_INSECURE" not in environment


def test_a_failed_pod_restarts_all_pods_and_finished_trainers_end_the_job(manifest: dict[str, Any]) -> None:
    spec = manifest["spec"]
    assert spec["failurePolicy"]["maxRestarts"] > 0
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["trainer"]}
    for job in spec["replicatedJobs"]:
        assert job["template"]["spec"]["backoffLimit"] == 0
        assert job["template"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_a_server_without_an_index_gets_an_error_with_the_missing_variable(manifest: dict[str, Any]) -> None:
    environment = dict(next(env for env in pods(manifest).values() if env["TRAINING_ROLE"] == "PSERVER"))
    del environment["PADDLE_PSERVER_ID"]
    environment["POD_IP"] = "clicks-server-0-.clicks"
    assert "which is not in the list of servers" in str(describe(environment))


def test_every_pod_of_collective_training_is_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, policy = yaml.safe_load_all((TUTORIALS / "13_kubernetes.yaml").read_text())
    found = pods(workers)
    with pytest.raises(RoleError, match="PADDLELIKE_INSECURE=1"):
        read_job(next(iter(found.values())))
    monkeypatch.setenv("PADDLELIKE_INSECURE", "1")
    for rank, (host, environment) in enumerate(found.items()):
        assert describe(environment).problems == ()
        job = read_job(environment)
        assert job is not None
        assert environment["PADDLE_CURRENT_ENDPOINT"] == job.endpoints[job.rank] == f"{host}:6170"
        assert (job.rank, job.size, environment["PADDLE_TRAINERS_NUM"]) == (rank, len(found), str(len(found)))
    assert workers["spec"]["failurePolicy"]["maxRestarts"] > 0
    pod = policy["spec"]["podSelector"]
    assert pod == {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": workers["metadata"]["name"]}}
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": pod}]}]
