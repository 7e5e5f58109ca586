"""``fluid.transpiler.collective``: puts collective operators into a training program.

Every worker has the whole program. GradAllReduce adds the gradients up over the workers, so that all make the
same update; LocalSGD lets every worker update, then takes the mean of the changes. The programs are those
that Fluid 1.8.5 makes, operator by operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from paddlelike import unique_name
from paddlelike.core import VarType
from paddlelike.distributed.collective.sharding import Sharding
from paddlelike.errors import GraphError
from paddlelike.framework import (
    Block,
    Operator,
    OpRole,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
)

_ROLE: Final = "op_role"
_SNAPSHOT: Final = "@SNAPSHOT"


class Collective:
    """Base class of the transpilers: workers join the job, then take the parameters of worker 0.

    Parameters
    ----------
    nrings
        The number of rings. The programs name them as Fluid's do; one connection carries all of them.
    """

    mode = ""

    def __init__(self, nrings: int) -> None:
        self.nrings = nrings
        self.nranks = self.rank = 0
        self.endpoints: list[str] = []
        self.current_endpoint = ""
        self.startup_program = self.main_program = Program()

    def transpile(
        self,
        startup_program: Program | None,
        main_program: Program | None,
        rank: int,
        endpoints: str | Sequence[str],
        current_endpoint: str,
        wait_port: bool = True,
    ) -> None:
        """Change a training program, and the startup program that initializes it, for worker ``rank``.

        Parameters
        ----------
        startup_program, main_program
            The default programs when None.
        rank
            The index of this worker.
        endpoints
            The endpoints of all workers, as a list or with commas between them; the same in all workers.
        current_endpoint
            The endpoint of this worker.
        wait_port
            No effect: workers wait for each other when they run the startup program.

        Raises
        ------
        ValueError
            There is one worker only, or ``rank`` and ``current_endpoint`` do not fit ``endpoints``.
        GraphError
            The program was transpiled before, or holds no updates.
        """
        startup = default_startup_program() if startup_program is None else startup_program
        main = default_main_program() if main_program is None else main_program
        found = (
            [one.strip() for one in endpoints.split(",")] if isinstance(endpoints, str) else list(endpoints)
        )
        self._check(found, rank, current_endpoint)
        for program in (main, startup):
            if is_transpiled(program):
                raise GraphError(
                    f"{type(self).__name__}: this program was transpiled before",
                    hint="build the network again, in a program of its own, to transpile it differently",
                )
        self.startup_program, self.main_program = startup, main
        self.nranks, self.rank = len(found), rank
        self.endpoints, self.current_endpoint = found, current_endpoint
        self._transpile_startup_program()
        self._transpile_main_program()

    def _check(self, endpoints: list[str], rank: int, current: str) -> None:
        if len(endpoints) < 2:
            raise ValueError(f"{type(self).__name__} needs two endpoints or more, got {endpoints}")
        if len(set(endpoints)) < len(endpoints):
            raise ValueError(f"{type(self).__name__}: endpoints name a worker twice: {endpoints}")
        if current not in endpoints:
            raise ValueError(f"the current endpoint {current!r} is not among {', '.join(endpoints)}")
        if not isinstance(rank, int) or rank < 0 or endpoints[rank : rank + 1] != [current]:
            raise ValueError(
                f"rank is {rank!r}, but the current endpoint {current!r} is number "
                f"{endpoints.index(current)} of {', '.join(endpoints)}"
            )

    def _transpile_startup_program(self) -> None:
        block = self.startup_program.global_block()
        for ring in range(self.nrings):
            self._join(block, ring)
        params = self._list_parameters(block)
        for index, param in enumerate(params):
            attrs = {"ring_id": index % self.nrings, "root": 0, _ROLE: OpRole.Forward}
            block.append_op("c_broadcast", {"X": param}, {"Out": param}, attrs)
        last = list(block.iter_parameters())[-1]  # as Fluid, whether it is broadcast or not
        _append_syncs(block, last, self.nrings, OpRole.Forward)

    def _join(self, block: Block, ring: int) -> None:
        others = [one for one in self.endpoints if one != self.current_endpoint]
        id_variable = block.create_var(
            name=unique_name.generate("nccl_id"), persistable=True, type=VarType.RAW
        )
        attrs: dict[str, Any] = {"rank": self.rank, _ROLE: OpRole.Forward}
        where = {"endpoint": self.current_endpoint, "other_endpoints": others}
        block.append_op("c_gen_nccl_id", {}, {"Out": id_variable}, attrs | where)
        block.append_op(
            "c_comm_init", {"X": id_variable}, {}, attrs | {"nranks": self.nranks, "ring_id": ring}
        )

    def _transpile_main_program(self) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _transpile_main_program()")

    @staticmethod
    def _list_parameters(block: Block) -> list[Variable]:
        found: list[Variable] = [one for one in block.iter_parameters() if not one.is_distributed]
        if not found:
            raise GraphError(
                "the startup program initializes no parameters",
                hint="pass the startup program of the network that is trained",
            )
        return found


class GradAllReduce(Collective):
    """Adds up the gradients of all workers. The loss is divided by their number, which gives the mean
    gradient.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
    >>> GradAllReduce(nrings=1).transpile(None, None, 0, "127.0.0.1:6170,127.0.0.1:6171", "127.0.0.1:6170")
    >>> [op.type for op in fluid.default_main_program().global_block().ops][-4:]
    ['c_allreduce_sum', 'c_sync_comm_stream', 'sgd', 'sgd']
    """

    mode = "grad_allreduce"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)

    def _transpile_main_program(self) -> None:
        block = self.main_program.global_block()
        scale_loss_gradient(block, self.nranks)
        ring = -1
        last: Variable | None = None
        for index, op in _reversed(block):
            names = op.attrs.get("op_role_var") or () if _has_role(op, OpRole.Backward) else ()
            pairs = list(zip(names[::2], names[1::2], strict=True))
            kept = [(p, g) for p, g in pairs if not block.vars[p].is_distributed]  # type: ignore[attr-defined]
            if pairs:
                last = block.vars[pairs[-1][1]]
            at = index + 1
            for number, (_, gradient) in enumerate(kept):
                grad = block.vars[gradient]
                if number == 0:
                    attrs: dict[str, Any] = {_ROLE: OpRole.Backward}
                    block._insert_op(at, "c_sync_calc_stream", {"X": grad}, {"Out": grad}, attrs)
                    at += 1
                ring = (ring + 1) % self.nrings
                attrs = {"ring_id": ring, _ROLE: OpRole.Backward}
                block._insert_op(at, "c_allreduce_sum", {"X": grad}, {"Out": grad}, attrs)
        at = _find_update(block)
        if last is not None and at < len(block.ops):
            _append_syncs(block, last, self.nrings, OpRole.Backward, at=at)


class LocalSGD(Collective):
    """Lets each worker update its parameters, then applies the mean of all changes to the common ones.

    Fluid does so after every step.
    """

    mode = "local_sgd"

    def __init__(self, nrings: int = 2) -> None:
        super().__init__(nrings)

    @staticmethod
    def snapshot_name(param_name: str) -> str:
        """Return the name of the variable that keeps a parameter's value after the last exchange."""
        return param_name + _SNAPSHOT

    def _transpile_startup_program(self) -> None:
        super()._transpile_startup_program()
        block = self.startup_program.global_block()
        for param in self._list_parameters(block):
            snapshot = self._create_snapshot(block, param)
            block.append_op("assign", {"X": [param]}, {"Out": [snapshot]}, {_ROLE: OpRole.Forward})

    def _create_snapshot(self, block: Block, param: Variable) -> Variable:
        return block.create_var(
            name=self.snapshot_name(param.name), shape=param.shape, persistable=True, stop_gradient=True
        )

    def _transpile_main_program(self) -> None:
        block = self.main_program.global_block()
        pairs: list[tuple[Variable, Variable]] = []
        ring = -1
        role: dict[str, Any] = {_ROLE: OpRole.Optimize}
        for index, op in _reversed(block):
            if not all(slot in op.inputs for slot in ("Param", "Grad", "LearningRate")):
                continue
            param = block.vars[op.input("Param")[0]]
            if param.is_distributed:  # type: ignore[attr-defined]
                continue
            snapshot = self._create_snapshot(block, param)
            ring = (ring + 1) % self.nrings
            changed = {"X": [param]}, {"Out": [param]}
            block._insert_op(
                index + 1, "elementwise_sub", {"X": [snapshot], "Y": [param]}, {"Out": [param]}, role
            )
            block._insert_op(index + 2, "c_sync_calc_stream", *changed, role)
            block._insert_op(index + 3, "c_allreduce_sum", *changed, role | {"ring_id": ring})
            pairs.append((param, snapshot))
        if not pairs:
            raise GraphError(
                "LocalSGD: the program holds no updates of parameters",
                hint="call minimize() of an optimizer first",
            )
        _append_syncs(block, pairs[-1][0], self.nrings, OpRole.Optimize)
        for param, snapshot in reversed(pairs):
            block.append_op("scale", {"X": [param]}, {"Out": [param]}, role | {"scale": 1.0 / self.nranks})
            block.append_op("elementwise_sub", {"X": [snapshot], "Y": [param]}, {"Out": [param]}, role)
            block.append_op("assign", {"X": [param]}, {"Out": [snapshot]}, role)


