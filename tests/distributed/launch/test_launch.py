"""The launcher with real processes: logs, exit codes, restarts, signals, and nothing left behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.distributed.launch.launcher import Launcher, is_gone, wait_until

pytestmark = pytest.mark.slow


def test_the_launcher_waits_for_workers_and_then_ends_servers(tmp_path: Path) -> None:
    script = """
print(name, sys.argv[1:])
if server:
    signal.signal(signal.SIGTERM, lambda *_: (print("asked to end"), sys.exit(3)))
    ready(); time.sleep(60)
else:
    until("server0.pid"); until("server1.pid")
"""
    with Launcher(tmp_path, script, "--server_num", "2", "--worker_num=3", "--grace", "0.1") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    logs = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert logs == ["serverlog.0", "serverlog.1", "workerlog.0", "workerlog.1", "workerlog.2"]
    assert (tmp_path / "log" / "workerlog.2").read_text() == "worker2 ['--lr', '0.1']\n"
    assert (tmp_path / "log" / "serverlog.1").read_text() == "server1 ['--lr', '0.1']\nasked to end\n"


def test_servers_that_end_by_themselves_are_not_killed(tmp_path: Path) -> None:
    script = """
if server: until("worker0.pid"); print("served")
else: ready()
"""
    with Launcher(
        tmp_path, script, "--server_num=1", "--worker_num=1", "--grace=50", module="launch_ps"
    ) as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert (tmp_path / "logs" / "serverlog.0").read_text() == "served\n"


def test_an_error_of_the_script_ends_the_job_and_shows_the_log(tmp_path: Path) -> None:
    script = """
if server: ready(); time.sleep(60)
until("server0.pid")
if name == "worker1": raise ValueError("no such column")
time.sleep(60)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=2") as launcher:
        code, said = launcher.end()
        assert is_gone(launcher.pid("server0"))
    assert code == 1
    assert "worker 1 ended with exit code 1" in said
    assert "ValueError: no such column" in said
    assert "restart" not in said
    assert launcher.starts("worker1") == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to see it in")
def test_a_worker_that_stays_suspended_counts_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLELIKE_LEASE", "1")
    script = """
if name == "worker1" and start == 0: print("stops", flush=True); os.kill(os.getpid(), signal.SIGSTOP)
"""
    with Launcher(tmp_path, script, "--worker_num=2", "--run_mode=collective") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert launcher.starts("worker1") == 2
    assert "worker 1 was killed by SIGKILL" in said
    assert "  stopped (SIGSTOP) for 1 s, PADDLELIKE_LEASE: killed by the launcher" in said


def test_exit_code_75_restarts_the_whole_job(tmp_path: Path) -> None:
    script = """
if server: time.sleep(60)
if name == "worker1": until("worker0.done"); sys.exit()
print("start", start)
if start < 2: sys.exit(75)
Path("worker0.done").touch()
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=2", "--grace=1") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert launcher.starts("worker0") == 3
    assert "restart 1 of 3, of the whole job" in said
    assert "restart 2 of 3" in said
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert log == "start 0\n---- restart 1 ----\nstart 1\n---- restart 2 ----\nstart 2\n"


def test_an_error_of_the_script_is_not_retried_as_a_lost_peer(tmp_path: Path) -> None:
    script = """
ready()
if name == "worker0": until("worker1.pid"); sys.exit(75)
until("worker0.pid")
while Path("/proc/" + Path("worker0.pid").read_text()).exists(): time.sleep(0.02)
raise ValueError("no such column")
"""
    with Launcher(tmp_path, script, "--run_mode=collective", "--worker_num=2") as launcher:
        code, said = launcher.end()
    assert code == 1, said
    assert "ValueError: no such column" in said
    assert "restart" not in said


@pytest.mark.parametrize("victim", ["server0", "worker0", "worker1"])
def test_a_killed_process_restarts_the_whole_job(tmp_path: Path, victim: str) -> None:
    script = """
if not server and start: sys.exit()
ready(); time.sleep(60)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=2", "--grace=1") as launcher:
        before = {name: launcher.pid(name) for name in ("server0", "worker0", "worker1")}
        os.kill(before[victim], signal.SIGKILL)
        code, said = launcher.end()
        assert code == 0, said
        assert all(is_gone(pid) for pid in before.values())
    assert [launcher.starts(name) for name in before] == [2, 2, 2]
    assert f"{victim[:-1]} {victim[-1]} was killed by SIGKILL" in said


def test_restarts_are_counted_and_the_last_code_is_returned(tmp_path: Path) -> None:
    script = """
if server: time.sleep(60)
sys.exit(75)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1", "--max_restarts=2") as launcher:
        code, said = launcher.end()
    assert code == 75
    assert "no restart is left of 2" in said
    assert launcher.starts("worker0") == 3


def test_a_script_error_found_after_a_lost_server_is_the_reported_cause(tmp_path: Path) -> None:
    # The worker gives up because the server is dying, and is reported first.
    script = """
