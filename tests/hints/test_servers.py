"""The advice of errors of jobs with parameter servers, which run in the threads of this process."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.distributed.client.client import Client
from paddlelike.distributed.client.description import describe
from paddlelike.distributed.growing_tables import sparse_embedding
from paddlelike.distributed.placement import Placement
from paddlelike.distributed.server import writing
from paddlelike.distributed.wire import Channel
from paddlelike.distributed.wire.token_file import VARIABLE
from paddlelike.formats.paddle import lod_tensor
from tests.distributed.checkpoint import test_tables as tables
from tests.distributed.checkpoint.jobs import SavingJob
from tests.distributed.checkpoint.test_operators import recv_save
from tests.distributed.checkpoint.test_tables import ROWS, SHARDS
from tests.distributed.jobs import MOMENTUM, SEED, Network, Programs, perceptron, perceptron_feeds
from tests.helpers.fresh import fresh_programs
from tests.hints.advice import Advice

pytestmark = pytest.mark.slow  # starts servers

pytest.importorskip("grpc", reason="grpcio is in the extra 'dist'")


def grow() -> fluid.Variable:
    """Return the loss of the network of the tables, with one that grows."""
    ids, y = fluid.data("ids", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1])
    rows = sparse_embedding(
        ids, [1, 8], param_attr=fluid.ParamAttr(name="table", initializer=tables.constant())
    )
    out = fluid.layers.fc(fluid.layers.sequence_pool(rows, "sum"), 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


GROWING = Network(grow, SHARDS.optimizer)
Act = Callable[[fluid.Executor, Programs, SavingJob], Any]


@pytest.fixture(autouse=True)
def own_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "token" / "job_token"))


def feed(network: Network, step: int) -> Any:
    return (perceptron_feeds if network is MOMENTUM else tables.feeds)(step, 0)


def in_job(act: Act, network: Network = MOMENTUM, kind: type[SavingJob] = SavingJob) -> Any:
    """Train a step by two servers and a trainer, and return what ``act`` returns in the trainer."""
    with kind(network, servers=2, trainers=1) as job:
        programs, exe = job.trainer(0), fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            try:
                exe.run(programs.startup)
                exe.run(programs.main, feed=feed(network, 0))
                return act(exe, programs, job)
            finally:
                exe.close()


def is_saved(job: SavingJob, path: str = "model") -> bool:
    """Return whether a directory holds what the servers hold."""
    saved, held = fluid.load_program_state(path), job.on_servers()
    return len(held) > 4 and all(np.array_equal(saved[name], value) for name, value in held.items())


def save(how: str = "", url: str = "model", kind: type[SavingJob] = SavingJob, **options: Any) -> Any:
    """Save by trainer 0, after a mistake; return whether all is saved."""

    def act(exe: fluid.Executor, programs: Programs, job: SavingJob) -> bool:
        program = programs.main
        if how == "rows cut":
            placement = program._parameters_on_pservers
            kept = [one for end in job.endpoints for one in placement.on(end) if one.block == 0]
            program._parameters_on_pservers = Placement(kept, endpoints=job.endpoints)
        elif how == "server":
            program = job.server(job.endpoints[0]).main
        fluid.io.save_persistables(exe, url, program, **options)
        return is_saved(job, url)

    return in_job(act, kind=kind)


def save_by_servers(how: str = "", **options: Any) -> Any:
    """Let servers write their rows, after a mistake; return whether all is saved."""
    folder = Path("elsewhere" if how == "outside" else ".").absolute()
    without = {"_parameters_on_pservers": None}

    class Unplaced(SavingJob):
        def server(self, endpoint: str) -> Programs:
            programs = super().server(endpoint)
            vars(programs.main).update(without)
            return programs

    with mock.patch.dict(os.environ, {"PADDLELIKE_CHECKPOINT_DIR": str(folder)}):
        return save(kind=Unplaced if how == "no placement" else SavingJob, **{"by_servers": True, **options})


def save_behind_url(network: Network, call: str, where: str = "", **options: Any) -> Any:
    """Save all of a job behind a URL, or into a folder; return whether a job resumes from it."""
    pytest.importorskip("fsspec", reason="fsspec is in the extra 'remote'")
    url = where or f"memory://{Path.cwd().parent.name}/model"

    def act(exe: fluid.Executor, programs: Programs, job: SavingJob) -> Any:
        getattr(fluid.io, call)(exe, url, programs.main, **options)
        if call == "save_persistables":
            return is_saved(job, url)
        (found,) = exe.run(programs.main, feed=feed(network, 0), fetch_list=[programs.loss.name])
        network_alone = Network(lambda: tables.embedded(is_distributed=False), network.optimizer)
        with fresh_programs(SEED):
            loss = network_alone.build()
            fluid.io.load_params(exe, url)
            (alone,) = exe.run(feed=feed(network, 0), fetch_list=[loss])
        return float(found) == pytest.approx(float(alone), rel=1e-5)

    return in_job(act, network)


def save_grown(*, is_forgotten: bool) -> Any:
    """Save a growing table whose servers forget a row meanwhile; return whether a job resumes from it."""
    row_ids = Client.row_ids

    def count_more(self: Client, *args: Any) -> Any:
        return np.append(row_ids(self, *args), 10**6)

    with mock.patch.object(Client, "row_ids", count_more if is_forgotten else row_ids):
        return compare_resumed(GROWING)


def load_combined(filename: str | None) -> Any:
    """Let servers load what one process saved into a file without a manifest, or into a file each."""
    losses = train_and_save(MOMENTUM)
    with fresh_programs(SEED) as (main, _):
        MOMENTUM.optimizer().minimize(MOMENTUM.build())
        exe = fluid.Executor()
        fluid.io.load_persistables(exe, "model", main)
        fluid.io.save_persistables(exe, "one", main, filename=filename)
    Path("one/__manifest__").unlink()
    if filename is None:
        return losses == resume(MOMENTUM, "one")
    return load_by_server(MOMENTUM, "one", filename=filename)


def serve(*, is_started: bool) -> Any:
    """Serve with or without the start values of a server; return whether its values are saved."""
    if is_started:
        return save()
    job = SavingJob(MOMENTUM, trainers=1)
    return fluid.Executor().run(job.server(job.endpoints[0]).main, scope=fluid.Scope())


def serve_alike(*, is_alike: bool) -> Any:
    """Serve with the same number of trainers on each server, or with two numbers."""

    class Unlike(SavingJob):
        def server(self, endpoint: str) -> Programs:
            self.trainers = 1 + (endpoint == self.endpoints[1])
            programs = super().server(endpoint)
            self.trainers = 1
            return programs

    return save(kind=SavingJob if is_alike else Unlike)


def describe_server(*, is_started: bool) -> Any:
    """Ask a server how many trainers it has."""
    if is_started:
        return in_job(lambda exe, programs, job: describe(Channel(job.endpoints[0]), 20.0).trainers)
    with socket.socket() as idle:
        idle.bind(("127.0.0.1", 0))  # nobody listens there
        return describe(Channel(f"127.0.0.1:{idle.getsockname()[1]}"), 0.0)


def save_values(by: str) -> Any:
    """Save a trainer's program by one of two functions; return whether a job resumes from it."""
    if by == "save_persistables":
        return compare_resumed()
    return in_job(lambda exe, programs, job: fluid.save(programs.main, "model"), SHARDS)


