"""The advice of errors of files of other kinds, bundles, collections and commands, followed to the letter."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike import bundle
from paddlelike import collection as dy
from paddlelike.cli.app import app
from paddlelike.core import VarType
from paddlelike.formats.entry import Entry
from paddlelike.inspection.diagnosis import diagnose
from tests.hints.advice import ROWS, SUMS, Advice, fill, new_network, read_rows
from tests.hints.files.test_files import WEIGHTS, after, damage, export, load, predict, save
from tests.io.deltas.tables import HEIGHT, Training

PNG = bytes.fromhex("89504e470d0a1a0a0000000d")


class Own:
    """A class of the user, as a bundle holds it."""

    def __init__(self, value: int) -> None:
        self.value = value


def read_state(path: str = "m/file", names: list[str] | None = None) -> Any:
    variables = None if names is None else [create(name) for name in names]
    return fluid.load_program_state(path, variables)


def create(name: str, shape: tuple[int, ...] = (4, 1)) -> fluid.Variable:
    block = fluid.default_main_program().global_block()
    return block.create_var(name=name, shape=shape, dtype="float32", persistable=True)


def write(data: bytes, name: str = "file") -> None:
    """Save weights of 2 into the folder ``m``, and write a file beside them."""
    save()
    Path("m", name).write_bytes(data)


def read_bytes() -> bytes:
    save()
    return Path("m/fc_0.w_0").read_bytes()


def unpack(opened: Callable[[str], Any]) -> Any:
    """Unpack an archive of a variable, and load it."""
    with opened("m/file") as file:
        data = file.read()
    os.remove("m/file")
    Path("m/fc_0.w_0").write_bytes(data)
    return load()


def pack(compress: Callable[[bytes], bytes]) -> None:
    write(compress(read_bytes()))


def pack_zip() -> None:
    save()
    with zipfile.ZipFile("m.zip", "w") as archive:
        for name in os.listdir("m"):
            archive.write(f"m/{name}", name)


def pack_tar() -> None:
    save()
    with tarfile.open("m.tar", "w") as archive:
        archive.add("m")


def unpack_tar() -> Any:
    with tarfile.open("m.tar") as archive:
        archive.extractall("unpacked", filter="data")
    return load(dirname="unpacked/m")


def set_array() -> Any:
    """Set a variable to an array of numpy's file."""
    with new_network():
        fluid.layers.fc(read_rows(), 1, param_attr=fill(0.0), bias_attr=False)
        fluid.Executor().run(fluid.default_startup_program())
        fluid.set_program_state(fluid.default_main_program(), {"fc_0.w_0": np.load("m/file")})
        return np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())


def save_npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def save_npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def write_safetensors(path: str) -> None:
    head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    Path(path).write_bytes(len(head).to_bytes(8, "little") + head + np.array([1, 2], "<f4").tobytes())


def write_index() -> None:
    Path("m").mkdir()
    write_safetensors("m/model.safetensors")
    Path("m/model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"w": "model.safetensors"}})
    )


def take_program(name: str) -> Any:
    return predict(model_filename=name)


def dump(value: Any, mode: str = "wb") -> None:
    with open("bundle", mode) as file:
        bundle.dump(value, file)


def read_bundle(mode: str = "rb", **options: Any) -> Any:
    with open("bundle", mode) as file:
        return bundle.load(file, **options)


def dump_stream(mode: str) -> Any:
    with open("stream", mode) as file:
        bundle.dump_all(file, [1, 2])
    with open("stream", "rb") as file:
        return list(bundle.load_all(file))


def read_dataset(**options: Any) -> Any:
    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_pipe_command("sort")
    Path("bundle").write_bytes(pickle.dumps(dataset))
    return read_bundle(**options).pipe_command


