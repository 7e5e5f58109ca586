"""The launcher's command: checks the options, starts the job with its engine and returns the exit code."""

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

from paddlelike.distributed.launch.local import LocalSlot
from paddlelike.distributed.launch.options import (
    DEFAULT_SERVERS,
    DEFAULT_WORKERS,
    is_collective,
    make_parser,
    plan_job,
)
from paddlelike.distributed.launch.peers import Peers, watch_peers
from paddlelike.distributed.launch.processes_plan import JobPlan, is_loopback_job, is_this_machine
from paddlelike.distributed.launch.slurm_and_ray import ray_job
from paddlelike.distributed.launch.supervisor import Slot, Supervisor
from paddlelike.distributed.launch.viewer import Viewer
from paddlelike.errors import PaddlelikeError, RoleError
from paddlelike.foundation.amounts import format_count
from paddlelike.import_paddle import add_to_path


def main(
    arguments: Sequence[str] | None = None,
    *,
    program: str = "paddlelike.distributed.launch",
    log_dir: str = "log",
    run_mode: str = "ps",
) -> int:
    """Run the launcher and return its exit code. Exits with code 2 for an invalid command line.

    ``run_mode`` is the default kind of job.
    """
    parser = make_parser(program, log_dir, run_mode)
    options = parser.parse_args(arguments)
    if is_collective(parser, options) and options.engine == "ray":
        options.server_num = 0
    job = None if options.engine == "ray" else plan_job(parser, options)
    if options.restart == "process":
        os.environ.setdefault("PADDLELIKE_RESUME_POLICY", "rollback")
    if options.engine == "local" and options.address is not None:
        parser.error("--address names a Ray cluster: it needs --engine ray")
    if not Path(options.training_script).is_file():
        parser.error(f"the script {options.training_script} does not exist (looked in {Path.cwd()})")
    command = [sys.executable, "-u", options.training_script, *options.training_script_args]
    logs = Path(options.log_dir) if options.log_dir else None
    with Viewer(live=options.progress, log_dir=logs) as viewer:
        try:
            launch = _launch_on_ray if job is None else partial(_launch_locally, job)
            return asyncio.run(launch(command, options, logs, viewer))
        except PaddlelikeError as error:
            viewer.report(str(error))
            return 1
        except KeyboardInterrupt:  # before the signal handler was installed
            viewer.report("interrupted before the job was started")
            return 128 + signal.SIGINT


async def _launch_on_ray(
    command: Sequence[str], options: argparse.Namespace, log_dir: Path | None, viewer: Viewer
) -> int:
    async with ray_job(
        servers=DEFAULT_SERVERS if options.server_num is None else options.server_num,
        workers=DEFAULT_WORKERS if options.worker_num is None else options.worker_num,
        command=command,
        log_dir=log_dir,
        address=options.address,
        viewer=viewer,
    ) as job:
        return await _supervise(job.slots, options, viewer, job.prepare)


async def _launch_locally(
    job: JobPlan, command: Sequence[str], options: argparse.Namespace, log_dir: Path | None, viewer: Viewer
) -> int:
    environment = add_to_path(os.environ)  # for scripts with ``import paddle``
    if is_loopback_job(job):
        # Other users of this machine can connect to the ports, so every job gets its own secret.
        environment.setdefault("PADDLELIKE_JOB_TOKEN", secrets.token_hex(16))

    def make_slots(job: JobPlan) -> list[LocalSlot]:
        return [
            LocalSlot(plan, command, log_dir=log_dir, environment=environment)
            for plan in job.processes()
            if (is_this_machine(plan.host) if options.host is None else plan.host == options.host)
        ]

    slots = make_slots(job)
    if not slots:
        raise RoleError(
            f"no process of this job runs here: {options.host or 'this machine'} is not one of the hosts "
            f"{', '.join(sorted({plan.host for plan in job.processes()}))}",
            hint="--host says which of them this machine is",
        )
    workers = format_count(len(job.trainer_hosts), "worker")
    if not job.servers:
        logs = "" if log_dir is None else f"; logs: {log_dir}/workerlog.N"
        viewer.report(f"{workers} {','.join(job.trainer_endpoints)}{logs}")

        def replan() -> Sequence[Slot]:
            nonlocal job
            job = job.renew() if options.elastic is None else job.shrink(options.elastic[0]).renew()
            return make_slots(job)

        return await _supervise(slots, options, viewer, replan=replan)
    logs = "" if log_dir is None else f"; logs: {log_dir}/serverlog.N, {log_dir}/workerlog.N"
    viewer.report(f"servers {','.join(job.servers)}, {workers}{logs}")
    viewer.watch(job.servers, environment)
    here = {str(slot.plan) for slot in slots}
    others = [
        endpoint
        for endpoint, plan in zip(job.servers, job.processes(), strict=False)
        if str(plan) not in here
    ]
    if not others or options.restart == "process":
        return await _supervise(slots, options, viewer)
    async with watch_peers(others, environment) as peers:
        return await _supervise(slots, options, viewer, peers=peers)


async def _supervise(
    slots: Sequence[Slot],
    options: argparse.Namespace,
    viewer: Viewer,
    prepare: Callable[[], Awaitable[None]] | None = None,
    *,
    peers: Peers | None = None,
    replan: Callable[[], Sequence[Slot]] | None = None,
) -> int:
    supervisor = Supervisor(
        slots,
        max_restarts=options.max_restarts,
        grace=options.grace,
        report=viewer.report,
        notify=viewer.notify,
        prepare=prepare,
        restart_single=options.restart == "process",
        peers=peers,
        replan=replan,
    )
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signum, supervisor.interrupt, signum)
    return await supervisor.run()
