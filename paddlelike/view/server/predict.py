"""A model for prediction over HTTP: its feeds and fetches, and runs on JSON."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import numpy as np

from paddlelike.core import CPUPlace, LoDTensor, Scope, numpy_dtype, scope_guard
from paddlelike.errors import EnforceNotMet, FeedError
from paddlelike.executor.run import Executor
from paddlelike.foundation.locks import Lock
from paddlelike.framework import Variable
from paddlelike.inference.follow import Follower
from paddlelike.interop.model_versions import find_model_files
from paddlelike.io.export.load import load_inference_model
from paddlelike.ops.control.blocks import LoopLimit
from paddlelike.view.page.document import format_document
from paddlelike.view.server.loopback import Refusal, Reply, Request
from paddlelike.view.server.openapi import describe_api

_PATIENCE: Final = 60.0  # seconds that a request waits for the one before it
_MOST_ELEMENTS: Final = 1_000_000  # of an answer
_SCRIPTS: Final = ("base.js", "predict.js")


class Predictor:
    """A model for prediction in a separate scope; only one run is active at a time.

    The names of its files are found if there is only one program and one combined file. ``follow`` is a
    directory into which training saves; before each run the newest values are loaded. ``loops`` limits the
    seconds of all loops of a run.

    Raises
    ------
    LoadError
        :func:`~paddlelike.io.load_inference_model` raises it; so does a model that does more than
        compute.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> home, exe, main, startup = tempfile.mkdtemp(), fluid.Executor(), fluid.Program(), fluid.Program()
    >>> with fluid.scope_guard(fluid.Scope()), fluid.program_guard(main, startup):
    ...     out = fluid.layers.scale(fluid.data("x", [None, 2]), 10.0)
    ...     _ = fluid.io.save_inference_model(home, ["x"], [out], exe)
    >>> answer = Predictor(home).run({"x": [[1, 2]]})
    >>> [output["values"] for output in answer["outputs"].values()]
    [[[10.0, 20.0]]]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model_filename: str | None = None,
        params_filename: str | None = None,
        follow: str | None = None,
        loops: float | None = None,
    ) -> None:
        self.path = os.fspath(path)
        found = find_model_files(self.path)
        model_filename, params_filename = model_filename or found.program, params_filename or found.values
        self._executor, self._scope, self._lock = Executor(CPUPlace()), Scope(), Lock()
        with scope_guard(self._scope):
            self._program, feeds, self._fetches = load_inference_model(
                found.directory, self._executor, model_filename, params_filename
            )
        self._loops = LoopLimit(seconds=loops)
        self._follower = None if follow is None else Follower(self._program, self._scope, follow)
        self._feeds: list[Variable] = [self._program.global_block().var(name) for name in feeds]

    def describe(self) -> dict[str, Any]:
        """Return the feeds and fetches of the model with types and shapes."""
        return {
            "path": self.path,
            "operators": sum(len(block.ops) for block in self._program.blocks),
            "feeds": [_describe(one) for one in self._feeds],
            "fetches": [_describe(one) for one in self._fetches],
        }

    def run(self, inputs: object) -> dict[str, Any]:
        """Return the outputs for arrays as nested lists, by the names of the feeds.

        An input with sequences is ``{"values": ..., "lengths": [[2, 3]]}``, with the lengths of Fluid's
        ``recursive_sequence_lengths``.

        Raises
        ------
        FeedError
            The inputs differ from the model's.
        Refusal
            Another run takes too long, or the outputs are too large to be sent.
        """
        feed = self._convert(inputs)
        with self._take_turn():
            begin = time.perf_counter()
            if self._follower is not None:
                self._follower.refresh()
            values = self._loops.run(
                lambda: self._executor.run(
                    self._program, feed=feed, fetch_list=self._fetches, scope=self._scope, return_numpy=False
                )
            )
            seconds = time.perf_counter() - begin
        found = zip(self._fetches, values, strict=True)
        return {"outputs": {one.name: _encode(one.name, value) for one, value in found}, "seconds": seconds}

    def _take_turn(self) -> AbstractContextManager[None]:
        try:
            return self._lock.hold_within(_PATIENCE)
        except TimeoutError:
            raise Refusal(
                503, f"another run is taking longer than {_PATIENCE:.0f} seconds", "try again"
            ) from None

    def _convert(self, inputs: object) -> dict[str, LoDTensor]:
        names = [one.name for one in self._feeds]
        if not isinstance(inputs, Mapping):
            raise FeedError(f"inputs are an object with {', '.join(names)}, got {type(inputs).__name__}")
        missing = [name for name in names if name not in inputs]
        unknown = sorted(str(name) for name in inputs if name not in names)
        if missing or unknown:
            texts = [f"{', '.join(missing)} is missing"] * bool(missing)
            texts += [f"the model does not feed {', '.join(unknown)}"] * bool(unknown)
            raise FeedError(
                "; ".join(texts), hint=f"send the inputs that the model feeds: {', '.join(names)}"
            )
        return {one.name: _decode(one, inputs[one.name]) for one in self._feeds}


