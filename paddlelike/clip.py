"""Clipping of gradients.

Pass a gradient clip to an optimizer, ``SGD(0.1, grad_clip=GradientClipByGlobalNorm(1.0))``. Clips come before
weight decay. An error clip belongs to one variable and acts on its gradient as soon as that is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType, Versioned
from paddlelike.errors import GraphError
from paddlelike.foundation.docstrings import show_related
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import (
    OpRole,
    Parameter,
    Program,
    Variable,
    default_main_program,
    name_scope,
    warn_quirk,
)
from paddlelike.framework.opdef import GradOp, grad_name
from paddlelike.layers.elementwise.binary import elementwise_div, elementwise_max, elementwise_mul
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.constant import fill_constant

if TYPE_CHECKING:
    from paddlelike.framework import Block

__all__ = [
    "ErrorClipByValue",
    "GradientClipByGlobalNorm",
    "GradientClipByNorm",
    "GradientClipByValue",
    "append_gradient_clip_ops",
    "error_clip_callback",
    "set_gradient_clip",
]

ParamGrads = list[tuple[Parameter, Variable]]
Context = dict[str, Any]


class BaseErrorClipAttr(NearKeywords, Versioned):
    """Base class of the values that :meth:`Variable._set_error_clip` accepts."""

    def _append_clip_op(self, block: Block, grad: str) -> None:
        raise NotImplementedError


class ErrorClipByValue(BaseErrorClipAttr):
    """Limits every element of a variable's gradient to the range from ``min`` to ``max`` (operator ``clip``).

    Parameters
    ----------
    max
        The upper bound.
    min
        The lower bound; None for ``-max``.

    >>> str(ErrorClipByValue(2.0))
    'ByValue, min=-2.000000, max=2.000000'
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def __str__(self) -> str:
        return f"ByValue, min={self.min:f}, max={self.max:f}"

    def _append_clip_op(self, block: Block, grad: str) -> None:
        attrs = {"min": self.min, "max": self.max}
        clip = GradOp("clip", {"X": [grad]}, {"Out": [grad]}, attrs, own_attrs=True)
        block.append_grad_op(clip, block.ops[-1], OpRole.Backward)


def error_clip_callback(block: Block, context: Mapping[str, str]) -> None:
    """Clip the gradients that the last operator of ``block`` computed; called by ``append_backward``.

    Parameters
    ----------
    block
        The block of the gradients.
    context
        The names of variables, by the name of their gradient.

    Raises
    ------
    TypeError
        A variable's error clip has a class that is not accepted.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> pairs = fluid.backward.append_backward(loss, callbacks=[fluid.clip.error_clip_callback])
    >>> len(pairs)
    2
    """
    for name in block.ops[-1].output_arg_names:
        variable = block._find_var_recursive(context.get(name, ""))
        if variable is None or variable.error_clip is None or name != grad_name(variable.name):
            continue
        if not isinstance(variable.error_clip, BaseErrorClipAttr):
            raise TypeError(
                f"variable {variable.name!r}: its error clip must be an ErrorClipByValue, "
                f"got {variable.error_clip!r}"
            )
        variable.error_clip._append_clip_op(block, name)


