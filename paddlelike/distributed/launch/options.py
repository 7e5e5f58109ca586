"""The launcher's options, in the spellings of Fluid's launch_ps and of Paddle 2's launch."""

from __future__ import annotations

import argparse
import os
import textwrap
from typing import Final

from paddlelike.distributed.launch.processes_plan import LOOPBACK, JobPlan, free_endpoints, port_endpoints
from paddlelike.distributed.launch.slurm_and_ray import read_machines
from paddlelike.distributed.launch.supervisor import RESTART
from paddlelike.distributed.option_parser import Parser
from paddlelike.errors import RoleError

DEFAULT_SERVERS: Final = 2  # as Fluid's launch_ps
DEFAULT_WORKERS: Final = 2

DEFAULT_PORT: Final = 6070  # of Fluid's launch, for workers on several machines
_REFUSED: Final = {
    **dict.fromkeys(
        ("--nnodes", "--master"), "is not needed: give all machines the same complete --cluster_node_ips"
    ),
    **dict.fromkeys(
        ("--with_gloo", "--gloo_port"), "is not needed: workers find each other by JAX's runtime"
    ),
    "--rank": "is not needed: give all machines the same complete --servers and --trainers",
}
_MISSING: Final = {"SCRIPT": "no script is given: name the script that every process runs, after the options"}

_DESCRIPTION: Final = """\
Start a training job on parameter servers: every server and every worker (trainer) is one process that runs
the same script. The script learns its role from environment variables, which are set in the spellings of
every version of Fluid (TRAINING_ROLE, PADDLE_PSERVERS_IP_PORT_LIST, ...). The launcher waits for the workers,
then ends the servers. Without further options all processes run on this machine, on free ports. With
--run_mode collective, or an option of collective training, there are no servers: the workers add their
gradients up by JAX's distributed runtime (pip install 'paddlelike[jax]')."""

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
  python -m paddlelike.distributed.launch --engine ray --address 10.0.0.1:6379 train.py
  python -m paddlelike.distributed.launch --run_mode collective --nproc_per_node 4 train.py
  python -m paddlelike.distributed.launch --cluster_node_ips 10.0.0.1,10.0.0.2 --node_ip 10.0.0.1 \\
      --nproc_per_node 2 train.py               (with each machine's own --node_ip, PADDLELIKE_INSECURE=1)"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Fills the paragraphs of the description to the terminal's width; commands keep their lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filled = []
        for paragraph in text.split("\n\n"):
            lines = paragraph.splitlines()
            if any(line.startswith(" ") for line in lines):
                filled += [one for line in lines for one in self._wrap(line, width, indent)]
            else:
                filled += self._wrap(" ".join(lines), width, indent)
            filled.append("")
        return "\n".join(filled[:-1])

    def _wrap(self, line: str, width: int, indent: str) -> list[str]:
        inner = indent + " " * (len(line) - len(line.lstrip()))
        return textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent=inner + "    " * (inner > indent),
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def make_parser(program: str, log_dir: str, run_mode: str = "ps") -> Parser:
    """Return the launcher's parser.

    ``program`` is its module, ``log_dir`` the default of --log_dir, ``run_mode`` the default of --run_mode.
    """
    parser = Parser(
        prog=f"python -m {program}",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_Formatter,
        usage="%(prog)s [options]\n           SCRIPT [arguments of the script]",
        refused=_REFUSED,
        missing=_MISSING,
    )
    parser.set_defaults(default_mode=run_mode)
    _add_job(parser)
    _add_supervision(parser, log_dir)
    _add_engine(parser)
    parser.add_argument("training_script", metavar="SCRIPT", help="the script that every process runs")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def plan_job(parser: Parser, options: argparse.Namespace) -> JobPlan:
    """Return the job that the options describe. Exits with code 2 if they contradict each other."""
    if is_collective(parser, options):
        return _plan_workers(parser, options)
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


def is_collective(parser: Parser, options: argparse.Namespace) -> bool:
    """Return whether the job has workers only. Exits with code 2 if options for both kinds of jobs are
    given.
    """
    given = {
        "--nproc_per_node": options.nproc_per_node,
        "--selected_gpus": options.selected_gpus,
        "--cluster_node_ips": options.cluster_node_ips,
        "--elastic": options.elastic,
        "--use_paddlecloud": options.use_paddlecloud or None,
    }
    asked = [name for name, value in given.items() if value is not None]
    for_servers = options.servers or options.server_num is not None or options.restart == "process"
    default = "ps" if for_servers else options.default_mode
    mode = options.run_mode or ("collective" if asked else default)
    if mode == "ps" and asked:
        parser.error(f"{asked[0]} is for --run_mode collective")
    if mode == "collective" and (options.servers or options.server_num is not None):
        parser.error("collective training has no servers: leave --servers and --server_num out")
    if mode == "collective" and options.restart == "process":
        parser.error("--restart process is for parameter servers")
    placed = [
        *asked,
        *(name for name in ("servers", "trainers", "start_port", "host") if getattr(options, name)),
    ]
    if options.engine == "ray" and placed:
        parser.error(f"--engine ray places the processes itself: give their counts, not {placed[0]}")
    return mode == "collective"


def _plan_workers(parser: Parser, options: argparse.Namespace) -> JobPlan:
    devices = options.selected_gpus or ()
    if options.use_paddlecloud:
        options.cluster_node_ips = _read_cloud("PADDLE_TRAINERS", parser)
        options.host = _read_cloud("POD_IP", parser)[0]
    if not (options.cluster_node_ips or options.trainers or options.host or options.elastic):
        try:
            machines = read_machines(os.environ)
        except RoleError as error:
            parser.error(str(error))
        if machines is not None:
            options.cluster_node_ips, options.host = machines
    hosts = options.cluster_node_ips or (LOOPBACK,)
    counts = [options.nproc_per_node, options.worker_num, len(devices) or None]
    counts.append(None if options.elastic is None else options.elastic[1])
    found = {count for count in counts if count is not None}
    if len(found) > 1 or (options.trainers and (found or options.cluster_node_ips)):
        parser.error("several options set the number of workers: pass only one of them")
    if options.elastic is not None and len(hosts) > 1:
        parser.error("--elastic is for one machine")
    is_free = not options.trainers and hosts == (LOOPBACK,) and options.start_port is None
    if options.trainers:
        endpoints = options.trainers
    elif is_free:
        endpoints = free_endpoints(next(iter(found), DEFAULT_WORKERS), LOOPBACK)  # scripts say --node_ip
    else:
        start = DEFAULT_PORT if options.start_port is None else options.start_port
        ports = range(start, start + next(iter(found), DEFAULT_WORKERS))
        endpoints = tuple(f"{host}:{port}" for host in hosts for port in ports)
    return JobPlan((), tuple(one.rpartition(":")[0] for one in endpoints), endpoints, devices, is_free)


def _read_cloud(name: str, parser: Parser) -> tuple[str, ...]:
    """Return the hosts that a variable of PaddleCloud lists. Exits with code 2 where there are none."""
    try:
        return _items(os.environ.get(name, ""))
    except argparse.ArgumentTypeError as error:
        parser.error(f"--use_paddlecloud reads the variable {name}: {error}")


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
        help="the host in --servers and --trainers that is this machine; default: those with an address "
        "of this machine",
    )
    job.add_argument(
        "--start_port",
        "--started_port",
        type=_port,
        metavar="PORT",
        help="the port of the first server on 127.0.0.1; the others have the ports after it; default: free "
        "ports",
    )
    _add_collective(job)
    for ignored in ("--print_config", "--log_level"):  # of Fluid's launcher
        job.add_argument(ignored, help=argparse.SUPPRESS)


