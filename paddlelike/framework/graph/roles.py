"""The roles of the operators that are appended to a program: forward, backward, update, schedule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from paddlelike.framework.graph.operator import DEVICE, NAME_SCOPE, OpRole
from paddlelike.framework.graph.variable import Variable


class Roles:
    """The part of a program that records the role for new operators."""

    def __init__(self) -> None:
        self._op_role = OpRole.Forward
        self._op_role_var: list[str] = []

    @property
    def _current_role(self) -> int:
        """Fluid's name for the role of newly appended operators."""
        return self._op_role

    @_current_role.setter
    def _current_role(self, role: int) -> None:
        self._op_role = int(role)

    @property
    def _common_attrs(self) -> dict[str, Any]:
        """The attributes that every operator appended now gets."""
        return {
            "op_role": self._op_role,
            "op_role_var": self._op_role_var,
            "op_namescope": NAME_SCOPE.get().path,
            "op_device": DEVICE.get(),
        }

    @contextmanager
    def _role_guard(self, role: int, variables: Sequence[Variable | str] = ()) -> Iterator[None]:
        before = self._op_role, self._op_role_var
        self._op_role = role
        self._op_role_var = [v if isinstance(v, str) else v.name for v in variables]
        try:
            yield
        finally:
            self._op_role, self._op_role_var = before

    def _optimized_guard(self, param_and_grads: Sequence[Any]) -> AbstractContextManager[None]:
        """Mark operators appended inside as updates of these variables."""
        return self._role_guard(OpRole.Optimize, [v for v in param_and_grads if v is not None])

    def _lr_schedule_guard(self, is_with_opt: bool = False) -> AbstractContextManager[None]:
        """Mark operators appended inside the ``with`` as computing a learning rate."""
        return self._role_guard(OpRole.LRSched | (OpRole.Optimize if is_with_opt else 0))

    def _backward_role_guard(self) -> object:
        """Mark operators appended inside the ``with`` as part of the backward pass."""
        return self._role_guard(OpRole.Backward)