class SingleProcessMultiThread(GradAllReduce):
    """The programs of GradAllReduce for the threads of one process. They are built but cannot run here."""

    mode = "single_process_multi_thread"

    def __init__(self) -> None:
        super().__init__(1)

    def _check(self, endpoints: list[str], rank: int, current: str) -> None:
        """Accept any endpoints."""

    def _transpile_startup_program(self) -> None:
        self.startup_program.global_block().append_op("c_comm_init_all", attrs={"ring_id": 0, "devices": []})


def is_transpiled(program: Program) -> bool:
    """Return whether a program already joins a job or adds up gradients in place.

    Sums of other variables may belong to the network, in layers whose parameters are split over the workers.
    """
    return any(
        op.type == "c_comm_init"
        or (op.type == "c_allreduce_sum" and op.attrs.get(_ROLE, 0) and op.input("X") == op.output("Out"))
        for op in program.global_block().ops
    )


def scale_loss_gradient(block: Block, workers: int) -> None:
    """Divide the initial gradient of the backward pass by the number of workers."""
    for index, op in _reversed(block):
        if _has_role(op, OpRole.Backward) and _has_role(op, OpRole.Loss):
            grad = block.vars[op.output_arg_names[0]]
            attrs = {"scale": 1.0 / workers, _ROLE: OpRole.Backward}
            block._insert_op(index + 1, "scale", {"X": grad}, {"Out": grad}, attrs)