if start: time.sleep(0 if not server else 60); sys.exit()
if server: until("worker0.failed"); time.sleep(0.05); os.kill(os.getpid(), signal.SIGKILL)
Path("worker0.failed").touch(); sys.exit(1)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1", "--grace=1") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert "server 0 was killed by SIGKILL" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_signals_are_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    script = f"""
def end(*_): Path(name + ".ended").touch(); sys.exit(0)
signal.signal({int(number)}, end)
ready(); time.sleep(60)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1") as launcher:
        pids = [launcher.pid("server0"), launcher.pid("worker0")]
        launcher.process.send_signal(number)
        code, said = launcher.end()
    assert code == 128 + number
    assert f"{number.name}: asked 2 processes to end, within 10 s each; a second signal kills them" in said
    assert f"the job was ended by {number.name}" in said
    assert "Traceback" not in said
    assert (tmp_path / "server0.ended").exists()
    assert (tmp_path / "worker0.ended").exists()
    assert all(is_gone(pid) for pid in pids)


def test_a_second_signal_kills_the_processes(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGINT, lambda *_: Path(name + ".asked").touch())
ready(); time.sleep(60)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1", "--grace=50") as launcher:
        pids = [launcher.pid("server0"), launcher.pid("worker0")]
        launcher.process.send_signal(signal.SIGINT)
        wait_until(lambda: len(list(tmp_path.glob("*.asked"))) == 2, "both processes to be asked")
        launcher.process.send_signal(signal.SIGINT)
        code, said = launcher.end()
    assert code == 128 + signal.SIGINT
    assert "SIGINT again: killed 2 processes" in said
    assert all(is_gone(pid) for pid in pids)


def test_processes_that_ignore_a_signal_are_killed(tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready(); time.sleep(60)
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1", "--grace=0.2") as launcher:
        pids = [launcher.pid("server0"), launcher.pid("worker0")]
        launcher.process.terminate()
        code, _ = launcher.end()
        assert code == 128 + signal.SIGTERM
        assert all(is_gone(pid) for pid in pids)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux kills children with their parent")
def test_processes_die_with_the_launcher(tmp_path: Path) -> None:
    with Launcher(tmp_path, "ready(); time.sleep(60)", "--server_num=1", "--worker_num=1") as launcher:
        pids = [launcher.pid("server0"), launcher.pid("worker0")]
        launcher.process.kill()
        for pid in pids:
            wait_until(lambda pid=pid: is_gone(pid), "a process to die with its launcher")  # type: ignore[misc]


def test_children_of_a_process_end_with_it(tmp_path: Path) -> None:
    script = """
import subprocess
if server: sys.exit()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
Path("child.pid").write_text(str(child.pid))
"""
    with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    child = int((tmp_path / "child.pid").read_text())
    wait_until(lambda: is_gone(child), "the child of a worker that has ended to end")


def test_processes_share_a_secret_that_differs_from_job_to_job(tmp_path: Path) -> None:
    script = """
Path(name + ".token").write_text(os.environ["PADDLELIKE_JOB_TOKEN"])
"""
    seen = set()
    for _ in range(2):
        with Launcher(tmp_path, script, "--server_num=1", "--worker_num=1") as launcher:
            code, said = launcher.end()
        assert code == 0, said
        tokens = {(tmp_path / f"{name}.token").read_text() for name in ("server0", "worker0")}
        assert len(tokens) == 1
        seen |= tokens
    assert len(seen) == 2
    assert all(len(token) >= 32 for token in seen)


def test_a_server_that_ends_long_before_the_others_counts_as_lost(tmp_path: Path) -> None:
    # As one does that somebody else sent a SIGTERM.
    script = """
if name == "server1" and not start: sys.exit()
if server: time.sleep(60)
until("server1.starts")
while Path("server1.starts").read_text() != "2": time.sleep(0.02)
"""
    with Launcher(tmp_path, script, "--server_num=2", "--worker_num=1", "--grace=0.5") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert "server 1 ended long before the other servers" in said
    assert launcher.starts("server1") == 2


def test_servers_that_end_together_do_not_count_as_lost(tmp_path: Path) -> None:
    script = """
if server: until("closed")
else: Path("closed").touch(); time.sleep(4.5); print("evaluated")
"""
    with Launcher(tmp_path, script, "--server_num=2", "--worker_num=1", "--grace=2") as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert (tmp_path / "log" / "workerlog.0").read_text() == "evaluated\n"


def test_a_single_process_can_be_restarted(tmp_path: Path) -> None:
    script = """
ready()
print(os.environ["PADDLELIKE_RESUME_POLICY"])
if name == "worker0" and start < 2: os.kill(os.getpid(), signal.SIGKILL)
if name == "worker0": Path("done").touch()
else: until("done")
"""
    options = ["--server_num=1", "--worker_num=2", "--restart=process", "--max_restarts=2"]
    with Launcher(tmp_path, script, *options) as launcher:
        code, said = launcher.end()
    assert code == 0, said
    assert [launcher.starts(name) for name in ("worker0", "worker1", "server0")] == [3, 1, 1]
    assert "restart 2 of 2, of worker 0 alone" in said
    assert (tmp_path / "log" / "workerlog.1").read_text() == "rollback\n"


def test_restarts_of_a_process_are_counted(tmp_path: Path) -> None:
    script = """
if server: time.sleep(60)
sys.exit(75)
"""
    options = ["--server_num=1", "--worker_num=1", "--restart=process", "--max_restarts=2", "--grace=1"]
    with Launcher(tmp_path, script, *options) as launcher:
        code, said = launcher.end()
    assert code == 75, said
    assert launcher.starts("worker0") == 3
    assert launcher.starts("server0") == 1
