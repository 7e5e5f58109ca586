"""The launcher's command line, in the spellings of Fluid's launch_ps and of Paddle 2's launch."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from paddlelike.distributed.launch.cluster import ray_job
from paddlelike.distributed.launch.local import LocalSlot
from paddlelike.distributed.launch.plan import (
    LOOPBACK,
    JobPlan,
    free_endpoints,
    is_loopback_job,
    is_this_machine,
    port_endpoints,
)
from paddlelike.distributed.launch.supervisor import RESTART, Slot, Supervisor
from paddlelike.distributed.launch.viewer import Viewer
from paddlelike.errors import PaddlelikeError, RoleError

__all__ = ["main"]

_DEFAULT_SERVERS: Final = 2  # as Fluid's launch_ps
_DEFAULT_WORKERS: Final = 2

_COLLECTIVE: Final = "is for collective training, which is not here; this launcher starts parameter servers"
_REFUSED: Final = {
    **dict.fromkeys(("--nnodes", "--nproc_per_node", "--master", "--ips", "--cluster_node_ips"), _COLLECTIVE),
    **dict.fromkeys(("--gpus", "--selected_gpus", "--devices"), "is for GPUs; trainers compute on CPUs here"),
    **dict.fromkeys(
        ("--with_gloo", "--gloo_port"), "is for gloo; servers are all that processes meet at here"
    ),
    "--rank": "is not needed: name every endpoint with --servers and --trainers, on every machine alike",
}

_DESCRIPTION: Final = """\
Start a training job on parameter servers: every server and every worker (trainer) is one process that runs
the same script. The script learns its part from environment variables, which are set in the spellings of
every version of Fluid (TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, ...). The launcher waits for the workers,
then ends the servers. Without further options all processes run on this machine, on free ports."""

_EPILOG: Final = f"""\
Restarts: a process that is killed, or that ends with exit code {RESTART}, means that the job can go on from
its last save; the launcher then ends the other processes and starts the whole job again, up to
--max_restarts times. A script that is to survive this begins by loading its last save. Any other exit code
ends the job.

Exit code: 0 when every worker ended with 0; else that of the process that failed (128 + N for signal N);
2 for a command line that makes no sense.

