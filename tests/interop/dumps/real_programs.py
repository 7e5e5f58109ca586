"""What scripts that run under the real Fluid 1.8.5 write of its programs (Python 3.7 too)."""

import base64
import zlib


def encode_program(program):
    """Return the bytes of a program of Fluid 1.8.5 without `op_callstack`, as base64 of zlib."""
    from paddle.fluid.proto import framework_pb2

    message = framework_pb2.ProgramDesc.FromString(program.desc.serialize_to_string())
    for block in message.blocks:
        for op in block.ops:
            kept = [attr for attr in op.attrs if attr.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    return base64.b64encode(zlib.compress(message.SerializeToString(deterministic=True), 9)).decode()
