"""Names of the gradients of a second backward pass over a program, and of those after it, as in Paddle.

A name that an earlier pass took stays its own: pass n writes ``grad/`` n times in front of it, as in
``grad/grad/x@GRAD``; the gradient a pass starts from is numbered instead, ``loss@GRAD_0``.
"""

from __future__ import annotations

from paddlelike import unique_name
from paddlelike.backward.grad_steps import Step, base
from paddlelike.framework.graph.block import Block
from paddlelike.framework.opdef import EMPTY, GRAD, grad_name

__all__ = ["PassNames"]


class PassNames:
    """What the gradients of one pass are called, by their plain names."""

    def __init__(self, block: Block) -> None:
        block.program._backward_passes += 1
        self._block = block
        self._prefix = "grad/" * block.program._backward_passes
        self._names: dict[str, str] = {}
        self._plain: dict[str, str] = {}

    def begin(self, variable: str, start: str | None = None) -> str:
        """The name of the gradient the pass starts from at a variable; ``start``: one that exists."""
        name = grad_name(variable)
        if start is None:
            start = unique_name.generate(name) if self._block._has_var_recursive(name) else name
        self._names[name] = start
        self._plain[start] = name
        return start

    def of(self, variable: str) -> str | None:
        """The gradient of a variable in this pass, if it computes one."""
        return self._names.get(grad_name(variable))

    def variable(self, name: str) -> str:
        """The variable that a gradient of this pass belongs to."""
        return base(self._plain.get(name, name))

    def give(self, steps: list[Step]) -> list[Step]:
        """The same steps with the names of this pass.

        The gradient of a loop also names gradients in its attributes; a pass that has one keeps plain names.
        """
        plain = any(step.inner is not None for step in steps)
        return [self._named(step, plain=plain) for step in steps]

    def _named(self, step: Step, *, plain: bool) -> Step:
        grad = step.grad
        incoming = {grad_name(name) for name in step.forward.output_arg_names}
        inputs = {
            slot: [self._names.get(n, n) if n in incoming or "@RENAME" in n else n for n in names]
            for slot, names in grad.inputs.items()
        }
        outputs = {
            slot: [self._output(n, plain=plain) for n in names] for slot, names in grad.outputs.items()
        }
        return step._replace(grad=grad._replace(inputs=inputs, outputs=outputs))

    def _output(self, name: str, *, plain: bool) -> str:
        if name == EMPTY or GRAD not in name:
            return name
        taken = not plain and self._block._has_var_recursive(name.split("@RENAME")[0])
        mine = self._names[name] = self._prefix + name if taken else name
        self._plain[mine] = name
        return mine
