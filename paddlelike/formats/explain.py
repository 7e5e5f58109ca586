"""Explain what kind of file this is if it is not a Paddle tensor, by its first bytes, and the next step.

Paddle reads a version number first, so its error for a wrong file is a number: 1904018048 is a pickle,
1196314761 a PNG. Registered formats have a title and advice; the table below names other kinds of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Final, Literal, NamedTuple

import numpy as np

from paddlelike.formats import registry
from paddlelike.formats.base import SNIFF_BYTES
from paddlelike.formats.paddle.recognize import find_dense_part, is_pir, is_program, is_selected_rows

HEAD: Final = SNIFF_BYTES  # the bytes of a file that explain() needs


class _Kind(NamedTuple):
    """A kind of file: its name, how to recognize it, and the next step."""

    recognizes: Callable[[bytes, int], bool]
    title: str
    advice: str


def explain(head: bytes, size: int, asked: Literal["dense", "rows"] | None = None) -> str | None:
    """Return the kind of a file of ``size`` bytes that begins with ``head``, and a next step, or None if
    unknown.

    ``asked`` is the expected stream: a dense tensor or SelectedRows.

    >>> explain(bytes.fromhex("89504e470d0a1a0a"), 900)
    'this is a PNG image: take it out of the model directory, or name the file of the tensor'
    """
    if size == 0:
        return "the file is empty: its writer was stopped or the disk was full; copy or save it again"
    if asked == "dense" and is_selected_rows(head):
        return (
            "this is a SelectedRows stream (a sparse table): "
            "declare the variable with type SELECTED_ROWS to read it"
        )
    if asked == "rows" and find_dense_part(head) is not None:
        return "this is a dense tensor: declare the variable with type LOD_TENSOR to read it"
    known = registry.sniff_head(head, size)
    if known is not None and (known.advice or known.holds.names):
        return f"this is {known.title}: {known.advice or 'pass its name as filename= of the load'}"
    for kind in _KINDS:
        if kind.recognizes(head, size):
            return f"this is {kind.title}: {kind.advice}"
    return None


def explain_names(names: Iterable[str]) -> str | None:
    """Return the system that writes files with these names, and a next step; None if unknown.

    >>> explain_names(["saved_model.pb", "variables/variables.index"])
    'this is a SavedModel of TensorFlow: tf2onnx makes an ONNX model of it'
    """
    top = [name for name in names if "/" not in name]
    for pattern, title, advice in _FOLDERS:
        if any(re.search(pattern, name) for name in top):
            return f"this is {title}: {advice}"
    return None


def explain_name(name: str) -> str:
    """Return a clause that says what a file of unknown contents should be, judged by its name.

    >>> explain_name("net/w.safetensors")
    'not a safetensors file, as its name says: it was cut, or is another kind of file'
    """
    path = PurePath(name)
    base, suffix = path.name, path.suffix.lower()
    if suffix == ".pdmodel" or base == "__model__":
        return "this is not a whole program: it was cut while it was written or copied; copy or save it again"
    named = next((one for one in registry.all_formats().values() if suffix in one.suffixes), None)
    if named is not None:
        return f"not {named.title}, as its name says: it was cut, or is another kind of file"
    return explain_names([base]) or "of no known format"


def _starts_with(*magics: bytes) -> Callable[[bytes, int], bool]:
    return lambda head, size: head.startswith(magics)


def _is_onnx(head: bytes, size: int) -> bool:
    # ir_version, then producer_name, opset_import or the graph
    return re.match(rb"\x08[\x01-\x14][\x12\x3a\x42]", head) is not None and not _is_saved_model(head, size)


def _is_saved_model(head: bytes, size: int) -> bool:
    # its version, then the first graph, which begins with facts about it and not with text
    return re.match(rb"\x08\x01\x12[\x80-\xff]*[\x00-\x7f]\x0a", head) is not None


def _is_tar(head: bytes, size: int) -> bool:
    return head[257:262] == b"ustar"


def _is_html(head: bytes, size: int) -> bool:
    return re.match(rb"\s*<(!doctype|html|head|\?xml)", head, re.IGNORECASE) is not None


def _is_json(head: bytes, size: int) -> bool:
    return re.match(rb'\s*(\{\s*("|\})|\[\s*[\[{"\d])', head) is not None and _is_text(head, size)


def _is_text(head: bytes, size: int) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if len(head) - error.start > 3 or len(head) == size:  # not just a character cut in two
            return False
        text = head[: error.start].decode()
    return bool(text) and not re.search(r"[\x00-\x08\x0e-\x1f\x7f]", text)


def _is_elements(head: bytes, size: int) -> bool:
    """Return whether the bytes look like elements of a float tensor: small numbers of both signs."""
    values = np.frombuffer(head[: len(head) // 4 * 4], "<f4")
    if len(values) < 8:
        return False
    with np.errstate(invalid="ignore"):
        plausible = (np.abs(values) > 1e-8) & (np.abs(values) < 1e4)
    return bool(plausible.mean() > 0.9)


def _is_cut(head: bytes, size: int) -> bool:
    """Return whether a tensor begins here whose header was refused because its data is missing."""
    return find_dense_part(head) is not None or (size < 22 and head == bytes(size)[: len(head)])


REMOVE: Final = "take it out of the model directory, or name the file of the tensor"

_SAVED_MODEL: Final = "tf2onnx makes an ONNX model of it"
_TENSORFLOW: Final = (
    "tf.train.load_checkpoint(its path without .index) gives its arrays; numpy.savez them and convert that"
)
_ORBAX: Final = (
    "orbax.checkpoint.PyTreeCheckpointer().restore(os.path.abspath(DIR)) gives its arrays; numpy.savez them "
    "and convert that"
)
_MXNET: Final = "mxnet.nd.load gives its arrays; numpy.savez what asnumpy() makes of each, and convert that"
_CNTK1: Final = "CNTK 2 opens it: cntk.load_model(FILE).save(NEW) writes one that is read here"

#: Files of other systems' directories, by their names at its top.
_FOLDERS: Final = (
    (r"^saved_model\.pb$", "a SavedModel of TensorFlow", _SAVED_MODEL),
    (r"\.data-\d{5}-of-\d{5}$", "a checkpoint of TensorFlow", _TENSORFLOW),
    (r"^(_CHECKPOINT_METADATA|manifest\.ocdbt)$", "a checkpoint of Orbax", _ORBAX),
    (
        r"^\.metadata$",
        "a checkpoint of torch.distributed",
        "torch.distributed.checkpoint.format_utils.dcp_to_torch_save(DIR, 'm.pt') makes a file that is read",
    ),
    (
        r"^\d+\.metadata$",
        "a checkpoint of paddle.distributed",
        "convert its directory with paddlelike.convert",
    ),
    (r"\.params$", "a model of MXNet", _MXNET),
    (r"\.pb$", "a graph of TensorFlow", _SAVED_MODEL),
)

_KINDS: Final = (
    _Kind(_starts_with(b"\x89PNG"), "a PNG image", REMOVE),
    _Kind(_starts_with(b"\xff\xd8\xff"), "a JPEG image", REMOVE),
    _Kind(
        lambda head, size: size == 22 and head.startswith(b"PK\x05\x06"),
        "an empty zip archive, as numpy.savez writes it of no arrays",
        "save the arrays again",
    ),
    _Kind(
        _starts_with(b"PK\x03\x04", b"PK\x05\x06"),
        "a zip archive (npz, PyTorch, Keras or a packed model directory)",
        "unpack it, or convert its arrays; numpy.load opens an npz",
    ),
    _Kind(
        lambda head, size: is_pir(head),
        "a program of Paddle 3 (PIR, JSON)",
        "give it as model_filename of fluid.io.load_inference_model; if that refuses the model, export it by "
        "Paddle 3 as a .pdmodel, with the environment variable FLAGS_enable_pir_api=0",
    ),
    _Kind(
        lambda head, size: is_program(head),
        "a program (__model__ or .pdmodel), not the value of a variable",
        "give it as model_filename of fluid.io.load_inference_model, "
        "and take it out of a directory of variables",
    ),
    _Kind(_is_saved_model, "a SavedModel of TensorFlow", _SAVED_MODEL),
    _Kind(_is_onnx, "an ONNX model", "convert it; its weights are not Paddle's"),
    _Kind(_starts_with(b"\x93NUMPY"), "a .npy array", "open it with numpy.load and set the variable"),
    _Kind(
        _starts_with(b"\x1f\x8b"),
        "a gzip archive (the form of parameters in Paddle v2)",
        "unpack it and name the file inside; gzip.open reads its contents",
    ),
    _Kind(_starts_with(b"BZh"), "a bzip2 archive", "unpack it; bz2.open reads its contents"),
    _Kind(_starts_with(b"\xfd7zXZ\0"), "an xz archive", "unpack it; lzma.open reads its contents"),
    _Kind(
        _starts_with(b"GGUF"),
        "a GGUF model of llama.cpp",
        "gguf.GGUFReader gives its tensors, gguf.dequantize their numbers; numpy.savez them and convert that",
    ),
    _Kind(_starts_with(b"\x12\x01\0\0\0\0\0\0"), "a file of arrays of MXNet", _MXNET),
    _Kind(
        lambda head, size: _is_json(head, size) and b'"nodes"' in head and b'"op"' in head,
        "a network of MXNet",
        "mxnet.onnx.export_model makes an ONNX model of it and its .params",
    ),
    _Kind(_starts_with("BCN\0".encode("utf-16-le")), "a model of CNTK 1", _CNTK1),
    _Kind(
        lambda head, size: head[4:8] == b"TFL3", "a model of TensorFlow Lite", "tf2onnx --tflite converts it"
    ),
    _Kind(
        lambda head, size: (
            re.match(rb"\0\0.\x08[\x01-\xff]{1,5}\x1a\x02\x08\x01", head, re.DOTALL) is not None
        ),
        "the index of a checkpoint of TensorFlow",
        _TENSORFLOW,
    ),
    _Kind(_starts_with(b"\x0c\xdb\x3a\x2a", b"\x0c\xdb\x20\xde"), "a part of a checkpoint of Orbax", _ORBAX),
    _Kind(_is_tar, "a tar archive", "unpack it and name the directory inside"),
    _Kind(
        _starts_with(b"version https://git-lfs"),
        "a Git LFS pointer, not the file itself",
        "fetch the file with: git lfs pull",
    ),
    _Kind(_is_html, "a web page (HTML), saved in place of the file", "download the file itself again"),
    _Kind(
        lambda head, size: _is_json(head, size) and b'"weight_map"' in head,
        "the index of a model in several files",
        "convert its folder with paddlelike.convert",
    ),
    _Kind(_is_json, "JSON text", REMOVE),
    _Kind(_starts_with(b"[PAD]"), "a vocabulary, one word a line", REMOVE),
    _Kind(_is_text, "plain text", REMOVE),
    _Kind(_is_cut, "a tensor that was cut while it was written or copied", "copy or save it again"),
    _Kind(
        _is_elements,
        "most likely the middle of a combined file, or bare float numbers",
        "check that the list of variables is the one the file was saved with",
    ),
)
