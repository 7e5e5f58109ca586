"""A parameter-server job in one thread, without a network: a second interpreter of transpiled programs.

Trainers run one after the other; their gradients are kept until all have run, then every server applies them,
block by block, with the ordinary executor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import paddlelike as fluid
from paddlelike.core import SelectedRows, VarType
from paddlelike.framework import Program


class Servers:
    """All servers of a job, each with its programs and its scope."""

    def __init__(self, programs: Mapping[str, tuple[Program, Program]]) -> None:
        self.exe = fluid.Executor()
        self.programs = {endpoint: main for endpoint, (main, _) in programs.items()}
        self.scopes = {endpoint: fluid.Scope() for endpoint in programs}
        for endpoint, (_, startup) in programs.items():
            self.exe.run(startup, scope=self.scopes[endpoint])

    def value(self, endpoint: str, name: str) -> Any:
        found = self.scopes[endpoint].find_var(name)
        assert found is not None, f"{endpoint} has no {name}"
        return np.array(found.get_tensor())

    def take(self, endpoint: str, name: str, value: Any) -> None:
        """Store a gradient under the name that the server expects."""
        expected = self.listening(endpoint).input("X")
        if name not in expected:
            name = f"{name}.trainer_0"  # what one trainer alone sends, in Fluid as well
        assert name in expected
        var = self.scopes[endpoint].var(name)
        if isinstance(value, SelectedRows):
            rows = var.get_selected_rows()
            rows.set_rows(value.rows())
            rows.set_height(value.height())
            rows.get_tensor().set(value.array)
        else:
            var.get_tensor().set(value)

    def listening(self, endpoint: str) -> Any:
        return self.programs[endpoint].global_block().ops[0]

    def apply(self) -> None:
        """Apply one round on every server."""
        for endpoint, program in self.programs.items():
            for number in self.listening(endpoint).attr("optimize_blocks"):
                self.exe.run(_block_alone(program, number), scope=self.scopes[endpoint])


def _block_alone(program: Program, number: int) -> Program:
    """Return a program with the operators of one block only."""
    copy = program.clone()
    top, block = copy.global_block(), copy.block(number)
    for var in block.vars.values():
        top._clone_variable(var, force_persistable=False)
    top.ops = [op.copy_into(top) for op in block.ops]
    for var in top.vars.values():
        var.persistable = True  # what arrived lies in the scope
    return copy


class Trainer:
    """One trainer, whose program runs without the operators that call servers."""

    def __init__(self, program: Program, startup: Program) -> None:
        self.exe = fluid.Executor()
        self.scope = fluid.Scope()
        self.program, self.startup = program, startup

    def start(self, servers: Servers) -> None:
        local = self._only(self.startup, without={"recv", "fetch_barrier", "concat", "fake_init"})
        self.exe.run(local, scope=self.scope)
        self._receive(self.startup, servers)
        self._receive(self.program, servers)  # tables of which it looks up rows

    def step(self, servers: Servers, feed: Mapping[str, Any], fetch: Sequence[str]) -> list[Any]:
        """Compute a step and send its gradients."""
        local = self._only(self.program, without=_TRAFFIC)
        sends = [op for op in self.program.global_block().ops if op.type == "send"]
        for op in sends:
            for name in op.input("X"):
                local.global_block().var(name).persistable = True  # so that it stays in the scope
        found = self.exe.run(local, feed=dict(feed), fetch_list=list(fetch), scope=self.scope)
        for op in sends:
            for name, endpoint in zip(op.input("X"), op.attr("epmap"), strict=True):
                servers.take(endpoint, name, self._sent(name))
        return found

    def _sent(self, name: str) -> Any:
        var = self.scope.find_var(name)
        assert var is not None
        if self.program.global_block().var(name).type == VarType.SELECTED_ROWS:
            return var.get_selected_rows()
        return np.array(var.get_tensor())

    def receive(self, servers: Servers) -> None:
        self._receive(self.program, servers)

    def _receive(self, program: Program, servers: Servers) -> None:
        received: dict[str, Any] = {}
        for op in program.global_block().ops:
            if op.type == "recv":
                for name, endpoint in zip(op.output("Out"), op.attr("epmap"), strict=True):
                    received[name] = servers.value(endpoint, name)
            elif op.type == "concat" and set(op.input("X")) <= set(received):
                received[op.output("Out")[0]] = np.concatenate([received[n] for n in op.input("X")])
            elif op.type == "distributed_lookup_table":
                where = zip(op.attr("table_names"), op.attr("endpoints"), strict=True)
                slices = [servers.value(endpoint, name) for name, endpoint in where]
                received[op.input("W")[0]] = np.concatenate(slices)
        for name, value in received.items():
            if not re.search(r"\.block\d+$", name):
                self.scope.var(name).get_tensor().set(value)

    def _only(self, program: Program, *, without: set[str]) -> Program:
        copy = program.clone()
        block = copy.global_block()
        pieces = {n for op in block.ops if op.type == "recv" for n in op.output("Out")}
        block.ops = [
            op
            for op in block.ops
            if op.type not in without and not (op.type == "concat" and set(op.input("X")) <= pieces)
        ]
        for op in [op for op in block.ops if op.type == "distributed_lookup_table"]:
            _look_up_here(block, op)
        return copy


def _look_up_here(block: Any, op: Any) -> None:
    """Replace a remote lookup by lookups in a table that was received whole."""
    at = op.idx
    block._remove_op(at)
    attrs = {"padding_idx": op.attr("padding_idx")}
    for ids, out in zip(op.input("Ids"), op.output("Outputs"), strict=True):
        block._insert_op(
            at, op.attr("lookup_table_version"), {"W": op.input("W"), "Ids": ids}, {"Out": out}, attrs
        )


_TRAFFIC = {"send", "send_barrier", "recv", "fetch_barrier"}
