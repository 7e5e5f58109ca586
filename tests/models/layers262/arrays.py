"""Shapes, indices and matrices; control flow."""

import numpy as np
import paddle
from inputs import IMAGE, of, real, whole
from paddle.nn import functional as F  # noqa: N812


def shapes():
    x = real(2, 3, 4)
    table = {
        "reshape": lambda x: paddle.reshape(x, [0, -1]),
        "transpose": lambda x: paddle.transpose(x, [2, 0, 1]),
        "squeeze": lambda x: paddle.squeeze(paddle.unsqueeze(x, [0, 2])),
        "unsqueeze": lambda x: paddle.unsqueeze(x, [1, -1]),
        "flatten_range": lambda x: paddle.flatten(x, 1, 2),
        "concat": lambda x: paddle.concat([x, x], axis=-1),
        "split": lambda x: paddle.split(x, 3, axis=1),
        "split_sections": lambda x: paddle.split(x, [1, -1], axis=2),
        "chunk": lambda x: paddle.chunk(x, 2, axis=-1),
        "stack": lambda x: paddle.stack([x, x], axis=1),
        "unstack": lambda x: paddle.unstack(x, 1),
        "unbind": lambda x: paddle.unbind(x, 1),
        "tile": lambda x: paddle.tile(x, [2, 1, 3]),
        "tile_more": lambda x: paddle.tile(x, [2, 1, 1, 2]),
        "expand": lambda x: paddle.expand(paddle.unsqueeze(x, 0), [5, 2, -1, 4]),
        "broadcast_to": lambda x: paddle.broadcast_to(x, [2, 2, 3, 4]),
        "flip": lambda x: paddle.flip(x, [0, 2]),
        "roll": lambda x: paddle.roll(x, [1, -2], [0, 2]),
        "roll_flat": lambda x: paddle.roll(x, 5),
        "rot90": lambda x: paddle.rot90(x),
        "cast": lambda x: paddle.cast(x, "int32"),
        "cast_bool": lambda x: paddle.cast(x, "bool"),
        "getitem": lambda x: x[:, 1:, ::2],
        "getitem_int": lambda x: x[1],
        "getitem_last": lambda x: x[..., -1],
        "getitem_all": lambda x: x[1, 2, 3],
        "getitem_new": lambda x: x[:, None, 1],
        "getitem_negative": lambda x: x[:, ::-1],
        "strided_slice": lambda x: paddle.strided_slice(x, [1, 2], [0, 3], [3, 0], [2, -1]),
        "slice": lambda x: paddle.slice(x, [0, 2], [0, -3], [1, 4]),
        "tril": lambda x: paddle.tril(x),
        "triu": lambda x: paddle.triu(x, 1),
        "diagonal": lambda x: paddle.diagonal(x, 1, 1, 2),
        "zeros_like": paddle.zeros_like,
        "ones_like": paddle.ones_like,
        "full_like": lambda x: paddle.full_like(x, 3),
        "shape": lambda x: paddle.shape(x),
        "numel": paddle.numel,
        "assign": paddle.assign,
        "moveaxis": lambda x: paddle.moveaxis(x, 0, 2),
        "t": lambda x: paddle.t(x[0]),
        "repeat_interleave": lambda x: paddle.repeat_interleave(x, 2, axis=1),
        "crop": lambda x: paddle.crop(x, [1, 2, 2], [1, 0, 1]),
        "unique_consecutive": lambda x: paddle.unique_consecutive(paddle.cast(x, "int64")),
        "unique": lambda x: paddle.unique(paddle.cast(x, "int64")),
        "unique_all": lambda x: list(
            paddle.unique(paddle.cast(x, "int64"), return_index=True, return_inverse=True, return_counts=True)
        ),
        "nonzero": lambda x: paddle.nonzero(x > 0),
        "masked_select": lambda x: paddle.masked_select(x, x > 0),
        "masked_fill": lambda x: paddle.where(x > 0, x, paddle.full_like(x, -1)),
        "pad_function": lambda x: F.pad(x, [1, 1], data_format="NCL"),
        "pad_all": lambda x: F.pad(x, [1, 0, 0, 2, 1, 1]),
        "reshape_by_shape": lambda x: paddle.reshape(x, [paddle.shape(x)[0], -1]),
        "expand_by_shape": lambda x: paddle.expand(x[:, :, :1], paddle.shape(x)),
        "full_by_shape": lambda x: paddle.full(paddle.shape(x)[:2], 2.5),
        "set_item": set_item,
        "as_complex_abs": lambda x: paddle.abs(paddle.as_complex(paddle.reshape(x, [2, 3, 2, 2]))),
        "diag_embed": lambda x: F.diag_embed(x),
        "sequence_mask": lambda x: F.sequence_mask(paddle.cast(paddle.abs(x[0, 0]), "int64"), 3),
        "one_hot": lambda x: F.one_hot(paddle.cast(paddle.abs(x), "int64"), 3),
        "index_sample": lambda x: paddle.index_sample(x[0], paddle.cast(paddle.abs(x[1]), "int64")),
    }
    for name, function in table.items():
        yield name, of(function, x)
    yield "gather", of(lambda x, i: paddle.gather(x, i), x, whole(2, 3))
    yield "gather_axis", of(lambda x, i: paddle.gather(x, i, axis=2), x, whole(4, 3))
    yield "gather_nd", of(paddle.gather_nd, x, whole(2, 3, 2))
    yield "index_select", of(lambda x, i: paddle.index_select(x, i, axis=1), x, whole(3, 5))
    yield "index_add", of(lambda x, i: paddle.index_add(x, i, 0, x), x, np.array([1, 0]))
    yield "scatter", of(lambda x, i, u: paddle.scatter(x, i, u), real(4, 3), np.array([2, 0]), real(2, 3))
    yield (
        "scatter_add",
        of(
            lambda x, i, u: paddle.scatter(x, i, u, overwrite=False), real(4, 3), np.array([2, 2]), real(2, 3)
        ),
    )
    yield "scatter_nd_add", of(paddle.scatter_nd_add, real(4, 3), whole(4, 5, 1), real(5, 3))
    yield "take_along_axis", of(lambda x, i: paddle.take_along_axis(x, i, 1), real(3, 4), whole(4, 3, 2))
    yield (
        "put_along_axis",
        of(lambda x, i: paddle.put_along_axis(x, i, paddle.full([3, 1], 9.0), 1), real(3, 4), whole(4, 3, 1)),
    )
    yield (
        "put_along_axis_add",
        of(
            lambda x, i: paddle.put_along_axis(x, i, paddle.full([3, 2], 9.0), 1, "add"),
            real(3, 4),
            np.array([[0, 0], [1, 2], [3, 3]]),
        ),
    )
    yield "where", of(lambda c, x, y: paddle.where(c, x, y), real(3, 4) > 0, real(3, 4), real(4))
    yield "meshgrid", of(lambda x, y: paddle.meshgrid(x, y), real(3), real(4))
    yield "searchsorted", of(lambda x, y: paddle.searchsorted(x, y), np.sort(real(6)), real(2, 3))
    yield "diag", of(lambda x: paddle.diag(x, 1), real(3))
    yield "diag_of", of(lambda x: paddle.diag(x), real(3, 4))
    yield "bucketize", of(lambda x, y: paddle.bucketize(x, y), real(3, 4), np.sort(real(4)))
    yield "arange", of(lambda x: x + paddle.arange(0, 4, dtype="float32"), real(3, 4))
    yield "linspace", of(lambda x: x + paddle.linspace(0, 1, 4), real(3, 4))
    yield "eye", of(lambda x: x + paddle.eye(3, 4), real(3, 4))
    yield (
        "tril_indices",
        of(lambda x: paddle.tril_indices(3, 4, 1) + paddle.cast(x[0, 0] * 0, "int64"), real(3, 4)),
    )
    yield (
        "constants",
        of(lambda x: x + paddle.to_tensor([[1.5], [2.5], [-1.0]]) + paddle.full([4], 2.0), real(3, 4)),
    )


