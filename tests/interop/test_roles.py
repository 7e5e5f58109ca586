"""Real Fluid understands the environments of our launcher as we do, and we those that its own makes."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from pathlib import Path
from unittest.mock import patch

import pytest

import paddlelike as fluid
from paddlelike.distributed.fleet.base import Fleet, Mode
from paddlelike.distributed.fleet.role_maker import PaddleCloudRoleMaker
from paddlelike.distributed.launch.processes_plan import JobPlan
from paddlelike.distributed.roles import read_role
from paddlelike.framework.graph.guards import reset_name_scope
from tests.distributed.transpiler.masking import mask_program
from tests.distributed.transpiler.networks import overview, programs
from tests.distributed.transpiler.random_cases import draw_case
from tests.distributed.transpiler.real import ask
from tests.helpers.canonical import differences
from tests.interop.real import FLUID185

pytestmark = FLUID185.needed

PLANS = {
    "one port": JobPlan(("127.0.0.1:6174", "127.0.0.2:6174"), ("127.0.0.1",) * 3),
    "several ports": JobPlan(("127.0.0.1:6170", "127.0.0.1:6171", "127.0.0.1:6172"), ("127.0.0.1",) * 2),
    "one of each": JobPlan(("127.0.0.1:6170",), ("127.0.0.1",)),
}


@pytest.mark.parametrize("name", PLANS)
def test_real_fluid_reads_the_same_roles_from_our_environments(name: str, tmp_path: Path) -> None:
    environments = [process.environment({}) for process in PLANS[name].processes()]
    answer = tmp_path / "answer.json"
    job = {"environments": environments, "maker": "PaddleCloudRoleMaker", "answer": str(answer)}
    FLUID185.run("driver_roles.py", job, tmp_path)
    theirs = json.loads(answer.read_text())
    for environment, expected in zip(environments, theirs, strict=True):
        fleet = Fleet(Mode.TRANSPILER)
        with patch.dict(os.environ, environment):
            fleet.init(PaddleCloudRoleMaker())
        assert expected == {
            "is_worker": fleet.is_worker(),
            "is_server": fleet.is_server(),
            "is_first_worker": fleet.is_first_worker(),
            "index": fleet.worker_index(),
            "server_index": fleet.server_index(),
            "workers": fleet.worker_num(),
            "servers": fleet.server_endpoints(),
            "server_num": fleet.server_num(),
            "text": fleet.server_endpoints(to_string=True),
        }


def test_roles_are_read_from_the_environments_of_the_launcher_of_fluid(tmp_path: Path) -> None:
    script = tmp_path / "dump.py"
    script.write_text(
        "import json, os, sys, time\n"
        "server = os.environ['TRAINING_ROLE'] == 'PSERVER'\n"
        "name = os.environ['PADDLE_PORT'] if server else os.environ['PADDLE_TRAINER_ID']\n"
        "path = os.path.join(os.path.dirname(__file__), os.environ['TRAINING_ROLE'] + name)\n"
        "with open(path + '.new', 'w') as file: json.dump(dict(os.environ), file)\n"
        "os.rename(path + '.new', path + '.json')\n"
        "servers = [path.replace('TRAINER' + name, 'PSERVER%d.json' % port) for port in (6170, 6171)]\n"
        "while not all(map(os.path.exists, servers)) and not server: time.sleep(0.1)\n"
        "if server: time.sleep(100)\n"
    )
    assert FLUID185.python is not None
    command = [FLUID185.python, "-m", "paddle.distributed.launch_ps", "--worker_num=3", "--server_num=2"]
    subprocess.run([*command, str(script)], cwd=tmp_path, check=True, capture_output=True, timeout=200)
    found = [read_role(json.loads(path.read_text())) for path in sorted(tmp_path.glob("*.json"))]
    servers = ("127.0.0.1:6170", "127.0.0.1:6171")
    assert [(role.kind, role.index, role.endpoint) for role in found] == [
        ("server", 0, servers[0]),
        ("server", 1, servers[1]),
        ("trainer", 0, None),
        ("trainer", 1, None),
        ("trainer", 2, None),
    ]
    assert {(role.servers, role.trainers) for role in found} == {(servers, 3)}


JOBS = 30


@pytest.mark.parametrize("first", [0, 1000])
def test_random_jobs_are_transpiled_as_by_fluid(first: int, tmp_path: Path) -> None:
    cases = {str(seed): draw_case(seed) for seed in range(first, first + JOBS)}
    assert FLUID185.python is not None
    records = ask(FLUID185.python, cases, tmp_path)
    assert [record["error"] for record in records.values() if "error" in record] == []
    unequal = {name: _differences(cases[name], record)[:3] for name, record in records.items()}
    assert {name: lines for name, lines in unequal.items() if lines} == {}


def _differences(case: dict[str, object], record: dict[str, object]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # set_gradient_clip is deprecated; some servers keep nothing
        made = programs(fluid, case, reset_name_scope)
        table = overview(fluid, case, reset_name_scope)
    lines = [
        f"{role}: {line}"
        for role, pair in record["programs"].items()
        for got, want in zip(made[role], pair, strict=True)
        for line in differences(mask_program(got), want)
    ]
    return lines + [f"table: {row}" for row in table if row not in record["overview"]]