class GradientClipBase(NearKeywords, Versioned):
    """Base of the gradient clips; a call with pairs of parameter and gradient returns clipped pairs.

    ``need_clip`` is called with each parameter; if it returns False the gradient is not clipped. Raises
    TypeError unless it is callable.
    """

    def __init__(self, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        if need_clip is not None and not callable(need_clip):
            raise TypeError(
                f"{self.__class__.__name__}: need_clip must be a function of a parameter, got {need_clip!r}"
            )
        self._need_clip_func = need_clip

    def __call__(self, params_grads: ParamGrads) -> ParamGrads:
        """Append the operators of this clip, and return the pairs with clipped gradients."""
        if any(param.gradient_clip_attr is not None for param, _ in params_grads):
            warn_user("set_gradient_clip has no effect: the optimizer has a grad_clip of its own")
        wanted = [pair for pair in params_grads if self._needs_clip(pair[0])]
        if not wanted:
            return params_grads
        with name_scope("gradient_clip"):
            start = _count_operators(wanted)
            clipped = self._clip(wanted, last=params_grads[-1])
            _update_role_vars(start, clipped)
        new = {param.name: grad for param, grad in clipped}
        return [(param, new.get(param.name, grad)) for param, grad in params_grads]

    def _needs_clip(self, param: Parameter) -> bool:
        return self._need_clip_func is None or bool(self._need_clip_func(param))

    def _clip(self, params_grads: ParamGrads, last: tuple[Parameter, Variable]) -> ParamGrads:
        clipped = []
        for param, grad in params_grads:
            with param.block.program._optimized_guard([param, grad]):
                clipped.append((param, self._clip_one(grad, {})))
        return clipped

    # For set_gradient_clip, the same in two passes over the parameters.

    def _process_context(self, context: Context, param: Parameter, grad: Variable) -> None:
        """First pass: collect what is needed from all gradients."""

    def _clip_one(self, grad: Variable, context: Context) -> Variable:
        """Second pass: return the clipped gradient."""
        raise NotImplementedError


class GradientClipByValue(GradientClipBase):
    """Limits every element to the range from ``min`` to ``max`` (operator ``clip``).

    Parameters
    ----------
    max
        The upper bound.
    min
        The lower bound; None for ``-max``.
    need_clip
        A function of a parameter that returns whether to clip its gradient; None for all.

    Raises
    ------
    GraphError
        ``need_clip`` is not a function.

    >>> str(GradientClipByValue(1.0))
    'Gradient Clip By Value, min = -1.000000, max=1.000000'
    """

    def __init__(
        self, max: float, min: float | None = None, need_clip: Callable[[Parameter], bool] | None = None
    ) -> None:
        super().__init__(need_clip)
        if min is None and not max > 0.0:
            raise GraphError(
                f"GradientClipByValue: max is {max}, expected a positive number when min is None"
            )
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def __str__(self) -> str:
        return f"Gradient Clip By Value, min = {self.min:f}, max={self.max:f}"

    def _clip_one(self, grad: Variable, context: Context) -> Variable:
        return emit("clip", {"X": grad}, {"min": self.min, "max": self.max})


class GradientClipByNorm(GradientClipBase):
    """Limits the norm of each gradient to ``clip_norm``: ``g * min(1, clip_norm / |g|)`` (operator
    ``clip_by_norm``).

    Parameters
    ----------
    clip_norm
        The largest norm of each gradient.
    need_clip
        A function of a parameter that returns whether to clip its gradient; None for all.

    >>> import paddlelike as fluid
    >>> clip = fluid.clip.GradientClipByNorm(clip_norm=1.0)
    >>> optimizer = fluid.optimizer.SGD(0.1, grad_clip=clip)
    """

    def __init__(self, clip_norm: float, need_clip: Callable[[Parameter], bool] | None = None) -> None:
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _clip_one(self, grad: Variable, context: Context) -> Variable:
        return emit("clip_by_norm", {"X": grad}, {"max_norm": self.clip_norm})


class GradientClipByGlobalNorm(GradientClipBase):
    """Limits the global norm of gradients to ``clip_norm``: ``g * clip_norm / max(clip_norm, |all g|)``.

    ``group_name`` is used by :func:`set_gradient_clip` only.

    Parameters
    ----------
    clip_norm
        The largest norm of all gradients together.
    group_name
        The group of parameters whose norm counts. Only :func:`set_gradient_clip` reads it.
    need_clip
        A function of a parameter that returns whether to clip its gradient; None for all.

    >>> import paddlelike as fluid
    >>> clip = fluid.clip.GradientClipByGlobalNorm(clip_norm=5.0)
    >>> optimizer = fluid.optimizer.SGD(0.1, grad_clip=clip)
    """

    def __init__(
        self,
        clip_norm: float,
        group_name: str = "default_group",
        need_clip: Callable[[Parameter], bool] | None = None,
    ) -> None:
        super().__init__(need_clip)
        self.clip_norm = float(clip_norm)
        self.group_name = group_name

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _clip(self, params_grads: ParamGrads, last: tuple[Parameter, Variable]) -> ParamGrads:
        program = last[0].block.program
        squares = []
        for pair in params_grads:
            with program._optimized_guard(pair):
                squares.append(_square_sum(pair[1]))
        with program._optimized_guard(last):
            norm = _norm(squares)
            limit = fill_constant(shape=[1], dtype=norm.dtype, value=self.clip_norm)
            factor = _ratio(limit, norm)
        clipped = []
        for param, grad in params_grads:
            with program._optimized_guard([param, grad]):
                clipped.append((param, _multiply(grad, factor)))
        return clipped

    def _process_context(self, context: Context, param: Parameter, grad: Variable) -> None:
        group = context.setdefault(self.group_name, {"norm": self.clip_norm, "squares": []})
        if group["norm"] != self.clip_norm:
            raise GraphError(
                f"set_gradient_clip: group {self.group_name!r} has clip_norm {group['norm']} and, for "
                f"{param.name!r}, {self.clip_norm}; expected one clip_norm per group"
            )
        if "limit" not in group:
            group["limit"] = fill_constant(shape=[1], dtype=grad.dtype, value=self.clip_norm)
        group["squares"].append(_square_sum(grad))

    def _clip_one(self, grad: Variable, context: Context) -> Variable:
        group = context[self.group_name]
        if "factor" not in group:
            group["factor"] = _ratio(group["limit"], _norm(group["squares"]))
        return _multiply(grad, group["factor"])


def set_gradient_clip(
    clip: GradientClipBase,
    param_list: Sequence[Parameter | str] | None = None,
    program: Program | None = None,
) -> None:
    """Set the clip of parameters, before ``minimize``. Deprecated: prefer the optimizer's ``grad_clip``.

    As in Fluid 1.8 it works only when all trained parameters have the same clip, otherwise it warns: see
    ``fluid.quirks()``.

    Parameters
    ----------
    clip
        A gradient clip of this module.
    param_list
        Parameters or their names; None for all of ``program``.
    program
        The program of the parameters; None for the default main program.

    Raises
    ------
    TypeError
        ``clip`` is not a gradient clip, or ``param_list`` holds something other than parameters and their
        names.

    >>> import warnings
    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> with warnings.catch_warnings(action="ignore"):  # it is the older way
    ...     fluid.clip.set_gradient_clip(fluid.clip.GradientClipByValue(1.0))
    """
    warn_user("set_gradient_clip is the older way to clip; give the optimizer a grad_clip instead")
    if not isinstance(clip, GradientClipBase):
        raise TypeError(f"set_gradient_clip: clip must be a gradient clip of fluid.clip, got {clip!r}")
    program = default_main_program() if program is None else program
    block = program.global_block()
    if any("optimizer" in op.attrs.get("op_namescope", "") for op in block.ops):
        warn_user("set_gradient_clip has no effect after minimize; call it before")
    chosen = block.all_parameters() if param_list is None else [_parameter(block, p) for p in param_list]
    for param in chosen:
        param.gradient_clip_attr = clip


def append_gradient_clip_ops(param_grads: Iterable[tuple[Parameter, Variable]]) -> ParamGrads:
    """Append the clips set by :func:`set_gradient_clip`, and return the pairs with clipped gradients.

    Parameters
    ----------
    param_grads
        Pairs of a parameter and its gradient.

    Returns
    -------
    list
        Pairs of a parameter and its clipped gradient, in the order given.

    >>> import warnings
    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> with warnings.catch_warnings(action="ignore"):  # it is the older way
    ...     fluid.clip.set_gradient_clip(fluid.clip.GradientClipByNorm(1.0))
    >>> pairs = fluid.clip.append_gradient_clip_ops(fluid.backward.append_backward(loss))
    >>> len(pairs)
    2
    """
    pairs = list(param_grads)
    clips = [param.gradient_clip_attr for param, _ in pairs]
    if not any(clips):
        return pairs
    context: Context = {}
    start = _count_operators(pairs)
    for (param, grad), clip in zip(pairs, clips, strict=True):
        with param.block.program._optimized_guard([param, grad]), name_scope("gradient_clip_@CLIP"):
            if clip is not None:
                clip._process_context(context=context, param=param, grad=grad)
            elif warn_quirk("set_gradient_clip"):
                return pairs
    measured = _count_operators(pairs)
    if any(clip is not clips[-1] for clip in clips) and warn_quirk("set_gradient_clip"):
        clips = clips[-1:] * len(clips)
    clipped = []
    for (param, grad), clip in zip(pairs, clips, strict=True):
        # Spelled as in Fluid: programs must be equal.
        with param.block.program._optimized_guard([param, grad]), name_scope("graident_clip_@CLIP"):
            clipped.append((param, grad if clip is None else clip._clip_one(grad, context)))
    _update_role_vars(start, clipped, until=measured)
    return clipped


def _parameter(block: Block, param: Parameter | str) -> Parameter:
    found = block.var(param) if isinstance(param, str) else param
    if not isinstance(found, Parameter):
        raise TypeError(f"set_gradient_clip: param_list must hold parameters or their names, got {param!r}")
    return found


def _count_operators(pairs: ParamGrads) -> int:
    """Return the number of operators in the program so far."""
    return len(pairs[0][0].block.program.global_block().ops)


def _update_role_vars(start: int, clipped: ParamGrads, until: int | None = None) -> None:
    """Write the new gradient into ``op_role_var`` of the operators since ``start``."""
    new = {param.name: grad.name for param, grad in clipped}
    for op in clipped[0][0].block.program.global_block().ops[start:until]:
        role = op.attrs["op_role_var"]
        if role and role[0] in new:
            op._set_attr("op_role_var", [role[0], new[role[0]]])


def _square_sum(grad: Variable) -> Variable:
    """Return the sum of the squares of a gradient, dense or sparse."""
    if grad.type == VarType.SELECTED_ROWS:
        grad = emit("get_tensor_from_selected_rows", {"X": emit("merge_selected_rows", {"X": grad})})
    attrs = {"dim": [0], "keep_dim": False, "reduce_all": True}
    return emit("reduce_sum", {"X": emit("square", {"X": grad})}, attrs)


def _norm(squares: list[Variable]) -> Variable:
    return emit("sqrt", {"X": emit("sum", {"X": squares}, {"use_mkldnn": False})})


def _ratio(limit: Variable, norm: Variable) -> Variable:
    """Return ``limit / max(limit, norm)``."""
    return elementwise_div(limit, elementwise_max(limit, norm))


def _multiply(grad: Variable, factor: Variable) -> Variable:
    return elementwise_mul(grad, factor)


# Fluid's shorter names.
ClipByValue = GradientClipByValue
ClipByNorm = GradientClipByNorm
ClipByGlobalNorm = GradientClipByGlobalNorm

show_related(__name__)
