"""Operators between the workers of a job that trains by collectives; all workers run them in the same order.

Each worker computes the gradients of its own part of the batch; ``c_allreduce_sum`` adds them up, so that all
workers make the same step. Communication may overlap the computation until ``c_sync_comm_stream``. These
classes declare the operators; the run context carries them out.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paddlelike.framework.opdef import (
    ABSENT,
    REQUIRED,
    Array,
    Bool,
    Context,
    GradOp,
    Int,
    Ints,
    Kernel,
    OpDef,
    OpView,
    Spec,
    String,
    Strings,
    grad_name,
    register,
)
from paddlelike.framework.opdef.remote import Reduced, find_workers
from paddlelike.ops.operands import keep_spec

_CALC = {"use_calc_stream": Bool(False)}
_RING = {"ring_id": Int(0), **_CALC}


class _Exchange(OpDef):
    inputs = ("X",)
    outputs = ("Out",)
    attrs = _RING
    external = own_variables = True
    infer: ClassVar[Kernel] = staticmethod(keep_spec)


class _CAllReduce(_Exchange):
    """``Out[i] = reduce(X of worker 0 [i], X of worker 1 [i], ...)``, the same on all workers."""

    @staticmethod
    def forward(ctx: Context, x: Reduced) -> Reduced:
        return find_workers(ctx).reduce(ctx, x, ctx.op.type.removeprefix("c_allreduce_"))


@register
class CAllReduceSum(_CAllReduce):
    """The sum over the workers. Of SelectedRows: the rows of all workers, one after the other."""

    type = "c_allreduce_sum"

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return the sum of the gradients over the workers."""
        return [_derive_gradient(op, "c_allreduce_sum")]


@register
class CAllReduceMax(_CAllReduce):
    """The greatest element over the workers."""

    type = "c_allreduce_max"


@register
class CAllReduceMin(_CAllReduce):
    """The least element over the workers."""

    type = "c_allreduce_min"


@register
class CAllReduceProd(_CAllReduce):
    """The product over the workers."""

    type = "c_allreduce_prod"


@register
class AllReduce(_Exchange):
    """A reduction selected by ``reduce_type``: 0 the sum, 1 the product, 2 the maximum, 3 the minimum."""

    type = "allreduce"
    until = "1"
    attrs = {"reduce_type": Int(0), "sync_mode": Bool(False)}

    @staticmethod
    def forward(ctx: Context, x: Reduced, *, reduce_type: int) -> Reduced:
        return find_workers(ctx).reduce(ctx, x, ("sum", "prod", "max", "min")[reduce_type])


@register
class CBroadcast(_Exchange):
    """``Out = X`` of worker ``root``."""

    type = "c_broadcast"
    attrs = {"ring_id": Int(0), "root": Int(0), **_CALC}

    @staticmethod
    def forward(ctx: Context, x: Array, *, root: int) -> Array:
        return find_workers(ctx).broadcast(ctx, x, root)


@register
class Broadcast(CBroadcast):
    """``Out = X`` of worker ``root``; the older form of c_broadcast."""

    type = "broadcast"
    attrs = {"sync_mode": Bool(False), "root": Int(0)}


@register
class CAllGather(_Exchange):
    """``Out``: ``X`` of all ``nranks`` workers, joined along the first dim."""

    type = "c_allgather"
    attrs = {**_RING, "nranks": Int(REQUIRED)}

    @staticmethod
    def infer(x: Spec, *, nranks: int) -> Spec:
        return Spec((_scale_rows(x.shape[0], nranks, 1), *x.shape[1:]), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, *, nranks: int) -> Array:
        return find_workers(ctx).gather(ctx, x, nranks)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return this worker's rows of the sum over all workers."""
        return [_derive_gradient(op, "c_reducescatter")]


@register
class CReduceScatter(_Exchange):
    """``Out``: this worker's equal part of the rows of the sum over the ``nranks`` workers."""

    type = "c_reducescatter"
    attrs = {"ring_id": Int(0), "nranks": Int(1), **_CALC}

    @staticmethod
    def infer(x: Spec, *, nranks: int) -> Spec:
        return Spec((_scale_rows(x.shape[0], 1, nranks), *x.shape[1:]), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, *, nranks: int) -> Array:
        return find_workers(ctx).scatter(ctx, x, nranks)


