"""Metrics of classification and of labelled sequences."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.core import VarType
from paddlelike.framework import Variable, warn_quirk
from paddlelike.initializer import Constant
from paddlelike.layers.emit import FLOATS, INTEGERS, WIDE_FLOATS, check_choice, check_variable, emit, emit_all
from paddlelike.layers.helper import LayerHelper
from paddlelike.layers.reduction import topk

__all__ = ["accuracy", "auc", "chunk_eval", "edit_distance", "mean_iou"]


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """Return the fraction of rows (N, D) whose label is among the ``k`` highest scores, float32 of shape [1].

    Operators ``top_k`` and ``accuracy``; counts are written to ``correct`` and ``total`` (int32 [1]).

    Parameters
    ----------
    input
        Scores (N, D).
    label
        The class, int (N, 1).
    k
        The number of greatest scores among which the label must be.
    correct, total
        Variables, int32 [1], that the counts are written to; None for new ones.

    Returns
    -------
    Variable
        float32 of shape (1,).

    Raises
    ------
    TypeError
        ``input`` is not a variable of float16, float32 or float64, or ``label`` is not a variable of int32 or
        int64.

    >>> from paddlelike.input import data
    >>> accuracy(data("digits", [None, 10]), data("label", [None, 1], "int64")).shape
    (1,)
    """
    check_variable("accuracy", "input", input, FLOATS)
    check_variable("accuracy", "label", label, INTEGERS)
    helper = LayerHelper("accuracy")
    values, indices = topk(input, k=k)
    out = helper.create_variable_for_type_inference("float32")
    counts = {"Correct": correct, "Total": total}
    outputs = {
        slot: helper.create_variable_for_type_inference("int32") if count is None else count
        for slot, count in counts.items()
    }
    helper.append_op(
        type="accuracy",
        inputs={"Out": [values], "Indices": [indices], "Label": [label]},
        outputs={"Accuracy": [out], **outputs},
    )
    return out


def auc(
    input: Variable,
    label: Variable,
    curve: str = "ROC",
    num_thresholds: int = 2**12 - 1,
    topk: int = 1,
    slide_steps: int = 1,
) -> tuple[Variable, Variable, list[Variable]]:
    """Return the areas under the ROC (or PR) curve of all data and of the last batches, and the counts.

    The counts, one per threshold, are persistables that start at 0 (operator ``auc``).

    Parameters
    ----------
    input
        Probabilities (N, 2); the second column is class 1.
    label
        0 or 1, int (N, 1).
    curve
        ``"ROC"`` or ``"PR"``.
    num_thresholds
        The number of parts that the thresholds cut [0, 1] into.
    topk
        Ignored, as in Fluid.
    slide_steps
        The number of last batches for the second area; 0 for all.

    Returns
    -------
    auc : Variable
        float64 (1,): the area over all data so far.
    batch_auc : Variable
        float64 (1,): the area over the last ``slide_steps`` batches.
    states : list
        The four variables of int64 that hold the counts: positives and negatives of the batches, then of all
        data.

    Raises
    ------
    TypeError
        ``input`` is not a variable of float32 or float64, or ``label`` is not a variable of int32 or int64.
    GraphError
        ``curve`` is neither ``"ROC"`` nor ``"PR"``.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 2])
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> [one.shape for one in fluid.layers.auc(x, y)[:2]]
    [(1,), (1,)]
    """
    check_variable("auc", "input", input, WIDE_FLOATS)
    check_variable("auc", "label", label, INTEGERS)
    check_choice("auc", "curve", curve, ("ROC", "PR"))
    if curve == "PR":
        warn_quirk("auc_curve")
    helper = LayerHelper("auc")
    area = helper.create_variable_for_type_inference("float64")
    batch_area = helper.create_variable_for_type_inference("float64")
    batch_shape = [(1 + slide_steps) * (num_thresholds + 1) + 1]
    counts = [
        helper.create_global_variable(persistable=True, dtype="int64", shape=shape)
        for shape in (batch_shape, batch_shape, [1, num_thresholds + 1], [1, num_thresholds + 1])
    ]
    for count in counts:
        count.stop_gradient = False
        helper.set_variable_initializer(count, Constant(0.0, force_cpu=False))
    halves = ((batch_area, counts[:2], slide_steps), (area, counts[2:], 0))
    for out, (positive, negative), steps in halves:
        helper.append_op(
            type="auc",
            inputs={"Predict": [input], "Label": [label], "StatPos": [positive], "StatNeg": [negative]},
            outputs={"AUC": [out], "StatPosOut": [positive], "StatNegOut": [negative]},
            attrs={"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
        )
    return area, batch_area, counts


def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, ...]:
    """Return the mean over classes of intersection over union, and the wrong and correct counts per class.

    Operator ``mean_iou``.

    Parameters
    ----------
    input, label
        Classes, int32 or int64, of one shape.
    num_classes
        The number of classes.

    Returns
    -------
    mean : Variable
        float32 (1,).
    wrong : Variable
        int32 (num_classes,): the wrong predictions of each class.
    correct : Variable
        int32 (num_classes,): the correct predictions of each class.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable of int32 or int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64")
    >>> y = fluid.data("y", [None, 1], "int64")
    >>> [one.shape for one in fluid.layers.mean_iou(x, y, num_classes=3)]
    [(1,), (3,), (3,)]
    """
    check_variable("mean_iou", "input", input, INTEGERS)
    check_variable("mean_iou", "label", label, INTEGERS)
    outputs = {"OutMeanIou": "float32", "OutWrong": "int32", "OutCorrect": "int32"}
    inputs = {"Predictions": input, "Labels": label}
    return emit_all("mean_iou", inputs, outputs, {"num_classes": num_classes})


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """Return each sequence's edit distance from its label, (sequences, 1), and the number of sequences.

    Operators ``edit_distance`` (Levenshtein), and ``sequence_erase`` for ``ignored_tokens``.

    Parameters
    ----------
    input
        Ids, int64 (T, 1) with LoD, or (N, L) with ``input_length``.
    label
        True ids, in the same form.
    normalized
        Whether distances are divided by the length of the label.
    ignored_tokens
        Ids that are removed first; None for none.
    input_length, label_length
        The lengths of padded rows, int64 (N,); None if the rows have a LoD.

    Returns
    -------
    distances : Variable
        float32 (sequences, 1) in a run; declared as int64, as in Fluid.
    count : Variable
        int64 (1,): the number of sequences.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable of int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> y = fluid.data("y", [None, 1], "int64", lod_level=1)
    >>> [one.shape for one in fluid.layers.edit_distance(x, y)]
    [(-1, 1), (1,)]
    """
    check_variable("edit_distance", "input", input, (VarType.INT64,))
    check_variable("edit_distance", "label", label, (VarType.INT64,))
    helper = LayerHelper("edit_distance")

    def erase(ids: Variable) -> Variable:
        attrs = {"tokens": list(ignored_tokens or ())}
        return emit("sequence_erase", {"X": ids}, attrs, helper=helper, dtype=VarType.INT64)

    if ignored_tokens:
        input, label = erase(input), erase(label)
    inputs = {"Hyps": input, "Refs": label}
    if input_length is not None and label_length is not None:
        inputs |= {"HypsLength": input_length, "RefsLength": label_length}
    outputs = {"Out": VarType.INT64, "SequenceNum": VarType.INT64}
    attrs = {"normalized": normalized}
    out, count = emit_all("edit_distance", inputs, outputs, attrs, helper=helper)
    return out, count


def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, ...]:
    """Return precision, recall and F1 of tagged chunks, and the numbers of inferred, labelled and correct
    chunks.

    Operator ``chunk_eval``.

    Parameters
    ----------
    input
        Inferred tags, int64 (T, 1) with LoD, or (N, L) with ``seq_length``.
    label
        True tags, in the same form.
    chunk_scheme
        ``"IOB"``, ``"IOE"``, ``"IOBES"`` or ``"plain"``.
    num_chunk_types
        The number of types of chunks.
    excluded_chunk_types
        Types that are ignored; None for none.
    seq_length
        The lengths of padded rows, int64 (N,); None if the rows have a LoD.

    Returns
    -------
    precision, recall, f1 : Variable
        float32 (1,) each.
    inferred, labelled, correct : Variable
        int64 (1,) each: counts of chunks.

    Raises
    ------
    TypeError
        ``input`` or ``label`` is not a variable of int64.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 1], "int64", lod_level=1)
    >>> y = fluid.data("y", [None, 1], "int64", lod_level=1)
    >>> [one.shape for one in fluid.layers.chunk_eval(x, y, "IOB", num_chunk_types=3)]
    [(1,), (1,), (1,), (1,), (1,), (1,)]
    """
    check_variable("chunk_eval", "input", input, (VarType.INT64,))
    check_variable("chunk_eval", "label", label, (VarType.INT64,))
    inputs = {"Inference": input, "Label": label, "SeqLength": seq_length}
    outputs = {
        "Precision": "float32",
        "Recall": "float32",
        "F1-Score": "float32",
        "NumInferChunks": "int64",
        "NumLabelChunks": "int64",
        "NumCorrectChunks": "int64",
    }
    attrs = {
        "num_chunk_types": num_chunk_types,
        "chunk_scheme": chunk_scheme,
        "excluded_chunk_types": list(excluded_chunk_types or []),
    }
    return emit_all("chunk_eval", inputs, outputs, attrs)
