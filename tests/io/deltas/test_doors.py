"""What every way to values does with a chain of deltas: it gives the replayed table, or refuses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import inference
from paddlelike.errors import PaddlelikeError
from paddlelike.interop.convert import convert
from paddlelike.interop.repack import merge, split
from tests.io.deltas.tables import HEIGHT, Training, read_files

Door = Callable[[str, Training], Any]


def in_scope(load: Callable[[fluid.Executor, str, fluid.Program], Any]) -> Door:
    """Return the door of what loads into the scope."""

    def read(path: str, one: Training) -> Any:
        load(fluid.Executor(), path, one.main)
        return fluid.global_scope().find_var("emb").get_tensor()

    return read


def load_var_list(exe: fluid.Executor, path: str, program: fluid.Program) -> None:
    fluid.load(program, path, exe, var_list=[program.global_block().var("emb")])


def run_load_operator(exe: fluid.Executor, path: str, program: fluid.Program) -> None:
    loading = fluid.Program()
    block = loading.global_block()
    out = block.create_var(name="emb", dtype="float32", shape=[HEIGHT, 16], persistable=True)
    block.append_op("load", outputs={"Out": out}, attrs={"file_path": f"{path}/emb"})
    exe.run(loading)


def follow_model(path: str, one: Training) -> Any:
    model = Path(path).with_name("model")
    with fluid.scope_guard(one.scope):
        fluid.io.save_inference_model(str(model), ["ids"], [one.loss], one.exe, one.main)
    shutil.copytree(path, model, dirs_exist_ok=True)
    (model / "emb").unlink()  # of the export; the chain stays
    fluid.io.load_inference_model(str(model), fluid.Executor())
    return fluid.global_scope().find_var("emb").get_tensor()


def predict(path: str, one: Training) -> Any:
    model = Path(path).with_name("predicted")
    with fluid.scope_guard(one.scope):
        rows = one.main.global_block().var("embedding_0.tmp_0")
        fluid.io.save_inference_model(str(model), ["ids"], [rows], one.exe, one.main)
    shutil.copytree(path, model, dirs_exist_ok=True)
    (model / "emb").unlink()
    predictor = inference.create_predictor(inference.Config(str(model)))
    predictor.get_input_handle("ids").copy_from_cpu(np.arange(HEIGHT).reshape(-1, 1))
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu().reshape(HEIGHT, 16)


def read_merged(path: str, one: Training) -> Any:
    merge(path, path + ".one", "all")
    names = sorted(v.name for v in one.main.list_vars() if v.persistable)
    fluid.io.load_vars(fluid.Executor(), path + ".one", one.main, vars=names, filename="all")
    return fluid.global_scope().find_var("emb").get_tensor()


def read_split(path: str, one: Training) -> Any:
    split(path, path + ".many")
    assert not Path(path + ".many", "__deltas__").exists()
    fluid.io.load_vars(fluid.Executor(), path + ".many", one.main, vars=["emb"])
    return fluid.global_scope().find_var("emb").get_tensor()


def read_compacted(path: str, one: Training) -> Any:
    fluid.io.compact(path)
    fluid.io.load_vars(fluid.Executor(), path, one.main, vars=["emb"])
    return fluid.global_scope().find_var("emb").get_tensor()


def read_copy_in_memory(path: str, one: Training) -> Any:
    import fsspec

    url = f"memory://doors/{Path(path).parent.name}"
    fsspec.filesystem("memory").put(path, url.removeprefix("memory://"), recursive=True)
    fluid.load(one.main, url, fluid.Executor())
    return fluid.global_scope().find_var("emb").get_tensor()


GIVE: dict[str, Door] = {
    "fluid.load": in_scope(lambda exe, path, program: fluid.load(program, path, exe)),
    "fluid.load, var_list": in_scope(load_var_list),
    "load_persistables": in_scope(fluid.io.load_persistables),
    "load_vars": in_scope(lambda exe, path, program: fluid.io.load_vars(exe, path, program, vars=["emb"])),
    "load operator": in_scope(run_load_operator),
    "load_program_state": lambda path, one: fluid.io.load_program_state(path)["emb"],
    "load_slice": lambda path, one: fluid.io.load_slice(path, "emb", rows=(0, HEIGHT)),
    "load_inference_model": follow_model,
    "predictor": predict,
    "compact": read_compacted,
    "merge": read_merged,
    "split": read_split,
    "remote store": read_copy_in_memory,
}
REFUSE: dict[str, Door] = {
    "convert": lambda path, one: convert(path, path + ".npz"),
    "a combined file": in_scope(
        lambda exe, path, program: fluid.io.load_vars(exe, path, program, vars=["emb"], filename="emb")
    ),
}


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, Training]:
    one = Training()
    for first in (0, 100, 150):
        one.step(*range(first, first + 80))
        one.save(tmp_path / "m", delta=True)
    assert len(list((tmp_path / "m" / "__deltas__").glob("emb.*"))) == 3
    return str(tmp_path / "m"), one


@pytest.mark.parametrize("door", GIVE)
def test_every_reading_function_gives_the_replayed_table(door: str, saved: tuple[str, Training]) -> None:
    path, one = saved
    with fluid.scope_guard(fluid.Scope()):
        np.testing.assert_array_equal(np.asarray(GIVE[door](path, one)), np.asarray(one.tensor()))


@pytest.mark.filterwarnings("ignore:.* lacks files that were saved there")
@pytest.mark.parametrize(("damage", "file"), [("missing", "emb.*.1"), ("flipped", "emb.*.0")])
@pytest.mark.parametrize("door", GIVE)
def test_every_reading_function_refuses_a_damaged_chain(
    door: str, damage: str, file: str, saved: tuple[str, Training]
) -> None:
    path, one = saved
    (link,) = Path(path, "__deltas__").glob(file)
    data = bytearray(link.read_bytes())
    data[-9] ^= 16
    link.write_bytes(data) if damage == "flipped" else link.unlink()
    before = read_files(Path(path))
    with fluid.scope_guard(fluid.Scope()), pytest.raises(PaddlelikeError, match="emb") as info:
        GIVE[door](path, one)
    assert info.value.hint
    assert read_files(Path(path)) == before


@pytest.mark.parametrize("door", REFUSE)
def test_functions_that_cannot_read_chains_refuse_them(door: str, saved: tuple[str, Training]) -> None:
    path, one = saved
    before = sorted(Path(path).rglob("*"))
    with fluid.scope_guard(fluid.Scope()), pytest.raises(PaddlelikeError) as info:
        REFUSE[door](path, one)
    assert info.value.hint
    assert sorted(Path(path).rglob("*")) == before
