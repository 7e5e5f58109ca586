"""Models that onnxruntime computes: the program is translated in memory, as a whole or in parts.

Operators whose results ONNX cannot reproduce stay on the Executor. The Executor also repeats a part that
onnxruntime refuses to run, so that both give the same errors for bad input.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, CPUPlace, LoDTensor, Scope
from paddlelike.errors import ExtraMissingError, UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.framework.flags import flag
from paddlelike.inference.parts import Part, cut_into_parts, find_kept
from paddlelike.inference.tensors import Runner, Value, split_value

_logger: Final = logging.getLogger(__name__)
_SMALL: Final = 64 << 10  # total bytes of inputs and outputs up to which a session gets its own buffers
#: Operators for which onnxruntime counts negative ids from the end; here a negative id is an error.
_TAKES_IDS: Final = ("lookup_table", "gather")


class OnnxEngine:
    """A program as sessions of onnxruntime, shared by predictors of the same parameters.

    Parameters
    ----------
    threads
        The number of threads that one operator may take.
    optimize
        Whether onnxruntime may rewrite the graph.

    Raises
    ------
    ExtraMissingError
        onnx or onnxruntime is not installed.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feeds: list[str],
        fetches: list[str],
        *,
        threads: int,
        optimize: bool,
    ) -> None:
        self._runtime = _import_runtime()
        self._options = (threads, optimize)
        self._taken = 0
        self._scope, self._feeds, self._fetches = scope, feeds, fetches
        whole = Part(program, feeds, fetches, stays=False)
        self._kept = find_kept(program)
        session = None if self._kept else self._open(whole)
        self._parts: list[tuple[Part, _Session | None]] = [(whole, session)]
        if session is None:
            self._open_parts(program)

    def _open_parts(self, program: Program) -> None:
        from paddlelike.interop.onnx.exporter.export import find_refused

        try:
            self._kept |= find_refused(program, self._feeds)
        except UnsupportedError as error:
            _logger.info("%s", error)
            return
        parts = cut_into_parts(program, self._feeds, self._fetches, self._kept)
        if parts is not None:
            self._parts = [(part, None if part.stays else self._open(part)) for part in parts]

    def _open(self, part: Part) -> _Session | None:
        """Return a session for a part, or None if the Executor must run it."""
        try:
            return _Session(self._runtime, part, self._scope, *self._options)
        except UnsupportedError as error:
            _logger.info("%s", error)
        except Exception as error:  # of whatever onnxruntime is installed
            _logger.info("onnxruntime does not take %d operators: %s", len(_list_types(part)), error)
        return None

    def follow(self, taken: int) -> None:
        """Copy the values of the parameters if they have changed; ``taken`` counts the loads so far."""
        if taken == self._taken:
            return
        self._taken = taken
        self._parts = [(part, session and self._open(part)) for part, session in self._parts]

    def describe(self) -> str:
        """Describe the operators that onnxruntime runs and those that the Executor runs."""
        goes = sum(len(_list_types(part)) for part, session in self._parts if session is not None)
        stays = [kind for part, session in self._parts if session is None for kind in _list_types(part)]
        if not stays:
            return f"onnxruntime {self._runtime.__version__}, all {goes} operators"
        named = ", ".join(sorted(set(self._kept.values()) & set(stays)) or sorted(set(stays)))
        if not goes:
            return f"the Executor, all {len(stays)} operators: onnxruntime cannot run {named}"
        count = len(self._parts)
        return (
            f"onnxruntime {self._runtime.__version__}, {goes} operators; the Executor, {len(stays)} "
            f"({named}); {count} parts in turn"
        )

    def make_runner(self, run_plain: Runner) -> Runner:
        """Return the function of feeds for one thread; ``run_plain`` runs a program without this engine."""
        executor, scope = Executor(CPUPlace()), self._scope.new_scope()
        bound: tuple[_Memory, _Memory] = {}, {}  # for arrays of the caller, and of handles
        bound_to = self._parts

        def run(feed: Mapping[str, Any], /, *, lend: bool = False) -> list[Value]:
            nonlocal bound, bound_to
            if flag("FLAGS_check_nan_inf"):
                return run_plain(feed)
            parts = self._parts
            if parts is not bound_to:
                bound_to, bound = parts, ({}, {})
            if len(parts) == 1:
                found = _run_session(parts[0][1], feed, bound[lend], lend)
                return run_plain(feed) if found is None else found
            values = dict(feed)
            for part, session in parts:
                found = _run_session(session, values, bound[False], False)
                if found is None:
                    found = _run_part(part, executor, scope, {name: values[name] for name in part.inputs})
                values.update(
                    (name, LoDTensor(array, lod) if lod else array)
                    for name, (array, lod) in zip(part.outputs, found, strict=True)
                )
            taken = [(name in feed, *split_value(values[name])) for name in self._fetches]
            return [(array.copy() if is_fed else array, lod) for is_fed, array, lod in taken]

        return run