def save_between_steps(*, is_between: bool) -> Any:
    """Save while a server has applied a round more than the other, or while both wait."""
    asked = Client.save

    def ahead(self: Client, *args: Any) -> Any:
        answers = asked(self, *args)
        first, *_ = answers
        return answers | {first: {**answers[first], "position": {"round": 99}}}

    with mock.patch.object(Client, "save", asked if is_between else ahead):
        return save()


def run_recv_save(**attrs: Any) -> Any:
    """Write a variable into a file that exists; return whether the file holds the servers' values."""

    def act(exe: fluid.Executor, programs: Programs, job: SavingJob) -> bool:
        name, path = "fc_0.w_0_velocity_0", Path(attrs.pop("path", "first"))
        path.mkdir(exist_ok=True)
        exe.run(recv_save(programs, name, Path("first", name)))
        exe.run(programs.main, feed=feed(MOMENTUM, 1))
        exe.run(recv_save(programs, name, path / name, **attrs))
        saved = lod_tensor.read((path / name).read_bytes()).array
        return np.array_equal(saved, job.on_servers()[name])

    Path("first").mkdir(exist_ok=True)
    return in_job(act)


def export(how: str, network: Network = MOMENTUM, **options: Any) -> Any:
    """Export the network; return the difference of its loss from the next one of the training."""

    def act(exe: fluid.Executor, programs: Programs, job: SavingJob) -> float:
        program, fed = programs.main, feed(network, 0)
        if how == "server":
            program = job.server(job.endpoints[0]).main
        elif how == "original":
            with fresh_programs(SEED):
                network.build()
                program = fluid.default_main_program()
        elif how == "unnamed table":
            program._distributed_lookup_table = None
        loss = programs.loss if how == "server" else program.global_block().var(programs.loss.name)
        fluid.io.save_inference_model("model", list(fed), [loss], exe, program, **options)
        (trained,) = exe.run(programs.main, feed=fed, fetch_list=[programs.loss.name])
        with fluid.scope_guard(fluid.Scope()):
            loaded, _, targets = fluid.io.load_inference_model("model", exe)
            if how == "saved again":
                combined = {"params_filename": "all"}
                fluid.io.save_inference_model("again", list(fed), targets, exe, loaded, **combined)
                loaded, _, targets = fluid.io.load_inference_model("again", exe, **combined)
            (found,) = exe.run(loaded, feed=fed, fetch_list=targets)
        return abs(float(trained) - float(found))

    return in_job(act, network)


