"""Operators that take batches from a reader instead of a feed."""

from __future__ import annotations

from typing import Any

from paddlelike.errors import NotInitializedError
from paddlelike.framework.opdef import Array, Bool, Context, Int, Ints, OpDef, String, register


def _reader(ctx: Context, name: str) -> Any:
    holder = ctx.scope.find_var(name)
    if holder is None or holder.value is None:
        raise NotInitializedError(  # no EOFException: scripts take that for the end of an epoch
            f"reader {name!r} does not exist in this scope",
            hint="run the startup program first",
        )
    return holder.value


@register
class CreatePyReader(OpDef):
    """A reader over a queue that Python fills."""

    type = "create_py_reader"
    inputs = ("blocking_queue",)
    outputs = ("Out*",)
    attrs = {
        "shape_concat": Ints(),
        "ranks": Ints(),
        "lod_levels": Ints(),
        "dtypes": Ints(),
        "need_check_feed": Ints(),
        "use_data_config": Bool(True),
        "device_index": Int(0),
        "device_count": Int(1),
    }
    external = own_variables = True

    @staticmethod
    def forward(ctx: Context, queue: Any) -> None:
        reader = _reader(ctx, ctx.op.input("blocking_queue")[0])
        ctx.scope.var(ctx.op.output("Out")[0]).set_value(reader)


@register
class CreateDoubleBufferReader(OpDef):
    """The same reader under another name, since batches are always read ahead."""

    type = "create_double_buffer_reader"
    inputs = ("UnderlyingReader",)
    attrs = {"place": String("AUTO")}
    external = own_variables = True

    @staticmethod
    def forward(ctx: Context, reader: Any) -> None:
        found = _reader(ctx, ctx.op.input("UnderlyingReader")[0])
        ctx.scope.var(ctx.op.output("Out")[0]).set_value(found)


@register
class Read(OpDef):
    """The next batch of a reader, one variable per slot. Raises EOFException after the last batch."""

    type = "read"
    inputs = ("Reader",)
    outputs = ("Out*",)
    attrs = {"throw_eof_exp": Bool(True), "infer_out": Bool(True), "drop_last": Bool(True)}
    external = own_variables = True

    @staticmethod
    def forward(ctx: Context, reader: Any) -> list[Array]:
        tensors = _reader(ctx, ctx.op.input("Reader")[0]).next_batch()
        for index, tensor in enumerate(tensors):
            ctx.set_lod("Out", tensor.lod(), index)
        return [tensor.held_array for tensor in tensors]
