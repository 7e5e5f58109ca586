"""Trainer 0 saves what servers keep while it is killed: tables that are sharded by id, and growing ones.

What the servers would send is computed here: every call of the saver is then one on files, and a kill at each
of them is possible. Jobs with connections are in ``tests/distributed/checkpoint/test_killed.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

import paddlelike as fluid
from paddlelike.distributed import growing_tables as tables
from paddlelike.distributed.checkpoint import partitions
from paddlelike.distributed.placement import Kind, Placement, Slice
from tests.crash.models import FOREIGN, Model
from tests.crash.networks import digest
from tests.distributed.jobs import SEED, Job, Network, Programs, sgd
from tests.helpers.fresh import fresh_programs

__all__ = ["SERVERS", "build", "make_programs", "read_servers", "save_set"]

ROWS, WIDTH, MET = 6000, 16, 2000
Array = np.ndarray[Any, Any]
Wanted = tuple[str, str]


def build() -> Any:
    """Return the loss of a network of a table sharded by id, and a growing one."""
    ids = fluid.data("ids", [None, 1], "int64")
    found = fluid.layers.embedding(
        ids, [ROWS, WIDTH], is_sparse=True, is_distributed=True, param_attr=fluid.ParamAttr(name="table")
    )
    grown = tables.sparse_embedding(ids, [1, WIDTH], param_attr=fluid.ParamAttr(name="emb"))
    return fluid.layers.mean(fluid.layers.fc([found, grown], 1))


_NETWORK = Network(build, sgd)


class _Servers:
    """The verbs that a save needs of servers which hold the set ``number``."""

    def __init__(self, placement: Placement, number: int) -> None:
        self._placement, self._number = placement, number

    def row_ids(self, wanted: Wanted) -> Array:
        """Return the ids met, one more in every set; a growing table has forgotten the first of them."""
        one = self._slice(wanted)
        met = np.random.default_rng(one.block).permutation(MET)
        ids = one.first_row + one.stride * np.append(met, np.arange(MET, MET + self._number))
        return ids[self._number :] if one.kind == Kind.GROWING else ids

    def pull(self, wanted: Sequence[Wanted]) -> list[Array]:
        """Return arrays that are of this set alone."""
        return [np.full(self._slice(one).shape, self._number, "float32") for one in wanted]

    def stream(self, wanted: Wanted, receiver: Callable[[], Any]) -> None:
        """Send rows that follow from their ids, but for a few that are of this set."""
        one, ids = self._slice(wanted), self.row_ids(wanted)
        count = len(ids) if one.kind == Kind.GROWING else one.rows
        rows = np.zeros((count, *one.whole[1:]), "float32")
        rows[: len(ids)] = ids.reshape(-1, 1)
        rows[5 : 5 + 2 * self._number] += self._number / 4
        into = receiver()
        into.place(0, 0, rows.nbytes)[:] = rows.tobytes()
        into.check()

    def save(self, directory: str, names: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        """Tell at which round every server is."""
        return {one: {"position": {"round": self._number}} for one in self._placement.endpoints}

    def _slice(self, wanted: Wanted) -> Slice:
        found = self._placement.find(*wanted)
        assert found is not None
        return found


def make_programs() -> tuple[fluid.Program, list[Programs]]:
    """Return the programs of trainer 0 and of two servers, which nobody starts."""
    job = Job(_NETWORK, servers=2, trainers=1)
    with fresh_programs(SEED):
        trainer = job.transpiler()[0].get_trainer_program(wait_port=False)
    return trainer, [job.server(one) for one in job.endpoints]


def save_set(trainer: fluid.Program, path: str, number: int, **options: Any) -> Any:
    """Save the set ``number`` as trainer 0 does, with the fc layer's weights of that set."""
    servers = _Servers(trainer._parameters_on_pservers, number)
    exe = fluid.Executor()
    connected = mock.patch.object(partitions, "connect_servers", return_value=servers)
    with fluid.scope_guard(fluid.Scope()), connected:
        for one in trainer.list_vars():
            if fluid.io.is_parameter(one) and one.name not in ("table", "emb"):
                fluid.global_scope().var(one.name).get_tensor().set(np.full(one.shape, number, "float32"))
        return fluid.io.save_persistables(exe, path, trainer, **options)


def read_servers(servers: list[Programs], path: str) -> int:
    """Return the digest of all that servers load."""
    found = {}
    for at, one in enumerate(servers):
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor()
            exe.run(one.startup)
            fluid.io.load_persistables(exe, path, one.main)
            for name in fluid.global_scope().local_var_names():
                value = fluid.global_scope().find_var(name).value
                if isinstance(value, fluid.core.SelectedRows):
                    found[f"{name} {at}"] = np.append(value.row_array, np.asarray(value.held_array).ravel())
                elif isinstance(value, fluid.LoDTensor) and value.array is not None:
                    found[f"{name} {at}"] = np.array(value)
    return digest(found)


def _model(name: str, seed: int, **options: Any) -> Model:
    trainer, servers = make_programs()
    with tempfile.TemporaryDirectory() as home:
        for number in range(3):
            save_set(trainer, f"{home}/{number}", number)
        digests = [read_servers(servers, f"{home}/{number}") for number in range(3)]

    def save(directory: str, number: int) -> None:
        save_set(trainer, directory, number, **options)

    def load(directory: str) -> int:
        return digests.index(read_servers(servers, directory))

    return Model(name, [], save, load, dict(FOREIGN))


SERVERS: Mapping[str, Callable[[int], Model]] = {
    "servers-deltas": partial(_model, "servers-deltas", delta=True)
}
