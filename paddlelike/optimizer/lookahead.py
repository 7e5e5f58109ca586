"""Lookahead: slow weights that follow fast ones every few steps."""

from __future__ import annotations

from paddlelike.core.versioned import Versioned
from paddlelike.errors import GraphError
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.guards import default_startup_program, program_guard
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.control.branches import Switch
from paddlelike.layers.elementwise.binary import (
    elementwise_add,
    elementwise_mod,
    elementwise_mul,
    elementwise_sub,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.assign import assign, create_global_var
from paddlelike.layers.tensor.constant import fill_constant
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import ParamGrads

__all__ = ["LookaheadOptimizer"]


class LookaheadOptimizer(NearKeywords, Versioned):
    """After every ``k`` steps of ``inner_optimizer``: ``slow += alpha * (fast - slow); fast = slow``.

    Zhang et al., Lookahead optimizer: k steps forward, 1 step back, 2019. The slow weights are
    ``<parameter>@SLOW``. As in Fluid these operators belong to the forward part: create the test program
    with ``clone(for_test=True)`` before ``minimize``. Raises GraphError for arguments out of range.

    Parameters
    ----------
    inner_optimizer
        The optimizer that makes the fast steps.
    alpha
        The share of the way to the fast weights that the slow ones go.
    k
        The count of fast steps between two slow ones.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> optimizer = fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=5)
    >>> updates, gradients = optimizer.minimize(loss)
    >>> [p.name for p in fluid.default_main_program().list_vars() if p.name.endswith("@SLOW")]
    ['fc_0.w_0@SLOW', 'fc_0.b_0@SLOW']
    """

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        if inner_optimizer is None:
            raise GraphError("LookaheadOptimizer: inner_optimizer is None, expected an optimizer")
        if not 0.0 <= alpha <= 1.0:
            raise GraphError(f"LookaheadOptimizer: alpha is {alpha}, expected 0.0 .. 1.0")
        if not isinstance(k, int) or k <= 0:
            raise GraphError(f"LookaheadOptimizer: k is {k!r}, expected an int of 1 or more")
        self.inner_optimizer = inner_optimizer
        self.alpha = alpha
        self.k = k
        self.type = "lookahead"

    def minimize(
        self, loss: Variable, startup_program: Program | None = None
    ) -> tuple[list[Operator], ParamGrads]:
        """Minimize by the inner optimizer and append the slow weights; return the former's result.

        Raises as the ``minimize`` of the inner optimizer does.
        """
        result = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        startup = default_startup_program() if startup_program is None else startup_program
        pairs = _create_slow_weights(loss.block.program, startup)
        with program_guard(loss.block.program, startup):
            self._update_slow_weights(pairs)
        return result

    def _update_slow_weights(self, pairs: list[tuple[Variable, Variable]]) -> None:
        """Append the operators that update the slow weights every ``k`` steps."""
        k = create_global_var([1], int(self.k), "int32", persistable=True, name="lookahead_k")
        alpha = create_global_var([1], self.alpha, "float32", persistable=True, name="lookahead_alpha")
        step = create_global_var([1], 0, "int32", persistable=True, name="lookahead_step")
        emit("increment", {"X": step}, {"step": 1.0}, out=step)
        zero = fill_constant([1], "float32", 0.0)
        one = fill_constant([1], "float32", 1.0)
        phase = elementwise_mod(step, k)
        with Switch() as switch:
            with switch.case(phase == zero):
                for fast, slow in pairs:
                    near = elementwise_mul(fast, alpha)
                    rest = elementwise_sub(one, alpha)
                    far = elementwise_mul(slow, rest)
                    mean = elementwise_add(near, far)
                    assign(mean, output=slow)
                    assign(mean, output=fast)
            with switch.default():
                pass


def _create_slow_weights(main: Program, startup: Program) -> list[tuple[Variable, Variable]]:
    """Return the parameters with their slow weights, which are initialized as copies."""
    pairs = [(fast, _create_slow_weight(main.global_block(), fast)) for fast in main.all_parameters()]
    first = startup.global_block()
    for fast, _ in pairs:
        twin = _create_slow_weight(first, fast)
        first.append_op(type="assign", inputs={"X": first.var(fast.name)}, outputs={"Out": twin})
    return list(pairs)


def _create_slow_weight(block: Block, fast: Variable) -> Variable:
    return block.create_var(name=f"{fast.name}@SLOW", shape=fast.shape, dtype=fast.dtype, persistable=True)