def save_where_servers_fail(fault: str, *, by_servers: bool, shared: bool = False) -> Any:
    """Let servers write their rows where they see another directory, or answer without their rows."""
    saves, opens = Client.save, writing.File

    def answer(self: Client, *args: Any) -> Any:
        answers = saves(self, *args)
        if fault == "bytes" and args[1]:  # this process sees another file of that name
            with Path(args[0], *args[1]).open("r+b") as file:
                file.seek(-4, os.SEEK_END)
                file.write(b"....")
        return {} if fault == "answers" else answers

    def miss(path: str) -> Any:
        raise FileNotFoundError(2, "No such file or directory", path)

    with (
        mock.patch.object(Client, "save", saves if shared else answer),
        mock.patch.object(writing, "File", miss if fault == "files" and not shared else opens),
    ):
        return save(by_servers=by_servers)


def load_other_table(rows: int) -> Any:
    """Resume from a table in shards by servers whose table has so many rows."""
    losses = train_and_save(SHARDS)
    with mock.patch.object(tables, "ROWS", rows):
        other = Network(SHARDS.build, SHARDS.optimizer)
        return load_by_server(other) if rows != ROWS else losses == resume(other)


def train_beside(mistake: Callable[[SavingJob], object]) -> Any:
    """Make a mistake in a job of one trainer; then train, and compare the losses with training alone."""
    with fresh_programs(SEED) as (main, startup):
        loss = MOMENTUM.build()
        MOMENTUM.optimizer().minimize(loss)
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.save_persistables(exe, "begin", main)
        alone = [float(exe.run(main, feed=feed(MOMENTUM, at), fetch_list=[loss])[0]) for at in range(3)]
    with SavingJob(MOMENTUM, servers=2, trainers=1, loaded="begin") as job:
        mistake(job)
        found = job.train_one(0, job.trainer(0), perceptron_feeds, 3)
    return found == pytest.approx(alone, rel=1e-5)


def train_narrower(job: SavingJob) -> None:
    """Train a network with half of the hidden units."""
    other = SavingJob(Network(lambda: perceptron(64), MOMENTUM.optimizer), trainers=1)
    other.endpoints = job.endpoints
    job.train_one(0, other.trainer(0), perceptron_feeds, 1)


def push_one_gradient(job: SavingJob) -> None:
    """Push one of the gradients that a server waits for."""
    trainer = Client(0, job.endpoints)
    try:
        trainer.stage(job.endpoints[0], "fc_0.b_0@GRAD", np.zeros(128, "float32"))
        trainer.push()
    finally:
        trainer.abandon()


def train_and_save(network: Network, **options: Any) -> Any:
    """Save before the second of three steps; return the losses from there."""
    with SavingJob(network, servers=2, trainers=1) as job:
        ((_, *losses),) = job.go(lambda step, _: feed(network, step), 0, 3, save=(1, "model"), **options)
    return losses