def _add_collective(job: argparse._ArgumentGroup) -> None:
    job.add_argument(
        "--run_mode",
        choices=["ps", "collective"],
        help="ps: parameter servers; collective: workers alone, the default with one of the options below",
    )
    job.add_argument(
        "--nproc_per_node",
        type=_process_count,
        metavar="N",
        help=f"collective: how many workers to start on each machine; default: {DEFAULT_WORKERS}",
    )
    job.add_argument(
        "--selected_gpus",
        "--gpus",
        "--devices",
        type=_items,
        metavar="N,...",
        help="collective: start a worker for each of these devices, with its number in FLAGS_selected_gpus",
    )
    job.add_argument(
        "--cluster_node_ips",
        "--ips",
        type=_items,
        metavar="HOST,...",
        help=f"collective: the machines of the job; their workers have the ports from {DEFAULT_PORT}, or "
        "--started_port, on. Slurm does not need it: srun --ntasks-per-node=1 with the launcher",
    )
    job.add_argument(
        "--use_paddlecloud",
        action="store_true",
        help="collective: the machines of the job are in PADDLE_TRAINERS, and this one in POD_IP",
    )
    job.add_argument(
        "--elastic",
        type=_range,
        metavar="MIN:MAX",
        help="collective: begin with MAX workers; after each failure go on with one less, down to MIN",
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
        help="the part that is started again: the whole job, or only the process, for scripts that roll back "
        "with the servers (by paddlelike.distributed.resumable_steps and saves below "
        "PADDLELIKE_CHECKPOINT_DIR); it sets PADDLELIKE_RESUME_POLICY=rollback; default: %(default)s",
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


def _items(text: str) -> tuple[str, ...]:
    items = tuple(entry.strip() for entry in text.split(","))
    if not all(items) or len(set(items)) < len(items):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of different names")
    return items


def _range(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not least.isdecimal() or not most.isdecimal() or not 0 < int(least) <= int(most):
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX, two numbers of workers")
    return int(least), int(most)


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
