"""The base of all optimizers: backward pass, clips, decay, state, one update operator per parameter.

An optimizer is a table: the type of its operator, the accumulators that its operator reads, and the
attributes it gives to it. Which accumulator an output overwrites is the operator's own knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

from paddlelike import unique_name
from paddlelike.backward import append_backward
from paddlelike.clip import GradientClipBase, append_gradient_clip_ops, error_clip_callback
from paddlelike.core.dtypes import VarType
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.framework import registry
from paddlelike.framework.block import Block
from paddlelike.framework.operator import Operator
from paddlelike.framework.program import (
    Program,
    default_main_program,
    device_guard,
    name_scope,
    program_guard,
)
from paddlelike.framework.variable import Parameter, Variable
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper
from paddlelike.regularizer import append_regularization_ops

__all__ = ["Accumulator", "Optimizer", "ParamGrad", "ParamGrads"]

ParamGrad = tuple[Parameter, Variable]
ParamGrads = list[ParamGrad]


class Accumulator(NamedTuple):
    """A variable that an update keeps for each parameter."""

    name: str
    fill: float | str = 0.0  # a str: the attribute of the operator that it starts with
    single: bool = False  # one number, whatever the parameter's shape
    device: str | None = None  # None: where the parameter is used


def _refused(method: str, hint: str) -> Callable[..., NoReturn]:
    """A method of imperative mode: a graph's values live in a scope."""

    def refuse(self: Optimizer, *args: Any) -> NoReturn:
        who = self.__class__.__name__
        raise UnsupportedError(f"{who}.{method} belongs to imperative mode, which is not offered", hint=hint)

    refuse.__name__ = method
    refuse.__doc__ = f"Refused, as in Fluid: it belongs to imperative mode. Instead, {hint}."
    return refuse


