"""Attributes of parameters: name, initializer, learning rate, regularizer, trainable."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from paddlelike.core import Versioned
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.keyword_options import NearKeywords

if TYPE_CHECKING:
    from paddlelike.initializer import Initializer
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["ParamAttr", "WeightNormParamAttr"]

#: What describes a parameter: its attributes, its name, its initializer or regularizer; False: there is none.
ParamAttrLike: TypeAlias = "ParamAttr | str | Initializer | WeightDecayRegularizer | bool | None"


class ParamAttr(NearKeywords, Versioned, Displayed):
    """The attributes of one parameter.

    Parameters
    ----------
    initializer
        The initializer; None for the default of the layer.
    do_model_average
        Whether ``ModelAverage`` averages the parameter.
    name
        The name, used unchanged; layers with the same name share the parameter. None for a generated one.
    learning_rate
        A factor of the optimizer's learning rate.
    regularizer
        A regularizer that replaces the regularizer of the optimizer; None for no replacement.
    trainable
        Whether the parameter gets a gradient.

    Raises
    ------
    TypeError
        The initializer is a class, not an object of the class.

    >>> ParamAttr(name="w", learning_rate=0.5).name
    'w'
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = True,
    ) -> None:
        if isinstance(initializer, type):
            raise TypeError(
                f"ParamAttr: initializer is the class {initializer.__name__}, expected an instance of it\n"
                f"  hint: call it: initializer={initializer.__name__}()"
            )
        if learning_rate is None or isinstance(learning_rate, str | Sequence):
            raise TypeError(f"ParamAttr: learning_rate is {learning_rate!r}, expected a number")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.do_model_average = do_model_average

    def __repr__(self) -> str:
        """Return the arguments that differ from their defaults, as a call."""
        defaults = inspect.signature(type(self)).parameters
        given = [
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if name in defaults and value is not defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"

    @overload
    @staticmethod
    def _to_attr(arg: ParamAttrLike) -> ParamAttr | Literal[False]: ...
    @overload
    @staticmethod
    def _to_attr(
        arg: ParamAttrLike | Sequence[ParamAttrLike],
    ) -> ParamAttr | Literal[False] | list[ParamAttr | Literal[False]]: ...
    @staticmethod
    def _to_attr(
        arg: ParamAttrLike | Sequence[ParamAttrLike],
    ) -> ParamAttr | Literal[False] | list[ParamAttr | Literal[False]]:
        """Return ``arg`` as a ParamAttr; False, which means no parameter, is returned unchanged."""
        from paddlelike.initializer import Initializer
        from paddlelike.regularizer import WeightDecayRegularizer

        if arg is None or arg is True:
            return ParamAttr()
        if arg is False or isinstance(arg, ParamAttr):
            return arg
        if isinstance(arg, list | tuple):
            return [ParamAttr._to_attr(one) for one in arg]
        if isinstance(arg, str):
            return ParamAttr(name=arg)
        if isinstance(arg, Initializer):
            return ParamAttr(initializer=arg)
        if isinstance(arg, WeightDecayRegularizer):
            return ParamAttr(regularizer=arg)
        raise TypeError(
            f"{arg!r} does not describe a parameter; expected a ParamAttr, a name, an initializer, "
            "a regularizer, or False\n"
            "  hint: fluid.ParamAttr(name='w', learning_rate=0.1, initializer=fluid.initializer.Xavier())"
        )

    def _to_kwargs(self) -> dict[str, Any]:
        """Return the keywords for :class:`Parameter`."""
        return {
            "name": self.name,
            "optimize_attr": {"learning_rate": self.learning_rate},
            "regularizer": self.regularizer,
            "trainable": self.trainable,
            "do_model_average": self.do_model_average,
        }


class WeightNormParamAttr(ParamAttr):
    """A weight kept as direction ``v`` and length ``g``: ``w = g * v / ||v||`` (Salimans & Kingma 2016).

    Parameters
    ----------
    dim
        The dim whose slices have lengths of their own; None for one length.
    learning_rate
        The factor of the optimizer's learning rate.
    do_model_average
        Whether ``ModelAverage`` averages the parameter.
    name
        The name; None for a generated one.
    initializer
        The initializer; None for the default of the layer.
    regularizer
        The regularizer; None for the regularizer of the optimizer.
    trainable
        Whether training changes it.

    >>> import paddlelike as fluid
    >>> attr = fluid.WeightNormParamAttr(dim=1, name="w")
    >>> y = fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr=attr, bias_attr=False)
    >>> [one.name for one in y.block.all_parameters()]
    ['w_g', 'w_v']
    """

    def __init__(
        self,
        dim: int | None = None,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = False,
    ) -> None:
        super().__init__(name, initializer, learning_rate, regularizer, trainable, do_model_average)
        self.dim = dim
