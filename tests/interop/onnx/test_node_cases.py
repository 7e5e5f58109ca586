"""The cases of ONNX's own specification, one operator each, with the values of its formulas in numpy."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the cases that it runs are counted")

import onnx
import onnxruntime
from onnx import defs, numpy_helper

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.interop.onnx.importer.node import ML, load_table

pytestmark = pytest.mark.slow

#: Cases that give something else, with the reason.
OTHER = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad": "its values are written with four digits",
    "test_gridsample_bicubic": "its values are written with four digits",
    "test_roialign_aligned_false": "its values are written with four digits",
    "test_resize_downsample_scales_cubic_align_corners": "onnxruntime takes the whole size, too",
    "test_resize_downsample_scales_linear_align_corners": "onnxruntime takes the whole size, too",
    "test_top_k_same_values": "equal numbers come in the order of Fluid's top_k",
    "test_top_k_same_values_2d": "equal numbers come in the order of Fluid's top_k",
    "test_top_k_same_values_largest": "equal numbers come in the order of Fluid's top_k",
}
#: Kinds of cases that cannot run: no element at all, random ones, or types that numpy does not have.
LEFT_OUT = ("bfloat16", "bf16", "bernoulli", "empty_set", "allowzero")


def freeze(model, feed):
    """Return the model with all inputs but the first as initializers, as exporters write axes and weights."""
    frozen = onnx.ModelProto()
    frozen.CopyFrom(model)
    for port, value in list(zip(frozen.graph.input, feed, strict=True))[1:]:
        frozen.graph.initializer.append(numpy_helper.from_array(value, port.name))
    return frozen


def run(model, feed):
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.import_onnx(model.SerializeToString())
        given = {
            name: value if value.ndim else value.reshape(1) for name, value in zip(feeds, feed, strict=False)
        }
        tensors = fluid.Executor().run(program, feed=given, fetch_list=fetches, return_numpy=False)
    return [np.array(tensor) for tensor in tensors]  # Fluid gives out None for arrays without elements


def check(case, counts: Counter[str]) -> str | None:
    """Return what is wrong with a case, or None."""
    feed, wanted = ([np.asarray(one) for one in row] for row in case.data_sets[0])
    try:
        try:
            got = run(case.model, feed)
            counts["as it is"] += 1
        except UnsupportedError:
            got = run(freeze(case.model, feed), feed)
    except UnsupportedError:
        counts["refused"] += 1
        return None
    for ours, theirs in zip(got, wanted, strict=True):
        if (ours.shape, ours.dtype) != (theirs.shape or (1,), theirs.dtype):
            return f"{ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        # float32 in another order; 1e-3 is what 10 bits of a float16 hold
        close = 1e-3 if theirs.dtype.itemsize == 2 else 1e-4
        if not np.allclose(ours.astype(float), theirs.astype(float), close, close / 10, equal_nan=True):
            return "another value"
    counts["equal"] += 1
    return None


def runs_elsewhere(model) -> bool:
    """Return whether onnxruntime runs a model on CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def test_a_case_of_the_specification_gives_its_values_or_is_refused(capsys) -> None:
    """Each gives its values, or is refused by name. Nothing else is raised.

    At least 90 of 100 that onnxruntime runs are equal, of all whose inputs and outputs are arrays.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    counts, wrong = Counter[str](), {}
    for case in cases:
        rows = case.data_sets[0]
        plain = all(isinstance(one, np.ndarray | np.generic) for row in rows for one in row)
        if not plain:
            continue
        asked, before = runs_elsewhere(case.model), counts["equal"]
        counts["asked"] += asked
        if any(word in case.name for word in LEFT_OUT):
            continue
        with np.errstate(all="ignore"):
            reason = check(case, counts)
        counts["answered"] += asked and counts["equal"] > before
        if reason is not None and case.name not in OTHER:
            wrong[case.name] = reason
    with capsys.disabled():
        print(f"onnx: {counts['equal']} cases of the specification equal, {counts['refused']} refused;")  # noqa: T201
        print(f"  of {counts['asked']} that onnxruntime runs {counts['answered']}")  # noqa: T201
        print(f"  {counts['as it is']} as they are, with axes and sizes that are fed")  # noqa: T201
    assert not wrong
    assert counts["as it is"] >= 0.83 * (counts["equal"] + counts["refused"])
    assert counts["answered"] >= 0.9 * counts["asked"]


#: Why operators of ONNX are not read.
REASONS = {
    "another way of computing is asked for, which Fluid does not have": (
        "BitCast",
        "MelWeightMatrix",
        "Multinomial",
    ),
    "lists of tensors, and values that may be absent": (
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
    ),
    "texts and pictures": (
        "ImageDecoder",
        "RegexFullMatch",
        "StringConcat",
        "StringNormalizer",
        "StringSplit",
        "TfIdfVectorizer",
    ),
}


def test_every_operator_of_onnx_is_read_or_left_out_for_a_reason(capsys) -> None:
    """Directly, or because ONNX defines them by others that are."""
    newest = {each.name: each for each in defs.get_all_schemas() if each.domain == "" and not each.deprecated}
    direct = {name for name in load_table() if not name.startswith(ML)} | {"Constant"}
    defined = {
        name for name, each in newest.items() if each.has_function or each.has_context_dependent_function
    }
    reasons = {name for names in REASONS.values() for name in names}
    rest = set(newest) - direct - defined - reasons
    classic = sum(name.startswith(ML) for name in load_table())
    counts = len(direct & set(newest)), len((defined - direct) & set(newest))
    with capsys.disabled():
        print(f"onnx: {counts[0]} of {len(newest)} operators read, {counts[1]} more by their definitions;")  # noqa: T201
        print(f"  {classic} of ai.onnx.ml")  # noqa: T201
        for reason, names in REASONS.items():
            print(f"  not: {reason}: {', '.join(sorted(names))}")  # noqa: T201
    assert not rest
    assert len(direct & set(newest)) >= 140
