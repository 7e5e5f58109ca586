"""Names of Fluid 1.8.5 that few scripts use: here, or left out with what to do instead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import paddlelike.fluid as fluid
from paddlelike.errors import LeftOutError, MissingFileError
from paddlelike.fluid.contrib.mixed_precision import fp16_lists
from paddlelike.fluid.incubate.fleet.utils import utils
from paddlelike.fluid.transpiler import distribute_transpiler


def test_short_names_of_clips_are_aliases() -> None:
    assert fluid.clip.ClipByNorm is fluid.clip.GradientClipByNorm
    assert fluid.clip.ClipByValue is fluid.clip.GradientClipByValue
    assert fluid.clip.ClipByGlobalNorm is fluid.clip.GradientClipByGlobalNorm


def test_constants_match_fluid() -> None:
    framework = fluid.framework
    names = (framework.EMPTY_VAR_NAME, framework.TEMP_VAR_NAME, framework.GRAD_VAR_SUFFIX)
    assert names == ("@EMPTY@", "@TEMP@", "@GRAD")
    assert fluid.core.op_proto_and_checker_maker.kOpDeviceAttrName() == "op_device"
    assert fluid.core._set_eager_deletion_mode(1.0, 1.0, True) is None
    assert isinstance(fluid.core.avx_supported(), bool)
    with fluid.name_scope("a"), fluid.name_scope("b"):
        assert framework._full_name_scope() == "a/b/"


def test_the_number_of_places_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", "3")
    assert fluid.framework._cpu_num() == 3
    assert fluid.framework._cuda_ids() == []


def test_core_avx_is_an_alias_of_core() -> None:
    from paddlelike.fluid import core_avx

    assert core_avx.AnalysisConfig is fluid.core.AnalysisConfig


def test_contrib_has_mixed_precision_op_lists_and_short_aliases() -> None:
    assert (len(fp16_lists.white_list), len(fp16_lists.black_list), len(fp16_lists.gray_list)) == (3, 11, 37)
    assert fluid.contrib.decorate is fluid.contrib.mixed_precision.decorate
    assert fluid.contrib.summary is fluid.contrib.model_stat.summary


def test_a_variable_is_cloned_into_a_block() -> None:
    x = fluid.data("x", [None, 3], lod_level=1)
    block = fluid.Program().global_block()
    made = fluid.io._clone_var_in_block_(block, x)
    assert (made.name, made.shape, made.lod_level, made.persistable) == ("x", (-1, 3), 1, True)


def test_a_program_is_loaded_from_its_bytes(tmp_path: Path) -> None:
    fluid.layers.relu(fluid.data("x", [None, 3]))
    utils.save_program(fluid.default_main_program(), str(tmp_path / "model"))
    assert [op.type for op in utils.load_program_binary(str(tmp_path / "model")).global_block().ops] == [
        "relu"
    ]
    with pytest.raises(fluid.core.EnforceNotMet, match="programs in text cannot be read"):
        utils.load_program_text(str(tmp_path / "model"))


def test_data_sets_make_folders_and_download_nothing(tmp_path: Path) -> None:
    from paddlelike.dataset import common

    common.must_mkdirs(str(tmp_path / "a" / "b"))
    common.must_mkdirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    with pytest.raises(MissingFileError, match="nothing is downloaded here"):
        common.fetch_all()


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (distribute_transpiler, "VarBlock VarStruct VarsDistributed delete_ops same_or_split_var"),
        (fluid.backward, "_append_backward_ops_ _find_op_path_"),
        (fluid.io, "BatchSampler Dataset"),
        (fluid.framework, "ParamBase"),
        (utils, "try_load_model_vars"),
    ],
    ids=["transpiler", "backward", "io", "framework", "utils"],
)
def test_omitted_functions_raise_with_a_hint(module: object, names: str) -> None:
    for name in names.split():
        with pytest.raises(LeftOutError) as caught:
            getattr(module, name)()
        assert caught.value.hint


@pytest.mark.parametrize(
    "path",
    [
        "collective.GradAllReduce",
        "details.program_to_code",
        "details.program_utils.program_to_code",
        "distribute_transpiler.DistributeTranspiler",
        "memory_optimization_transpiler.memory_optimize",
        "ps_dispatcher.RoundRobin",
    ],
)
def test_modules_of_the_transpiler_are_attributes_without_an_import(path: str) -> None:
    """As in Paddle 1.8.5, whose packages import their modules."""
    script = f"import paddle.fluid as fluid; print(callable(fluid.transpiler.{path}))"
    done = subprocess.run(
        [sys.executable, "-c", f"import paddlelike; paddlelike.install(); {script}"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
