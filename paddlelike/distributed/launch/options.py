"""The launcher's options, in the spellings of Fluid's launch_ps and of Paddle 2's launch."""

from __future__ import annotations

import argparse
from typing import Final

from paddlelike.distributed.launch.processes_plan import LOOPBACK, JobPlan, free_endpoints, port_endpoints
from paddlelike.distributed.launch.supervisor import RESTART
from paddlelike.distributed.option_parser import Parser

__all__ = ["DEFAULT_SERVERS", "DEFAULT_WORKERS", "make_parser", "plan_job"]

DEFAULT_SERVERS: Final = 2  # as Fluid's launch_ps
DEFAULT_WORKERS: Final = 2

_COLLECTIVE: Final = (
    "is for collective training, which is not supported; this launcher starts parameter servers"
)
_REFUSED: Final = {
    **dict.fromkeys(("--nnodes", "--nproc_per_node", "--master", "--ips", "--cluster_node_ips"), _COLLECTIVE),
    **dict.fromkeys(("--gpus", "--selected_gpus", "--devices"), "is for GPUs; trainers compute on CPUs here"),
    **dict.fromkeys(
        ("--with_gloo", "--gloo_port"), "is for gloo; processes synchronize at the parameter servers only"
    ),
    "--rank": "is not needed: name every endpoint with --servers and --trainers, on every machine alike",
}
_MISSING: Final = {"SCRIPT": "no script is given: name the script that every process runs, after the options"}

_DESCRIPTION: Final = """\
Start a training job on parameter servers: every server and every worker (trainer) is one process that runs
the same script. The script learns its role from environment variables, which are set in the spellings of
every version of Fluid (TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, ...). The launcher waits for the workers,
then ends the servers. Without further options all processes run on this machine, on free ports."""

_EPILOG: Final = f"""\
Restarts: a process that is killed, or that ends with exit code {RESTART}, means that the job can resume from
its last save; the launcher then ends the other processes and starts the whole job again, up to
--max_restarts times. A script that is to survive this begins by loading its last save. Any other exit code
ends the job.

Exit code: 0 when every worker ended with 0; else that of the process that failed (128 + N for signal N);
130 after Ctrl-C; 2 for an invalid command line.

Examples:
  python -m paddlelike.distributed.launch --server_num 2 --worker_num 2 train.py --epochs 3
  python -m paddlelike.distributed.launch --servers 10.0.0.1:6174,10.0.0.2:6174 \\
      --trainers 10.0.0.1:6180,10.0.0.2:6180 train.py          (the same command on both machines)
  python -m paddlelike.distributed.launch --engine ray --address 10.0.0.1:6379 train.py"""


def make_parser(program: str, log_dir: str) -> Parser:
    """Return the launcher's parser. ``program`` is its module, ``log_dir`` the default of --log_dir."""
    parser = Parser(
        prog=f"python -m {program}",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options] SCRIPT [arguments of the script]",
        refused=_REFUSED,
        missing=_MISSING,
    )
    _add_job(parser)
    _add_supervision(parser, log_dir)
    _add_engine(parser)
    parser.add_argument("training_script", metavar="SCRIPT", help="the script that every process runs")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def plan_job(parser: Parser, options: argparse.Namespace) -> JobPlan:
    """Return the job that the options ask for. Exits with code 2 where they contradict each other."""
    servers = options.servers
    count = options.server_num
    if servers and count is not None and count != len(servers):
        parser.error(f"--server_num {count}, but --servers lists {len(servers)}")
    if servers and options.start_port is not None:
        parser.error("--start_port chooses ports, and --servers names them: give one of the two")
    if not servers:
        count = DEFAULT_SERVERS if count is None else count
        start = options.start_port
        servers = free_endpoints(count) if start is None else port_endpoints(start, count)
    trainers = options.trainers
    workers = options.worker_num
    if trainers and workers is not None and workers != len(trainers):
        parser.error(f"--worker_num {workers}, but --trainers lists {len(trainers)}")
    if trainers:
        hosts = tuple(trainer.rpartition(":")[0] for trainer in trainers)
    else:
        hosts = (LOOPBACK,) * (DEFAULT_WORKERS if workers is None else workers)
    return JobPlan(servers, hosts, trainers)


def _add_job(parser: Parser) -> None:
    job = parser.add_argument_group("the job")
    job.add_argument(
        "--server_num",
        type=_process_count,
        metavar="N",
        help=f"how many servers to start; default: {DEFAULT_SERVERS}, or as many as --servers lists",
    )
    job.add_argument(
        "--worker_num",
        "--trainer_num",
        type=_process_count,
        metavar="N",
        help=f"how many workers to start; default: {DEFAULT_WORKERS}, or as many as --trainers lists",
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
        help="the endpoints of all workers; those on this machine are started here. No process connects to a "
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
        help="the port of the first server on 127.0.0.1; the others have the ports after it; default: free "
        "ports",
    )
    job.add_argument(
        "--run_mode", choices=["ps"], default="ps", help="ps: parameter servers, the only mode supported"
    )


def _add_supervision(parser: Parser, log_dir: str) -> None:
    group = parser.add_argument_group("logs, restarts and progress")
    group.add_argument(
        "--log_dir",
        default=log_dir,
        metavar="DIR",
        help="the directory of serverlog.N and workerlog.N, which each launch truncates; '' lets all "
        "processes write to the terminal; default: %(default)s",
    )
    group.add_argument(
        "--max_restarts",
        "--max_restart",
        type=_count,
        default=3,
        metavar="N",
        help="how often the job is started again after a process was killed or ended with 75; default: "
        "%(default)s",
    )
    group.add_argument(
        "--restart",
        choices=["job", "process"],
        default="job",
        help="what is started again: the whole job, or only the process, for scripts that roll back with the "
        "servers (by paddlelike.distributed.resumable_steps and saves below PADDLELIKE_CHECKPOINT_DIR); "
        "it sets PADDLELIKE_RESUME_POLICY=rollback; default: %(default)s",
    )
    group.add_argument(
        "--grace",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how long servers may take to end by themselves after the last worker, and any process after "
        "SIGTERM before it is killed; default: %(default)g",
    )
    group.add_argument(
        "--progress",
        action="store_true",
        help="show rounds and throughput of every server, and loss and last line of every worker's log: a "
        "table that is redrawn (in a terminal, with rich: pip install 'paddlelike[progress]'), or a line "
        "every 5 seconds",
    )


def _add_engine(parser: Parser) -> None:
    group = parser.add_argument_group("engine")
    group.add_argument(
        "--engine",
        choices=["local", "ray"],
        default="local",
        help="local: processes of this machine; ray: an actor per process on a Ray cluster, whose nodes have "
        "the script under the same path (pip install 'paddlelike[ray]'); default: %(default)s",
    )
    group.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="the Ray cluster, or auto for the one of this machine; default: a new one on this machine, for "
        "this job alone",
    )


def _endpoints(text: str) -> tuple[str, ...]:
    endpoints = tuple(entry.strip() for entry in text.split(","))
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise argparse.ArgumentTypeError(f"{endpoint!r} is not host:port")
    if len(set(endpoints)) < len(endpoints):
        raise argparse.ArgumentTypeError(f"{text} names an endpoint twice")
    return endpoints


def _integer(text: str, low: int, high: float, expected: str) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return int(text)


def _process_count(text: str) -> int:
    return _integer(text, 1, float("inf"), "a number of processes, 1 or more")


def _count(text: str) -> int:
    return _integer(text, 0, float("inf"), "a number, 0 or more")


def _port(text: str) -> int:
    return _integer(text, 1, 65535, "a port, 1 to 65535")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
