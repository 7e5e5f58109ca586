"""The worker of this process in its job, which carries out collective operators.

One thread runs the exchanges, in the order of the program. Sums whose results are not read before the next
``c_sync_comm_stream`` overlap the computation. They are joined to exchanges of 4 MiB, or more from 32 workers
on. Only the program, its shapes and the number of workers decide which sums are joined, so results do not
depend on timing.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np

from paddlelike.core import Array, LoDTensor, Scope, SelectedRows
from paddlelike.distributed.collective.jax_runtime import Exchanges
from paddlelike.distributed.collective.job import Job, make_job, read_job
from paddlelike.distributed.collective.member import Member
from paddlelike.distributed.collective.sharding import Sharding
from paddlelike.errors import GraphError, RoleError, UnsupportedError
from paddlelike.foundation.threads import Task
from paddlelike.framework import Operator, Program
from paddlelike.framework.flags import flag
from paddlelike.framework.opdef import Context
from paddlelike.framework.opdef.remote import Reduced

_BUCKET: Final = 4 << 20  # bytes of sums in one exchange


class JobWorkers:
    """The workers of one process's job; see :class:`paddlelike.framework.opdef.remote.Workers`.

    Exchanges raise FaultError when a worker is lost, GraphError when workers exchange different things.
    """

    def __init__(self) -> None:
        self._job: Job | None = None
        self._member: Member | None = None
        self._is_joining = False
        self._staged: dict[str, list[tuple[Array, Array]]] = {}  # by dtype: values, and where results go
        self._rooms: dict[tuple[str, int], int] = {}  # rows of sparse gradients, by variable and row's bytes
        self._pending: list[tuple[Task[Array], list[Array]]] = []
        self._may_wait = weakref.WeakKeyDictionary[Program, tuple[int, dict[int, bool]]]()
        self._shared: weakref.WeakKeyDictionary[Scope, weakref.WeakSet[Program]] = weakref.WeakKeyDictionary()

    def join(self, endpoints: Sequence[str], rank: int) -> None:
        """Join the job at these endpoints as worker ``rank``.

        Raises RoleError when the process is in another job, DeadlineError when workers do not join in time,
        ExtraMissingError without JAX.
        """
        job = make_job(endpoints, rank)
        is_bound = self._job is not None and self._job.size > 1
        if self._job is not None and is_bound and self._job != job:
            raise RoleError(
                f"this process is {self._job.name(self._job.rank)} of {self._job.size}, and cannot join "
                f"another job as {job.name(rank)} of {job.size}"
            )
        if not is_bound:
            self._is_joining = True  # JAX reads it again when it is loaded
            try:
                self._member = Member(job) if job.size > 1 else None
            finally:
                self._is_joining = False
            self._job = job

    def check(self, count: int, rank: int) -> None:
        """Raise RoleError unless this process is worker ``rank`` of ``count``."""
        job = self._find_job()
        if (job.size, job.rank) != (count, rank):
            raise RoleError(
                f"the program is that of worker {rank} of {count}, but this process is worker {job.rank} of "
                f"{job.size}",
                hint="let trainer_id and the number of trainers come from the environment, as the job's do",
            )

    def refuse_threads(self) -> None:
        """Raise UnsupportedError: a job's workers are processes, not threads."""
        raise UnsupportedError(
            "collectives between threads of one process (single_process_multi_thread) are not supported",
            hint="CompiledProgram.with_data_parallel runs several copies in one process; collective_mode = "
            "'grad_allreduce' trains with several processes",
        )

    def reduce(self, ctx: Context, value: Reduced, how: str) -> Reduced:
        """Return the "sum", "max", "min" or "prod" over the workers; sums are there after ``wait``."""
        if isinstance(value, SelectedRows):
            return self._add_up_rows(ctx, value, how)  # type: ignore[return-value]  # the type of value
        if self._find_job().size == 1:
            return value.copy()
        if how == "sum" and self._is_read_after_wait(ctx):
            return self._stage(value)
        self.wait()
        return self._exchange(lambda exchanges: exchanges.reduce(value, how))

    def broadcast(self, ctx: Context, value: Array, root: int) -> Array:
        """Return the value of worker ``root``. Raises GraphError for a worker that is not there."""
        job = self._find_job()
        if not 0 <= root < job.size:
            raise GraphError(f"operator {ctx.op.type!r}: root is {root}, expected 0 to {job.size - 1}")
        self.wait()
        if job.size == 1:
            return np.array(value)
        return self._exchange(lambda exchanges: exchanges.broadcast(value, root))

    def gather(self, ctx: Context, value: Array, count: int) -> Array:
        """Return the rows of all ``count`` workers. Raises GraphError for another number of workers."""
        if self._check_count(ctx, count) == 1:
            return value.copy()
        self.wait()
        return self._exchange(lambda exchanges: exchanges.gather(value))

    def scatter(self, ctx: Context, value: Array, count: int) -> Array:
        """Return this worker's rows of the sum. Raises GraphError for unequal parts."""
        if self._check_count(ctx, count) == 1:
            return value.copy()
        if len(value) % count:
            raise GraphError(
                f"operator {ctx.op.type!r}: X has {len(value)} rows, which {count} workers cannot share"
            )
        self.wait()
        return self._exchange(lambda exchanges: exchanges.scatter(value))

    def reduce_to_owners(self, values: list[Array], owners: list[int]) -> list[Array]:
        """Replace each value that this worker owns by its sum over all workers; other values are
        unchanged.
        """
        return self._exchange_owned(values, owners, is_sum=True)

    def gather_from_owners(self, values: list[Array], owners: list[int]) -> list[Array]:
        """Return each value as the worker that owns it holds it."""
        return self._exchange_owned(values, owners, is_sum=False)

    def _exchange_owned(self, values: list[Array], owners: list[int], *, is_sum: bool) -> list[Array]:
        """Exchange values in one row for each worker, all rows of one length."""
        job, found = self._find_job(), [np.asarray(value) for value in values]
        if job.size == 1:
            return found
        self.wait()
        for dtype in sorted({value.dtype.str for value in found}):
            rows: list[list[int]] = [[] for _ in range(job.size)]
            for index, owner in enumerate(owners):
                if found[index].dtype.str == dtype:
                    rows[owner].append(index)
            width = max(sum(found[index].size for index in row) for row in rows)
            received = range(job.rank, job.rank + 1) if is_sum else range(job.size)
            sent = range(job.size) if is_sum else range(job.rank, job.rank + 1)
            together = np.zeros((len(sent), width), dtype)
            for line, rank in zip(together, sent, strict=True):
                parts = [found[index].reshape(-1) for index in rows[rank]]
                if parts:
                    np.concatenate(parts, out=line[: sum(map(len, parts))])
            method = Exchanges.scatter if is_sum else Exchanges.gather
            result = self._exchange(partial(method, value=together))
            for line, rank in zip(result, received, strict=True):
                begin = 0
                for index in rows[rank]:
                    if is_sum or rank != job.rank:
                        part = line[begin : begin + found[index].size]
                        found[index] = part.reshape(found[index].shape).copy()
                    begin += found[index].size
        return found

    @contextmanager
    def count_step(self, scope: Scope, sharding: Sharding) -> Iterator[None]:
        """Count a step with divided optimizer state, at the end of the ``with`` block.

        The scope drops the state of other workers; workers that save may get this worker's state.
        """
        shares = self._find_member().find_shares()
        shares.release(scope, sharding)
        yield
        shares.count(is_step=True)

    def find_others(self, scope: Scope, sharding: Sharding) -> list[str]:
        """Return the names of the state that other workers hold while this one trains in the scope.

        The result is empty outside of a job, and for a scope in which this process does not train.
        """
        if self._member is None or not self._member.find_shares().may_release(scope):
            return []
        return sharding.find_others(self._member.job.rank)

    def count_load(self, scope: Scope, sharding: Sharding) -> None:
        """Count a load of this worker's state; the state fetched from others is released."""
        shares = self._find_member().find_shares()
        shares.release(scope, sharding)
        shares.count(is_step=False)

    def fetch_state(self, scope: Scope, sharding: Sharding, names: Iterable[str]) -> None:
        """Put the state that other workers hold into the scope, for a save, until the next step."""
        if self._member is not None:
            self._member.find_shares().fetch(scope, sharding, names)

    def wait(self) -> None:
        """Wait until every array that ``reduce`` returned holds its sum."""
        if not self._staged and not self._pending:
            return
        for dtype in list(self._staged):
            self._send_staged(dtype)
        pending, self._pending = self._pending, []
        for future, results in pending:
            found = self._find_member().wait(future)
            begin = 0
            for result in results:
                result.reshape(-1)[:] = found[begin : begin + result.size]
                begin += result.size

    def share(self, scope: Scope, program: Program, made: Program) -> None:
        """Give all workers the persistables of worker 0, before the first run of a program in a scope.

        When one worker changes the program, for example for an export, the persistables' source ``made`` is
        created again without an exchange. State that all workers loaded stays. Raises GraphError if only some
        workers have loaded.
        """
        shared = self._shared.setdefault(scope, weakref.WeakSet())
        if self._find_job().size == 1 or program in shared:
            return
        shared.add(program)
        names = {one.name for one in made.list_vars() if one.persistable}
        if program._sharding is not None:
            has_own = self._find_member().find_shares().has_released(scope)
            together = self._exchange(partial(Exchanges.gather, value=np.array([has_own], np.int32)))
            if has_own:
                names -= program._sharding.state.keys()
            if len({*together.tolist()}) > 1:
                loaded = ", ".join(map(str, np.flatnonzero(together)))
                text = f"only worker {loaded} of {len(together)} loaded the state, which the workers divide"
                raise GraphError(text, hint="each reads its own part: let every worker load")
        by_dtype: dict[str, list[LoDTensor]] = {}
        for name in sorted(names):
            holder = scope.find_var(name)
            tensor = None if holder is None else holder.value
            if isinstance(tensor, LoDTensor) and tensor.held_array is not None:
                by_dtype.setdefault(tensor.held_array.dtype.str, []).append(tensor)
        for _, tensors in sorted(by_dtype.items()):
            arrays = [np.asarray(tensor.held_array) for tensor in tensors]
            together = np.concatenate([array.reshape(-1) for array in arrays])
            found = self._exchange(partial(Exchanges.broadcast, value=together, root=0))
            ends = np.cumsum([array.size for array in arrays])
            for tensor, array, part in zip(tensors, arrays, np.split(found, ends[:-1]), strict=True):
                tensor.set(part.reshape(array.shape))  # W4

    def join_environment(self) -> None:
        """Join the job that the environment describes, if it describes one; raises the errors of
        :meth:`join`.
        """
        job = None if self._job is not None or self._is_joining else read_job()
        if job is not None:
            self.join(job.endpoints, job.rank)

    def _find_job(self) -> Job:
        self.join_environment()
        if self._job is None:
            raise RoleError(
                "this process has not joined a job of workers",
                hint="run the startup program that was transpiled, or start the script by python -m "
                "paddlelike.distributed.launch --run_mode collective",
            )
        return self._job

    def _find_member(self) -> Member:
        self._find_job()
        assert self._member is not None
        return self._member

    def _check_count(self, ctx: Context, count: int) -> int:
        size = self._find_job().size
        if count != size:
            raise GraphError(f"operator {ctx.op.type!r}: nranks is {count}, but the job has {size} workers")
        return size

    def _exchange(self, function: Callable[[Exchanges], Array]) -> Array:
        member = self._find_member()
        return member.wait(member.submit(function))

    def _stage(self, value: Array) -> Array:
        """Add a value to the batch of joint sums; return the array that will receive its sum."""
        result = np.empty_like(value, order="C")
        dtype = value.dtype.str
        staged = self._staged.setdefault(dtype, [])
        staged.append((value.copy(), result))  # its memory may be used again before it is sent
        # In a ring of many workers each message is a small part, and its latency dominates.
        if sum(one.nbytes for one, _ in staged) >= _BUCKET * max(self._find_job().size // 16, 1):
            self._send_staged(dtype)
        return result

    def _send_staged(self, dtype: str) -> None:
        staged = self._staged.pop(dtype)
        together = np.concatenate([value.reshape(-1) for value, _ in staged])
        future = self._find_member().submit(lambda exchanges: exchanges.sum(together))
        self._pending.append((future, [result for _, result in staged]))

    def _add_up_rows(self, ctx: Context, value: SelectedRows, how: str) -> SelectedRows:
        """Return the rows of all workers one after the other; repeated rows add up."""
        if how != "sum":
            raise UnsupportedError(f"operator {ctx.op.type!r} takes no SelectedRows; c_allreduce_sum does")
        rows, values = value.row_array, np.asarray(value.get_tensor())
        if self._find_job().size == 1:
            return SelectedRows(rows.copy(), value.height(), values.copy())
        self.wait()
        # One exchange for all rows. Few sizes are used, since each is compiled: the size of the last step, if
        # it suffices.
        count, shape, dtype = len(rows), values.shape[1:], values.dtype
        width = dtype.itemsize * math.prod(shape)
        key = ctx.op.input("X")[0], width
        room = self._rooms.get(key, 0)
        while True:
            parts = [np.array([count]), rows, values][: 3 if count <= room else 1]
            packed = b"".join(one.tobytes() for one in parts).ljust(8 + room * (8 + width), b"\0")
            sent = np.frombuffer(packed, np.uint8)
            together = self._exchange(partial(Exchanges.gather, value=sent)).reshape(-1, sent.size)
            counts = together[:, :8].copy().view(np.int64)[:, 0].tolist()
            needed = _round_up(max(counts))
            if max(counts) <= room:
                break
            room = needed
        self._rooms[key] = needed if 4 * needed <= room else room
        lines = [(line, 8 + 8 * one, one) for line, one in zip(together, counts, strict=True)]
        all_rows = np.concatenate([line[8:at].view(np.int64) for line, at, _ in lines])
        found = [line[at : at + one * width].view(dtype).reshape(one, *shape) for line, at, one in lines]
        return SelectedRows(all_rows, value.height(), np.concatenate(found))

    def _is_read_after_wait(self, ctx: Context) -> bool:
        """Return whether a ``c_sync_comm_stream`` comes before the next operator that reads the result."""
        op: Operator = ctx.op  # type: ignore[assignment]
        if op.attrs.get("use_calc_stream", True) or flag("FLAGS_check_nan_inf"):
            return False
        program = op.block.program
        version, found = self._may_wait.get(program, (-1, {}))
        if version != program._version:
            version, found = program._version, {}
            self._may_wait[program] = version, found
        key = id(op)
        if key not in found:
            found[key] = _has_sync_before_use(op)
        return found[key]


def _round_up(count: int) -> int:
    """Round a number up to one of eight steps between powers of two, at most an eighth larger."""
    step = 1 << max(count.bit_length() - 4, 0)
    return -(-count // step) * step


def _has_sync_before_use(op: Operator) -> bool:
    (name,) = op.output("Out")
    if op.block.idx or op.block.var(name).persistable:  # loops repeat, and a scope copies what it keeps
        return False
    ops = op.block.ops
    for other in ops[ops.index(op) + 1 :]:
        if other.type == "c_sync_comm_stream":
            return True
        if name in other.input_arg_names or name in other.output_arg_names:  # W3
            return False
    return False


_WORKERS: Final = JobWorkers()


def find_workers() -> JobWorkers:
    """Return the workers of this process's job, one for the process."""
    return _WORKERS