def set_item(x):
    y = paddle.assign(x)
    y = paddle.static.setitem(y, (slice(None), 1), 7.0)
    return paddle.static.setitem(y, (0, slice(0, 2)), y[1, :2])


def algebra():
    square = real(3, 3) + 3 * np.eye(3, dtype="float32")
    yield "matmul", of(paddle.matmul, real(2, 3, 4), real(4, 5))
    yield (
        "matmul_transposed",
        of(
            lambda x, y: paddle.matmul(x, y, transpose_x=True, transpose_y=True), real(2, 4, 3), real(2, 5, 4)
        ),
    )
    yield "matmul_vectors", of(paddle.matmul, real(4), real(4))
    yield "bmm", of(paddle.bmm, real(2, 3, 4), real(2, 4, 2))
    yield "mm", of(paddle.mm, real(3, 4), real(4, 2))
    yield "mv", of(paddle.mv, real(3, 4), real(4))
    yield "dot", of(paddle.dot, real(3, 4), real(3, 4))
    yield "outer", of(paddle.outer, real(3), real(4))
    yield (
        "addmm",
        of(lambda a, x, y: paddle.addmm(a, x, y, beta=0.5, alpha=2.0), real(3, 2), real(3, 4), real(4, 2)),
    )
    yield "einsum", of(lambda x, y: paddle.einsum("bij,bjk->bik", x, y), real(2, 3, 4), real(2, 4, 2))
    yield "kron", of(paddle.kron, real(2, 2), real(2, 3))
    yield "cross", of(paddle.cross, real(4, 3), real(4, 3))
    yield "trace", of(paddle.trace, real(3, 4))
    yield "inverse", of(paddle.inverse, square)
    yield "det", of(paddle.linalg.det, square)
    yield "cholesky", of(paddle.linalg.cholesky, square @ square.T)
    yield "solve", of(paddle.linalg.solve, square, real(3, 2))
    yield "matrix_power", of(lambda x: paddle.linalg.matrix_power(x, 3), square)


