"""Saves and loads of a distributed program in this process, a trainer's or a server's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddlelike.core import VarType, global_scope
from paddlelike.distributed.checkpoint.gather import Gathering, gather_files
from paddlelike.distributed.checkpoint.local import with_local_lookups
from paddlelike.distributed.checkpoint.servers import connect_servers, read_positions
from paddlelike.distributed.checkpoint.view import View
from paddlelike.distributed.placement import Kind, Placement, Slice
from paddlelike.distributed.server.position import note_empty_load, read_position
from paddlelike.errors import LoadError, PaddlelikeError, SaveError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Operator, Program, Variable
from paddlelike.io.calls import get_program_persistable_vars
from paddlelike.io.partition import LoadShare, Partition, SaveShare
from paddlelike.io.rules.rule import Init
from paddlelike.storage.local.manifest_file import manifest_path
from paddlelike.storage.location import is_remote, locate
from paddlelike.storage.options import SaveOptions

if TYPE_CHECKING:
    from paddlelike.executor.run import Executor


def find_distributed_partition(program: Program) -> Partition | None:
    """Return how to save and load ``program`` in this process, or None if it is not distributed."""
    placement, endpoint = find_placement(program), find_endpoint(program)
    if endpoint is not None:
        return ServerPartition(program, placement, endpoint)
    return None if placement is None else TrainerPartition(program, placement)


def find_placement(program: Program) -> Placement | None:
    """Return the placement that the transpiler put on the program, or None for an ordinary program."""
    found = program._parameters_on_pservers
    return found if isinstance(found, Placement) else None


def find_endpoint(program: Program) -> str | None:
    """Return the endpoint of the server whose main or startup program this is, or None for other programs."""
    block = program.global_block()
    for op in block.ops:
        if op.type == "listen_and_serv":
            return str(op.attrs["endpoint"])
    if find_placement(program) is None or program._ps_endpoint is None:
        return None
    if any(_is_of_trainer(op) for op in block.ops) or any(v.is_data for v in block.vars.values()):
        return None
    return program._ps_endpoint


def _is_of_trainer(op: Operator) -> bool:
    """Return whether only trainers' programs have this operator: it names servers, or is ``fake_init``."""
    return op.type == "fake_init" or any(op.attrs.get(name) for name in ("epmap", "endpoints"))