def resume(network: Network, loaded: str = "model", **options: Any) -> Any:
    """Resume the training from a save; return the losses."""
    with SavingJob(network, servers=2, trainers=1, loaded=loaded, **options) as job:
        return job.go(lambda step, _: feed(network, step), 1, 3)[0]


def compare_resumed(network: Network = SHARDS, **options: Any) -> bool:
    return train_and_save(network) == resume(network, **options)


def load_by_trainer(network: Network, variables: list[str], role: str = "TRAINER") -> Any:
    """Load a save into the program of a trainer."""

    def act(exe: fluid.Executor, programs: Programs, job: SavingJob) -> Any:
        fluid.io.save_persistables(exe, "model", programs.main)
        with mock.patch.dict(os.environ, {"TRAINING_ROLE": role}):
            return fluid.io.load_vars(exe, "model", programs.main, vars=variables)

    return in_job(act, network)


def load_by_server(network: Network = SHARDS, path: str = "model", **options: Any) -> Any:
    """Load what is in the directory into each server of a job that is not started."""
    job = SavingJob(network, servers=2, trainers=1)
    for endpoint in job.endpoints:
        programs, exe = job.server(endpoint), fluid.Executor()
        with fluid.scope_guard(fluid.Scope()):
            exe.run(programs.startup)
            fluid.io.load_persistables(exe, path, programs.main, **options)


def load_changed(change: str, **options: Any) -> Any:
    """Load a save of a table in shards after a change of its files."""
    losses = train_and_save(SHARDS)
    shards = Path("model/__lookup_table__")
    if "doubled" in change:
        Path("model/__manifest__").unlink()
        shutil.copy(shards / "table_0", shards / "table_1")
    if "whole" in change:
        shutil.copy("model/fc_0.w_0", "model/table")
    if "removed" in change:
        Path("model/table").unlink()
    if change in ("whole, then removed", ""):
        return losses == resume(SHARDS)
    return load_by_server(**options)