def control():
    x = real(3, 4)
    cond, loop = paddle.static.nn.cond, paddle.static.nn.while_loop
    yield "cond", of(lambda x: cond(paddle.mean(x) > 0, lambda: x + 1, lambda: x * 2), x)
    yield (
        "case",
        of(
            lambda x: paddle.static.nn.case(
                [(paddle.mean(x) > 9, lambda: x), (paddle.mean(x) > -9, lambda: x * 3)], lambda: -x
            ),
            x,
        ),
    )
    yield (
        "switch_case",
        of(
            lambda x, i: paddle.static.nn.switch_case(i, {0: lambda: x, 2: lambda: x * 3}, lambda: -x),
            x,
            np.array([2]),
        ),
    )
    yield (
        "while_loop",
        of(
            lambda x: loop(
                lambda i, x: i < 3, lambda i, x: [i + 1, F.relu(x) + x], [paddle.full([1], 0, "int64"), x]
            )[1],
            x,
        ),
    )
    yield "array", of(array_of_rows, x)
    yield "static_fc", of(lambda x: paddle.static.nn.fc(x, 3, activation="tanh"), real(2, 3, 4))
    yield (
        "static_conv",
        of(
            lambda x: paddle.static.nn.batch_norm(paddle.static.nn.conv2d(x, 4, 3), act="relu", is_test=True),
            real(*IMAGE),
        ),
    )
    yield (
        "print_free_metrics",
        of(lambda x, y: paddle.static.auc(F.softmax(x), y)[0], real(4, 2), whole(2, 4, 1)),
    )


def array_of_rows(x):
    i = paddle.zeros([1], "int64")
    array = paddle.tensor.array_write(x, i)
    array = paddle.tensor.array_write(x * 2, i + 1, array)
    return [paddle.tensor.array_read(array, i + 1), paddle.tensor.array_length(array)]
