"""The advice of errors of files of other kinds, bundles, collections and commands, followed to the letter."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import pickle
import re
import shutil
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike as fluid
from paddlelike import bundle, collection as dy, dataset
from paddlelike.cli.app import app
from paddlelike.core import VarType
from paddlelike.formats import elements
from paddlelike.formats.entry import Entry
from paddlelike.formats.state import writer
from paddlelike.inspection.diagnosis import diagnose
from paddlelike.interop import repack
from tests.bundle.models import Affine
from tests.helpers.golden_data import GOLDEN
from tests.hints.advice import ROWS, SUMS, Advice, each, fill, new_network, read_rows
from tests.hints.files.test_files import WEIGHTS, after, build, damage, export, load, predict, save
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
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall("unpacked")
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


def see_all(path: str = "m") -> Any:
    """Raise what a diagnosis advises, notes as well, or return the calls that it proposes."""
    found = diagnose(path)
    if found.findings:
        raise RuntimeError("; ".join(one.advice for one in found.findings))
    return True


def save_twice(key: str) -> Any:
    """Append a parameter to a file that holds one of the same name."""
    root = build_collection(2)
    dy.ParameterCollection.save(root, "collection")
    (parameter,) = root.parameters_list()
    parameter.save("collection", *([key] if key else []), append=True)
    again = dy.ParameterCollection().add_parameters((2,))
    again.populate("collection", *([key] if key else []))
    return again.as_array()


def save_objects(one_root: bool) -> Any:
    root = dy.ParameterCollection()
    roots = [root, root] if one_root else [dy.ParameterCollection(), dy.ParameterCollection()]
    dy.save("objects", [one.add_parameters((2,), init=3.0) for one in roots])
    return [one.as_array().sum() for one in dy.load("objects", dy.ParameterCollection())]


class Pair:
    """A class of the user that DyNet saves by its spec."""

    def __init__(self, collection: Any, spec: Any = 2) -> None:
        self.local, self.spec = collection.add_subcollection("pair"), spec
        self.weight = self.local.add_parameters((2,), init=3.0)

    def param_collection(self) -> Any:
        return self.local

    @staticmethod
    def from_spec(spec: Any, collection: Any) -> Any:
        return Pair(collection, spec)


def keep_pair(spec: Any = 2, **options: Any) -> Any:
    dy.save("pair", [Pair(dy.ParameterCollection(), spec)])
    (found,) = dy.load("pair", dy.ParameterCollection(), **options)
    return [found.spec, float(found.weight.as_array().sum())]


def clip(start: float) -> Any:
    """Update a parameter by the gradient of its square, which overflows from a large start."""
    root = dy.ParameterCollection()
    parameter = root.add_parameters((1,), init=start)
    trainer = dy.SimpleSGDTrainer(root, 0.25)
    trainer.set_clip_threshold(1e9)
    dy.renew_cg()
    with np.errstate(all="ignore"):
        loss = dy.square(dy.square(dy.parameter(parameter)))
        loss.backward()
        trainer.update()
    return parameter.as_array()


def take_memory(how: str) -> Any:
    """Load a table of 40 kB where half of it can be allocated at once, whole or in part."""
    save_values(table=np.arange(10_000, dtype="float32").reshape(100, 100))
    empty = np.empty

    def allocate(shape: Any, *arguments: Any, **options: Any) -> Any:
        if np.prod(shape) > 20_000:
            raise MemoryError
        return empty(shape, *arguments, **options)

    with mock.patch.object(np, "empty", allocate):
        if how == "whole":
            return fluid.load_program_state("m", [create("table", (100, 100))])
        return np.asarray(fluid.io.load_slice("m", "table", (3, 4)))[0, :2]


def export_filled(value: float) -> None:
    with new_network():
        fluid.io.save_inference_model("model", ["x"], [build(value)], fluid.Executor())


def save_joined() -> None:
    """Save two variables, and a file of both beside them."""
    save(bias=True, filename="all")
    os.rename("m", "joined")
    save(bias=True)
    shutil.copy("joined/all", "m/all")


def save_infinite(form: str) -> Any:
    root = build_collection(2)
    (parameter,) = root.parameters_list()
    parameter.set_value([np.inf, 1.0])
    if form == "dynet":
        return root.save("file")
    np.savez("file.npz", value=parameter.as_array())
    return fluid.load_program_state("file.npz")["value"]


def change_header(dims: str) -> Any:
    build_collection(2).save("file")
    Path("file").write_text(Path("file").read_text().replace("{2}", dims))
    root = build_collection(2)
    root.populate("file")
    return root.parameters_list()[0].as_array()


def unpack_zeros(write: Callable[..., Any]) -> Any:
    """Read an archive of zeros where a file may unpack to four times its size."""
    write("zeros.npz", w=np.zeros(9999, "float32"))
    with mock.patch.object(elements, "_MOST_UNPACKED", (1 << 10, 4)):
        return fluid.load_program_state("zeros.npz")["w"].sum()


def find_data(how: str) -> Any:
    """Read houses from a file in the place that an error names, or made-up ones."""
    with mock.patch.object(dataset.common, "DATA_HOME", os.path.abspath("data")):
        if how == "all":
            return dataset.common.fetch_all()
        if how == "file":
            try:
                next(iter(dataset.uci_housing.train()()))
            except fluid.errors.MissingFileError as error:
                name, folder = re.findall(r"the file (\S+) is not in ([^,]+)", str(error))[0]
            os.makedirs(folder)
            np.savetxt(os.path.join(folder, name), np.arange(10 * 14).reshape(10, 14))
        made_up = {"PADDLELIKE_SYNTHETIC_DATA": "1"} if how == "made up" else {}
        with mock.patch.dict(os.environ, made_up):
            return next(iter(dataset.uci_housing.train()()))[0].shape


def load_data(again: bool) -> Any:
    """Read the pickle of a data set that holds objects, or one of their plain values."""
    values = {"w": Own(3)}
    return dataset.common.load_pickle(
        pickle.dumps({name: one.value for name, one in values.items()} if again else values)
    )


def save_large(call: str) -> Any:
    """Save where a pickle can hold texts of 20 bytes alone."""
    with new_network(), mock.patch.object(writer, "_MAX_TEXT", 20):
        large = fluid.layers.create_parameter([40], "float32", attr=fill(2.0))
        fluid.Executor().run(fluid.default_startup_program())
        if call == "save":
            return fluid.save(fluid.default_main_program(), "m")
        fluid.io.save_persistables(fluid.Executor(), "m")
        return fluid.load_program_state("m")[large.name].sum()


def follow(path: str) -> Any:
    """Return the folder that a server of the command would follow."""
    with (
        mock.patch("paddlelike.cli.looking.view.serve_until_interrupted") as serve,
        mock.patch("paddlelike.view.server.Follower") as follower,
    ):
        command("view", path, "--live")
    serve.assert_called_once()
    return follower.call_args.args[0]


def keep_note(dst: str) -> Any:
    Path("state.pdparams").write_bytes(pickle.dumps({"w": np.ones(2, "float32"), "note": "mine"}))
    if not dst:
        return see_all("state.pdparams")
    fluid.convert("state.pdparams", dst)
    return pickle.loads(Path(dst).read_bytes())["note"]


def pull(oid: str) -> None:
    """Replace a pointer by the object that it names, as ``git lfs pull`` does."""
    pointer = Path("m/fc_0.w_0").read_text()
    assert f"sha256:{oid}" in pointer
    shutil.copy(f"objects/{oid}", "m/fc_0.w_0")


def point(*, is_pulled: bool) -> Any:
    """Load a save of which Git keeps a file elsewhere."""
    data = read_bytes()
    os.remove("m/__manifest__")  # as Paddle's own
    oid = hashlib.sha256(data).hexdigest()
    os.mkdir("objects")
    Path("objects", oid).write_bytes(data)
    head = "version https://git-lfs.github.com/spec/v1"
    Path("m/fc_0.w_0").write_text(f"{head}\noid sha256:{oid}\nsize {len(data)}\n")
    if is_pulled:
        pull(oid)
    return read_state("m")["fc_0.w_0"]


def download(*names: str) -> Any:
    """Load a variable that was downloaded from these pages, one after the other."""
    data = {"/blob/w": b"<!DOCTYPE html><html><body>w</body></html>", "/raw/w": read_bytes()}

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(data[self.path])

        def log_message(self, *_: object) -> None: ...

    os.remove("m/__manifest__")  # as Paddle's own
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for name in names:
            urllib.request.urlretrieve(f"http://127.0.0.1:{server.server_port}{name}", "m/fc_0.w_0")
        server.shutdown()
    return read_state("m")["fc_0.w_0"]


def read_stream(kind: VarType, is_table: bool) -> Any:
    """Load a variable of a kind, from the file of a table that holds some rows or of a dense one."""
    with new_network():
        exe, block = fluid.Executor(), fluid.default_main_program().global_block()
        own = VarType.SELECTED_ROWS if is_table else VarType.LOD_TENSOR
        saved = block.create_var(name="t", shape=[9, 1], dtype="float32", type=own, persistable=True)
        holder = fluid.global_scope().var("t")
        if is_table:
            holder.get_selected_rows().set_height(9)
            holder.get_selected_rows().set_rows([4])
            holder.get_selected_rows().get_tensor().set(np.full((1, 1), 5, "float32"), fluid.CPUPlace())
        else:
            holder.get_tensor().set(np.full((9, 1), 5, "float32"), fluid.CPUPlace())
        fluid.io.save_vars(exe, "t", vars=[saved])
    os.remove("t/__manifest__")  # as Paddle's own
    with new_network():
        block = fluid.default_main_program().global_block()
        loaded = block.create_var(name="t", shape=[9, 1], dtype="float32", type=kind, persistable=True)
        fluid.io.load_vars(exe, "t", vars=[loaded])
        holder = fluid.global_scope().find_var("t")
        tensor = holder.get_selected_rows().get_tensor() if is_table else holder.get_tensor()
        return float(np.array(tensor).sum())


def take_theano(door: Callable[[str], Any]) -> Any:
    """Return a layer of shared variables of Theano by a door."""
    shutil.copy(GOLDEN / "theano" / "affine-long-shared.pkl", "net.pkl")
    return door("net.pkl")


def parse(cut: bool) -> Any:
    """Return the types of the operators of an exported program, which may be cut."""
    export()
    data = Path("model/__model__").read_bytes()
    if cut:
        Path("model/__model__").write_bytes(data[:-9])
    return [
        op.type for op in fluid.Program.parse_from_string(Path("model/__model__").read_bytes()).block(0).ops
    ]


def look_deeper(inner: bool) -> Any:
    """Load from the directory above a save, or from the one that ``doctor`` names."""
    save()
    Path("above").mkdir()
    Path("m").rename("above/m")
    (finding,) = [one for one in diagnose("above").findings if "one level deeper" in one.what]
    if not inner:
        raise ValueError(finding.advice)
    return load(dirname=finding.advice.removeprefix("look at "))


def feed(*, by_name: bool) -> Any:
    """Export a network whose feed is named or is a variable, and predict."""
    with new_network():
        x = read_rows()
        out = fluid.layers.scale(x, 2.0)
        exe = fluid.Executor()
        fluid.io.save_inference_model("model", ["x"] if by_name else [x], [out], exe)  # type: ignore[list-item]
    return predict()


def find_remains(loaded: bool) -> Any:
    """Look at a directory beside which a killed save left files; load it, save it and look again."""
    save()
    shutil.copytree("m", ".m.saving-directory/new")
    findings = [one.advice for one in diagnose("m").findings if "belongs to a save" in one.what]
    if findings and not loaded:
        raise ValueError(*findings)
    value = float(load().sum())
    save()
    return [value, float(load().sum()), os.listdir()]


ADVICE: dict[str, Advice] = {
    "a feed that is a variable": Advice(
        lambda: feed(by_name=False), "pass {}", lambda: feed(by_name=True), 2 * ROWS
    ),
    "a pointer of Git": Advice(
        lambda: point(is_pulled=False),
        "fetch the file with: git lfs pull",
        lambda: point(is_pulled=True),
        WEIGHTS,
    ),
    "a page in the place of a file": Advice(
        lambda: download("/blob/w"),
        "download the file itself again",
        lambda: download("/blob/w", "/raw/w"),
        WEIGHTS,
    ),
    "numbers without a header": Advice(
        lambda: after(
            lambda: write(np.linspace(-1, 1, 900, dtype="float32").tobytes()),
            lambda: read_state(names=["file"]),
        ),
        "check that the list of variables is the one the file was saved with",
        lambda: after(
            lambda: write(np.linspace(-1, 1, 900, dtype="float32").tobytes()),
            lambda: read_state("m", ["fc_0.w_0"])["fc_0.w_0"],
        ),
        WEIGHTS,
    ),
    "a sparse table as a dense one": Advice(
        lambda: read_stream(VarType.LOD_TENSOR, is_table=True),
        "this is a SelectedRows stream (a sparse table): declare the variable with type SELECTED_ROWS to read it",
        lambda: read_stream(VarType.SELECTED_ROWS, is_table=True),
        5.0,
    ),
    "a dense table as a sparse one": Advice(
        lambda: read_stream(VarType.SELECTED_ROWS, is_table=False),
        "this is a dense tensor: declare the variable with type LOD_TENSOR to read it",
        lambda: read_stream(VarType.LOD_TENSOR, is_table=False),
        45.0,
    ),
    "a pickle of Theano": Advice(
        lambda: take_theano(fluid.load_program_state),
        "load it with paddlelike.bundle.load",
        lambda: take_theano(lambda path: bundle.load(path, classes={"tmodel.Affine": Affine})).W.get_value(),
        np.load(GOLDEN / "theano" / "mlp.npz")["0.W"],
    ),
    "a program that was cut": Advice(
        lambda: parse(cut=True),
        "copy or save it again, if it is the __model__ or .pdmodel of a saved model; no other file holds its program",
        lambda: parse(cut=False),
        ["feed", "mul", "scale", "fetch"],
    ),
    "a directory above a save": Advice(
        lambda: look_deeper(inner=False), "look at {}", lambda: look_deeper(inner=True), WEIGHTS
    ),
    "remains of a save": Advice(
        lambda: find_remains(loaded=False),
        "loads leave it out, and the next save of the directory removes it",
        lambda: find_remains(loaded=True),
        [8.0, 8.0, ["m"]],
    ),
    "a pickle of objects": Advice(
        lambda: load_data(again=False),
        "a state file holds arrays and plain values only; open this one where it was made and save its arrays again",
        lambda: load_data(again=True),
        {"w": 3},
    ),
    "a state beyond 4 GiB": Advice(
        lambda: save_large("save"),
        "save it with fluid.io.save_persistables, which has no such limit",
        lambda: save_large("persistables"),
        80.0,
    ),
    "a text beside variables": Advice(
        lambda: keep_note(""),
        "loads and conversions leave them out; a conversion to .pdparams or .pdopt keeps them",
        lambda: [keep_note("new.pdparams"), keep_note("new.pdopt")],
        ["mine", "mine"],
    ),
    "elements that a format lacks": Advice(
        lambda: after(
            lambda: save_values(w=np.ones(2, "float64")), lambda: fluid.convert("m", "w", format="dynet")
        ),
        "convert floating-point elements: dtype='float32'",
        lambda: after(
            lambda: save_values(w=np.ones(2, "float64")),
            lambda: [fluid.convert("m", "w", format="dynet", dtype="float32"), Path("w").read_text()][1],
        ).split()[-2:],
        ["+1.00000000e+00"] * 2,
    ),
    "a folder that is to be followed": Advice(
        lambda: command("view", "runs/steps", "--live"),
        "make it first, or name its parent",
        lambda: [os.makedirs("runs/steps"), follow("runs/steps"), follow("runs")][1:],
        ["runs/steps", "runs"],
    ),
    "a page of a scan over another file": Advice(
        lambda: after(
            lambda: [save(), Path("file").write_text("mine")], lambda: command("scan", "m", "--html", "file")
        ),
        "name another file",
        lambda: after(
            lambda: [save(), Path("file").write_text("mine")],
            lambda: command("scan", "m", "--html", "page"),
            lambda: [Path("page").stat().st_size > 1000, Path("file").read_text()],
        )[1],
        [True, "mine"],
    ),
    "a block of a name that a file holds": Advice(
        lambda: save_twice(""),
        "save one of them under a key of its own",
        lambda: save_twice("/own"),
        [3.0, 3.0],
    ),
    "objects of several roots": Advice(
        lambda: save_objects(one_root=False),
        "names come from collections: objects of one file need collections below one root",
        lambda: save_objects(one_root=True),
        [6.0, 6.0],
    ),
    "a class of the user in a file": Advice(
        lambda: keep_pair(),
        "pass classes=[...] with the classes of your own that it may name",
        lambda: keep_pair(classes=[Pair]),
        [2, 6.0],
    ),
    "a spec of other values": Advice(
        lambda: keep_pair(np.ones(2), classes=[Pair]),
        "a spec holds numbers, texts, None, tuples, lists, dicts, classes and named functions",
        lambda: each(
            *(
                lambda spec=spec: keep_pair(spec, classes=[Pair])[0]
                for spec in (2.5, "two", None, (1, 2), [1], {"a": 1}, Pair, dy.tanh)
            )
        ),
        [2.5, "two", None, (1, 2), [1], {"a": 1}, Pair, dy.tanh],
    ),
    "gradients that overflow": Advice(
        lambda: clip(1e13),
        "look at the gradients of {}, or lower the learning rate",
        lambda: clip(1.0),
        [0.0],
    ),
    "a table beyond the memory": Advice(
        lambda: take_memory("whole"),
        "if a part of a table is enough: load_slice reads some rows, lazy=True only the rows in use",
        lambda: take_memory("part"),
        [300, 301],
    ),
    "data sets in one call": Advice(
        lambda: find_data("all"),
        "each data set says which file it lacks, and where to put it, when it is read",
        lambda: find_data("file"),
        (13,),
    ),
    "data that nobody downloads": Advice(
        lambda: find_data("nothing"),
        "get it from {} and put it there; {}=1 in the environment gives made-up data",
        lambda: [find_data("file"), find_data("made up")],
        [(13,), (13,)],
    ),
    "no values in a directory": Advice(
        lambda: after(lambda: Path("m").mkdir(), see_all),
        "the save was interrupted or never made; save again",
        lambda: after(lambda: [Path("m").mkdir(), save()], see_all),
        True,
    ),
    "an empty directory as a source": Advice(
        lambda: after(lambda: Path("m").mkdir(), lambda: fluid.convert("m", "m.npz")),
        "the directory is empty: its save was interrupted or never made; name another one",
        lambda: after(lambda: [Path("m").mkdir(), Path("m").rename("n"), save()], lambda: convert("m.npz"))[
            "fc_0.w_0"
        ],
        WEIGHTS,
    ),
    "weights that are zero": Advice(
        lambda: after(lambda: export_filled(0.0), lambda: see_all("model")),
        "train it, or load its values, and save again",
        lambda: after(lambda: export_filled(1.0), lambda: see_all("model")),
        True,
    ),
    "a file that is not the model's": Advice(
        lambda: after(lambda: write(b"\x01\x02\x03 nothing known"), see_all),
        "take it out of the directory if it is not the model's",
        lambda: after(lambda: write(b"\x01\x02\x03 nothing known"), lambda: os.remove("m/file") or see_all()),
        True,
    ),
    "values without names": Advice(
        lambda: after(lambda: [save(bias=True, filename="all"), os.remove("m/__manifest__")], see_all),
        "load it with the program it belongs to: variables are in the order of their sorted names",
        lambda: after(
            lambda: [save(bias=True, filename="all"), os.remove("m/__manifest__")],
            lambda: load(bias=True, filename="all"),
        ),
        WEIGHTS,
    ),
    "a program without values": Advice(
        lambda: after(lambda: export(), lambda: see_all("model/__model__")),
        "name the directory of both, load the values from there, or run the startup program",
        lambda: after(lambda: export(), lambda: see_all("model")),
        True,
    ),
    "two files of one variable": Advice(
        lambda: after(
            lambda: [save(), write_safetensors("m/one.safetensors"), write_safetensors("m/two.safetensors")],
            lambda: repack.merge("m", "merged"),
        ),
        "take one of them out of {}, or convert the file alone",
        lambda: after(
            lambda: [save(), write_safetensors("m/one.safetensors"), write_safetensors("m/two.safetensors")],
            lambda: [fluid.convert("m/two.safetensors", "t.npz"), np.load("t.npz")["w"].sum()][1],
            lambda: [os.remove("m/two.safetensors"), convert("m.npz")["w"].sum()][1],
        ),
        [3.0, 3.0],
    ),
    "a combined file among variables": Advice(
        lambda: after(save_joined, lambda: fluid.convert("m", "m.npz")),
        "then convert the file alone, with the names=[...] of its variables",
        lambda: after(
            save_joined,
            lambda: [fluid.convert("m/all", "m.npz", names=["b", "w"]), np.load("m.npz")["w"]][1],
        ),
        WEIGHTS,
    ),
    "a number that a text file of DyNet cannot hold": Advice(
        lambda: save_infinite("dynet"),
        "DyNet itself writes a file that it cannot read again; save this value in another format",
        lambda: save_infinite("npz"),
        [np.inf, 1.0],
    ),
    "a damaged header of DyNet": Advice(
        lambda: change_header("(2)"),
        'a header has the form "#Parameter# /name {dims} bytes ZERO_GRAD"',
        lambda: change_header("{2}"),
        [3.0, 3.0],
    ),
    "an archive of far more than its bytes": Advice(
        lambda: unpack_zeros(np.savez_compressed),
        "if you know who wrote it, write it again without compression and without doubled arrays (a ZIP file: zip -0)",
        lambda: unpack_zeros(np.savez),
        0.0,
    ),
    "an empty file": Advice(
        lambda: after(lambda: write(b""), read_state),
        "the file is empty: its writer was stopped or the disk was full; copy or save it again",
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
@pytest.mark.filterwarnings(
    "ignore:.*FLAGS_fluid_quirks", "ignore:.*is not the original file", "ignore:.*are made up"
)
def test_following_a_hint_of_a_file_gives_the_right_result(advice: Advice) -> None:
    advice.follow()