Examples:
  python -m paddlelike.distributed.launch --server_num 2 --worker_num 2 train.py --epochs 3
  python -m paddlelike.distributed.launch --servers 10.0.0.1:6174,10.0.0.2:6174 \\
      --trainers 10.0.0.1:6180,10.0.0.2:6180 train.py          (the same command on both machines)
  python -m paddlelike.distributed.launch --engine ray --address 10.0.0.1:6379 train.py"""


class _Parser(argparse.ArgumentParser):
    """Says of options that Paddle has why they are not here."""

    def error(self, message: str) -> NoReturn:
        for option, why in _REFUSED.items():
            if message.startswith("unrecognized arguments:") and option in message.replace("=", " ").split():
                message = f"{option} {why}"
        super().error(message)


def main(
    arguments: Sequence[str] | None = None,
    *,
    program: str = "paddlelike.distributed.launch",
    log_dir: str = "log",
) -> int:
    """Run the launcher; the exit code."""
    parser = _parser(program, log_dir)
    options = parser.parse_args(arguments)
    job = None if options.engine == "ray" else _job(parser, options)
    if options.engine == "ray" and (
        options.servers or options.trainers or options.start_port or options.host
    ):
        parser.error("--engine ray places the processes itself: give --server_num and --worker_num")
    if options.restart == "process":
        os.environ.setdefault("PADDLELIKE_RESUME_POLICY", "rollback")
    if options.engine == "local" and options.address is not None:
        parser.error("--address names a Ray cluster: it goes with --engine ray")
    if not Path(options.training_script).is_file():
        parser.error(f"the script {options.training_script} does not exist")
    command = [sys.executable, "-u", options.training_script, *options.training_script_args]
    logs = Path(options.log_dir) if options.log_dir else None
    with Viewer(live=options.progress, log_dir=logs) as viewer:
        try:
            engine = _on_ray if job is None else partial(_launch, job)
            return asyncio.run(engine(command, options, logs, viewer))
        except PaddlelikeError as error:
            viewer.tell(str(error))
            return 1


async def _on_ray(
    command: Sequence[str], options: argparse.Namespace, log_dir: Path | None, viewer: Viewer
) -> int:
    async with ray_job(
        servers=_DEFAULT_SERVERS if options.server_num is None else options.server_num,
        workers=_DEFAULT_WORKERS if options.worker_num is None else options.worker_num,
        command=command,
        log_dir=log_dir,
        address=options.address,
        viewer=viewer,
    ) as job:
        return await _supervise(job.slots, options, viewer, job.prepare)


async def _launch(
    job: JobPlan, command: Sequence[str], options: argparse.Namespace, log_dir: Path | None, viewer: Viewer
) -> int:
    environment = dict(os.environ)
    if is_loopback_job(job):
        # Other users of this machine can reach the ports, so that every job has a secret of its own.
        environment.setdefault("PADDLELIKE_JOB_TOKEN", secrets.token_hex(16))
    slots = [
        LocalSlot(plan, command, log_dir=log_dir, environment=environment)
        for plan in job.processes()
        if (is_this_machine(plan.host) if options.host is None else plan.host == options.host)
    ]
    if not slots:
        raise RoleError(
            f"no process of this job runs here: {options.host or 'this machine'} is none of the hosts "
            f"{', '.join(sorted({plan.host for plan in job.processes()}))}",
            hint="--host says which of them this machine is",
        )
    viewer.tell(f"servers {','.join(job.servers)}, {len(job.trainer_hosts)} workers" + _logs(log_dir))
    viewer.watch(job.servers, environment)
    return await _supervise(slots, options, viewer, shared=len(slots) < len(job.processes()))


async def _supervise(
    slots: Sequence[Slot],
    options: argparse.Namespace,
    viewer: Viewer,
    prepare: Callable[[], Awaitable[None]] | None = None,
    *,
    shared: bool = False,
) -> int:
    supervisor = Supervisor(
        slots,
        max_restarts=options.max_restarts,
        grace=options.grace,
        tell=viewer.tell,
        prepare=prepare,
        alone=options.restart == "process",
        shared=shared,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.interrupt, number)
    return await supervisor.run()


def _logs(log_dir: Path | None) -> str:
    return "" if log_dir is None else f"; logs: {log_dir}/serverlog.N, {log_dir}/workerlog.N"


def _job(parser: argparse.ArgumentParser, options: argparse.Namespace) -> JobPlan:
    """The job that the options ask for; a contradiction is an error of the command line."""
    servers = options.servers
    number = options.server_num
    if servers and number is not None and number != len(servers):
        parser.error(f"--server_num {number}, but --servers lists {len(servers)}")
    if servers and options.start_port is not None:
        parser.error("--start_port chooses ports, and --servers names them: give one of the two")
    if not servers:
        number = _DEFAULT_SERVERS if number is None else number
        start = options.start_port
        servers = free_endpoints(number) if start is None else port_endpoints(start, number)
    trainers = options.trainers
    count = options.worker_num
    if trainers and count is not None and count != len(trainers):
        parser.error(f"--worker_num {count}, but --trainers lists {len(trainers)}")
    if trainers:
        hosts = tuple(trainer.rpartition(":")[0] for trainer in trainers)
    else:
        hosts = (LOOPBACK,) * (_DEFAULT_WORKERS if count is None else count)
    return JobPlan(servers, hosts, trainers)


def _parser(program: str, log_dir: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"python -m {program}",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage="%(prog)s [options] SCRIPT [arguments of the script]",
    )
    job = parser.add_argument_group("the job")
    job.add_argument(
        "--server_num",
        type=_positive,
        metavar="N",
        help=f"how many servers to start; default: {_DEFAULT_SERVERS}, or as many as --servers lists",
    )
    job.add_argument(
        "--worker_num",
        "--trainer_num",
        type=_positive,
        metavar="N",
        help=f"how many workers to start; default: {_DEFAULT_WORKERS}, or as many as --trainers lists",
    )
    job.add_argument(
        "--servers",
        "--endpoints",
        type=_endpoints,
        default=(),
        metavar="HOST:PORT,...",
        help="the endpoints of all servers; those on this machine are started here",
    )
    job.add_argument(
        "--trainers",
        "--workers",
        type=_endpoints,
        default=(),
        metavar="HOST:PORT,...",
        help="the endpoints of all workers; those on this machine are started here. Nobody connects to a "
        "worker, so that only the hosts matter",
    )
    job.add_argument(
        "--host",
        "--node_ip",
        metavar="HOST",
        help="which of the hosts in --servers and --trainers this machine is; default: those with an address "
        "of this machine",
    )
    job.add_argument(
        "--start_port",
        type=_port,
        metavar="PORT",
        help="the port of the first server on 127.0.0.1, the next has the next one; default: free ports",
    )
    job.add_argument(
        "--run_mode", choices=["ps"], default="ps", help="ps: parameter servers, the only mode there is"
    )
    watching = parser.add_argument_group("watching it")
    watching.add_argument(
        "--log_dir",
        default=log_dir,
        metavar="DIR",
        help="where serverlog.N and workerlog.N go, begun anew with each launch; '' lets all processes "
        "write to the terminal; default: %(default)s",
    )
    watching.add_argument(
        "--max_restarts",
        "--max_restart",
        type=_count,
        default=3,
        metavar="N",
        help="how often the job is started again after a process was killed or asked for it; default: "
        "%(default)s",
    )
    watching.add_argument(
        "--restart",
        choices=["job", "process"],
        default="job",
        help="what is started again: the whole job, or only the process, for scripts that go back with the "
        "servers (by paddlelike.distributed.resumable_steps and saves below PADDLELIKE_CHECKPOINT_DIR); "
        "it sets PADDLELIKE_RESUME_POLICY=rollback; default: %(default)s",
    )
    watching.add_argument(
        "--grace",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long servers may take to end by themselves after the last worker, and any process after "
        "SIGTERM before it is killed; default: %(default)g",
    )
    watching.add_argument(
        "--progress",
        action="store_true",
        help="show rounds and throughput of every server, and loss and last line of every worker's log: a "
        "table that stays (in a terminal, with rich: pip install 'paddlelike[progress]'), or a line every "
        "5 seconds",
    )
    where = parser.add_argument_group("where it runs")
    where.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="local: processes of this machine; ray: an actor per process on a Ray cluster, whose nodes have "
        "the script under the same path (pip install 'paddlelike[ray]'); default: %(default)s",
    )
    where.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="the Ray cluster, or auto for the one of this machine; default: a new one on this machine, for "
        "this job alone",
    )
    parser.add_argument("training_script", metavar="SCRIPT", help="the script that every process runs")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _endpoints(text: str) -> tuple[str, ...]:
    endpoints = tuple(entry.strip() for entry in text.split(","))
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{endpoint!r} is not host:port")
    if len(set(endpoints)) < len(endpoints):
        raise argparse.ArgumentTypeError(f"{text} names an endpoint twice")
    return endpoints


def _whole(text: str, low: int, high: float, what: str) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _positive(text: str) -> int:
    return _whole(text, 1, float("inf"), "a number of processes, 1 or more")


def _count(text: str) -> int:
    return _whole(text, 0, float("inf"), "a number, 0 or more")


def _port(text: str) -> int:
    return _whole(text, 1, 65535, "a port, 1 to 65535")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
