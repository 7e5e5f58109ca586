"""The state of an optimizer in programs: its learning rate, and accumulators for each parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from paddlelike import unique_name
from paddlelike.core import VarType, Versioned
from paddlelike.errors import GraphError
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.framework import Parameter, Program, Variable, default_main_program, device_guard, name_scope
from paddlelike.initializer import Constant
from paddlelike.layers.helper import LayerHelper

if TYPE_CHECKING:
    from paddlelike.core import DtypeLike

ParamGrad = tuple[Parameter, Variable]
ParamGrads = list[ParamGrad]


class Accumulator(NamedTuple):
    """A kind of state variable, which updates keep for each parameter."""

    name: str
    fill: float | str = 0.0  # initial value; a str names an attribute of the operator
    single: bool = False  # of shape [1] instead of the parameter's
    device: str | None = None  # None: that of the parameter


class State(NearKeywords, Versioned):
    """The learning rate and the accumulators of an optimizer, by program and by parameter."""

    def __init__(self, learning_rate: float | Variable, name: str | None) -> None:
        if not isinstance(learning_rate, float | Variable):
            raise TypeError(
                f"{self.__class__.__name__}: learning_rate must be a float or a variable, "
                f"got {learning_rate!r} ({learning_rate.__class__.__name__})"
            )
        if isinstance(learning_rate, Variable):
            self._check_rate(learning_rate)
        self._learning_rate = learning_rate
        self._name = name
        self._dtype: VarType | None = None  # of the loss
        self._learning_rate_map: dict[Program, Variable] = {}
        if isinstance(learning_rate, Variable):
            self._learning_rate_map[default_main_program()] = learning_rate
        self._accumulators: dict[str, dict[str, Variable]] = {}  # by name, by parameter
        self._opti_name_list: list[str] = []
        self._devices: dict[str, str] = {}  # of parameters

    def _check_rate(self, rate: Variable) -> None:
        """Raise GraphError unless a variable can be a learning rate: one number of a floating-point type.

        As in Fluid, SGD and Adadelta take integers, too.
        """
        floats = VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64
        if rate.dtype not in floats and getattr(self, "type", None) not in ("sgd", "adadelta"):
            wrong = f"has dtype {rate.dtype.name}, expected a floating-point type"
        elif rate.shape and math.prod(rate.shape) != 1:
            wrong = f"has shape {list(rate.shape)}, expected [1]"
        else:
            return
        raise GraphError(
            f"{self.__class__.__name__}: learning rate {rate.name!r} {wrong}",
            hint="feed a rate by fluid.data('rate', [1], 'float32'), or take a schedule of fluid.layers",
        )

    def get_opti_var_name_list(self) -> list[str]:
        """Return the names of the accumulators."""
        return self._opti_name_list

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
        """Return the variable of the learning rate in a program; None before ``minimize``."""
        return self._learning_rate_map.get(default_main_program() if program is None else program)

    def _create_param_lr(self, param_and_grad: ParamGrad) -> Variable:
        """Return the learning rate of one parameter: the global one times the parameter's own factor."""
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
        dtype: DtypeLike | None = None,
        fill_value: float = 0.0,
        shape: Sequence[int] | None = None,
        type: VarType | None = None,  # noqa: A002  (Fluid's name)
        device: str | None = None,
    ) -> Variable:
        """Create one accumulator of one parameter, and initialize it in the startup program."""
        if self._name is not None:
            name = f"{self._name}_{name}"
        of_name = self._accumulators.setdefault(name, {})
        if param.name in of_name:
            raise _make_trained_error(self, param.name)
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

    def _check_fresh(self, program: Program, chosen: Sequence[Parameter | str] | None) -> None:
        """Raise GraphError, before any change, when a parameter was already trained."""
        known = {name for variables in self._accumulators.values() for name in variables}
        names: Iterable[str]
        if chosen is None:
            names = (p.name for p in program.all_parameters() if p.trainable)
        else:
            names = (p if isinstance(p, str) else p.name for p in chosen)
        for name in names:
            if name in known:
                raise _make_trained_error(self, name)


def _make_trained_error(state: State, name: str) -> GraphError:
    return GraphError(
        f"{state.__class__.__name__}: parameter {name!r} has its accumulators already; one "
        "optimizer minimizes once",
        hint="make a new optimizer for each call of minimize",
    )
