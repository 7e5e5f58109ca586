"""Quantization of saved models without training: with samples of their inputs, or of the weights alone.

Parameters
----------
model_dir
    The directory of the model, as ``save_inference_model`` writes it.
model_filename
    The file of the program; None for ``__model__``.
params_filename
    The file of all parameters; None for a file each.
quantizable_op_type
    The types of the operators that are quantized.
weight_bits
    The bits of weights.
weight_quantize_type
    How the scale of weights is found: ``"abs_max"`` of the whole weight, ``"channel_wise_abs_max"`` of each
    channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paddlelike import io
from paddlelike.core import CPUPlace, Scope, global_scope, scope_guard
from paddlelike.errors import EnforceNotMet
from paddlelike.executor import Executor
from paddlelike.fluid.contrib.slim.quantization.activations import AddQuantDequantPass
from paddlelike.fluid.contrib.slim.quantization.base import (
    WITH_OUT_SCALE,
    count_steps,
    list_inputs,
    list_outputs,
    load_value,
)
from paddlelike.fluid.contrib.slim.quantization.freeze import QuantizationFreezePass
from paddlelike.fluid.contrib.slim.quantization.transform import QuantizationTransformPass
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Operator, Program
from paddlelike.framework.passes.ir_graph import Graph, IrGraph

__all__ = ["PostTrainingQuantization", "WeightQuantization"]

Array = npt.NDArray[Any]

_BINS: Final = 2048  # of the histogram of an activation
_STEPS: Final = 255  # of its quantized distribution


def _check_choice(what: str, given: object, known: Sequence[object]) -> None:
    if given not in known:
        raise ValueError(f"{what} is {given!r}, expected one of {', '.join(map(str, known))}")


class PostTrainingQuantization:
    """Quantizes a saved float32 model; samples of its inputs show how large its activations become.

    Parameters
    ----------
    executor
        The Executor that runs the model.
    scope
        The scope with the values; None for the global scope.
    batch_generator, sample_generator
        A function that yields batches of inputs, or one that yields samples, as a DataLoader takes them.
    batch_size
        The samples of a batch.
    batch_nums
        The number of batches; None for all.
    algo
        The rule for the scale of an activation: ``"KL"`` for the least divergence of the quantized numbers,
        ``"abs_max"`` for the greatest absolute number. ``"min_max"`` records the least and the greatest
        number in attributes and does not change the operators.
    is_full_quantize
        Whether all types of operators that can be quantized are.
    activation_bits
        The bits of activations.
    activation_quantize_type
        The operators that hold the scales: ``"range_abs_max"`` or ``"moving_average_abs_max"``; ``"abs_max"``
        finds the scale anew in each batch.
    is_use_cache_file
        Accepted for scripts of Fluid; samples stay in memory.
    cache_dir
        Accepted for scripts of Fluid; nothing is written there.

    Raises
    ------
    ValueError
        A choice is not known.
    EnforceNotMet
        ``executor``, ``model_dir`` or the generator is missing.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        scope: Scope | None = None,
        model_dir: str | None = None,
        model_filename: str | None = None,
        params_filename: str | None = None,
        batch_generator: Callable[[], Iterable[Any]] | None = None,
        sample_generator: Callable[[], Iterable[Any]] | None = None,
        batch_size: int = 10,
        batch_nums: int | None = None,
        algo: str = "KL",
        quantizable_op_type: Sequence[str] = ["conv2d", "depthwise_conv2d", "mul"],
        is_full_quantize: bool = False,
        activation_bits: int = 8,
        weight_bits: int = 8,
        activation_quantize_type: str = "range_abs_max",
        weight_quantize_type: str = "channel_wise_abs_max",
        is_use_cache_file: bool = False,
        cache_dir: str = "./temp_post_training",
    ) -> None:
        generator = batch_generator if sample_generator is None else sample_generator
        for what, given in (
            ("executor", executor),
            ("model_dir", model_dir),
            ("sample_generator", generator),
        ):
            if given is None:
                raise EnforceNotMet(f"PostTrainingQuantization: {what} is None, expected a value")
        _check_choice("algo", algo, ("KL", "abs_max", "min_max"))
        ways = ("range_abs_max", "moving_average_abs_max", "abs_max")
        _check_choice("activation_quantize_type", activation_quantize_type, ways)
        _check_choice("weight_quantize_type", weight_quantize_type, ("abs_max", "channel_wise_abs_max"))
        with_weights = QuantizationTransformPass._supported_quantizable_op_type
        known = [*with_weights, *AddQuantDequantPass._supported_quantizable_op_type]
        for op_type in quantizable_op_type:
            _check_choice("quantizable_op_type", op_type, known)
        assert executor is not None  # as checked
        self._executor = executor
        self._scope = global_scope() if scope is None else scope
        self._files: dict[str, Any] = {
            "dirname": model_dir,
            "model_filename": model_filename,
            "params_filename": params_filename,
        }
        self._batch_generator, self._sample_generator = batch_generator, sample_generator
        self._batch_size, self._batch_nums, self._algo = batch_size, batch_nums, algo
        self._op_types = known if is_full_quantize else list(quantizable_op_type)
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._weight_quantize_type = weight_quantize_type
        self._activation_quantize_type = activation_quantize_type
        self._program = Program()
        self._feed_list: list[str] = []
        self._fetch_list: list[Any] = []

    def quantize(self) -> Program:
        """Run the samples through the model and return the quantized program."""
        with scope_guard(self._scope):
            loaded = io.load_inference_model(executor=self._executor, **self._files)
            self._program, self._feed_list, self._fetch_list = loaded
            weights, activations = self._collect_names()
            samples: dict[str, list[Array]] = {name: [] for name in sorted(activations)}
            variables = [self._program.global_block().var(name) for name in activations]
            for variable in variables:  # not those of the same names in loops, which hold one step
                variable.persistable = True
            for index, batch in enumerate(self._read_batches()):
                if self._batch_nums and index >= self._batch_nums:
                    break
                self._executor.run(self._program, feed=batch, fetch_list=self._fetch_list, return_numpy=False)
                for name, seen in samples.items():
                    value = load_value(self._scope, name).ravel()
                    kept = value if self._algo == "KL" else np.array([value.min(), value.max()])
                    seen.append(kept)
            for variable in variables:
                variable.persistable = False
            joined = {name: np.concatenate(seen) for name, seen in samples.items()}
            self._record(weights, joined)
        return self._program

    def _read_batches(self) -> Iterable[Any]:
        feeds = [self._program.global_block().var(name) for name in self._feed_list]
        loader = io.DataLoader.from_generator(feeds, capacity=3 * self._batch_size, iterable=True)
        place = self._executor.place
        if self._sample_generator is not None:
            size = self._batch_size
            loader.set_sample_generator(self._sample_generator, size, drop_last=True, places=place)
        elif self._batch_generator is not None:
            loader.set_batch_generator(self._batch_generator, places=place)
        return loader()

    def _collect_names(self) -> tuple[set[str], set[str]]:
        """Return the names of the weights, and of the activations whose size is recorded."""
        persistables = {variable.name for variable in self._program.list_vars() if variable.persistable}
        names: set[str] = set()
        for op in self._program.global_block().ops:
            if op.type in self._op_types:
                names.update(list_inputs(op))
            if op.type in (*self._op_types, *WITH_OUT_SCALE):
                names.update(list_outputs(op))
        return names & persistables, names - persistables

    def _record(self, weights: set[str], samples: dict[str, Array]) -> None:
        """Write the scales into the program."""
        values = {name: load_value(self._scope, name) for name in sorted(weights)}
        rows = {name: value.reshape(len(value), -1) for name, value in values.items()}
        if self._algo == "min_max":
            least: dict[str, Any] = {name: row.min(1).tolist() for name, row in rows.items()}
            most: dict[str, Any] = {name: row.max(1).tolist() for name, row in rows.items()}
            least |= {name: float(value.min()) for name, value in samples.items()}
            most |= {name: float(value.max()) for name, value in samples.items()}
            for op in self._program.global_block().ops:
                for name in list_inputs(op) if op.type in self._op_types else ():
                    op._set_attr(f"{name}.min", least[name])
                    op._set_attr(f"{name}.max", most[name])
            self._record_results("post_min_max", out_min=least, out_max=most)
            return
        by_channel = self._algo == "abs_max" or self._weight_quantize_type == "channel_wise_abs_max"
        scales: dict[str, Any] = {
            name: np.abs(row).max(1).tolist() if by_channel else float(np.abs(row).max())
            for name, row in rows.items()
        }
        find = find_threshold if self._algo == "KL" else np.max
        scales |= {name: float(find(np.abs(value))) for name, value in samples.items()}
        self._quantize_program(scales)
        self._record_results("post_kl" if self._algo == "KL" else "post_abs_max", out_threshold=scales)

    def _quantize_program(self, scales: dict[str, Any]) -> None:
        graph = IrGraph(Graph(self._program.desc), for_test=True)
        bits: dict[str, Any] = {"weight_bits": self._weight_bits, "activation_bits": self._activation_bits}
        common: dict[str, Any] = {"scope": self._scope, "place": self._executor.place}
        weight_type = self._weight_quantize_type
        transform, add = QuantizationTransformPass, AddQuantDequantPass
        transform(
            **common,
            **bits,
            activation_quantize_type=self._activation_quantize_type,
            weight_quantize_type=weight_type,
            quantizable_op_type=[t for t in transform._supported_quantizable_op_type if t in self._op_types],
        ).apply(graph)
        add(
            **common,
            quantizable_op_type=[t for t in add._supported_quantizable_op_type if t in self._op_types],
        ).apply(graph)
        for name, scale in scales.items():
            for ending in (".scale", ".quant_dequant.scale"):
                found = self._scope.find_var(name + ending)
                if found is not None:
                    found.get_tensor().set(np.array([scale], np.float32), self._executor.place)
        QuantizationFreezePass(**common, **bits, weight_quantize_type=weight_type).apply(graph)
        self._program = graph.to_program()

    def _record_results(self, quantization_type: str, **found: dict[str, Any]) -> None:
        for op in self._program.global_block().ops:
            if op.type not in (*self._op_types, *WITH_OUT_SCALE):
                continue
            (name,) = list_outputs(op)
            for attribute, values in found.items():
                op._set_attr(attribute, values[name])
            if op.type in self._op_types:
                op._set_attr("quantization_type", quantization_type)

    def save_quantized_model(
        self, save_model_path: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        """Write the quantized model, as ``save_inference_model`` does.

        Parameters
        ----------
        save_model_path
            The directory to write.

        Warns
        -----
        UserWarning
            The model quantizes integers, as in Fluid 1.8.5 the counters of a loop. It cannot be loaded.
        """
        variables = self._program.global_block().vars
        scales = (name for name in variables if name.endswith(".quant_dequant.scale"))
        whole = [name for name in scales if not variables[name].dtype.name.startswith("FP")]
        if whole:
            warn_user(
                f"{save_model_path}: the model cannot be loaded again, because it quantizes integers: their "
                f"scales are {', '.join(whole)}. Use is_full_quantize=False."
            )
        with scope_guard(self._scope):
            io.save_inference_model(
                save_model_path,
                self._feed_list,
                self._fetch_list,
                self._executor,
                self._program,
                model_filename,
                params_filename,
            )


def find_threshold(sizes: Array) -> float:
    """Return the scale whose quantized distribution has the least Kullback-Leibler divergence from ``sizes``.

    Numbers are added in Fluid's order, because the last bit can decide between two scales.
    """
    if sizes.dtype.kind != "f":  # counters and conditions of loops
        sizes = sizes.astype(np.float64)
    low, high = float(sizes.min()), float(sizes.max())
    counts, width = _count(sizes, *((low, high) if high > low else (low - 0.5, high + 0.5)), bins=_BINS)
    least, best = math.inf, 0
    first = int((_BINS - 1) * 0.7)
    for end in range(first, _BINS):
        if counts[end - 1] == 0:
            continue
        wanted = counts[:end].copy()
        wanted[-1] += counts[end:].sum()
        divergence = _diverge(wanted, _merge(counts[:end], wanted), sizes.size)
        if best == 0 or divergence < least:
            least, best = divergence, end
    if best == 0:
        filled = np.flatnonzero(counts[: first + 1])
        best = int(filled[-1]) if len(filled) else 0
    return (best + 0.5) * width


def _count(sizes: Array, low: float, high: float, *, bins: int) -> tuple[Array, float]:
    """Return a histogram and the width of its bins, with limits rounded as in numpy 1."""
    edges = np.linspace(low, high, bins + 1).astype(sizes.dtype)
    return np.histogram(sizes, edges)[0], float(edges[1] - edges[0])


def _merge(counts: Array, wanted: Array) -> Array:
    """Return a histogram with few steps: each bin gets the mean of the filled bins of its step."""
    width = len(counts) // _STEPS
    starts = np.arange(_STEPS) * width
    sums = np.add.reduceat(counts, starts)
    filled = np.add.reduceat(wanted != 0, starts)
    means = np.where(filled == 0, 0.0, sums / np.maximum(filled, 1))
    lengths = np.diff([*starts, len(counts)])
    return np.where(wanted == 0, 0.0, np.repeat(means, lengths))


def _diverge(wanted: Array, merged: Array, total: int) -> float:
    """Return the divergence of a distribution from another; both are given as counts."""
    merged_total = float(np.add.accumulate(merged)[-1])
    filled = wanted != 0
    p, q = wanted[filled], merged[filled]
    terms = (p * _compute_logs(merged_total * p), p * _compute_logs(total * q))
    first, second = (float(np.add.accumulate(term)[-1]) for term in terms)
    return (first - second) / total


def _compute_logs(values: Array) -> Array:
    """Return logarithms of the C library: numpy's own may differ in the last bit."""
    different, places = np.unique(values, return_inverse=True)
    return np.array([math.log(value) for value in different.tolist()])[places]


class WeightQuantization:
    """Writes copies of a saved model whose weights are int8 or int16."""

    _supported_quantizable_op_type = ["conv2d", "depthwise_conv2d", "mul"]
    _supported_weight_quantize_type = ["channel_wise_abs_max", "abs_max"]

    def __init__(
        self, model_dir: str, model_filename: str | None = None, params_filename: str | None = None
    ) -> None:
        self._files: dict[str, Any] = {
            "dirname": model_dir,
            "model_filename": model_filename,
            "params_filename": params_filename,
        }

    def quantize_weight_to_int(
        self,
        save_model_dir: str,
        save_model_filename: str | None = None,
        save_params_filename: str | None = None,
        quantizable_op_type: Sequence[str] = ["conv2d", "mul"],
        weight_bits: int = 8,
        weight_quantize_type: str = "channel_wise_abs_max",
        generate_test_model: bool = False,
        threshold_rate: float = 0.0,
    ) -> None:
        """Write ``save_model_dir/quantized_model``, whose weights are integers.

        Parameters
        ----------
        save_model_dir
            The directory to write.
        save_model_filename, save_params_filename
            The names of the files there; None as above.
        generate_test_model
            Whether ``test_model`` is written, too: the same weights as floats, which every Executor can run.
        threshold_rate
            For ``"abs_max"``, the share of a weight's largest numbers that are cut off.

        Raises
        ------
        ValueError
            A choice is not known.
        """
        for op_type in quantizable_op_type:
            _check_choice("quantizable_op_type", op_type, self._supported_quantizable_op_type)
        _check_choice("weight_bits", weight_bits, (8, 16))
        _check_choice("weight_quantize_type", weight_quantize_type, self._supported_weight_quantize_type)
        for folder in ("quantized_model", "test_model") if generate_test_model else ("quantized_model",):
            exe = Executor(CPUPlace())
            program, feeds, targets = io.load_inference_model(executor=exe, **self._files)
            weights = {variable.name for variable in program.list_vars() if variable.persistable}
            for op in (op for block in program.blocks for op in block.ops if op.type in quantizable_op_type):
                for name in op.input_arg_names:
                    if name in weights:
                        _quantize_weight(
                            op,
                            name,
                            weight_bits,
                            weight_quantize_type,
                            rate=threshold_rate,
                            as_floats=folder == "test_model",
                        )
            io.save_inference_model(
                f"{save_model_dir}/{folder}",
                feeds,
                targets,
                exe,
                program,
                save_model_filename,
                save_params_filename,
            )


def _quantize_weight(op: Operator, name: str, bits: int, way: str, *, rate: float, as_floats: bool) -> None:
    """Convert a weight to integers, or to floats that are multiples of a step; record the steps in the
    operator.
    """
    weight, steps = load_value(global_scope(), name), count_steps(bits)
    if way == "abs_max":
        greatest = np.array(np.abs(weight).max() if abs(rate) < 1e-10 else _cut(weight, rate))
        weight = np.clip(weight, -greatest, greatest).astype(weight.dtype)
    elif op.type == "mul":
        greatest = np.abs(weight).max(axis=0, keepdims=True)  # of each column
    else:
        greatest = np.abs(weight).reshape(len(weight), -1).max(1).reshape(-1, *(1,) * (weight.ndim - 1))
    scale = greatest.astype(np.float64) / steps
    whole = np.around(weight / scale.astype(np.result_type(weight.dtype, np.float32))).astype(
        np.int8 if bits == 8 else np.int16
    )
    value = (whole * scale).astype(np.float32) if as_floats else whole
    global_scope().find_var(name).get_tensor().set(value, CPUPlace())  # type: ignore[union-attr] # it was read
    op._set_attr("quantization_type", f"post_weight_{way}")
    op._set_attr("quantize_weight_bits", bits)
    op._set_attr(f"{name}_quant_scale", scale.reshape(-1).tolist())


def _cut(weight: Array, rate: float) -> float:
    """Return the size that the fraction ``rate`` of all numbers exceeds, to the nearest of 5,000 bins."""
    sizes = np.abs(weight)
    counts, width = _count(sizes, 0.0, float(sizes.max()), bins=5000)
    share = np.add.accumulate(counts / float(counts.sum()))
    return float(np.argmax(share >= 1.0 - rate) + 1) * width
