"""Every command on files that are damaged, of another kind, or absent: its exit status, and a sentence."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from paddlelike.cli.app import app

FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"

#: The commands, with PATH for what is tried and OUT for a path that does not exist yet.
CALLS = {
    "inspect": "inspect PATH",
    "doctor": "doctor PATH",
    "scan": "scan PATH",
    "verify": "verify PATH",
    "diff": "diff PATH MODEL",
    "plan": "plan PATH --program MODEL",
    "into": "plan MODEL --program PATH",
    "convert": "convert PATH OUT.npz",
    "onnx": "convert PATH OUT.onnx",
    "merge": "merge PATH OUT",
    "split": "split PATH OUT",
    "prune": "prune PATH OUT --fetch fc_0.tmp_1",
    "compact": "compact PATH",
    "graph": "graph PATH",
    "view": "view PATH -o OUT.html",
    "against": "view MODEL --against PATH -o OUT.html",
    "check": "check PATH INPUTS",
    "inputs": "check MODEL PATH",
    "serve": "serve PATH --token short",
}

#: The exit statuses, in the order of the commands.
#: 0: fine; 1: something was found; 2: it cannot be read, there is no verdict; 3: one of two was not read.
TABLE = {
    "absent":          "2222 2222 2222 2222 222",
    "empty":           "1122 2222 2222 2203 222",
    "git_lfs":         "1122 2222 2222 2203 222",
    "page":            "1122 2222 2222 2203 222",
    "page.pdparams":   "1112 2222 2222 2203 222",
    "text":            "1122 2222 2222 2203 222",
    "json.json":       "1122 2222 2222 2203 222",
    "picture.png":     "1122 2222 2222 2203 222",
    "gzip":            "1122 2222 2222 2203 222",
    "tar":             "1122 2222 2222 2203 222",
    "empty.npz":       "1112 2222 2222 2203 222",
    "cut.npz":         "1112 2222 2222 2203 222",
    "random":          "1122 2222 2222 2203 222",
    "zeros":           "1122 2222 2222 2203 222",
    "cut_tensor":      "1122 2222 2222 2203 222",
    "cut.pdmodel":     "1112 2222 2222 2203 222",
    "no_arrays.pkl":   "1122 2222 2222 2203 222",
    "objects.npz":     "1112 2222 2222 2203 222",
    "cut.onnx":        "1112 2222 2222 2203 222",
    "cut.h5":          "1112 2222 2222 2203 222",
    "cut.safetensors": "1112 2222 2222 2203 222",
    "pir.json":        "1112 2222 2222 2203 222",
    "link":            "2222 2222 2222 2222 222",
    "pipe":            "2222 2222 2222 2222 222",
    "nul":             "2222 2222 2222 2223 222",
    "directory":       "1122 2222 2222 0203 222",
    "nested":          "1122 2222 2222 0203 222",
    "pages":           "1122 2222 2222 0203 222",
    "broken_model":    "1112 2122 2222 0203 222",
}  # fmt: skip


def _pack_tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as file:
        file.addfile(tarfile.TarInfo("name"))
    return packed.getvalue()


def _pack_zip(write: Callable[[zipfile.ZipFile], Any]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        write(file)
    return packed.getvalue()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with every kind of input, a model and its inputs."""
    home = tmp_path_factory.mktemp("inputs")
    tensor = (FIT / "persistables" / "fc_0.w_0").read_bytes()
    program = (FIT / "inference" / "__model__").read_bytes()
    arrays = io.BytesIO()
    np.savez(arrays, w=np.ones((3, 4), "float32"))
    objects = io.BytesIO()
    np.savez(objects, w=np.array([None, 1], object))
    page = b"<!DOCTYPE html><html>404</html>"
    files = {
        "empty": b"",
        "git_lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
        "page": page,
        "page.pdparams": page,
        "text": b"some words\n",
        "json.json": b'{"a": 1}',
        "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(50),
        "gzip": gzip.compress(b"some words\n"),
        "tar": _pack_tar(),
        "empty.npz": _pack_zip(lambda file: None),
        "cut.npz": arrays.getvalue()[:100],
        "random": np.random.default_rng(0).bytes(3000),
        "zeros": bytes(1000),
        "cut_tensor": tensor[:-7],
        "cut.pdmodel": program[: len(program) // 2],
        "no_arrays.pkl": pickle.dumps({"a": [1, 2], "b": "x"}, 2),
        "objects.npz": objects.getvalue(),
        "cut.onnx": b"\x08\x07\x12\x07pytorch:\x00",
        "cut.h5": b"\x89HDF\r\n\x1a\n" + bytes(30),
        "cut.safetensors": struct.pack("<Q", 1000) + b'{"a":',
        "pir.json": b'{"base_code":{"magic":"pir","version":1,"trainable":true},"program":{"regions":[]}}',
    }
    for name, data in files.items():
        (home / name).write_bytes(data)
    (home / "link").symlink_to("nowhere")
    os.mkfifo(home / "pipe")
    (home / "directory").mkdir()
    (home / "nested" / "deep").mkdir(parents=True)
    (home / "pages").mkdir()
    (home / "pages" / "fc_0.w_0").write_bytes(page)
    (home / "pages" / "fc_0.b_0").write_bytes(b"")
    (home / "broken_model").mkdir()
    (home / "broken_model" / "__model__").write_bytes(program[: len(program) // 2])
    (home / "broken_model" / "fc_0.b_0").write_bytes(tensor[:-7])
    (home / "broken_model" / "fc_0.w_0").write_bytes(tensor)
    shutil.copytree(FIT / "inference", home / "bad_manifest")
    (home / "bad_manifest" / "__manifest__").write_bytes(page)
    shutil.copytree(FIT / "inference", home / "MODEL")
    np.savez(home / "INPUTS.npz", x=np.zeros((2, 13), "float32"))
    return home


def _call(command: str, home: Path, kind: str, out: Path) -> Any:
    names = {"PATH": "a\0b" if kind == "nul" else str(home / kind), "MODEL": str(home / "MODEL")}
    names["INPUTS"] = str(home / "INPUTS.npz")
    words = [names.get(word, word.replace("OUT", str(out))) for word in command.split()]
    return CliRunner().invoke(app, words)


@pytest.mark.parametrize("kind", TABLE)
def test_a_bad_input_ends_with_its_status_and_a_sentence(home: Path, tmp_path: Path, kind: str) -> None:
    statuses = ""
    for command in CALLS.values():
        result = _call(command, home, kind, tmp_path / "out")
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert (result.exit_code in (2, 3)) == ("paddlelike: " in result.stderr)
        statuses += str(result.exit_code)
    assert statuses == TABLE[kind].replace(" ", "")
    assert [one.name for one in tmp_path.iterdir()] in ([], ["out.html"])


#: What is said of a file that holds nothing is the same sentence in every command.
SAID = {
    "empty": "the file is empty: its writer was stopped or the disk was full; copy or save it again",
    "git_lfs": "this is a Git LFS pointer, not the file itself: fetch the file with: git lfs pull",
    "page": "this is a web page (HTML), saved in place of the file: download the file itself again",
    "picture.png": "this is a PNG image: take it out of the model directory, or name the file of the tensor",
    "pages": "fc_0.w_0: this is a web page",
    "directory": "the directory is empty",
}


@pytest.mark.parametrize("command", sorted(CALLS.keys() - {"inspect", "doctor", "view", "compact"}))
@pytest.mark.parametrize("kind", SAID)
def test_every_command_says_what_the_file_is(home: Path, tmp_path: Path, kind: str, command: str) -> None:
    assert SAID[kind] in " ".join(_call(CALLS[command], home, kind, tmp_path / "out").stderr.split())


def test_the_table_has_every_command_that_takes_a_path() -> None:
    from paddlelike.cli.app import COMMANDS

    tried = {call.split()[0] for call in CALLS.values()}
    assert tried == COMMANDS.keys() - {"quirks", "env", "demo", "run", "launch"}
    assert len(TABLE) >= 28


#: A file among others that can be read: (kind of input, command) -> a part of what is said of it.
NAMED = {
    ("broken_model", "inspect"): "! fc_0.b_0: ",
    ("broken_model", "scan"): "  fc_0.b_0: a file that cannot be read",
    ("broken_model", "doctor"): "error: __model__: ",
    ("bad_manifest", "doctor"): "warning: __manifest__: ",
    ("bad_manifest", "compact"): "the chains of ",
    ("pir.json", "scan"): "copy or save it again",
}


@pytest.mark.parametrize(("kind", "command"), NAMED)
def test_unreadable_files_are_named_beside_readable_ones(
    home: Path, tmp_path: Path, kind: str, command: str
) -> None:
    assert NAMED[kind, command] in _call(CALLS[command], home, kind, tmp_path / "out").output


@pytest.mark.parametrize("kind", ["git_lfs", "page.pdparams", "cut.pdmodel", "broken_model"])
def test_doctor_suggests_no_call_that_opens_a_model_where_nothing_of_it_can_be_read(
    home: Path, tmp_path: Path, kind: str
) -> None:
    assert "load_inference_model" not in _call(CALLS["doctor"], home, kind, tmp_path / "out").stdout


def test_a_fetch_that_the_program_does_not_have_is_refused_with_near_names(
    home: Path, tmp_path: Path
) -> None:
    result = _call("prune MODEL OUT --fetch fc_0.tmp_11", home, "", tmp_path / "out")
    assert result.exit_code == 2
    assert "did you mean 'fc_0.tmp_1'" in result.stderr


@pytest.mark.parametrize("call", ["view MODEL -o NUL", "scan MODEL --html NUL", "graph MODEL -o NUL"])
def test_an_output_path_with_a_nul_character_is_refused(home: Path, call: str) -> None:
    words = [{"MODEL": str(home / "MODEL"), "NUL": "a\0b.svg"}.get(word, word) for word in call.split()]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "NUL character" in result.stderr or "null byte" in result.stderr


@pytest.mark.parametrize("call", ["view MODEL -o PIPE", "scan MODEL --html PIPE"])
def test_a_pipe_is_not_replaced_by_a_page(home: Path, call: str) -> None:
    words = [
        {"MODEL": str(home / "MODEL"), "PIPE": str(home / "pipe")}.get(word, word) for word in call.split()
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "exists, and is not a page" in result.stderr
