"""Operators between trainers and parameter servers: send, recv, their barriers, and the server's loop.

A trainer sends the gradient of every block of rows to the server that keeps the block, and receives the
block's new values. These classes declare the operators; the run context carries them out over the network.
``X`` and ``Out`` of the barriers, and ``Out`` of send, have no value; they only fix the order of operators.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paddlelike.core import VarType
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Blocks,
    Bool,
    Context,
    Int,
    Longs,
    OpDef,
    OpView,
    Spec,
    String,
    Strings,
    register,
)
from paddlelike.framework.opdef.remote import find_remote

#: Where Paddle's operators look for a server when nothing is said.
_NOWHERE = ("127.0.0.1:6164",)


class _Remote(OpDef):
    """Base class of operators that communicate with servers."""

    inputs: ClassVar[tuple[str, ...]] = ()
    outputs: ClassVar[tuple[str, ...]] = ()
    external = True


class _Ordered(_Remote):
    """Base class of operators with variables that only order operators. Of the outputs, only Recv's get
    values.
    """

    inputs = ("X*",)
    outputs = ("Out*",)

    @staticmethod
    def infer(x: list[Spec]) -> None:
        """Leave ``Out`` as it was declared."""


@register
class Send(_Ordered):
    """Send each ``X[i]`` to the server ``epmap[i]``, under its own name.

    With ``sections`` (rows of each block) ``X`` is one variable, sent in blocks: block i goes to ``epmap[i]``
    as ``send_varnames[i]``.
    """

    type = "send"
    attrs = {
        "trainer_id": Int(0),
        "epmap": Strings(_NOWHERE),
        "sections": Longs(()),
        "send_varnames": Strings(()),
        "num": Int(0),
        "merge_add": Bool(False),
        "use_send_handler": Bool(True),
    }

    @staticmethod
    def forward(ctx: Context, x: list[Any]) -> None:
        find_remote(ctx).send(ctx, x)


@register
class SendBarrier(_Ordered):
    """Tells every server in ``endpoints`` that this trainer has sent all its gradients of this step."""

    type = "send_barrier"
    attrs = {"trainer_id": Int(0), "endpoints": Strings(_NOWHERE), "half_async": Bool(False)}

    @staticmethod
    def forward(ctx: Context, x: list[Any]) -> None:
        find_remote(ctx).send_barrier(ctx)


@register
class Recv(_Ordered):
    """Receive each ``Out[i]`` from the server ``epmap[i]``, under its own name.

    With ``recv_varnames`` ``Out`` is one variable, joined from the blocks of these names; ``varnames`` are
    their names on the server. With ``do_not_run`` a communicator fetches in the background instead.
    """

    type = "recv"
    until = "1"
    attrs = {
        "epmap": Strings(()),
        "trainer_id": Int(0),
        "with_barrier": Bool(True),
        "varnames": Strings(()),
        "recv_varnames": Strings(()),
        "do_not_run": Int(0),
    }
    fresh = True

    @staticmethod
    def forward(ctx: Context, x: list[Any], *, do_not_run: int) -> list[Array] | None:
        return None if do_not_run else find_remote(ctx).recv(ctx)


@register
class FetchBarrier(_Ordered):
    """Tells every server in ``endpoints`` that this trainer has received all its variables."""

    type = "fetch_barrier"
    inputs = ("X*?",)
    attrs = {"trainer_id": Int(0), "endpoints": Strings(_NOWHERE)}

    @staticmethod
    def forward(ctx: Context, x: list[Any]) -> None:
        find_remote(ctx).fetch_barrier(ctx)


@register
class ListenAndServ(_Remote):
    """Serves at ``endpoint`` until all ``Fanin`` trainers have left.

    Every round takes the gradients ``X``, runs ``lr_decay_block_id`` and ``optimize_blocks``, and sends what
    they wrote. ``distributed_mode`` 0 waits for all trainers in every round, 1 applies each gradient as it
    comes, 2 is half asynchronous. An entry of ``grad_to_block_id`` is ``gradient:block``, one of
    ``prefetch_var_name_to_block_id`` is ``ids:block``. ``checkpint_block_id`` (sic) saves the table that is
    sharded by id.
    """

    type = "listen_and_serv"
    inputs = ("X*",)
    attrs = {
        "endpoint": String("127.0.0.1:6164"),
        "pserver_id": Int(-1),
        "grad_to_block_id": Strings(()),
        "distributed_mode": Int(0),
        "dc_asgd": Bool(False),
        "optimize_blocks": Blocks(()),
        "prefetch_var_name_to_block_id": Strings(()),
        "sparse_grad_to_param": Strings(()),
        "Fanin": Int(1),
        "checkpint_block_id": Int(-1),
        "lr_decay_block_id": Int(-1),
        "rpc_get_thread_num": Int(1),
        "rpc_send_thread_num": Int(1),
        "rpc_prefetch_thread_num": Int(1),
    }

    @classmethod
    def more_blocks(cls, op: OpView) -> list[int]:
        """Return the blocks of the schedule, of lookups and of saving a table."""
        lookups = [int(pair.rsplit(":", 1)[1]) for pair in op.attrs.get("prefetch_var_name_to_block_id", ())]
        others = [op.attrs.get("lr_decay_block_id", -1), op.attrs.get("checkpint_block_id", -1)]
        return [*lookups, *(index for index in others if index > 0)]

    @classmethod
    def temporaries(cls, op: OpView) -> set[str]:
        """Return the sums of gradients, which every round computes again."""
        return {pair.rsplit(":", 1)[0] for pair in op.attrs.get("grad_to_block_id", ())}

    @staticmethod
    def forward(ctx: Context, x: list[Any]) -> tuple[()]:
        find_remote(ctx).serve(ctx)
        return ()


@register
class RecvSave(_Remote):
    """Gathers the slices of one variable from servers into a file, without holding all of it.

    Slice i is called ``remote_varnames[i]`` at ``endpoints[i]`` and has ``slice_shapes[i]`` (``"100,8"``);
    the whole has ``shape`` and ``dtype``.
    """

    type = "recv_save"
    until = "1"
    attrs = {
        "dtype": Int(int(VarType.FP32)),
        "overwrite": Bool(True),
        "file_path": String(REQUIRED),
        "shape": Longs(()),
        "slice_varnames": Strings(()),
        "remote_varnames": Strings(()),
        "slice_shapes": Strings(()),
        "endpoints": Strings(()),
        "trainer_id": Int(0),
    }

    @staticmethod
    def forward(ctx: Context) -> tuple[()]:
        find_remote(ctx).recv_save(ctx)
        return ()


@register
class CheckpointNotify(_Remote):
    """Tells every server in ``epmap`` to save its shard of ``lookup_table`` into ``dir``."""

    type = "checkpoint_notify"
    until = "1"
    attrs = {
        "epmap": Strings(_NOWHERE),
        "dir": String(REQUIRED),
        "lookup_table": String(REQUIRED),
        "trainer_id": Int(0),
    }

    @staticmethod
    def forward(ctx: Context) -> tuple[()]:
        find_remote(ctx).checkpoint_notify(ctx)
        return ()