def add_up_gradients(block: Block, gradients: Sequence[str], sharding: Sharding | None = None) -> None:
    """Add gradients up over the workers before the first update, once for all local copies.

    With ``sharding``, this includes the gradients that are summed for one worker alone.
    """
    at = _find_update(block)
    role = {_ROLE: OpRole.Optimize}
    for name in gradients:
        grad = block.vars[name]
        block._insert_op(at, "c_allreduce_sum", {"X": grad}, {"Out": grad}, role)
        at += 1
    if gradients:
        block._insert_op(at, "c_sync_comm_stream", {"X": grad}, {"Out": grad}, role)
    if sharding is not None and sharding.gradients:
        grads = [block.vars[name] for name in sharding.gradients]
        attrs = role | {"owners": sharding.gradient_owners}
        block._insert_op(_find_update(block), "reduce_to_owners", {"X": grads}, {"Out": grads}, attrs)


def _find_update(block: Block) -> int:
    """Return the index of the first operator of the update; the end where there is none."""
    return next((i for i, op in enumerate(block.ops) if _has_role(op, OpRole.Optimize)), len(block.ops))


def _append_syncs(block: Block, variable: Variable, rings: int, role: int, *, at: int | None = None) -> None:
    begin = len(block.ops) if at is None else at
    for ring in range(rings):
        attrs = {"ring_id": ring, _ROLE: role}
        block._insert_op(begin + ring, "c_sync_comm_stream", {"X": variable}, {"Out": variable}, attrs)


def _reversed(block: Block) -> Iterator[tuple[int, Operator]]:
    return reversed(list(enumerate(block.ops)))


def _has_role(op: Operator, role: int) -> bool:
    return bool(op.attrs.get(_ROLE, 0) & role)