def command(*arguments: object) -> str:
    """Run a command of the terminal; raise what it writes where it fails."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    if done.exit_code:
        raise RuntimeError(
            " ".join(done.output.replace("\n  hint", "\x00").split()).replace("\x00", "\n  hint")
        )
    return done.output


def convert(dst: str, **options: Any) -> Any:
    fluid.convert("m", dst, **options)
    return fluid.load_program_state(dst) if not dst.endswith(".npz") else dict(np.load(dst))


def save_values(**values: Any) -> None:
    """Save values by name; a pair is rows and their lengths."""
    with new_network():
        block, variables = fluid.default_main_program().global_block(), []
        for name, value in values.items():
            rows, lengths = value if isinstance(value, tuple) else (value, None)
            variables.append(
                block.create_var(
                    name=name,
                    shape=rows.shape,
                    dtype=str(rows.dtype),
                    persistable=True,
                    lod_level=int(lengths is not None),
                )
            )
            tensor = fluid.global_scope().var(name).get_tensor()
            tensor.set(rows, fluid.CPUPlace())
            if lengths:
                tensor.set_recursive_sequence_lengths([lengths])
        fluid.io.save_vars(fluid.Executor(), "m", vars=variables)


def build_collection(*sizes: int) -> Any:
    root = dy.ParameterCollection()
    for size in sizes:
        root.add_parameters((size,), init=3.0)
    return root


def populate(*sizes: int) -> Any:
    saved = build_collection(2, 3)
    saved.save("collection")
    root = build_collection(*sizes)
    root.populate("collection")
    return [float(one.as_array().sum()) for one in root.parameters_list()]


def add_again(renewed: bool) -> Any:
    root = build_collection(2)
    (parameter,) = root.parameters_list()
    dy.renew_cg()
    earlier = dy.parameter(parameter)
    dy.renew_cg()
    one = dy.parameter(parameter) if renewed else earlier
    return (one + dy.parameter(parameter)).npvalue()


def drop(inside: bool) -> Any:
    root = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, 2, 2, root)
    dy.renew_cg()
    x = dy.inputVector([1.0, 1.0])
    if inside:
        builder.set_dropout(0.5)
    return dy.dropout(builder.initial_state().add_input(dy.dropout(x, 0.0)).output(), 0.0).npvalue().shape


def mark(text: str) -> Any:
    """Return what a diagnosis advises about a directory, as the text of an error."""
    found = [one for one in diagnose("m").findings if one.level != "note" or text == "notes"]
    if found:
        raise RuntimeError("; ".join(one.advice for one in found))
    return True


def save_diverged(good: bool) -> None:
    save_values(w=np.full((2, 2), 1.0 if good else np.nan, "float32"))


def see_notes() -> Any:
    found = diagnose("m").findings
    raise RuntimeError("; ".join(one.advice for one in found))


def serve_check(path: str) -> Any:
    command("check", "model", path, "-o", "out.npz")
    return next(iter(dict(np.load("out.npz")).values()))


def save_inputs(**arrays: Any) -> None:
    export()
    np.savez("inputs.npz", **arrays)


ADVICE: dict[str, Advice] = {
    "an empty file": Advice(
        lambda: after(lambda: write(b""), read_state),
        "copy or save it again",
        lambda: after(
            lambda: [write(b""), shutil.copy("m/fc_0.w_0", "m/file")],
            lambda: read_state(names=["file"])["file"],
        ),
        WEIGHTS,
    ),
    "a picture": Advice(
        lambda: after(lambda: write(PNG), read_state),
        "take it out of the model directory, or name the file of the tensor",
        lambda: after(
            lambda: write(PNG),
            lambda: read_state("m/fc_0.w_0", ["fc_0.w_0"])["fc_0.w_0"].sum(),
            lambda: [os.remove("m/file"), read_state("m")["fc_0.w_0"].sum()][1],
        ),
        [8.0, 8.0],
    ),
    "an archive of nothing": Advice(
        lambda: after(lambda: write(save_npz()), read_state),
        "save the arrays again",
        lambda: after(lambda: write(save_npz(w=ROWS), "file.npz"), lambda: np.load("m/file.npz")["w"]),
        ROWS,
    ),
    "an archive of a directory": Advice(
        lambda: after(pack_zip, lambda: read_state("m.zip", ["m.zip"])),
        "unpack it, or convert its arrays; numpy.load opens an npz",
        lambda: after(
            pack_zip,
            lambda: [zipfile.ZipFile("m.zip").extractall("unpacked"), load(dirname="unpacked").sum()][1],
            lambda: [write(save_npz(w=ROWS), "file.npz"), np.load("m/file.npz")["w"].sum()][1],
        ),
        [8.0, 28.0],
    ),
    "a program among variables": Advice(
        lambda: after(lambda: export(model_filename="net"), lambda: read_state("model/net", ["net"])),
        "give it as model_filename of fluid.io.load_inference_model, and take it out of a directory of variables",
        lambda: after(lambda: export(model_filename="net"), lambda: take_program("net")),
        2 * SUMS,
    ),
    "an array of numpy": Advice(
        lambda: after(lambda: write(save_npy(np.ones((4, 1), "float32"))), read_state),
        "open it with numpy.load and set the variable",
        lambda: after(lambda: write(save_npy(np.ones((4, 1), "float32"))), set_array),
        np.ones((4, 1)),
    ),
    "a gzip archive": Advice(
        lambda: after(lambda: pack(gzip.compress), read_state),
        "unpack it and name the file inside; gzip.open reads its contents",
        lambda: after(lambda: pack(gzip.compress), lambda: unpack(gzip.open)),
        WEIGHTS,
    ),
    "a bzip2 archive": Advice(
        lambda: after(lambda: pack(bz2.compress), read_state),
        "unpack it; bz2.open reads its contents",
        lambda: after(lambda: pack(bz2.compress), lambda: unpack(bz2.open)),
        WEIGHTS,
    ),
    "an xz archive": Advice(
        lambda: after(lambda: pack(lzma.compress), read_state),
        "unpack it; lzma.open reads its contents",
        lambda: after(lambda: pack(lzma.compress), lambda: unpack(lzma.open)),
        WEIGHTS,
    ),
    "a tar archive": Advice(
        lambda: after(pack_tar, lambda: read_state("m.tar", ["m.tar"])),
        "unpack it and name the directory inside",
        lambda: after(pack_tar, unpack_tar),
        WEIGHTS,
    ),
    "the index of several files": Advice(
        lambda: after(write_index, lambda: read_state("m/model.safetensors.index.json", ["w"])),
        "convert its folder with paddlelike.convert",
        lambda: after(write_index, lambda: convert("out")["w"]),
        [1, 2],
    ),
    "JSON in the place of a tensor": Advice(
        lambda: after(lambda: write(b'{"a": 1}'), read_state),
        "name the file of the tensor",
        lambda: after(lambda: write(b'{"a": 1}'), lambda: read_state("m/fc_0.w_0", ["fc_0.w_0"])["fc_0.w_0"]),
        WEIGHTS,
    ),
    "a tensor that was cut": Advice(
        lambda: after(lambda: write(read_bytes()[:-4]), lambda: read_state(names=["file"])),
        "copy or save it again",
        lambda: after(lambda: write(read_bytes()), lambda: read_state(names=["file"])["file"]),
        WEIGHTS,
    ),
    "names that a format refuses": Advice(
        lambda: after(lambda: save_values(file=ROWS), lambda: convert("out.h5", rename={"file": "my file"})),
        "rename them while converting: rename={...}",
        lambda: after(
            lambda: save_values(file=ROWS), lambda: convert("out.h5", rename={"file": "rows"})["rows"]
        ),
        ROWS,
    ),
    "sequences that a format refuses": Advice(
        lambda: after(lambda: save_values(rows=(ROWS, [1, 1])), lambda: convert("out.npz")),
        "convert(drop_lod=True) leaves levels of detail out",
        lambda: after(
            lambda: save_values(rows=(ROWS, [1, 1])), lambda: convert("out.npz", drop_lod=True)["rows"]
        ),
        ROWS,
    ),
    "rows that are not there": Advice(
        lambda: Entry("w", VarType.FP32, (5, 2), offset=28, nbytes=40).locate_rows(1, 9),
        "choose 0 <= start <= stop <= {}",
        lambda: Entry("w", VarType.FP32, (5, 2), offset=28, nbytes=40).locate_rows(1, 3),
        (36, 16),
    ),
    "a format that is not known": Advice(
        lambda: after(save, lambda: convert("out", format="numpy")),
        "use one of the known formats: {}",
        lambda: after(save, lambda: convert("out.npz", format="npz")["fc_0.w_0"]),
        WEIGHTS,
    ),
    "a state of no arrays": Advice(
        lambda: after(
            lambda: Path("m.pdparams").write_bytes(pickle.dumps([1, 2], 2)), lambda: read_state("m")
        ),
        "if neither fluid.save nor paddle.save wrote it, paddlelike.bundle.load may read it",
        lambda: after(lambda: Path("bundle").write_bytes(pickle.dumps([1, 2], 2)), read_bundle),
        [1, 2],
    ),
    "a stream of text": Advice(
        lambda: dump_stream("w"),
        "open it with mode 'wb'",
        lambda: dump_stream("wb"),
        [1, 2],
    ),
    "a bundle read as text": Advice(
        lambda: after(lambda: dump([1, 2]), lambda: read_bundle("r")),
        "open it with mode 'rb'",
        lambda: after(lambda: dump([1, 2]), read_bundle),
        [1, 2],
    ),
    "a bundle that runs a command": Advice(
        read_dataset,
        "pass trusted=True if you know who wrote the file",
        lambda: read_dataset(trusted=True),
        "sort",
    ),
    "a bundle of arrays alone": Advice(
        lambda: after(lambda: Path("bundle").write_bytes(save_npz(w=ROWS)), read_bundle),
        "numpy.load opens a file of arrays alone; paddlelike.bundle.arrays does too",
        lambda: after(
            lambda: Path("bundle").write_bytes(save_npz(w=ROWS)),
            lambda: np.load("bundle")["w"].sum(),
            lambda: sum(array.sum() for array in dict(bundle.arrays("bundle")).values()),
        ),
        [28.0, 28.0],
    ),
    "a class that is not allowed": Advice(
        lambda: after(lambda: dump({"own": Own(7), "rows": ROWS}), read_bundle),
        "pass classes=[...] if it is yours and you trust the file; paddlelike.bundle.arrays(file) reads the arrays of a bundle without it",
        lambda: after(
            lambda: dump({"own": Own(7), "rows": ROWS}),
            lambda: read_bundle(classes=[Own])["own"].value,
            lambda: sum(array.sum() for array in dict(bundle.arrays("bundle")).values()),
        ),
        [7, 28.0],
    ),
    "an array of objects": Advice(
        lambda: dump(np.array([{"a": 1}, None])),
        "convert it to a list, or to an array of numbers or texts",
        lambda: after(
            lambda: None,
            lambda: [dump(np.array([{"a": 1}, None]).tolist()), read_bundle()][1],
            lambda: [dump(np.array([1, 2])), read_bundle().tolist()][1],
        ),
        [[{"a": 1}, None], [1, 2]],
    ),
    "a collection of another network": Advice(
        lambda: populate(3, 2),
        "build the collection with the same calls, in the same order, as the one that was saved",
        lambda: populate(2, 3),
        [6.0, 9.0],
    ),
    "an expression of an earlier graph": Advice(
        lambda: add_again(renewed=False),
        "make it again, from its parameters and inputs, after renew_cg()",
        lambda: add_again(renewed=True),
        [6.0, 6.0],
    ),
    "dropout inside of a cell": Advice(
        lambda: drop(inside=True),
        "use dy.dropout on the inputs and outputs of a step",
        lambda: drop(inside=False),
        (2,),
    ),
    "a file to compact that is not there": Advice(
        lambda: command("compact", "nowhere"),
        "name a directory that was saved with delta=True",
        lambda: after(
            save_deltas, lambda: [command("compact", "m"), fluid.load_program_state("m")["emb"].shape][1]
        ),
        (HEIGHT, 16),
    ),
    "inputs of other names": Advice(
        lambda: after(lambda: save_inputs(y=ROWS), lambda: serve_check("inputs.npz")),
        "numpy.savez(file, **{name: array})",
        lambda: after(lambda: save_inputs(x=ROWS), lambda: serve_check("inputs.npz")),
        2 * SUMS,
    ),
    "a variable that a file lacks": Advice(
        lambda: after(save, lambda: command("inspect", "m", "--values", "qqqqqqqq")),
        "paddlelike inspect lists the variables",
        lambda: after(save, lambda: "fc_0.w_0" in command("inspect", "m")),
        True,
    ),
    "a page over another file": Advice(
        lambda: after(
            lambda: [save(), Path("page.html").write_text("mine")],
            lambda: command("view", "m", "-o", "page.html"),
        ),
        "name another file with -o, or --force",
        lambda: after(
            lambda: [save(), Path("page.html").write_text("mine")],
            lambda: [command("view", "m", "-o", "other.html"), Path("other.html").stat().st_size > 1000][1],
            lambda: [
                command("view", "m", "-o", "page.html", "--force"),
                Path("page.html").stat().st_size > 1000,
            ][1],
        ),
        [True, True],
    ),
    "values that are not finite": Advice(
        lambda: after(lambda: save_diverged(good=False), lambda: mark("")),
        "training diverged before this save: go back to an earlier one",
        lambda: after(lambda: save_diverged(good=True), lambda: mark("")),
        True,
    ),
    "a file that changed": Advice(
        lambda: after(lambda: [save(), damage("m/fc_0.w_0")], lambda: mark("")),
        "restore it from a copy; or, if it was replaced on purpose, save again",
        lambda: after(
            lambda: [save(), shutil.copytree("m", "copy"), damage("m/fc_0.w_0")],
            lambda: [shutil.copy("copy/fc_0.w_0", "m"), mark("")][1],
            lambda: [damage("m/fc_0.w_0"), save(), mark("")][2],
        ),
        [True, True],
    ),
    "a directory without a manifest": Advice(
        lambda: after(lambda: [save(), os.remove("m/__manifest__")], see_notes),
        "save again",
        lambda: after(
            lambda: [save(), os.remove("m/__manifest__"), save()], lambda: bool(fluid.io.verify("m"))
        ),
        True,
    ),
    "a program without some values": Advice(
        lambda: after(
            lambda: [
                export(bias=True),
                os.remove("model/fc_0.w_0"),
                os.remove("model/__manifest__"),
                os.rename("model", "m"),
            ],
            lambda: mark(""),
        ),
        "copy the missing files, or plan the load with rules: paddlelike plan",
        lambda: after(
            lambda: [export(), shutil.copytree("model", "copy"), os.remove("model/fc_0.w_0")],
            lambda: [shutil.copy("copy/fc_0.w_0", "model"), predict().sum()][1],
        ),
        56.0,
    ),
}


def save_deltas() -> None:
    """Save a table of which a row is changed by a link of a chain of deltas."""
    training = Training()
    training.save("m", delta=True)
    training.step(3)
    training.save("m", delta=True)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=ADVICE)
@pytest.mark.filterwarnings("ignore:.*FLAGS_fluid_quirks")
def test_following_a_hint_of_a_file_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