class ServerPartition:
    """A server's main or startup program: it loads its own rows; trainer 0 saves them."""

    takes_slices = True

    def __init__(self, program: Program, placement: Placement | None, endpoint: str) -> None:
        self._placement = placement
        self._endpoint = endpoint

    def plan_save(
        self, executor: Executor, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> SaveShare:
        raise SaveError(
            f"the program of parameter server {self._endpoint} is not saved by itself: it holds only the "
            "rows that this server keeps",
            hint="fluid.io.save_persistables(exe, dirname, trainer_program) on trainer 0 writes everything; "
            "save_inference_model exports the program that was given to transpile(), or the trainer's",
        )

    def localize(self, program: Program) -> Program:
        """Return the program unchanged; ``plan_save`` has already refused it."""
        return program

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        endpoint, placement = self._endpoint, self._placement
        if placement is None:
            raise LoadError(
                f"nothing was loaded from {where}: the program of parameter server {endpoint} has no "
                "placement, so the rows of this server are not known",
                hint="a program read from bytes has no placement: load with the one of "
                "DistributeTranspiler.get_pserver_program(endpoint)",
            )
        if endpoint not in placement.endpoints:
            raise LoadError(
                f"nothing was loaded from {where}: {endpoint} is not one of the parameter servers "
                f"{', '.join(placement.endpoints)}, so no rows are its own",
                hint="write the endpoint exactly as in transpile(pservers=...)",
            )
        own = placement.on(endpoint)
        rates = [one for one in own if one.kind == Kind.RATE]  # the script's count, as in Fluid
        slices = [one for one in own if one.kind != Kind.RATE]
        names = {one.name for one in slices}
        variables = [variable for variable in chosen if variable.name in names]
        if not slices:
            return self._load_nothing(where, placement)
        if not variables:
            raise LoadError(
                f"nothing was loaded from {where}: parameter server {endpoint} keeps "
                f"{_some(one.name for one in slices)}, and the load requests "
                f"{_some(variable.name for variable in chosen) or 'nothing'}",
                hint="load_persistables(exe, dirname, program) with the program of this server",
            )
        schedule = [one for one in slices if one.kind == Kind.SCHEDULE]
        others = placement.origins()
        return LoadShare(
            variables,
            lambda contents: View(contents, slices, others),
            tuple(Init(one.name, "keep") for one in schedule),  # Fluid itself saves none of these
            (*_notes(where, schedule), *_rate_notes(where, rates), *_position_notes(where, endpoint)),
            reader=f"the server at {endpoint}",
        )

    def _load_nothing(self, where: str, placement: Placement) -> LoadShare:
        """Return an empty load with a note, since having more servers than variables is not an error."""
        note = (
            f"parameter server {self._endpoint} keeps no variable at all, so it loads nothing from {where}: "
            f"there are {len(placement.endpoints)} servers for {len(placement.origins())} variables"
        )
        warn_user(note)
        note_empty_load(global_scope(), where)
        return LoadShare([], notes=(note,))


class TrainerPartition:
    """A trainer's program: trainer 0 saves everything, the others nothing."""

    takes_slices = False

    def __init__(self, program: Program, placement: Placement) -> None:
        self._program = program
        self._placement = placement

    def plan_save(
        self, executor: Executor, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> SaveShare:
        """Return the variables of this process and the files to gather; both are empty except on trainer 0.

        Raises SaveError where the servers of the program cannot be reached or lack a variable.
        """
        if not self._program._is_chief:
            return SaveShare([], idle=f"nothing was saved into {where}: trainer 0 saves for all trainers")
        names = {variable.name for variable in chosen}
        kinds = list(Kind)
        if self._is_synchronous():  # the last round brought the servers' values
            kinds.remove(Kind.PARAMETER)
        persistables = {v.name for v in get_program_persistable_vars(self._program)}
        if part == "params" or names < persistables:  # only what was requested by name
            gathered = sorted(names.intersection(self._placement.origins(*kinds)))
        else:
            gathered = self._placement.origins(*kinds)
        here = [variable for variable in chosen if variable.name not in set(gathered)]
        if not gathered:
            return SaveShare(here)
        if not options.blocking:
            raise SaveError(
                f"{where}: variables on servers cannot be saved while training continues; they would come "
                "from several rounds",
                hint="save with blocking=True",
            )
        by_servers, local = options.by_servers, not is_remote(where)
        if by_servers and not local:
            raise SaveError(
                f"{where}: servers write by themselves only into a directory that all can see",
                hint="save without by_servers=",
            )
        servers = connect_servers(executor, self._program)
        is_synchronous = self._is_synchronous()
        positions = read_positions(servers, is_synchronous=is_synchronous)
        how = Gathering(options.checksum, by_servers, local, joined=part == "params")
        if not is_synchronous:  # updates continue: count at least those in the values

            def recount() -> None:
                positions.update(read_positions(servers, is_synchronous=False))

            how = replace(how, after=recount)
        return SaveShare(here, gather_files(servers, self._placement, gathered, how), {"servers": positions})

    def _is_synchronous(self) -> bool:
        ops = self._program.global_block().ops
        return any(op.type == "send_barrier" and not op.attrs.get("half_async") for op in ops)

    def localize(self, program: Program) -> Program:
        """Return the program with local lookups in place of lookups on servers."""
        return with_local_lookups(program)

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        """Return the variables that a trainer loads itself; some, such as moving means, are on no server.

        Raises LoadError in the process of a parameter server, and where the trainer has no such variable.
        """
        role = os.environ.get("TRAINING_ROLE") or os.environ.get("PADDLE_TRAINING_ROLE")
        if role == "PSERVER":
            raise LoadError(
                f"nothing was loaded from {where}: this process is a parameter server (TRAINING_ROLE), and "
                "the program is a trainer's, so it does not have the rows of this server",
                hint="load_persistables(exe, dirname, get_pserver_program(endpoint)), or its startup program",
            )
        remote = set(self._placement.origins(Kind.REMOTE, Kind.TABLE, Kind.GROWING))
        variables = [variable for variable in chosen if variable.name not in remote]
        note = "a trainer takes its parameters from the servers; they load this directory by themselves"
        if not variables:
            raise LoadError(
                f"nothing was loaded from {where}: every requested variable is on the servers",
                hint="load with a server's program on each server",
            )
        return LoadShare(variables, notes=(note,))


def _notes(where: str, schedule: Sequence[Slice]) -> tuple[str, ...]:
    counters = [one.name for one in schedule if one.dtype == VarType.INT64]
    if not counters or is_remote(where) or Path(manifest_path(where)).exists():
        return ()
    note = (
        f"the directory has no manifest: if Fluid's trainer 0 saved this, {', '.join(counters)} differs from "
        "the value on the servers, and the learning rate's schedule begins again"
    )
    return (note,)


def _position_notes(where: str, endpoint: str) -> list[str]:
    """Return a note if the directory does not record the round in which it was saved."""
    position = read_position(where, endpoint)
    if position is not None and "round" in position:
        return []
    note = (
        f"{where} does not say at which round it was saved (a manifest of servers does): the server at "
        f"{endpoint} takes the round of the other servers, or begins at round 0"
    )
    return [note]


def _rate_notes(where: str, rates: Sequence[Slice]) -> list[str]:
    """Return a note for every learning rate of the directory that differs from the script's."""
    notes = []
    for one in rates:
        holder = global_scope().find_var(one.name)
        value = None if holder is None else getattr(holder.value, "held_array", None)
        try:
            with locate(where).open_file(one.name) as file:
                saved = lod_tensor.read(file.read()).held_array
        except (PaddlelikeError, OSError):
            continue  # real Fluid's trainer 0 does not save it
        if value is not None and saved is not None and not np.array_equal(value, saved.reshape(value.shape)):
            notes.append(
                f"learning rate {one.name!r} stays {value.reshape(-1)[0]:g}, as the script sets it; the "
                f"directory has {saved.reshape(-1)[0]:g}, which servers do not load (nor do Fluid's)"
            )
    return notes


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
