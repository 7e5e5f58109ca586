"""Predictors: a saved model that is loaded once and run many times, also by several threads through
clones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import Array, CPUPlace, LoDTensor, Scope, scope_guard
from paddlelike.errors import FeedError, LoadError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.inference.config import AnalysisConfig, NativeConfig
from paddlelike.inference.plan import PlanEngine
from paddlelike.inference.tensors import PaddleTensor, Runner, Value, ZeroCopyTensor, make_output, split_value
from paddlelike.io.export.load import load_inference_model

if TYPE_CHECKING:
    from paddlelike.inference.follow import Follower
    from paddlelike.inference.onnxruntime_engine import OnnxEngine
    from paddlelike.ops.control.blocks import LoopLimit


class PaddlePredictor:
    """A model for prediction; :func:`create_paddle_predictor` makes it and loads the model.

    One predictor serves one thread at a time. Clones share the parameters, and run at the same time.
    """

    def __init__(self, config: AnalysisConfig | NativeConfig) -> None:
        config = config.to_analysis_config() if isinstance(config, NativeConfig) else config
        scope = Scope()
        program, feeds, fetches = _load(config, scope)
        self._set_up(config, program, scope, feeds, [variable.name for variable in fetches])
        self._open_engine()

    def _set_up(
        self, config: AnalysisConfig, program: Program, scope: Scope, feeds: list[str], fetches: list[str]
    ) -> None:
        self._config, self._program, self._parameters = config, program, scope
        self._scope, self._executor = scope.new_scope(), Executor(CPUPlace())
        self._inputs = {name: ZeroCopyTensor(name) for name in feeds}
        self._outputs = {name: ZeroCopyTensor(name) for name in fetches}
        self._results = [self._outputs[name] for name in fetches]
        self._fetches = fetches
        self._by_name = config.specify_input_name()
        self._follower: Follower | None = None
        self._limit = _make_limit(config) if _has_loops(program) else None
        self._engine: OnnxEngine | PlanEngine | None = None
        self._compute: Runner = self._run_program

    def _open_engine(self) -> None:
        """Prepare the engine that runs the model in place of the Executor's plan."""
        config = self._config
        model = self._program, self._parameters, list(self._inputs), self._fetches
        threads = max(1, config.cpu_math_library_num_threads())
        if config.onnxruntime_enabled():
            from paddlelike.inference.onnxruntime_engine import OnnxEngine

            runtime = OnnxEngine(*model, threads=threads, optimize=config.ir_optim())
            config._report("engine", runtime.describe())
            self._use_engine(runtime)
        elif config.ir_optim():
            joined = PlanEngine(*model, threads=threads)
            for title, text in zip(("joined", "kernels"), joined.describe(), strict=True):
                config._report(title, text)
            self._use_engine(joined)
        self._choose_runner()

    def _use_engine(self, engine: OnnxEngine | PlanEngine) -> None:
        self._engine = engine
        self._compute = engine.make_runner(self._run_program)

    def clone(self) -> PaddlePredictor:
        """Return another predictor with the same parameters, for another thread."""
        other = object.__new__(type(self))
        program = self._program.clone(for_test=True)
        other._set_up(self._config, program, self._parameters, list(self._inputs), self._fetches)
        other._follower = self._follower
        if self._engine is not None:
            other._use_engine(self._engine)
        other._choose_runner()
        return other

    def follow(self, dirname: str | os.PathLike[str]) -> Follower:
        """Before each run, load the newest values that a training has saved into a directory.

        Clones, even later ones, then run one at a time.
        """
        from paddlelike.inference.follow import Follower  # late: most predictors follow nothing

        self._follower = Follower(self._program, self._parameters, dirname)
        self._choose_runner()
        return self._follower

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs in order."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs in order."""
        return list(self._fetches)

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """Return the input of that name. Raises FeedError when there is none."""
        found = self._inputs.get(name)
        return _find(self._inputs, name, "input") if found is None else found

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """Return the output of that name. Raises FeedError when there is none."""
        found = self._outputs.get(name)
        return _find(self._outputs, name, "output") if found is None else found

    get_input_handle, get_output_handle = get_input_tensor, get_output_tensor

    def zero_copy_run(self) -> bool:
        """Run the model on the inputs that were set; the outputs get their values. Return True.

        Raises the errors of :meth:`Executor.run <paddlelike.Executor.run>`, and FeedError for an input that
        was not set.
        """
        feed: dict[str, Any] = {}
        for name, tensor in self._inputs.items():
            array = tensor._array
            feed[name] = tensor._to_feed() if array is None or tensor._lod else array
        for output, value in zip(self._results, self._run(feed, lend=True), strict=True):
            output._array, output._lod = value
        return True

    def run(self, inputs: Sequence[PaddleTensor] | Sequence[Array] | None = None) -> bool | list[Any]:
        """Run the model.

        Parameters
        ----------
        inputs
            Tensors in the order of the inputs, or by their names after ``switch_specify_input_names(True)``;
            None for the arrays of the input handles, as in :meth:`zero_copy_run`.

        Returns
        -------
        A PaddleTensor for each output, an array for each if arrays were given; True for None.

        Raises
        ------
        FeedError
            Another number of inputs, or a name that is not an input.
        """
        if inputs is None:
            return self.zero_copy_run()
        if len(inputs) != len(self._inputs):
            raise FeedError(
                f"predictor: {len(inputs)} tensors for {len(self._inputs)} inputs",
                hint=f"pass one tensor for each of its inputs: {', '.join(self._inputs)}",
            )
        feed: dict[str, Any] = {}
        takes_tensors = False
        for name, one in zip(self._inputs, inputs, strict=True):
            if type(one) is np.ndarray:
                feed[name] = one
                continue
            if not isinstance(one, PaddleTensor):
                feed[name] = np.asarray(one)
                continue
            takes_tensors = True
            if self._by_name:
                name = _find(self._inputs, one.name, "input")._name
            feed[name] = LoDTensor(one._view(), one.lod) if one.lod else one._view()
        values = self._run(feed)
        if not takes_tensors:
            return [array for array, _ in values]
        return [
            make_output(name, array, lod) for name, (array, lod) in zip(self._fetches, values, strict=True)
        ]

    def _choose_runner(self) -> None:
        is_free = self._limit is None and self._follower is None
        self._run: Runner = self._compute if is_free else self._run_limited

    def _run_limited(self, feed: Mapping[str, Any], /, *, lend: bool = False) -> list[Value]:
        def work() -> list[Value]:
            if self._follower is None:
                return self._compute(feed, lend=lend)
            return self._follower.run(lambda: self._compute_newest(feed, lend))

        return work() if self._limit is None else self._limit.run(work)

    def _compute_newest(self, feed: Mapping[str, Any], lend: bool) -> list[Value]:
        if self._engine is not None and self._follower is not None:
            self._engine.follow(self._follower.taken)
        return self._compute(feed, lend=lend)

    def _run_program(self, feed: Mapping[str, Any], /, *, lend: bool = False) -> list[Value]:
        values = self._executor.run(
            self._program, feed=feed, fetch_list=self._fetches, scope=self._scope, return_numpy=False
        )
        return [split_value(value) for value in values]

    def get_serialized_program(self) -> bytes:
        """Return the program as bytes."""
        return self._program.desc.serialize_to_string()

    def program(self) -> Program:
        """Return the program."""
        return self._program

    def clear_intermediate_tensor(self) -> None:
        """Do nothing: a run keeps no intermediate values."""

    def try_shrink_memory(self) -> int:
        """Return 0 released bytes, since a run keeps no memory."""
        return 0


