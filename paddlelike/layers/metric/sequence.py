"""Metrics of sequences: chunks and edit distances."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import check_variable
from paddlelike.layers.emit import emit, emit_all
from paddlelike.layers.helper import LayerHelper

__all__ = ["chunk_eval", "edit_distance"]


def edit_distance(
    input: Variable,
    label: Variable,
    normalized: bool = True,
    ignored_tokens: Sequence[int] | None = None,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> tuple[Variable, Variable]:
    """Return each sequence's edit distance from its label, (sequences, 1), and the count of sequences.

    Operator ``edit_distance`` (Levenshtein). ``normalized`` divides by the length of the label;
    ``ignored_tokens`` are removed first (``sequence_erase``). Ids are int64 (T, 1) with LoD, or (N, L) with
    lengths (N,). Raises TypeError unless ``input`` and ``label`` are variables of supported dtypes.

    Without LoD, ``input_length`` and ``label_length`` hold how much of each row counts, (batch,).

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
        The lengths of padded rows, int64 (N,); None where there is a LoD.

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
    """Return precision, recall and F1 of tagged chunks, and the counts inferred, labelled and correct.

    Operator ``chunk_eval``. ``chunk_scheme`` is IOB, IOE, IOBES or plain; ``input`` and ``label`` are int64
    sequences, or padded with ``seq_length``. Raises TypeError unless ``input`` and ``label`` are variables
    of supported dtypes.

    Tags are counted by ``num_chunk_types`` types of chunks; those in ``excluded_chunk_types`` are
    passed over. Each output has shape (1,).

    Parameters
    ----------
    input
        Inferred tags, int64 (T, 1) with LoD, or (N, L) with ``seq_length``.
    label
        True tags, in the same form.
    chunk_scheme
        ``"IOB"``, ``"IOE"``, ``"IOBES"`` or ``"plain"``.
    num_chunk_types
        The count of types of chunks.
    excluded_chunk_types
        Types that are passed over; None for none.
    seq_length
        The lengths of padded rows, int64 (N,); None where there is a LoD.

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
