"""Products of matrices."""

from __future__ import annotations

from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node, reads


def _multiply(
    node: Node, x: Expression, y: Expression, dims_x: tuple[int, ...], dims_y: tuple[int, ...]
) -> Expression:
    """Return the product, by an operator of Fluid if it has one, otherwise of Paddle 2."""
    if len(dims_y) == 2 and len(dims_x) >= 2:
        return node.emit("mul", x, y, x_num_col_dims=len(dims_x) - 1)
    stacks = dims_x[:-2], dims_y[:-2]
    if len(dims_x) >= 2 and stacks[0] == stacks[1]:
        return node.emit("matmul", x, y)
    return node.emit("matmul_v2", x, y, shaped=_find_dims(dims_x, dims_y))


def _find_dims(x: tuple[int, ...], y: tuple[int, ...]) -> list[int]:
    """Return the dims that numpy's product has."""
    rank = max(len(x), len(y)) - 2
    one, other = ((1,) * rank + dims[:-2] for dims in (x, y))
    stack = (
        []
        if rank < 1
        else [
            b if a == 1 else a if b == 1 else max(a, b)
            for a, b in zip(one[-rank:], other[-rank:], strict=True)
        ]
    )
    return stack + ([x[-2]] if len(x) > 1 else []) + ([y[-1]] if len(y) > 1 else [])


@reads("MatMul")
def _read_matmul(node: Node) -> Expression:
    return _multiply(node, node.input(), node.input(1), node.dims(), node.dims(1))


@reads("Gemm")
def _read_gemm(node: Node) -> Expression:
    """Compute ``alpha A B + beta C``, each matrix transposed on request."""
    turned = bool(node.attr("transA", 0)), bool(node.attr("transB", 0))
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    x, y = node.input(), node.input(1)
    if turned == (False, False):
        out = node.emit("mul", x, y).scale(alpha)
    else:
        out = node.emit("matmul", x, y, transpose_X=turned[0], transpose_Y=turned[1], alpha=alpha)
    if node.has(2) and beta:
        out = out + node.input(2).scale(beta)
    return out


@reads("Einsum")
def _read_einsum(node: Node) -> Expression:
    equation = "".join(node.attr("equation", "").split())
    if "->" not in equation:
        letters = equation.replace(",", "").replace("...", "")
        single = sorted(one for one in set(letters) if letters.count(one) == 1)
        equation += "->" + ("..." if "..." in equation else "") + "".join(single)
    given, result = equation.split("->")
    known: dict[str, int] = {}
    for index, letters in enumerate(given.split(",")):
        if not letters:
            node.refuse("an input of it has no dims")
        if "." not in letters:
            known |= dict(zip(letters, node.dims(index), strict=True))
    dims = None if "." in result else [known[one] for one in result]
    return node.emit("einsum", {"Operands": node.inputs()}, equation=equation, shaped=dims)


@reads("Det")
def _read_det(node: Node) -> Expression:
    return node.emit("determinant", {"Input": node.input()}, shaped=node.dims()[:-2])