@register
class ReduceToOwners(_Exchange):
    """``Out[i]``: on worker ``owners[i]`` the sum of ``X[i]`` over the workers; elsewhere ``X[i]``."""

    type = "reduce_to_owners"
    inputs = ("X*",)
    outputs = ("Out*",)
    attrs = {"owners": Ints(REQUIRED)}

    @staticmethod
    def infer(x: list[Spec]) -> list[Spec]:
        return x

    @staticmethod
    def forward(ctx: Context, x: list[Array], *, owners: list[int]) -> list[Array]:
        return find_workers(ctx).reduce_to_owners(x, owners)


@register
class GatherFromOwners(ReduceToOwners):
    """``Out[i]``: ``X[i]`` of worker ``owners[i]``."""

    type = "gather_from_owners"

    @staticmethod
    def forward(ctx: Context, x: list[Array], *, owners: list[int]) -> list[Array]:
        return find_workers(ctx).gather_from_owners(x, owners)


@register
class CSyncCalcStream(OpDef):
    """``Out = X``. On GPUs it waits for the computation; here that has always ended."""

    type = "c_sync_calc_stream"
    inputs = ("X",)
    outputs = ("Out",)
    views = True

    infer = staticmethod(keep_spec)

    @staticmethod
    def forward(x: Reduced) -> Reduced:
        return x


@register
class CSyncCommStream(_Exchange):
    """``Out = X``, after all earlier communication has ended."""

    type = "c_sync_comm_stream"
    attrs = {"ring_id": Int(0)}
    views = True

    @staticmethod
    def forward(ctx: Context, x: Reduced) -> Reduced:
        find_workers(ctx).wait()
        return x


@register
class CGenNcclId(OpDef):
    """Joins the job: this is worker ``rank`` at ``endpoint``, the others are at ``other_endpoints``.

    In Fluid, worker 0 sends the others an identifier, ``Out``; here Out stays without a value.
    """

    type = "c_gen_nccl_id"
    inputs = ()
    outputs = ("Out",)
    attrs = {"endpoint": String(REQUIRED), "other_endpoints": Strings(REQUIRED), "rank": Int(0)}
    external = True

    @staticmethod
    def forward(ctx: Context) -> None:
        find_workers(ctx).join(*find_job(ctx.op))


@register
class GenNcclId(CGenNcclId):
    """Joins the job: this is worker ``trainer_id`` of those at ``trainers``. ``NCCLID`` gets no value."""

    type = "gen_nccl_id"
    outputs = ("NCCLID",)
    attrs = {
        "trainers": Strings(REQUIRED),
        "trainer_id": Int(REQUIRED),
        "nccl_comm_num": Int(1),
        "use_hierarchical_allreduce": Bool(False),
        "hierarchical_allreduce_inter_nranks": Int(1),
    }


@register
class CCommInit(OpDef):
    """Begins ring ``ring_id`` of the job: checks that this is worker ``rank`` of ``nranks``."""

    type = "c_comm_init"
    inputs = ("X",)
    outputs = ()
    attrs = {"nranks": Int(REQUIRED), "rank": Int(REQUIRED), "ring_id": Int(0)}
    external = True

    @staticmethod
    def infer(x: Spec) -> tuple[()]:
        return ()

    @staticmethod
    def forward(ctx: Context, x: Any, *, nranks: int, rank: int) -> tuple[()]:
        find_workers(ctx).check(nranks, rank)
        return ()


@register
class CCommInitAll(OpDef):
    """Begins a ring of threads of one process, one for each of its ``devices``: not supported."""

    type = "c_comm_init_all"
    inputs = ()
    outputs = ()
    attrs = {"devices": Ints(ABSENT), "ring_id": Int(ABSENT)}
    external = True

    @staticmethod
    def forward(ctx: Context) -> tuple[()]:
        find_workers(ctx).refuse_threads()
        return ()


def find_job(op: OpView) -> tuple[list[str], int]:
    """Return the endpoints of workers and the rank of this one, from an operator that joins a job."""
    if op.type == "gen_nccl_id":
        return list(op.attrs["trainers"]), op.attrs["trainer_id"]
    rank: int = op.attrs.get("rank", 0)
    others = op.attrs["other_endpoints"]
    return [*others[:rank], op.attrs["endpoint"], *others[rank:]], rank


def _scale_rows(rows: int, factor: int, divisor: int) -> int:
    return rows if rows < 0 else rows * factor // divisor


def _derive_gradient(op: OpView, type: str) -> GradOp:
    d_out, d_x = grad_name(op.output("Out")[0]), grad_name(op.input("X")[0])
    return GradOp(type, {"X": [d_out]}, {"Out": [d_x]}, dict(op.attrs))
