"""The launcher's command line: what it refuses, and its help."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paddlelike.distributed.launch.command import main

WRONG = {
    "an unknown option": (["--sever_num", "2"], "unrecognized arguments: --sever_num"),
    "a near miss": (["--sever_num", "2"], "did you mean --server_num instead of --sever_num?"),
    "a hyphen": (["--server-num", "2"], "did you mean --server_num instead of --server-num?"),
    "a hyphen and a value": (["--max-restarts=2"], "did you mean --max_restarts instead of --max-restarts?"),
    "upper case": (["--Worker_Num", "2"], "did you mean --worker_num instead of --Worker_Num?"),
    "an abbreviation": (["--server", "2"], "unrecognized arguments: --server"),
    "a number of machines": (["--nnodes=2"], "give all machines the same complete --cluster_node_ips"),
    "servers for workers alone": (
        ["--run_mode=collective", "--server_num=1"],
        "collective training has no servers",
    ),
    "workers alone on servers": (["--run_mode=ps", "--nproc_per_node=2"], "is for --run_mode collective"),
    "counts of workers": (["--gpus=0,1", "--nproc_per_node=3"], "several options set the number of workers"),
    "workers from a to b": (["--elastic=3"], "'3' is not MIN:MAX"),
    "elastic on machines": (["--elastic=1:2", "--ips=10.0.0.1,10.0.0.2"], "--elastic is for one machine"),
    "workers on a cluster": (
        ["--run_mode=collective", "--engine=ray", "--elastic=1:2"],
        "--engine ray places the processes itself: give their counts, not --elastic",
    ),
    "no servers": (["--server_num", "0"], "'0' is not a number of processes, 1 or more"),
    "a word for a number": (["--worker_num", "two"], "'two' is not a number of processes"),
    "an endpoint without a port": (["--servers", "10.0.0.1"], "'10.0.0.1' is not host:port"),
    "an endpoint twice": (["--servers", "a:1,a:1"], "names an endpoint twice"),
    "two numbers of servers": (
        ["--servers", "a:1", "--server_num", "2"],
        "--server_num 2, but --servers lists 1",
    ),
    "two numbers of workers": (["--trainers", "a:1", "--worker_num", "2"], "--worker_num 2, but --trainers"),
    "ports twice": (["--servers", "a:1", "--start_port", "6170"], "give one of the two"),
    "no port": (["--start_port", "70000"], "'70000' is not a port"),
    "another mode": (["--run_mode", "heter"], "invalid choice: 'heter'"),
    "ports on a cluster": (
        ["--engine=ray", "--start_port", "6170"],
        "--engine ray places the processes itself",
    ),
    "a cluster without Ray": (["--address", "a:1"], "--address names a Ray cluster"),
    "no time": (["--grace", "soon"], "'soon' is not a number of seconds"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_line_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, expected = WRONG[name]
    with pytest.raises(SystemExit) as caught:
        main([*options, __file__])
    assert caught.value.code == 2
    assert expected in capsys.readouterr().err


def test_a_script_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no_such_script.py"])
    assert f"the script no_such_script.py does not exist (looked in {Path.cwd()})" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--server_num", "2"]], ids=["nothing", "options only"])
def test_a_command_line_without_a_script_is_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(options)
    assert caught.value.code == 2
    assert "no script is given: name the script that every process runs" in capsys.readouterr().err


def test_an_option_unlike_any_other_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--quiet", __file__])
    said = capsys.readouterr().err
    assert "unrecognized arguments: --quiet" in said
    assert "did you mean" not in said


def test_the_help_names_every_option_and_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for option in ("--server_num", "--worker_num", "--trainer_num", "--servers", "--endpoints", "--trainers",
                   "--workers", "--start_port", "--log_dir", "--max_restarts", "--grace", "75"):  # fmt: skip
        assert option in text
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.obeys("--host says which of them this machine is")
def test_a_machine_that_is_not_a_host_of_the_job_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--servers", "198.51.100.7:6174", "--trainers", "203.0.113.7:6174", __file__]) == 1
    said = capsys.readouterr().err
    assert "this machine is not one of the hosts 198.51.100.7, 203.0.113.7" in said
    assert "--host says which of them this machine is" in said
    script = tmp_path / "script.py"
    script.write_text("import os; print('trainer at', os.environ['POD_IP'])")
    job = ["--servers", "198.51.100.7:6174", "--trainers", "203.0.113.7:6174", f"--log_dir={tmp_path}"]
    assert main([*job, "--host", "203.0.113.7", str(script)]) == 0
    assert "trainer at 203.0.113.7" in (tmp_path / "workerlog.0").read_text()
    assert main(["--servers", "127.0.0.1:6174", "--host", "127.0.0.9", __file__]) == 1
    assert "127.0.0.9 is not one of the hosts 127.0.0.1" in capsys.readouterr().err


def test_without_ray_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["--engine", "ray", __file__]) == 1
    assert 'pip install "paddlelike[ray]"' in capsys.readouterr().err