class PredictorPool:
    """A predictor and its clones, one for each thread.

    Parameters
    ----------
    size
        The number of predictors.
    """

    def __init__(self, config: AnalysisConfig, size: int = 1) -> None:
        first = PaddlePredictor(config)
        self._all = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index: int) -> PaddlePredictor:
        """Return a predictor by its index (the name is Paddle's spelling). Raises IndexError."""
        return self._all[index]

    retrieve = retrive


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> PaddlePredictor:
    """Load the model that a configuration names.

    Raises
    ------
    LoadError
        The configuration names no model; a file is missing, damaged or does not fit the program.
    """
    return PaddlePredictor(config)


def _load(config: AnalysisConfig, scope: Scope) -> Sequence[Any]:
    executor = Executor(CPUPlace())
    directory, program_file, params_file = config.model_dir(), config.prog_file(), config.params_file()
    with scope_guard(scope):
        buffers = config.model_buffers()
        if buffers is not None:
            return load_inference_model(None, executor, *buffers)
        if program_file:
            home = os.path.dirname(os.path.abspath(program_file))
            params = os.path.relpath(os.path.abspath(params_file), home) if params_file else None
            return load_inference_model(home, executor, os.path.basename(program_file), params)
        if directory:
            return load_inference_model(directory, executor)
    raise LoadError(
        "create_predictor: the configuration names no model",
        hint="give AnalysisConfig the directory, or the file of the program and that of the parameters",
    )


def _make_limit(config: AnalysisConfig) -> LoopLimit:
    from paddlelike.ops.control.blocks import LoopLimit  # late: most models have no loops

    seconds, steps = config.loop_limit()
    return LoopLimit(seconds=seconds, steps=steps)


def _has_loops(program: Program) -> bool:
    return any(op.type == "while" for block in program.blocks for op in block.ops)


def _find(tensors: dict[str, ZeroCopyTensor], name: str, kind: str) -> ZeroCopyTensor:
    if name not in tensors:
        raise FeedError(
            f"predictor: the model has no {kind} {name!r}", hint=f"it has {', '.join(tensors) or 'none'}"
        )
    return tensors[name]
