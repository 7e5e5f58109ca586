"""Names of gradients where several backward passes are appended to one program, as in Paddle.

Names of earlier passes do not change. Pass n adds the prefix ``grad/`` n times, as in ``grad/grad/x@GRAD``;
the gradient that a pass starts from gets a suffix instead, ``loss@GRAD_0``.
"""

from __future__ import annotations

from paddlelike import unique_name
from paddlelike.backward.transform import Step, find_total_name, find_variable_name, restore_names
from paddlelike.framework import Block
from paddlelike.framework.opdef import EMPTY, GRAD, grad_name


class PassNames:
    """The names of the gradients of one pass, by their plain names."""

    def __init__(self, block: Block, *, counts: bool = True) -> None:
        """Number the pass in the program, unless ``counts`` is False, as inside branches."""
        block.program._backward_passes += counts
        self._block = block
        self._prefix = "grad/" * block.program._backward_passes
        self._names: dict[str, str] = {}
        self._plain: dict[str, str] = {}

    def start_at(self, variable: str, start: str | None = None) -> str:
        """Return the name of a variable's gradient where the pass starts.

        ``start`` is an existing variable that holds the gradient.
        """
        name = grad_name(variable)
        if start is None:
            start = unique_name.generate(name) if self._block._has_var_recursive(name) else name
        self._names[name] = start
        self._plain[start] = name
        return start

    def get_gradient(self, variable: str) -> str | None:
        """Return the name of a variable's gradient in this pass, or None if the pass does not compute it."""
        return self._names.get(grad_name(variable))

    def get_variable(self, name: str) -> str:
        """Return the variable that a gradient of this pass belongs to."""
        return find_variable_name(self._plain.get(name, name))

    def rename(self, steps: list[Step]) -> list[Step]:
        """Return copies of the steps that use the names of this pass."""
        return [self._rename_step(step) for step in steps]

    def _rename_step(self, step: Step) -> Step:
        grad = step.grad
        incoming = {grad_name(name) for name in step.forward.output_arg_names}
        inputs = {
            slot: [self._names.get(n, n) if n in incoming or "@RENAME" in n else n for n in names]
            for slot, names in grad.inputs.items()
        }
        outputs = {slot: [self._rename_output(n) for n in names] for slot, names in grad.outputs.items()}
        return Step(grad._replace(inputs=restore_names(inputs), outputs=outputs), step.forward, step.inner)

    def _rename_output(self, name: str) -> str:
        if name == EMPTY or GRAD not in name:
            return name
        taken = self._block._has_var_recursive(find_total_name(name))
        mine = self._names[name] = self._prefix + name if taken else name
        self._plain[mine] = name
        return mine
