"""CNTK's functions: outputs of a network that are saved, loaded, evaluated and trained as one."""

from __future__ import annotations

import enum
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from paddlelike.core import Array
from paddlelike.errors import GraphError
from paddlelike.executor.run import Executor
from paddlelike.formats import registry
from paddlelike.framework import Parameter, Program, Variable
from paddlelike.interop.cntk.load import import_cntk, read_bytes
from paddlelike.interop.cntk.save import export_cntk
from paddlelike.interop.onnx import export_onnx, import_onnx
from paddlelike.training.train import TrainingSummary, train

if TYPE_CHECKING:
    from paddlelike.training.feeding import SourceLike

Path = str | os.PathLike[str]

_OPSET: Final = 9  # what CNTK itself writes and reads
_HEAD: Final = 1024


class ModelFormat(enum.Enum):
    """The formats of CNTK's ``Function.save``."""

    CNTKv2 = "cntk"
    ONNX = "onnx"


class Function:
    """One or several outputs of a network.

    Parameters
    ----------
    outputs
        A variable, or several of one program.

    Raises
    ------
    GraphError
        They are not variables of one program.

    See Also
    --------
    fluid.training.load_model, fluid.training.Trainer, fluid.import_cntk

    >>> import tempfile, numpy as np
    >>> import paddlelike as fluid
    >>> z = Function(fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="tanh"))
    >>> _ = fluid.Executor().run(fluid.default_startup_program())
    >>> with tempfile.TemporaryDirectory() as home:
    ...     z.save(f"{home}/my.model")
    ...     again = Function.load(f"{home}/my.model")
    >>> x = np.ones((2, 4), "float32")
    >>> bool(np.allclose(again.eval(x), z.eval(x), atol=1e-6))
    True
    """

    def __init__(self, outputs: Variable | Sequence[Variable] | Function) -> None:
        given: Any = outputs.outputs if isinstance(outputs, Function) else outputs
        self.outputs: list[Variable] = list(given) if isinstance(given, list | tuple) else [given]
        if not self.outputs or not all(isinstance(one, Variable) for one in self.outputs):
            raise GraphError(f"Function: outputs are variables of a network, got {outputs!r:.100}")
        if len({id(one.block.program) for one in self.outputs}) > 1:
            raise GraphError("Function: the outputs belong to several programs")

    @property
    def program(self) -> Program:
        """The program that computes the outputs."""
        return self.outputs[0].block.program

    @property
    def arguments(self) -> list[Variable]:
        """The data variables that the outputs need, in the order of their creation."""
        needed = {v.name for v in self._test_program().list_vars()}
        return [v for v in self.program.list_vars() if v.is_data and v.name in needed]

    @property
    def parameters(self) -> list[Parameter]:
        """The parameters that the outputs need."""
        needed = {v.name for v in self._test_program().list_vars()}
        return [v for v in self.program.all_parameters() if v.name in needed]

    def eval(self, arguments: Mapping[Any, Any] | Any) -> Array | list[Array]:
        """Return the value of the output, or a list of several; the network is in test mode.

        ``arguments`` are arrays by variable or name; or one array, if there is one argument.
        """
        if isinstance(arguments, Mapping):
            feed = {one.name if isinstance(one, Variable) else one: value for one, value in arguments.items()}
        else:
            feed = {one.name: arguments for one in self.arguments}
        names = [one.name for one in self.outputs]
        values: list[Array] = Executor().run(self._test_program(), feed=feed, fetch_list=names)
        return values[0] if len(values) == 1 else values

    def find_by_name(self, name: str) -> Function | None:
        """Return the function whose output is the variable with that name, or None without one."""
        block = self.program.global_block()
        return Function(block.var(name)) if block.has_var(name) else None

    def save(self, filename: Path, format: ModelFormat = ModelFormat.CNTKv2) -> None:  # noqa: A002
        """Write the network and its parameters as a model of CNTK 2, or of ONNX (opset 9, which CNTK loads).

        Raises the errors of :func:`~paddlelike.export_cntk` and :func:`~paddlelike.export_onnx`.
        """
        names = [one.name for one in self.arguments]
        if format is ModelFormat.ONNX:
            export_onnx(self.program, filename, names, self.outputs, opset=_OPSET)
        else:
            export_cntk(self.program, filename, names, self.outputs)

    @staticmethod
    def load(model: Path | bytes, format: ModelFormat | None = None) -> Function:  # noqa: A002
        """Open a model and put its parameters into the scope.

        Parameters
        ----------
        model
            The path of a model of CNTK 2 or an ONNX model, or its bytes.
        format
            A :class:`ModelFormat`; None for the one that the content shows.

        Returns
        -------
        Function
            The model's outputs, in a new program.

        Raises
        ------
        MissingFileError
            There is no such file.
        FormatError
            The file is damaged, or of another kind.
        UnsupportedError
            The model has operations that programs do not express.

        See Also
        --------
        fluid.training.Function, fluid.training.Trainer, fluid.import_cntk

        >>> import tempfile
        >>> import paddlelike as fluid
        >>> z = Function(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
        >>> _ = fluid.Executor().run(fluid.default_startup_program())
        >>> with tempfile.TemporaryDirectory() as home:
        ...     z.save(f"{home}/my.model")
        ...     len(Function.load(f"{home}/my.model").outputs)
        1
        """
        if format is None:
            data = read_bytes(model)
            known = registry.sniff_head(data[:_HEAD], len(data))
            format = ModelFormat.ONNX if known is not None and known.name == "onnx" else ModelFormat.CNTKv2  # noqa: A001
        *_, fetches = import_onnx(model) if format is ModelFormat.ONNX else import_cntk(model)
        return Function(fetches)

    def train(self, minibatch_source: SourceLike, *arguments: Any, **options: Any) -> TrainingSummary:
        """Train this criterion, a loss or a loss and a metric; see :func:`~paddlelike.training.train`."""
        return train(self.outputs, minibatch_source, *arguments, **options)

    def _test_program(self) -> Program:
        return self.program.clone(for_test=True)._prune(self.outputs)

    def __repr__(self) -> str:
        return f"<Function of {', '.join(v.name for v in self.arguments)}: {[v.name for v in self.outputs]}>"


load_model = Function.load