ADVICE: dict[str, Advice] = {
    "rows on servers in one file": Advice(
        lambda: export("trainer", SHARDS, params_filename="all"),
        "export without params_filename=, or load the export and save it again",
        lambda: [export(how, SHARDS) for how in ("trainer", "saved again")],
        [0, 0],
    ),
    "servers that do not see the files": Advice(
        lambda: save_where_servers_fail("files", by_servers=True),
        "servers save by themselves only into a directory that all processes see; else save without by_servers=",
        lambda: [
            save_where_servers_fail("files", by_servers=True, shared=True),
            save_where_servers_fail("files", by_servers=False),
        ],
        [True, True],
    ),
    "a trainer that sees other bytes": Advice(
        lambda: save_where_servers_fail("bytes", by_servers=True),
        "do all processes see the same directory? Otherwise save without by_servers=",
        lambda: [
            save_where_servers_fail("bytes", by_servers=True, shared=True),
            save_where_servers_fail("bytes", by_servers=False),
        ],
        [True, True],
    ),
    "servers that did not write": Advice(
        lambda: save_where_servers_fail("answers", by_servers=True),
        "do all programs come from one transpile()? Otherwise save without by_servers=",
        lambda: [
            save_where_servers_fail("answers", by_servers=True, shared=True),
            save_where_servers_fail("answers", by_servers=False),
        ],
        [True, True],
    ),
    "a smaller table": Advice(
        lambda: load_other_table(10),
        "does the table have as many rows as when it was saved?",
        lambda: load_other_table(ROWS),
        True,
    ),
    "a trainer of another network": Advice(
        lambda: train_beside(train_narrower),
        "trainers and servers must be transpiled from the same network in the same way",
        lambda: train_beside(lambda job: None),
        True,
    ),
    "a step without all gradients": Advice(
        lambda: train_beside(push_one_gradient),
        "every run of the trainer's program must compute and send every gradient",
        lambda: train_beside(lambda job: None),
        True,
    ),
    "a placement without some rows": Advice(
        lambda: save("rows cut"),
        "save with the trainer's program as the transpiler made it",
        lambda: save(),
        True,
    ),
    "a file that exists": Advice(
        lambda: run_recv_save(overwrite=False),
        "set overwrite=True or another file_path",
        lambda: [run_recv_save(overwrite=True), run_recv_save(overwrite=False, path="second")],
        [True, True],
    ),
    "an export of a server's program": Advice(
        lambda: export("server"),
        "save_inference_model exports the program that was given to transpile(), or the trainer's",
        lambda: [export("trainer"), export("original")],
        [0, 0],
    ),
    "a table that the program does not name": Advice(
        lambda: export("unnamed table", SHARDS),
        "save with the program of DistributeTranspiler.get_trainer_program()",
        lambda: export("trainer", SHARDS),
        0,
    ),
    "a save of a server's program": Advice(
        lambda: save("server"),
        "fluid.io.save_persistables(exe, dirname, trainer_program) on trainer 0 writes everything",
        lambda: save(),
        True,
    ),
    "a table loaded by a trainer": Advice(
        lambda: load_by_trainer(SHARDS, ["table"]),
        "load with a server's program on each server",
        lambda: compare_resumed(),
        True,
    ),
    "a trainer's program in a server": Advice(
        lambda: load_by_trainer(MOMENTUM, ["fc_0.w_0"], "PSERVER"),
        "load_persistables(exe, dirname, get_pserver_program(endpoint)), or its startup program",
        lambda: [compare_resumed(MOMENTUM, form=form) for form in ("main", "startup")],
        [True, True],
    ),
    "a background save of servers": Advice(
        lambda: save(blocking=False),
        "save with blocking=True",
        lambda: save(blocking=True),
        True,
    ),
    "rounds that differ": Advice(
        lambda: save_between_steps(is_between=False),
        "save between two steps",
        lambda: save_between_steps(is_between=True),
        True,
    ),
    "servers that write behind a URL": Advice(
        lambda: save_behind_url(MOMENTUM, "save_persistables", by_servers=True),
        "save without by_servers=",
        lambda: save_behind_url(MOMENTUM, "save_persistables"),
        True,
    ),
    "a table joined behind a URL": Advice(
        lambda: save_behind_url(SHARDS, "save_params"),
        "save it into a local directory first",
        lambda: save_behind_url(SHARDS, "save_params", "model"),
        True,
    ),
    "servers that write elsewhere": Advice(
        lambda: save_by_servers("outside"),
        "start the server with PADDLELIKE_CHECKPOINT_DIR=DIR and save below DIR; or save without "
        "by_servers=, then trainer 0 writes everything",
        lambda: [save_by_servers(), save_by_servers("outside", by_servers=False)],
        [True, True],
    ),
    "a server without a placement": Advice(
        lambda: save_by_servers("no placement"),
        "serve the program of get_pserver_program(), or save without by_servers=",
        lambda: [save_by_servers(), save()],
        [True, True],
    ),
    "rows that are forgotten": Advice(
        lambda: save_grown(is_forgotten=True),
        "call shrink and clear between saves, with all trainers waiting",
        lambda: save_grown(is_forgotten=False),
        True,
    ),
    "a combined file without names": Advice(
        lambda: load_combined("all"),
        "save the variables without filename=, a file each, for parameter servers",
        lambda: load_combined(None),
        True,
    ),
    "a server without start values": Advice(
        lambda: serve(is_started=False),
        "run its startup program first: t.get_startup_program(endpoint, pserver_program)",
        lambda: serve(is_started=True),
        True,
    ),
    "servers of two jobs": Advice(
        lambda: serve_alike(is_alike=False),
        "give all processes the same list of servers and the same number of trainers",
        lambda: serve_alike(is_alike=True),
        True,
    ),
    "a server that does not describe itself": Advice(
        lambda: describe_server(is_started=False),
        "start the server, or give it more time by FLAGS_rpc_deadline (ms)",
        lambda: describe_server(is_started=True),
        1,
    ),
    "values that servers keep": Advice(
        lambda: save_values("save"),
        "servers keep it: fluid.io.save_persistables(exe, dirname, program) on trainer 0 writes it",
        lambda: save_values("save_persistables"),
        True,
    ),
    "ids of another shard": Advice(
        lambda: load_changed("doubled"),
        "load a save that holds every shard",
        lambda: load_changed(""),
        True,
    ),
    "a whole table beside its shards": Advice(
        lambda: load_changed("whole"),
        "remove the older of the two: one process saves a whole table, servers save shards",
        lambda: load_changed("whole, then removed"),
        True,
    ),
}


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
def test_following_a_hint_of_servers_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
