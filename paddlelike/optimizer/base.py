"""The base class of all optimizers: backward pass, clips, decay, state, one update operator per parameter.

An optimizer declares the type of its operator, the accumulators that the operator reads, and its attributes.
The operator itself declares which accumulator an output overwrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from paddlelike.backward import append_backward
from paddlelike.clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from paddlelike.core import VarType
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    device_guard,
    name_scope,
    program_guard,
)
from paddlelike.framework.opdef import registry
from paddlelike.optimizer.state import Accumulator, ParamGrad, ParamGrads, State
from paddlelike.regularizer import append_regularization_ops

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["Optimizer"]


#: Arguments of Fluid's optimizers that its operators call otherwise.
_OF_ARGUMENTS: Final = {"_momentum": "mu", "_rho": "decay"}


def _make_refusal(method: str, hint: str) -> Callable[..., NoReturn]:
    """Return a method that raises an error for imperative mode, since a graph has its values in a scope."""

    def refuse(self: Optimizer, *args: object) -> NoReturn:
        who = self.__class__.__name__
        raise UnsupportedError(
            f"{who}.{method} belongs to imperative mode, which is not supported", hint=hint
        )

    refuse.__name__ = method
    refuse.__doc__ = f"""Raise UnsupportedError: it needs imperative mode, as in Fluid. Instead, {hint}.

    Raises
    ------
    UnsupportedError
        Always.
    """
    return refuse


class Optimizer(State):
    """Base class of all optimizers: appends to a program the operators that minimize a loss.

    Parameters
    ----------
    learning_rate
        A number, or a variable of shape ``[1]`` such as a schedule of ``fluid.layers``.
    parameter_list
        The parameters to change, or their names; None for all trainable ones.
    regularization
        A regularizer for the parameters that have none of their own; None for no decay.
    grad_clip
        A gradient clip of :mod:`paddlelike.clip`; None for no clip.
    name
        The NAME in names of accumulators, such as ``w_NAME_velocity_0``; None for none.

    Raises
    ------
    TypeError
        The learning rate or the clip has a class that is not accepted.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1, name="out"))
    >>> rate = fluid.layers.exponential_decay(0.1, decay_steps=100, decay_rate=0.5)
    >>> clip = fluid.clip.GradientClipByGlobalNorm(1.0)
    >>> _ = fluid.optimizer.Momentum(rate, 0.9, parameter_list=["out.w_0"], grad_clip=clip).minimize(loss)
    """

    #: The operator that updates one parameter.
    type: ClassVar[str]
    #: Input slots of the operator besides parameter, gradient and learning rate.
    accumulators: Mapping[str, Accumulator] = {}
    _checkpoints: Sequence[Variable | str] | None = None  # of RecomputeOptimizer

    def __init__(
        self,
        learning_rate: float | Variable,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, name)
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            who = self.__class__.__name__
            raise TypeError(
                f"{who}: grad_clip must be a gradient clip of fluid.clip, got {grad_clip!r}\n"
                "  hint: fluid.clip.GradientClipByGlobalNorm(5.0)"
            )
        self._parameter_list = parameter_list
        self.regularization = regularization
        self._grad_clip = grad_clip
        self._attrs: dict[str, Any] = {}

    # The public interface

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], ParamGrads]:
        """Append the operators of one training step to the program of ``loss``.

        A warning names parameters that the program updates already, since every run then updates them twice.

        Parameters
        ----------
        loss
            A variable of shape ``[1]``.
        startup_program
            The program that initializes learning rate and accumulators; None for the default startup program.
        parameter_list
            Parameters to update, instead of those given to the optimizer.
        no_grad_set
            Variables, or their names, at which the backward pass stops.

        Returns
        -------
        updates : list
            The operators that update the parameters.
        pairs : list
            Each parameter with the variable of its gradient.

        Raises
        ------
        GraphError
            ``loss`` is not of shape [1], or this optimizer already keeps accumulators for these parameters.
        TypeError
            ``loss`` is not a variable.

        >>> import paddlelike as fluid
        >>> x, y = fluid.data("x", [None, 3]), fluid.data("y", [None, 1])
        >>> loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
        >>> updates, gradients = fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        >>> [update.type for update in updates], [(p.name, g.name) for p, g in gradients]
        (['sgd', 'sgd'], [('fc_0.w_0', 'fc_0.w_0@GRAD'), ('fc_0.b_0', 'fc_0.b_0@GRAD')])
        """
        if isinstance(loss, Variable) and startup_program is None:
            _warn_of_guard(loss)
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        self._warn_of_updates(loss.block.program, {param.name for param, _ in params_grads})
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
    ) -> ParamGrads:
        """Append the backward pass, and return pairs of parameter and gradient.

        This is the first half of :meth:`minimize`, for scripts that change the gradients before
        :meth:`apply_gradients`.

        Parameters
        ----------
        loss
            The loss, a variable of shape [1].
        startup_program
            The program of the initial values; None for the default one.
        parameter_list
            The parameters to differentiate by, or their names; None for the parameters of the optimizer.
        no_grad_set
            Variables, or their names, through which no gradient passes; None for none.
        callbacks
            Functions that are called with each gradient operator that is appended; None for none.

        Returns
        -------
        list
            Pairs of a parameter and the variable of its gradient.

        Raises
        ------
        GraphError, TypeError
            The same as in :meth:`minimize`.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> optimizer = fluid.optimizer.SGD(learning_rate=0.1)
        >>> gradients = [(p, fluid.layers.clip(g, -1.0, 1.0)) for p, g in optimizer.backward(loss)]
        >>> [update.type for update in optimizer.apply_gradients(gradients)]
        ['sgd', 'sgd']
        """
        self._check_loss(loss)
        for name, value in self._attrs.items():
            if isinstance(value, list | tuple) and value and isinstance(value[0], Parameter):
                raise TypeError(
                    f"{type(self).__name__}: {name} is a list of parameters, expected a number\n"
                    "  hint: pass them by name: parameter_list=[...]"
                )
        if loss is self._learning_rate:
            raise GraphError(
                f"{type(self).__name__}: the loss {loss.name!r} is the learning rate, too",
                hint=f"the rate comes first: {type(self).__name__}(learning_rate=0.001).minimize(loss)",
            )
        program = loss.block.program
        chosen = parameter_list if parameter_list else self._parameter_list
        self._check_fresh(program, chosen)
        self._dtype = loss.dtype
        # With recomputation, Fluid has the gradients of these too.
        frozen = set() if self._checkpoints else {p.name for p in program.all_parameters() if not p.trainable}
        names = (one if isinstance(one, str) else one.name for one in chosen or ())
        given = [program.global_block().vars.get(name) for name in names]
        others = [one.name for one in given if one is not None and not isinstance(one, Parameter)]
        if others:
            raise GraphError(f"{type(self).__name__}: {others} in parameter_list are not parameters")
        with program_guard(program, startup_program):
            found = append_backward(
                loss,
                parameter_list=chosen,
                no_grad_set={*(no_grad_set or ()), *frozen},
                callbacks=[*(callbacks or ()), error_clip_callback],
                checkpoints=self._checkpoints,
            )
        pairs = [(parameter, grad) for parameter, grad in found if isinstance(parameter, Parameter)]
        if not pairs:
            warn_user(
                f"{type(self).__name__}: {loss.name!r} does not depend on any trained parameter, so "
                "nothing will be updated"
            )
        return pairs

    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Append gradient clips, weight decay and update operators, and return the update operators.

        This is the second half of :meth:`minimize`.

        Parameters
        ----------
        params_grads
            Pairs of a parameter and its gradient, as :meth:`backward` returns them.

        Returns
        -------
        list
            The operators that update the parameters.

        >>> import paddlelike as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> optimizer = fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.01))
        >>> [update.type for update in optimizer.apply_gradients(optimizer.backward(loss))]
        ['sgd', 'sgd']
        """
        params_grads = sorted(params_grads, key=lambda pair: pair[0].name)
        params_grads, of_tables = self._update_distributed_tables(params_grads)
        if self._grad_clip is not None:
            params_grads = self._grad_clip(params_grads)
        else:
            params_grads = append_gradient_clip_ops(params_grads)
        params_grads = append_regularization_ops(params_grads, self.regularization)
        return [*self._create_optimization_pass(params_grads), *of_tables]

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """Call :meth:`apply_gradients` in the program of ``loss``, and return its result.

        Parameters
        ----------
        loss
            The loss that was differentiated.
        startup_program
            The program of the initial values; None for the default one.
        params_grads
            Pairs of a parameter and its gradient, as :meth:`backward` returns them.

        Returns
        -------
        list
            The operators that update the parameters.

        >>> import paddlelike as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
        >>> optimizer = fluid.optimizer.SGD(learning_rate=0.1)
        >>> gradients = optimizer.backward(loss, startup)
        >>> len(optimizer.apply_optimize(loss, startup, gradients))
        2
        """
        program = loss.block.program
        with program_guard(program, startup_program), _enter_backward_block(program):
            return self.apply_gradients(params_grads)

    state_dict = _make_refusal("state_dict", "save the state with fluid.save or fluid.io.save_persistables")
    set_dict = _make_refusal("set_dict", "load the state with fluid.load or fluid.io.load_persistables")
    current_step_lr = _make_refusal("current_step_lr", "fetch the learning rate's variable from the executor")
    clear_gradients = _make_refusal(
        "clear_gradients", "leave the call out: every run computes the gradients again"
    )

    if not TYPE_CHECKING:  # a type checker finds the mistake itself

        def __getattr__(self, name: str) -> Any:
            """Return attributes that subclasses of Fluid use: ``_beta1``, ``_moment1_acc_str`` and the like.

            For other names raise AttributeError, with advice for names of other frameworks.
            """
            attrs = vars(self).get("_attrs", {})
            for own in (name[1:], _OF_ARGUMENTS.get(name, "")):
                if name[:1] == "_" and own in attrs:
                    return attrs[own]
            if name.endswith("_acc_str"):
                own = name.removesuffix("_acc_str").lstrip("_")
                for accumulator in self.accumulators.values():
                    if accumulator.name.lstrip("_") == own:
                        return accumulator.name
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in ("step", "zero_grad", "clear_grad", "clear_gradients"):
                text += (
                    ": minimize appended the update to the program\n"
                    "  hint: call minimize(loss) once, while the network is built; each "
                    "exe.run(program, feed=...) then trains one step, with new gradients"
                )
            raise AttributeError(text, name=name, obj=self)

    def _warn_of_updates(self, program: Program, names: set[str]) -> None:
        """Warn about parameters that another call of ``minimize`` already updates in the same run."""
        updated = [one for op in program.global_block().ops for one in op.outputs.get("ParamOut", ())]
        again = sorted(names.intersection(updated))
        if again:
            warn_user(
                f"{type(self).__name__}.minimize: the program updates {again[0]!r}"
                f"{f' and {len(again) - 1} more' if again[1:] else ''} already, so that every run updates "
                "them twice. Call minimize once per program; clone the program before it for another loss"
            )

    # To be overridden by subclasses

    def _append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        """Append the operator that updates one parameter."""
        param, grad = param_and_grad
        cls = registry.find(self.type)
        rows = getattr(cls, "rows", None)  # the way to apply a sparse gradient
        if param.type == VarType.SELECTED_ROWS and (rows is None or rows.name == "REFUSED"):
            raise GraphError(
                f"{type(self).__name__}: {param.name!r} is a growing table "
                "(sparse_embedding), and this optimizer cannot update single rows",
                hint="SGD, Momentum, Adagrad, Adam, Ftrl and RMSProp update its rows one by one",
            )
        inputs: dict[str, Any] = {"Param": param, "Grad": grad, **self._extra_inputs()}
        if any(slot.name == "LearningRate" for slot in cls.input_slots):
            inputs["LearningRate"] = self._create_param_lr(param_and_grad)
        for slot, accumulator in self.accumulators.items():
            inputs[slot] = self._get_accumulator(accumulator.name, param)
        outputs = {slot: inputs[source] for slot, source in cls.inplace.items()}
        attrs = self._make_attrs(param)
        return block.append_op(type=self.type, inputs=inputs, outputs=outputs, attrs=attrs)

    def _make_attrs(self, param: Parameter) -> dict[str, Any]:
        """Return the attributes of the operator that updates ``param``."""
        return self._attrs

    def _extra_inputs(self) -> dict[str, Variable]:
        """Return the inputs of the operator that all parameters share."""
        return {}

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        defaults = registry.find(self.type).attrs
        for parameter in parameters:
            for accumulator in self.accumulators.values():
                fill = accumulator.fill
                if isinstance(fill, str):
                    fill = self._attrs.get(fill, defaults[fill].default)
                self._add_accumulator(
                    accumulator.name,
                    parameter,
                    fill_value=fill,
                    shape=[1] if accumulator.single else None,
                    type=VarType.LOD_TENSOR if accumulator.single else None,
                    device=accumulator.device,
                )

    def _finish_update(self, block: Block, parameters_and_grads: ParamGrads) -> None:
        """Append operators that follow the updates of all parameters."""

    # Steps of apply_gradients

    def _create_optimization_pass(self, params_grads: ParamGrads) -> list[Operator]:
        block = default_main_program().current_block()
        if block.forward_block_idx == -1:  # no backward pass of a branch
            block = default_main_program().global_block()
        start = len(block.ops)
        trained = [pair for pair in params_grads if pair[0].trainable]
        self._note_devices(block, trained)
        self._create_accumulators(block, [param for param, _ in trained])
        self._create_global_learning_rate()
        for pair in trained:
            with (
                block.program._optimized_guard(pair),
                name_scope("optimizer"),
                device_guard(self._devices.get(pair[0].name, "")),
            ):
                self._append_optimize_op(block, pair)
        self._finish_update(block, params_grads)
        return block.ops[start:]

    def _update_distributed_tables(self, params_grads: ParamGrads) -> tuple[ParamGrads, list[Operator]]:
        """Append ``sgd`` for tables on servers; return the other pairs and the appended operators."""
        block = default_main_program().global_block()
        lookups = [op for op in block.ops if op.type == "lookup_table" and op.attrs.get("is_distributed")]
        tables = {op.input("W")[0] for op in lookups}
        updates = []
        for param, grad in params_grads:
            if param.name in tables:
                self._create_global_learning_rate()
                with block.program._optimized_guard([param, grad]), name_scope("optimizer"):
                    rate = self._create_param_lr((param, grad))
                    inputs = {"Param": param, "Grad": grad, "LearningRate": rate}
                    updates.append(block.append_op("sgd", inputs, {"ParamOut": param}))
        return [pair for pair in params_grads if pair[0].name not in tables], updates

    def _note_devices(self, block: Block, params_grads: ParamGrads) -> None:
        """Record for each parameter the device of the first operator that reads it."""
        wanted = {param.name for param, _ in params_grads}
        for op in block.ops:
            for name in wanted.intersection(op.input_arg_names):
                wanted.remove(name)
                self._devices[name] = op.attrs.get("op_device", "")

    # Checks

    def _check_loss(self, loss: Variable) -> None:
        who = self.__class__.__name__
        if not isinstance(loss, Variable):
            raise TypeError(f"{who}: loss must be a variable of the program, got {loss!r}")
        if tuple(loss.shape) != (1,):
            raise GraphError(
                f"{who}: loss {loss.name!r} has shape {list(loss.shape)}, expected [1]",
                hint="reduce it to one value, as layers.mean does",
            )


@contextmanager
def _enter_backward_block(program: Program) -> Iterator[None]:
    """Append to the block with the backward pass, if the current block is a branch that has one."""
    before = program.current_block_idx
    backward = program.current_block().backward_block
    if backward is not None:
        program.current_block_idx = backward.idx
    try:
        yield
    finally:
        program.current_block_idx = before


def _warn_of_guard(loss: Variable) -> None:
    """Warn if ``minimize`` is called outside the ``program_guard`` in which the loss was built."""
    program, current = loss.block.program, default_main_program()
    if program is current:
        return
    if current.global_block().has_var(loss.name):
        warn_user(
            f"minimize trains the program in which the loss {loss.name!r} was built, and not the default "
            "main program, which looks like a clone of it: to train that one, pass its own variable, "
            f"fluid.default_main_program().global_block().var({loss.name!r})"
        )
    elif program._startup not in (None, default_startup_program()):
        warn_user(
            "minimize adds the first values of the optimizer's variables to the default startup program, and "
            "the loss was built with another one: call it under the same fluid.program_guard, or pass "
            "startup_program="
        )
