"""Every command on real files: what it prints, its JSON and its exit status."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import paddlelike
from paddlelike.cli.app import COMMANDS, app
from paddlelike.cli.output import print_text
from paddlelike.ops.kernels.fast import late
from tests.io.deltas.tables import HEIGHT, Training

FIT = Path(__file__).parents[1] / "golden" / "fit_a_line"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def parse(*arguments: object) -> tuple[int, Any]:
    result = run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["inspect", "--help"]], ids=" ".join)
def test_a_closed_pipe_during_help_is_not_an_error(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "paddlelike", *arguments]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"run", "launch"}))
def test_every_command_has_help(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f" {name} " in result.stdout
    assert "--json" in result.stdout
    line = COMMANDS[name][1]
    assert line in " ".join(result.stdout.split())
    assert f"{name.ljust(7)}  {line}" in run("--help").stdout


def test_help_and_completion_import_neither_numpy_nor_layers() -> None:
    modules = ", ".join(f"paddlelike.cli.{module}" for module, _ in COMMANDS.values() if module is not None)
    heavy = "[one for one in sys.modules if one == 'numpy' or '.interop' in one or '.layers' in one]"
    script = f"import sys, {modules}, paddlelike.cli.app; print({heavy})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"paddlelike {paddlelike.__version__}\n"


def test_a_closed_output_pipe_is_not_an_error(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{f"w{number}": np.ones(1, "float32") for number in range(3000)})
    command = [sys.executable, "-m", "paddlelike", "inspect", str(tmp_path / "a.npz")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"a.npz" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_lines_are_cut_at_the_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = run("inspect", FIT / "persistables").stdout
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("inspect", FIT / "persistables").stdout.splitlines()
    assert max(map(len, wide.splitlines())) > 60
    table = lines[lines.index("") + 1 :]
    assert {len(line) for line in table} == {60}
    assert all(line.endswith("…") for line in table)


def test_sentences_wrap_at_the_terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.chdir(FIT)
    for arguments in ("scan inference", "plan persistables --program inference"):
        assert max(map(len, run(*arguments.split()).stdout.splitlines())) <= 60
    wrapped = " ".join(run("quirks").stdout.split())
    sources = [one["source"] for one in parse("quirks")[1]]
    assert max(map(len, sources)) > 60
    assert all(" ".join(one.split()) in wrapped for one in sources)


def test_a_line_of_blanks_that_is_wider_than_the_terminal_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_text(f"above\n{' ' * 50}\nbelow")
    assert capsys.readouterr().out.split() == ["above", "below"]


def test_files_of_unknown_kind_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    result = run("inspect", tmp_path / "a.png")
    assert result.exit_code == 1
    assert "1 file, 0 variables" in result.stdout
    assert "PNG" in result.stdout


def test_hints_name_command_line_options_instead_of_functions(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"here")
    (tmp_path / "all").write_bytes((FIT / "inference_combined" / "params").read_bytes())
    exists = run("convert", FIT / "persistables", tmp_path / "x.npz")
    assert (exists.exit_code, exists.stderr.count("--overwrite")) == (2, 1)
    unknown = run("convert", FIT / "persistables", tmp_path / "x.what")
    assert "pass --format; known" in unknown.stderr
    unnamed = run("convert", tmp_path / "all", tmp_path / "y.npz")
    assert "--names a,b,c" in unnamed.stderr
    model = run("convert", FIT / "inference", tmp_path / "y.onnx", "--dtype", "float16")
    assert "dtype cannot be applied" in model.stderr
    assert "for example --format directory" in model.stderr
    wrong = run("convert", FIT / "persistables", tmp_path / "y.npz", "--dtype", "int99")
    assert wrong.exit_code == 2
    assert "'int99' is not an element type" in wrong.stderr
    for result in (exists, unknown, unnamed, model, wrong):
        assert not re.search(r"\w=", result.stderr), result.stderr


def test_inspect_lists_variables() -> None:
    result = run("inspect", FIT / "persistables")
    assert result.exit_code == 0
    assert "fc_0.w_0" in result.stdout
    assert "[13, 1]" in result.stdout
    status, found = parse("inspect", FIT / "persistables")
    assert status == 0
    assert {one["name"]: one["shape"] for one in found["variables"]}["fc_0.w_0"] == [13, 1]


def test_inspect_prints_one_variable() -> None:
    status, found = parse("inspect", FIT / "persistables", "--values", "fc_0.b_0")
    value = np.frombuffer((FIT / "persistables" / "fc_0.b_0").read_bytes()[-4:], "<f4")
    assert (status, found["values"]) == (0, value.tolist())
    wrong = run("inspect", FIT / "persistables", "--values", "fc_0.w_1")
    assert wrong.exit_code == 2
    assert "did you mean 'fc_0.w_0'" in wrong.stderr


def test_inspect_finds_nan(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.float32([np.nan]))
    assert parse("inspect", tmp_path / "a.npz")[0] == 1
    assert parse("inspect", tmp_path / "a.npz", "--headers")[0] == 0


def test_names_in_files_cannot_control_the_terminal(tmp_path: Path) -> None:
    shutil.copy(FIT / "persistables" / "fc_0.b_0", tmp_path / "w\x1b[31m")
    for command in ("inspect", "doctor"):
        assert "\x1b" not in run(command, tmp_path).output


def test_doctor_prints_the_call_that_opens_a_model() -> None:
    result = run("doctor", FIT / "inference_combined")
    assert result.exit_code == 0
    assert "model_filename='model', params_filename='params'" in result.stdout


def test_scan_lists_obstacles_and_writes_a_page(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import paddle.fluid as fluid\nfluid.dygraph.guard()\n")
    result = run("scan", tmp_path, "--html", tmp_path / "page.html")
    assert result.exit_code == 1
    assert "train.py:2: paddle.fluid.dygraph.guard: fluid.dygraph.guard is not here" in result.stdout
    assert "The scan cannot see" in result.stdout
    assert '"verdict":"stops"' in (tmp_path / "page.html").read_text()
    (tmp_path / "page.html").write_text("mine")
    assert run("scan", tmp_path, "--html", tmp_path / "page.html").exit_code == 2
    status, found = parse("scan", FIT / "inference")
    assert (status, found["fine"], found["unknown_operators"]) == (0, True, [])


def test_the_exit_status_of_diff_shows_whether_files_differ(tmp_path: Path) -> None:
    assert parse("diff", FIT / "inference", FIT / "inference_combined")[0] in (0, 1)
    status, found = parse("diff", FIT / "persistables", FIT / "inference")
    assert (status, found["removed"], found["same"]) == (1, ["learning_rate_0"], 2)
    assert parse("diff", FIT / "persistables", FIT / "persistables")[0] == 0


def test_verify_without_a_manifest_ends_with_status_2() -> None:
    assert run("verify", FIT / "persistables").exit_code == 2
    assert run("verify", FIT / "nothing").exit_code == 2


def test_the_exit_status_of_plan_shows_whether_a_directory_fits(tmp_path: Path) -> None:
    program = FIT / "programs" / "main_train.pb"
    status, found = parse("plan", FIT / "persistables", "--program", program)
    assert (status, found["would_load"]) == (0, True)
    shutil.copytree(FIT / "persistables", tmp_path / "d")
    (tmp_path / "d" / "fc_0.w_0").rename(tmp_path / "d" / "fc_1.w_0")
    status, found = parse("plan", tmp_path / "d", "--program", program)
    assert (status, found["proposed"]) == (1, {"fc_1.w_0": "fc_0.w_0"})


def test_convert_refuses_to_overwrite_a_file(tmp_path: Path) -> None:
    target = tmp_path / "a.npz"
    assert run("convert", FIT / "persistables", target).exit_code == 0
    value = np.frombuffer((FIT / "persistables" / "fc_0.b_0").read_bytes()[-4:], "<f4")
    np.testing.assert_array_equal(np.load(target)["fc_0.b_0"], value)
    again = run("convert", FIT / "persistables", target)
    assert again.exit_code == 2
    assert "exists" in again.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["ins"], ["inspect"]),
        (["inspect", "--he"], ["--headers", "--help"]),
        (["convert", "--durability", "p"], ["process", "power"]),
        (["convert", "--format", "h"], ["hdf5"]),
    ],
    ids=lambda one: " ".join(one),
)
@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shell_completion_works(shell: str, words: list[str], offered: list[str]) -> None:
    if shutil.which(shell) is None or shutil.which("paddlelike") is None:
        pytest.skip(f"{shell} or the program paddlelike is not installed")
    line = " ".join(words)
    if shell == "bash":
        script = (
            f"COMP_WORDS=(paddlelike {line}); COMP_CWORD={len(words)}; _paddlelike_completion paddlelike; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
    else:  # what it would tell the shell's own function
        script = (
            f"words=(paddlelike {line}); CURRENT={len(words) + 1}; "
            '_arguments() { print -r -- "$@" }; _paddlelike_completion'
        )
    begin = 'compdef() { :; }; eval "$(paddlelike --show-completion ' + shell + ')"; '
    plain = [shell, "-f"] if shell == "zsh" else [shell, "--norc"]
    done = subprocess.run([*plain, "-c", begin + script], capture_output=True, text=True, check=True)
    found = done.stdout.split() if shell == "bash" else re.findall(r'"([^":]+)"(?::|\s|\))', done.stdout)
    assert [one for one in found if one in offered] == offered, done.stdout + done.stderr


def test_graph_writes_dot() -> None:
    result = run("graph", FIT / "inference")
    assert result.exit_code == 0
    assert result.stdout.startswith("digraph")


def test_check_compares_with_the_outputs_of_paddle(tmp_path: Path) -> None:
    recorded = np.load(FIT / "io.npz")
    feeds = {name: recorded[name] for name in recorded.files}
    name = next(one for one in feeds if feeds[one].shape[-1] == 13)
    np.savez(tmp_path / "in.npz", x=feeds[name])
    status, _ = parse("check", FIT / "inference", tmp_path / "in.npz", "-o", tmp_path / "out.npz")
    assert status == 0
    (made,) = np.load(tmp_path / "out.npz").values()
    w = np.frombuffer((FIT / "inference" / "fc_0.w_0").read_bytes()[-52:], "<f4").reshape(13, 1)
    b = np.frombuffer((FIT / "inference" / "fc_0.b_0").read_bytes()[-4:], "<f4")
    np.testing.assert_allclose(made, feeds[name] @ w + b, rtol=1e-5)  # two orders of a float32 sum of 13
    np.savez(tmp_path / "other.npz", y=made + 1)
    status, found = parse(
        "check", FIT / "inference", tmp_path / "in.npz", "--expected", tmp_path / "other.npz"
    )
    assert (status, found["outputs"][0]["verdict"]) == (1, "differs")


def test_env_lists_the_core_dependencies() -> None:
    status, found = parse("env")
    assert status == 0
    assert found["core"]["numpy"] == np.__version__


def test_env_fits_a_terminal_of_40_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(platform, "platform", lambda: "Linux-6.18.44-fc-v669-x86_64-with-glibc2.36")
    monkeypatch.setattr(late, "find_cache", lambda: "/home/somebody/.cache/paddlelike/kernels")  # as wide
    lines = run("env").stdout.splitlines()
    assert "  (Linux-6.18.44-fc-v669-x86_64," in lines
    assert all(len(line) <= 40 or line == "  /home/somebody/.cache/paddlelike/kernels" for line in lines)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["inspct"], 2, "inspect"),
        (["inspect", "--valeus", "x", "y"], 2, "--values"),
        (["inspect", "/nothing/here"], 2, "no such file or directory"),
    ],
)
def test_a_mistyped_command_or_option_gets_a_suggestion(arguments: list[str], status: int, text: str) -> None:
    command = [sys.executable, "-m", "paddlelike", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert text in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["inspect", "--help"]])
def test_help_that_cannot_be_written_is_an_error_without_a_traceback(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "paddlelike", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "paddlelike: [Errno 28] No space left on device\n"


def test_the_run_command_works_without_the_extra(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys, paddle.fluid as fluid; print(fluid.__name__, sys.argv[1])")
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('no typer', name='typer')")
    command = [sys.executable, "-c"]
    code = (
        "import sys, runpy; sys.path.insert(0, {!r}); sys.argv = {!r}; "
        "runpy.run_module('paddlelike', run_name='__main__')"
    )
    for arguments, status, text in (
        (["paddlelike", "run", str(script), "7"], 0, "7"),
        (["paddlelike", "inspect", "x"], 2, "needs the extra 'cli'"),
        (["paddlelike", "--help"], 0, "pip install 'paddlelike[cli]'"),
    ):
        done = subprocess.run(
            [*command, code.format(str(tmp_path), arguments)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, text in done.stdout + done.stderr) == (status, True), done.stderr


def test_demo_leaves_the_files_that_it_lists(tmp_path: Path) -> None:
    result = run("demo", tmp_path / "demo")
    assert result.exit_code == 0
    commands = [line.split()[1:] for line in result.stdout.splitlines() if line.startswith("    paddlelike ")]
    assert len(commands) == 7
    statuses = {one[0]: run(*one).exit_code for one in commands}
    # values were trained; the program of the model holds no optimizer's variables, so the load fits
    assert statuses == {"inspect": 0, "diff": 1, "verify": 0, "plan": 0, "graph": 0, "doctor": 0, "view": 0}
    assert run("demo", tmp_path / "demo").exit_code == 2


def test_convert_exports_a_model_to_onnx_and_imports_it_again(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    status, made = parse("convert", FIT / "inference", tmp_path / "m.onnx", "--opset", 13)
    assert (status, made["inputs"], made["operators"]) == (
        0,
        ["x"],
        {"mul": 1, "elementwise_add": 1, "scale": 1},
    )
    status, back = parse("convert", tmp_path / "m.onnx", tmp_path / "model")
    assert (status, back["inputs"]) == (0, ["x"])
    assert (tmp_path / "model" / "fc_0.w_0").read_bytes() == (FIT / "inference" / "fc_0.w_0").read_bytes()
    looked = run("inspect", tmp_path / "m.onnx")
    assert looked.exit_code == 0
    assert "fc_0.w_0" in looked.stdout
    assert "feeds x" in looked.stdout
    assert run("convert", tmp_path / "m.onnx", tmp_path / "values.npz").exit_code == 0
    assert (
        run("convert", tmp_path / "values.npz", tmp_path / "values.onnx", "--format", "onnx").exit_code == 0
    )
    again = run("convert", FIT / "inference", tmp_path / "m.onnx")
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_inspect_lists_a_table_saved_as_deltas_once(tmp_path: Path) -> None:
    training = Training()
    training.save(tmp_path / "d", delta=True)
    training.step(3, 7)
    training.save(tmp_path / "d", delta=True)
    training.save(tmp_path / "whole")
    found = parse("inspect", tmp_path / "d")[1]
    assert {one["name"]: one["shape"] for one in found["variables"]}["emb"] == [HEIGHT, 16]
    assert parse("verify", tmp_path / "d")[0] == 0
    assert parse("diff", tmp_path / "d", tmp_path / "whole")[0] == 0
    assert "paddlelike compact" in run("doctor", tmp_path / "d").stdout
    refused = run("convert", tmp_path / "d", tmp_path / "d.npz")
    assert (refused.exit_code, "paddlelike compact" in refused.stderr) == (2, True)
    assert run("compact", tmp_path / "d").exit_code == 0
    assert run("convert", tmp_path / "d", tmp_path / "d.npz").exit_code == 0
    assert (tmp_path / "d/emb").read_bytes() == (tmp_path / "whole/emb").read_bytes()


def test_an_unexpected_error_prints_one_sentence_and_has_its_own_exit_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(sys.modules["paddlelike.inspection.inspect"], "inspect", fail)
    result = run("inspect", FIT / "inference")
    assert result.exit_code == 70
    assert result.stderr.startswith("paddlelike: the command failed with KeyError: 'x'\n")
    assert "PADDLELIKE_TRACEBACK=full" in result.stderr
    monkeypatch.setenv("PADDLELIKE_TRACEBACK", "full")
    assert isinstance(run("inspect", FIT / "inference").exception, KeyError)


def test_a_model_is_named_by_its_program_or_by_the_prefix_of_its_files(tmp_path: Path) -> None:
    shutil.copy(FIT / "inference_combined" / "model", tmp_path / "net.pdmodel")
    shutil.copy(FIT / "inference_combined" / "params", tmp_path / "net.pdiparams")
    np.savez(tmp_path / "in.npz", x=np.ones((2, 13), "float32"))
    _, wanted = parse("check", FIT / "inference_combined", tmp_path / "in.npz")
    for name in ("net", "net.pdmodel"):
        status, found = parse("check", tmp_path / name, tmp_path / "in.npz")
        assert (status, found) == (0, wanted)


def test_verify_takes_a_single_file_and_a_prefix(tmp_path: Path) -> None:
    main, startup = paddlelike.Program(), paddlelike.Program()
    with paddlelike.program_guard(main, startup), paddlelike.scope_guard(paddlelike.Scope()):
        paddlelike.layers.fc(paddlelike.data("x", [None, 4]), 3)
        paddlelike.Executor().run(startup)
        paddlelike.save(main, str(tmp_path / "net"))
    for name in ("net", "net.pdparams"):
        assert run("verify", tmp_path / name).exit_code == 0
    data = bytearray((tmp_path / "net.pdparams").read_bytes())
    data[-9] ^= 1
    (tmp_path / "net.pdparams").write_bytes(data)
    for name in ("net", "net.pdparams"):
        assert run("verify", tmp_path / name).exit_code == 1
    assert run("verify", tmp_path / "net.pdmodel").exit_code == 0
