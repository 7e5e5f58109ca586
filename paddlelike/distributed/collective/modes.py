"""The modes nccl2 and collective of ``fluid.DistributeTranspiler``, which need no servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from paddlelike.core import VarType
from paddlelike.distributed.collective.transpiler import (
    Collective,
    GradAllReduce,
    LocalSGD,
    SingleProcessMultiThread,
)
from paddlelike.framework import Program

_TRANSPILERS: Final = {one.mode: one for one in (GradAllReduce, LocalSGD)}


class _Config(Protocol):
    """The options that are used of a DistributeTranspilerConfig."""

    mode: str
    collective_mode: str | None
    nccl_comm_num: int
    use_hierarchical_allreduce: bool
    hierarchical_allreduce_inter_nranks: int


def transpile_collective(
    config: _Config,
    main: Program,
    startup: Program,
    rank: int,
    trainers: int | str | Sequence[str],
    current_endpoint: str,
) -> None:
    """Change the programs of worker ``rank`` for the mode of ``config``.

    Raises
    ------
    TypeError, ValueError
        ``trainers`` are not the workers' endpoints, or another argument does not fit them.
    GraphError
        The program was transpiled before, or holds no updates.
    """
    if isinstance(trainers, int):
        raise TypeError(
            f"config.mode is {config.mode!r}: trainers is {trainers!r}, expected the endpoints of all "
            "workers, 'host:port,host:port'"
        )
    endpoints = trainers.split(",") if isinstance(trainers, str) else list(trainers)
    if config.mode == "nccl2":
        _append_gen_nccl_id(config, startup, rank, endpoints, current_endpoint)
        main._workers = len(endpoints)
        return
    transpiler: Collective
    if config.collective_mode == SingleProcessMultiThread.mode:
        transpiler = SingleProcessMultiThread()
    elif config.collective_mode in _TRANSPILERS:
        transpiler = _TRANSPILERS[config.collective_mode](config.nccl_comm_num)
    else:
        known = ", ".join(map(repr, [*_TRANSPILERS, SingleProcessMultiThread.mode]))
        raise ValueError(f"config.collective_mode is {config.collective_mode!r}, expected one of {known}")
    transpiler.transpile(startup, main, rank, endpoints, current_endpoint)


def _append_gen_nccl_id(
    config: _Config, startup: Program, rank: int, endpoints: list[str], current: str
) -> None:
    """Let the startup program join the job. The main program is unchanged; its compilation adds the sums."""
    if not isinstance(rank, int) or rank < 0 or endpoints[rank : rank + 1] != [current]:
        raise ValueError(
            f"trainer_id is {rank!r} and current_endpoint {current!r}, but trainers are "
            f"{', '.join(endpoints)}"
        )
    inter = config.hierarchical_allreduce_inter_nranks
    if config.use_hierarchical_allreduce and (inter < 2 or len(endpoints) % inter or len(endpoints) <= inter):
        raise ValueError(
            f"config.hierarchical_allreduce_inter_nranks is {inter}, expected a divisor of the "
            f"{len(endpoints)} workers from 2 on"
        )
    rings = range(config.nccl_comm_num)
    names = ["NCCLID", *(f"NCCLID_{ring}" for ring in rings[1:])]
    if config.use_hierarchical_allreduce:
        names += [f"Hierarchical_{part}_NCCLID_{ring}" for ring in rings for part in ("inter", "exter")]
    block = startup.global_block()
    created = [block.create_var(name=name, persistable=True, type=VarType.RAW) for name in names]
    block.append_op(
        "gen_nccl_id",
        {},
        {"NCCLID": created[0]},
        {
            "trainers": endpoints,
            "trainer_id": rank,
            "nccl_comm_num": config.nccl_comm_num,
            "use_hierarchical_allreduce": config.use_hierarchical_allreduce,
            "hierarchical_allreduce_inter_nranks": inter,
        },
    )
