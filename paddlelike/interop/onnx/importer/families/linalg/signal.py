"""Fourier transforms: complex numbers are pairs in the last dim."""

from __future__ import annotations

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node, reads


def _transform(
    node: Node, x: Expression, axis: int, *, real: bool, forward: bool = True, half: bool = False
) -> Expression:
    """Return the transform of real or complex numbers; if ``half``, the half that determines the rest."""
    options = {"axes": [axis], "normalization": "backward", "forward": forward}
    dims, wide = list(x.shape), x.variable.dtype
    if half:
        dims[axis] = dims[axis] // 2 + 1 if dims[axis] >= 0 else -1
    kind = VarType.COMPLEX128 if wide in (VarType.FP64, VarType.COMPLEX128) else VarType.COMPLEX64
    if real:
        return node.emit("fft_r2c", x, onesided=half, typed=kind, shaped=dims, **options)
    return node.emit("fft_c2c", x, typed=kind, shaped=dims, **options)


def _as_complex(node: Node, x: Expression) -> Expression:
    """Return pairs of numbers as complex numbers."""
    kind = VarType.COMPLEX128 if x.variable.dtype == VarType.FP64 else VarType.COMPLEX64
    return node.emit("as_complex", x, typed=kind, shaped=x.shape[:-1])


def _give_pairs(node: Node, x: Expression) -> None:
    wide = x.variable.dtype == VarType.COMPLEX128
    dims = (*x.shape, 2)
    node.give(node.emit("as_real", x, typed=VarType.FP64 if wide else VarType.FP32, shaped=dims))


def _as_float(x: Expression) -> Expression:
    wide = x.variable.dtype == VarType.FP64
    return x.cast(VarType.FP64 if wide else VarType.FP32)


@reads("DFT")
def _read_dft(node: Node) -> None:
    """Compute the DFT; with a length, the signal is cut or padded with zeros."""
    rank, dims = node.rank(), node.dims()
    axis = node.attr("axis", 1)
    if node.opset >= 20:
        axis = int(node.known(2).reshape(-1)[0]) if node.has(2) else -2
    axis = node.normalize(axis, rank)
    forward, half = not node.attr("inverse", 0), bool(node.attr("onesided", 0))
    if dims[-1] not in (1, 2):
        node.refuse(f"its input has dims {dims}")
    x, real = _as_float(node.input()), dims[-1] == 1
    kind = x.variable.dtype
    length = int(node.known(1).reshape(-1)[0]) if node.has(1) else None
    held = length if length is None or forward or not half else length // 2 + 1
    if held is not None and held != dims[axis]:
        if dims[axis] < 0:
            node.refuse(f"its length is {length}, that of its input is not known")
        sizes = [0, 0] * rank
        sizes[2 * axis + 1] = max(held - dims[axis], 0)
        x = node.emit("pad", x.slice(axis, 0, held), paddings=sizes, pad_value=0.0)
    if not forward and half:
        size = 2 * (dims[axis] - 1) if length is None else length
        if real:
            x = node.emit("concat", [x, x.zeros()], axis=rank - 1)
        x = _as_complex(node, x)
        given = {"axes": [axis], "normalization": "backward", "forward": False, "last_dim_size": size}
        shaped = [size if i == axis else dim for i, dim in enumerate(dims[:-1])]
        out = node.emit("fft_c2r", x, typed=kind, shaped=shaped, **given)
        node.give(out.unsqueeze(rank - 1))
        return
    x = x.squeeze(rank - 1) if real else _as_complex(node, x)
    _give_pairs(node, _transform(node, x, axis, real=real, forward=forward, half=half))


@reads("STFT")
def _read_stft(node: Node) -> None:
    """Transform frames of the signal ``(N, T, 1 or 2)``, each times the window."""
    dims, half = node.dims(), bool(node.attr("onesided", 1))
    step = int(node.known(1).reshape(-1)[0])
    length = int(node.known(3).reshape(-1)[0]) if node.has(3) else node.dims(2)[0]
    real = len(dims) == 2 or dims[-1] == 1
    x = _as_float(node.input())
    if len(dims) == 3:
        x = x.squeeze(2) if real else _as_complex(node, x)
    count = (dims[1] - length) // step + 1 if dims[1] >= 0 else -1
    kind = x.variable.dtype
    frames = node.emit(
        "frame", x, frame_length=length, hop_length=step, axis=-1, typed=kind, shaped=(dims[0], length, count)
    )
    frames = frames.transpose([0, 2, 1])
    if node.has(2):
        window = _as_float(node.input(2))
        if not real:
            window = node.emit("complex", window, window.zeros(), typed=kind, shaped=(length,))
        frames = frames * window
    _give_pairs(node, _transform(node, frames, 2, real=real, half=half and real))