def _list_types(part: Part) -> list[str]:
    return [op.type for op in part.program.global_block().ops if op.type not in ("feed", "fetch")]


def _run_part(part: Part, executor: Executor, scope: Scope, feed: Mapping[str, Any]) -> list[Value]:
    found = executor.run(part.program, feed=feed, fetch_list=part.outputs, scope=scope, return_numpy=False)
    return [split_value(value) for value in found]


def _import_runtime() -> ModuleType:
    try:
        import onnx  # noqa: F401  (the exporter needs it)
        import onnxruntime
    except ImportError as error:
        raise ExtraMissingError(
            f"enable_onnxruntime() needs {error.name}, which is not installed",
            extra="onnxruntime",
            instead="; or leave the call out: the Executor computes the same",
        ) from error
    runtime: ModuleType = onnxruntime
    return runtime


class _Port(NamedTuple):
    """An input or output of a program, and the one or two inputs or outputs of the model that represent
    it.
    """

    name: str
    values: tuple[str, ...]


class _Bound(NamedTuple):
    """Buffers for inputs and outputs that a session reuses in every run with inputs of this shape."""

    inputs: list[tuple[str, Array, tuple[int, ...], np.dtype[Any], bool]]
    outputs: list[Value]
    run: Callable[..., None]
    arguments: tuple[object, ...]  # of run


_Memory = dict[int, _Bound]  # of one thread, by session