class Optimizer:
    """Changes parameters so that a loss becomes smaller.

    Parameters
    ----------
    learning_rate
        A number, or a variable of shape ``[1]`` such as a schedule of ``fluid.layers`` gives.
    parameter_list
        Parameters, or their names, to change; None: all trainable ones.
    regularization
        A regularizer for every parameter that has none of its own.
    grad_clip
        A gradient clip of :mod:`paddlelike.clip`.
    name
        Becomes part of the names of the accumulators.

    Raises
    ------
    TypeError
        For a learning rate or a clip of another kind.
    """

    #: The operator that updates one parameter.
    type: ClassVar[str]
    #: What the operator's input slots hold besides parameter, gradient and learning rate.
    accumulators: Mapping[str, Accumulator] = {}

    def __init__(
        self,
        learning_rate: float | Variable,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: Any = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        who = self.__class__.__name__
        if not isinstance(learning_rate, float | Variable):
            raise TypeError(
                f"{who}: learning_rate is a float or a variable, "
                f"not {learning_rate!r} ({learning_rate.__class__.__name__})"
            )
        if grad_clip is not None and not isinstance(grad_clip, GradientClipBase):
            raise TypeError(f"{who}: grad_clip is a gradient clip of fluid.clip, not {grad_clip!r}")
        self._learning_rate = learning_rate
        self._parameter_list = parameter_list
        self.regularization = regularization
        self._grad_clip = grad_clip
        self._name = name
        self._attrs: dict[str, Any] = {}
        self._dtype: VarType | None = None  # of the loss
        self._learning_rate_map: dict[Program, Variable] = {}
        if isinstance(learning_rate, Variable):
            self._learning_rate_map[default_main_program()] = learning_rate
        self._accumulators: dict[str, dict[str, Variable]] = {}  # by name, by parameter
        self._opti_name_list: list[str] = []
        self._devices: dict[str, str] = {}  # of parameters

    # What a script calls

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], ParamGrads]:
        """Append to the program of ``loss`` everything that one training step does.

        Parameters
        ----------
        loss
            A variable of shape ``[1]``.
        startup_program
            Gets the first values of learning rate and accumulators; None: the default one.
        parameter_list
            Parameters to change; wins over the one given to the optimizer.
        no_grad_set
            Variables, or their names, beyond which the backward pass does not go.

        Returns
        -------
        The update operators, and the pairs of parameter and gradient.

        Raises
        ------
        GraphError
            When ``loss`` is no single number, or this optimizer has trained these parameters before.
        """
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
    ) -> ParamGrads:
        """The first half of :meth:`minimize`: append the backward pass."""
        self._check_loss(loss)
        program = loss.block.program
        chosen = parameter_list if parameter_list else self._parameter_list
        self._check_fresh(program, chosen)
        self._dtype = loss.dtype
        frozen = {p.name for p in program.all_parameters() if not p.trainable}
        with program_guard(program, startup_program):
            return append_backward(
                loss,
                parameter_list=chosen,
                no_grad_set={*(no_grad_set or ()), *frozen},
                callbacks=[*(callbacks or ()), error_clip_callback],
            )

    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """The second half of :meth:`minimize`: append clips, decay and updates; returns the updates."""
        params_grads = sorted(params_grads, key=lambda pair: pair[0].name)
        if self._grad_clip is not None:
            params_grads = self._grad_clip(params_grads)
        else:
            params_grads = append_gradient_clip_ops(params_grads)
        params_grads = append_regularization_ops(params_grads, self.regularization)
        return self._create_optimization_pass(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """:meth:`apply_gradients` in the program of ``loss``."""
        with program_guard(loss.block.program, startup_program):
            return self.apply_gradients(params_grads)

    def get_opti_var_name_list(self) -> list[str]:
        """The names of the accumulators."""
        return self._opti_name_list

    state_dict = _refused("state_dict", "save the state with fluid.save or fluid.io.save_persistables")
    set_dict = _refused("set_dict", "load the state with fluid.load or fluid.io.load_persistables")
    current_step_lr = _refused("current_step_lr", "fetch the learning rate's variable from the executor")
    clear_gradients = _refused("clear_gradients", "gradients of a graph are computed anew in every run")

    # What a subclass may change

    def _append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        """Append the operator that updates one parameter."""
        param, grad = param_and_grad
        cls = registry.find(self.type)
        inputs: dict[str, Any] = {"Param": param, "Grad": grad, **self._extra_inputs()}
        if any(slot.name == "LearningRate" for slot in cls.input_slots):
            inputs["LearningRate"] = self._create_param_lr(param_and_grad)
        for slot, accumulator in self.accumulators.items():
            inputs[slot] = self._get_accumulator(accumulator.name, param)
        outputs = {slot: inputs[source] for slot, source in cls.inplace.items()}
        attrs = self._attrs_of(param)
        return block.append_op(type=self.type, inputs=inputs, outputs=outputs, attrs=attrs)

    def _attrs_of(self, param: Parameter) -> dict[str, Any]:
        """The attributes of the operator that updates ``param``."""
        return self._attrs

    def _extra_inputs(self) -> dict[str, Variable]:
        """Inputs of the operator that all parameters share."""
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
                    device=accumulator.device,
                )

    def _finish_update(self, block: Block, parameters_and_grads: ParamGrads) -> None:
        """Append what comes after the updates of all parameters."""

    # The parts

    def _create_optimization_pass(self, params_grads: ParamGrads) -> list[Operator]:
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

    def _note_devices(self, block: Block, params_grads: ParamGrads) -> None:
        """A parameter is updated on the device of the first operator that reads it."""
        wanted = {param.name for param, _ in params_grads}
        for op in block.ops:
            for name in wanted.intersection(op.input_arg_names):
                wanted.remove(name)
                self._devices[name] = op.attrs.get("op_device", "")

    def _create_global_learning_rate(self) -> None:
        program = default_main_program()
        if program in self._learning_rate_map:
            return
        if isinstance(self._learning_rate, Variable):
            raise GraphError(
                f"{self.__class__.__name__}: learning rate {self._learning_rate.name!r} belongs to "
                "another program",
                hint="build the schedule and the optimizer under the program_guard of the loss",
            )
        helper = LayerHelper(self.__class__.__name__)
        rate = helper.create_global_variable(
            name=unique_name.generate("learning_rate"),
            dtype=VarType.FP32 if self._dtype is None else self._dtype,
            shape=[1],
            persistable=True,
        )
        helper.set_variable_initializer(rate, Constant(self._learning_rate))
        self._learning_rate_map[program] = rate

    def _global_learning_rate(self, program: Program | None = None) -> Variable | None:
        """The variable of the learning rate in a program, None before minimize."""
        return self._learning_rate_map.get(default_main_program() if program is None else program)

    def _create_param_lr(self, param_and_grad: ParamGrad) -> Variable:
        """The learning rate of one parameter: the global one times the parameter's own factor."""
        rate = self._global_learning_rate()
        assert rate is not None
        factor = param_and_grad[0].optimize_attr["learning_rate"]
        if isinstance(factor, Variable):
            return factor
        if factor == 1.0:
            return rate
        program = default_main_program()
        with program._lr_schedule_guard(is_with_opt=True), name_scope("scale_with_param_lr"):
            return rate * factor

    def _add_accumulator(
        self,
        name: str,
        param: Parameter,
        dtype: Any = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
        type: VarType | None = None,  # noqa: A002  (Fluid's name)
        device: str | None = None,
    ) -> Variable:
        """Make one accumulator of one parameter, and its first value in the startup program."""
        if self._name is not None:
            name = f"{self._name}_{name}"
        of_name = self._accumulators.setdefault(name, {})
        if param.name in of_name:
            raise _trained_before(self, param.name)
        helper = LayerHelper(self.__class__.__name__)
        variable = helper.create_global_variable(
            name=unique_name.generate(f"{param.name}_{name}"),
            persistable=True,
            dtype=param.dtype if dtype is None else dtype,
            type=param.type if type is None else type,
            shape=param.shape if shape is None else shape,
            belong_to_optimizer=True,
        )
        with device_guard(self._devices.get(param.name, "") if device is None else device):
            helper.set_variable_initializer(variable, Constant(fill_value))
        of_name[param.name] = variable
        self._opti_name_list.append(variable.name)
        return variable

    def _get_accumulator(self, name: str, param: Parameter) -> Variable:
        if self._name is not None:
            name = f"{self._name}_{name}"
        try:
            return self._accumulators[name][param.name]
        except KeyError:
            raise GraphError(
                f"{self.__class__.__name__}: {param.name!r} has no accumulator {name!r}"
            ) from None

    # Checks

    def _check_loss(self, loss: Variable) -> None:
        who = self.__class__.__name__
        if not isinstance(loss, Variable):
            raise TypeError(f"{who}: loss is a variable, not {loss!r}")
        if tuple(loss.shape) != (1,):
            raise GraphError(
                f"{who}: loss {loss.name!r} has shape {list(loss.shape)}, expected [1]",
                hint="reduce it to one number with fluid.layers.mean",
            )

    def _check_fresh(self, program: Program, chosen: Sequence[Parameter | str] | None) -> None:
        """Refuse a second time before anything has changed."""
        known = {name for variables in self._accumulators.values() for name in variables}
        names: Iterable[str]
        if chosen is None:
            names = (p.name for p in program.all_parameters() if p.trainable)
        else:
            names = (p if isinstance(p, str) else p.name for p in chosen)
        for name in names:
            if name in known:
                raise _trained_before(self, name)


def _trained_before(optimizer: Optimizer, name: str) -> GraphError:
    return GraphError(
        f"{optimizer.__class__.__name__}: parameter {name!r} has its accumulators already; one "
        "optimizer minimizes once",
        hint="make a new optimizer for each call of minimize",
    )