def make_prediction_routes(
    predictor: Predictor, labels: Sequence[str] = ()
) -> dict[tuple[str, str], Callable[[Request], Reply]]:
    """Return the routes: a page, ``GET /model``, ``POST /predict`` with ``{"inputs": {name: values}}``.

    ``GET /docs`` shows the interface, ``GET /openapi.json`` describes it. ``labels`` are names of classes,
    for the page.
    """
    title = os.path.basename(os.path.abspath(predictor.path))

    def show_page(_: Request) -> Reply:
        contents = {"name": title, "labels": list(labels), **predictor.describe()}
        return Reply(format_document(title, contents, scripts=_SCRIPTS, served=True), is_html=True)

    def show_docs(_: Request) -> Reply:
        api = describe_api(title, predictor.describe())
        return Reply(
            format_document(f"{title}: docs", api, scripts=("base.js", "docs.js"), served=True), is_html=True
        )

    def predict(request: Request) -> Reply:
        if not isinstance(request.json, Mapping) or set(request.json) != {"inputs"}:
            raise Refusal(400, 'the body must be {"inputs": {name: values}}', "GET /model has the names")
        return Reply(predictor.run(request.json["inputs"]))

    return {
        ("GET", "/"): show_page,
        ("GET", "/docs"): show_docs,
        ("GET", "/openapi.json"): lambda _: Reply(describe_api(title, predictor.describe())),
        ("GET", "/model"): lambda _: Reply(predictor.describe()),
        ("POST", "/predict"): predict,
    }


def _describe(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "dtype": numpy_dtype(variable.dtype).name,
        "shape": list(variable.shape),
        "lod": variable.lod_level,
    }


def _decode(variable: Variable, given: Any) -> LoDTensor:
    """Return an input as a tensor. Raises FeedError if it does not fit the variable."""
    name, lengths = variable.name, None
    if isinstance(given, Mapping):
        if not {"values"} <= set(given) <= {"values", "lengths"}:
            raise FeedError(f"{name} must be a list, or have values and lengths, got {sorted(given)}")
        given, lengths = given["values"], given.get("lengths")
    try:
        array = np.array(given)
    except (ValueError, OverflowError) as error:
        raise FeedError(f"{name} is not an array: its rows have different lengths ({error})") from None
    wanted = numpy_dtype(variable.dtype)
    if array.dtype.kind not in "biuf":
        raise FeedError(f"{name} is not an array of numbers")
    shape = variable.shape
    fits = len(shape) == array.ndim and all(w in (-1, s) for w, s in zip(shape, array.shape, strict=True))
    if not fits and not variable.lod_level:  # rows of sequences are checked by the operators
        raise FeedError(
            f"{name} has shape {list(array.shape)}, expected {list(shape)}",
            hint="send as many numbers; -1 is any number",
        )
    with np.errstate(all="ignore"):
        converted = array.astype(wanted)
        if wanted.kind != "f" and not np.array_equal(converted, array):
            raise FeedError(f"{name} has elements that are not {wanted.name}")
    tensor = LoDTensor(converted)
    if lengths is not None:
        try:
            tensor.set_recursive_sequence_lengths(lengths)
        except (EnforceNotMet, TypeError, ValueError, OverflowError) as error:
            text = getattr(error, "message", error)
            raise FeedError(f"the lengths of {name} do not match its {len(converted)} rows: {text}") from None
    return tensor


def _encode(name: str, value: Any) -> dict[str, Any]:
    array = np.asarray(getattr(value, "array", value))
    if array.size > _MOST_ELEMENTS:
        raise Refusal(
            413,
            f"the output {name} has {array.size} elements; an answer holds {_MOST_ELEMENTS}",
            "feed fewer rows",
        )
    found = {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.tolist()}
    lengths = value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else []
    return {**found, "lengths": lengths} if lengths else found