class _Session:
    """One part as a session of onnxruntime, which several threads may run at the same time."""

    def __init__(self, runtime: ModuleType, part: Part, scope: Scope, threads: int, optimize: bool) -> None:
        from paddlelike.interop.onnx.exporter.export import translate
        from paddlelike.interop.onnx.exporter.model import declare_constants

        made = translate(part.program, part.inputs, part.outputs, scope)
        for port, declared in zip(made.model.graph.output, made.outputs, strict=True):
            port.type.tensor_type.elem_type = declared.type.tensor_type.elem_type
        apart = declare_constants(made.model, made.arrays, "memory")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4  # the Executor words the errors
        if not optimize:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        # The session reads the parameters where they are.
        self._constants = list(apart.values())
        held = [runtime.OrtValue.ortvalue_from_numpy(array) for array in self._constants]
        options.add_external_initializers(list(apart), held)
        self._runtime = runtime
        self._session = runtime.InferenceSession(
            made.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._inputs = _pair(part.inputs, made.sequences, [one.name for one in made.model.graph.input])
        self._outputs = _pair(part.outputs, made.sequences, [one.name for one in made.model.graph.output])
        self._names = [value for port in self._outputs for value in port.values]
        types = _list_types(part)
        self._takes_ids = any(kind.startswith(_TAKES_IDS) for kind in types)
        self._can_bind = not made.sequences

    def run(self, feed: Mapping[str, Any], bound: _Memory, *, lend: bool) -> list[Value] | None:
        """Return the outputs, or None if onnxruntime cannot run the part for these inputs.

        ``bound`` is the memory of the calling thread; with ``lend`` it refers to the fed arrays without a
        copy.
        """
        given: dict[str, Array] = {}
        for name, ports in self._inputs:
            array, lod = split_value(feed[name])
            array = array.astype(array.dtype.newbyteorder("="), copy=False)  # it reads bytes as they are
            if bool(lod) != (len(ports) > 1) or len(lod) > 1:
                return None
            if lod:
                lengths = np.diff(lod[0])
                if not len(lengths) or lengths.min() < 1 or lod[0][-1] != len(array):
                    return None
                given[ports[1]] = lengths.astype(np.int64)
                given[ports[0]] = _pad(array, lengths)
            else:
                given[ports[0]] = array
            if self._are_ids(array) and _has_negative(array):
                return None
        try:
            found = self._session.run(self._names, given)
        except Exception as error:  # of whatever onnxruntime is installed
            _logger.debug("onnxruntime: %s", error)
            return None
        if self._can_bind:
            bound.pop(id(self), None)
            if sum(array.nbytes for array in (*given.values(), *found)) <= _SMALL:
                self._bind(list(given.values()), found, bound, lend=lend)
        return self._take(found)

    def _are_ids(self, array: Array) -> bool:
        return self._takes_ids and array.dtype.kind == "i"

    def _take(self, found: Sequence[Array]) -> list[Value]:
        arrays = iter(found)
        values: list[Value] = []
        for port in self._outputs:
            array = next(arrays)
            if len(port.values) == 1:
                values.append((array, []))
                continue
            lengths = next(arrays)
            mask = np.arange(array.shape[1]) < lengths[:, None]
            values.append((array[mask], [[0, *np.cumsum(lengths).tolist()]]))
        return values

    def _bind(self, given: list[Array], found: list[Array], bound: _Memory, *, lend: bool) -> None:
        """Keep memory for inputs and outputs, if the input shapes determine the output shapes."""
        dims: dict[str, int] = {}
        for port, array in zip(self._session.get_inputs(), given, strict=True):
            dims.update(zip(map(str, port.shape), array.shape, strict=True))
        for port, array in zip(self._session.get_outputs(), found, strict=True):
            known = [dims.get(str(dim), dim) for dim in port.shape]
            if known != list(array.shape) or not array.size:
                return
        inputs = given if lend else [np.array(one, order="C") for one in given]
        outputs = [np.empty_like(one) for one in found]
        binding = self._session.io_binding()
        of_numpy = self._runtime.OrtValue.ortvalue_from_numpy
        for port, array in zip(self._inputs, inputs, strict=True):
            binding.bind_ortvalue_input(port.values[0], of_numpy(array))
        for name, array in zip(self._names, outputs, strict=True):
            binding.bind_ortvalue_output(name, of_numpy(array))
        kept = [
            (port.name, array, array.shape, array.dtype, self._are_ids(array))
            for port, array in zip(self._inputs, inputs, strict=True)
        ]
        arguments: tuple[object, ...] = (binding,)
        run = self._session.run_with_iobinding
        session, inner = getattr(self._session, "_sess", None), getattr(binding, "_iobinding", None)
        if session is not None and inner is not None:  # without the checks, which concern GPUs
            run, arguments = session.run_with_iobinding, (inner, None)
        bound[id(self)] = _Bound(kept, [(array, []) for array in outputs], run, arguments)


def _run_session(
    session: _Session | None, feed: Mapping[str, Any], bound: _Memory, lend: bool
) -> list[Value] | None:
    """Return the outputs, or None if the Executor must run the part for these inputs."""
    if session is None:
        return None
    kept = bound.get(id(session))
    if kept is None:
        return session.run(feed, bound, lend=lend)
    inputs, outputs, run, arguments = kept
    for name, array, shape, dtype, are_ids in inputs:
        value = feed[name]
        if value is not array:
            if type(value) is not np.ndarray or value.shape != shape or value.dtype is not dtype:
                return session.run(feed, bound, lend=lend)
            array[...] = value
        if are_ids and _has_negative(array):
            return None
    try:
        run(*arguments)
    except Exception as error:  # of whatever onnxruntime is installed
        _logger.debug("onnxruntime: %s", error)
        return None
    return outputs if lend else [(array.copy(), []) for array, _ in outputs]


def _has_negative(ids: Array) -> bool:
    return bool(ids.size and ids.item(ids.argmin()) < 0)  # min takes three times as long for a few ids


def _pair(names: list[str], sequences: frozenset[str], values: list[str]) -> list[_Port]:
    rest = iter(values)
    return [_Port(name, tuple(next(rest) for _ in range(1 + (name in sequences)))) for name in names]


def _pad(rows: Array, lengths: Array) -> Array:
    """Return sequences of rows as a batch ``(N, T, ...)``, padded with zeros."""
    out = np.zeros((len(lengths), int(lengths.max()), *rows.shape[1:]), rows.dtype)
    out[np.arange(out.shape[1]) < lengths[:, None]] = rows
    return out
