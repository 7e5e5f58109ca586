"""Unmodified scripts, which say ``import paddle``, run on paddlelike as ``python SCRIPT`` would run them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


def python(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, env=os.environ | environment
    )


def run(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "paddlelike", "run", *arguments, cwd=cwd)


SHOW = """
import os, sys
import paddle.fluid as fluid
print(fluid.__name__, __name__, sys.argv, os.path.basename(__file__), sys.path[0])
"""


OLD = """
import collections, inspect, time
from collections import Mapping
import numpy as np
assert issubclass(dict, Mapping) and isinstance([], collections.Iterable) and time.clock() > 0
assert np.zeros(2, np.float).dtype == "float64" and np.array([1.5]).astype(np.int) == [1]
names, several, keywords, defaults = inspect.getargspec(lambda a, b=1: 0)
assert (names, several, keywords, defaults) == (["a", "b"], None, None, (1,))
for module in (collections, np):
    try:
        module.nothing
    except AttributeError as error:
        print(error)
"""


def test_names_dropped_by_python_and_numpy_still_work(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(OLD)
    (tmp_path / "sitecustomize.py").write_text("print('the own one')")
    path = f"{path_of_paddle()}{os.pathsep}{tmp_path}"
    done = python("-m", "paddlelike", "run", "old.py", cwd=tmp_path, PYTHONPATH=path)
    lines = done.stdout.splitlines()
    assert lines[-3:] == [
        "the own one",
        "module 'collections' has no attribute 'nothing'",
        "module 'numpy' has no attribute 'nothing'",
    ]
    warned = [line for line in done.stderr.splitlines() if "no longer exists" in line]
    told = [line.partition("FutureWarning: ")[2] for line in warned]
    assert (
        told[0]
        == "collections.Mapping no longer exists; scripts that paddlelike runs get collections.abc.Mapping"
    )
    assert [line.split()[0] for line in told] == [
        "collections.Mapping", "collections.Iterable", "time.clock", "numpy.float", "numpy.int",
        "inspect.getargspec",
    ]  # fmt: skip


OLD_NUMPY = """
import numpy as np
from PIL import Image, ImageDraw, ImageFont
read = np.fromstring(bytes([1, 2]), np.uint8)
read[0] += 2
print(read, np.fromstring("4 5", int, sep=" "), np.fromstring("ab", dtype="uint8"))
ragged = np.array([[1], [1, 2]])
print(ragged.dtype, ragged.shape, ragged[1], np.asarray([[1], [1, 2]]).shape, np.copy([[1], [1, 2]])[0])
print(np.in1d([1, 2], [2]), np.sctypes["int"][-1] is np.int64, np.NINF, np.float_(2.5), np.product([2, 3]))
print(Image.new("L", (4, 4)).resize((2, 2), Image.ANTIALIAS).size)
font = ImageFont.load_default()
print(font.getsize("abc") == ImageDraw.Draw(Image.new("L", (9, 9))).textsize("abc", font=font) > (0, 0))
try:
    np.array([[1], [1, 2]], "int64")
except ValueError as error:
    print("sequence" in str(error))
try:
    import paddle.fluid as fluid
    fluid.create_lod_tensor([[1], [1, 2]], [[1]], fluid.CPUPlace())
except Exception as error:
    print(type(error).__name__)
print("%.2f" % np.ones(1))
"""


def test_removed_functions_of_numpy_and_pillow_work_with_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="Pillow is in the extra 'datasets'")
    (tmp_path / "old.py").write_text(OLD_NUMPY)
    done = run(tmp_path, "old.py")
    told = [
        line.partition("Warning: ")[2].partition(" no longer exists")[0] for line in done.stderr.splitlines()
    ]
    expected = [
        "numpy.fromstring of bytes", "numpy.array of rows of several lengths",
        "numpy.asarray of rows of several lengths", "numpy.copy of rows of several lengths", "numpy.in1d",
        "numpy.sctypes", "numpy.NINF",
        "numpy.float_", "numpy.product", "PIL.Image.ANTIALIAS",
    ]  # fmt: skip
    said = [name for name in told if name in expected]
    assert done.stdout.splitlines()[:7] == [
        "[3 2] [4 5] [97 98]", "object (2,) [1, 2] (2,) [1]", "[False  True] True -inf 2.5 6", "(2, 2)",
        "True", "True", "FeedError",
    ]  # fmt: skip
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        assert said == expected
        assert done.stderr.splitlines()[-1] == (
            f"  hint: {tmp_path / 'old.py'}:22: older numpys did this; "
            'pip install "numpy<2.4" runs it unchanged'
        )
    else:  # which still has some of the names, and prints the array
        assert said == [name for name in expected if name in said]
        assert (done.stdout.splitlines()[-1], done.returncode) == ("1.00", 0)


FETCHED_ARRAYS = """
import pickle
import numpy as np
import paddle.fluid as fluid
x = fluid.data("x", [None, 1])
fetches = [fluid.layers.scale(x, 2.0), fluid.layers.reduce_mean(x)]
exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.array([[1.0], [3.0]], "float32")}
y, mean = exe.run(feed=feed, fetch_list=fetches)
print(float(np.array([mean])), "%.1f %d" % (np.array(mean), np.asarray([3])))
y, mean = exe.run(feed=feed, fetch_list=fetches, return_numpy=False)
print(["%.1f" % row for row in np.array(y)], "%.1f" % (np.array(mean) * 2))
print(type(pickle.loads(pickle.dumps(np.array(mean)))) is type(np.array([1, 2])) is np.ndarray)
"""


def test_arrays_made_from_fetched_arrays_convert_to_numbers(tmp_path: Path) -> None:
    """The lines are those of real Paddle 1.8.5 with numpy 1.21."""
    (tmp_path / "old.py").write_text(FETCHED_ARRAYS)
    done = run(tmp_path, "old.py")
    assert done.stdout.splitlines() == ["2.0 2.0 3", "['2.0', '6.0'] 4.0", "True"], done.stderr


OF_OLD_PROTOC = """
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf import reflection as _reflection
DESCRIPTOR = _descriptor.FileDescriptor(
  name="old.proto", package="old", syntax="proto3", serialized_pb={bytes})
_NOTE = _descriptor.Descriptor(name="Note", full_name="old.Note", filename=None, file=DESCRIPTOR,
  containing_type=None, fields=[], extensions=[], nested_types=[], enum_types=[], serialized_options=None)
Note = _reflection.GeneratedProtocolMessageType("Note", (_message.Message,), dict(DESCRIPTOR=_NOTE))
"""


def test_modules_generated_by_an_old_protoc_are_importable(tmp_path: Path) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    file = FileDescriptorProto(name="old.proto", package="old", syntax="proto3")
    note = file.message_type.add(name="Note")
    note.field.add(
        name="text",
        number=1,
        label=FieldDescriptorProto.LABEL_OPTIONAL,
        type=FieldDescriptorProto.TYPE_STRING,
    )
    (tmp_path / "old_pb2.py").write_text(OF_OLD_PROTOC.format(bytes=file.SerializeToString()))
    (tmp_path / "job.py").write_text(
        "import old_pb2\nprint(old_pb2.Note.FromString(old_pb2.Note(text='a').SerializeToString()).text)"
    )
    assert python("job.py", cwd=tmp_path).returncode == 1
    assert run(tmp_path, "job.py").stdout == "a\n"


def test_a_script_runs_as_main(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "show.py").write_text(SHOW)
    alone = python("inner/show.py", "a", "-m", "--b", cwd=tmp_path, PYTHONPATH=path_of_paddle())
    ours = run(tmp_path, "inner/show.py", "a", "-m", "--b")
    assert ours.stdout == alone.stdout
    assert ours.stdout.startswith("paddlelike.fluid __main__ ['inner/show.py', 'a', '-m', '--b'] show.py ")
    assert ours.stderr == ""


def path_of_paddle() -> str:
    """What PYTHONPATH must be for a plain ``python SCRIPT``: found here without the code under test."""
    project = Path(__file__).parent.parent.parent
    return f"{project / 'paddlelike' / 'import_paddle' / 'path'}{os.pathsep}{project}"


def test_a_module_runs_as_main(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "__init__.py").write_text("")
    (tmp_path / "job" / "show.py").write_text(SHOW)
    done = run(tmp_path, "-m", "job.show", "a")
    assert done.stdout.startswith("paddlelike.fluid __main__ ['")
    assert done.stdout.split(" show.py ")[1].strip() == str(tmp_path)
    assert "'a'] show.py" in done.stdout


def test_a_failing_script_keeps_its_traceback_and_exit_code(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import paddle.fluid\n1 / 0\n")
    done = run(tmp_path, "fails.py")
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1].strip() == f'File "{tmp_path / "fails.py"}", line 2, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero"
    (tmp_path / "exits.py").write_text("import sys, paddle\nsys.exit(7)\n")
    assert run(tmp_path, "exits.py").returncode == 7
    (tmp_path / "killed.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    assert run(tmp_path, "killed.py").returncode == -signal.SIGTERM


CHILDREN = """
import multiprocessing, subprocess, sys

def show(queue):
    import paddle
    queue.put((paddle.fluid.__name__, sys.argv))

if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=show, args=(queue,))
        process.start()
        print(method, *queue.get(timeout=60), flush=True)
        process.join()
    script = "import paddle.fluid as fluid; print('command', fluid.__name__)"
    subprocess.run([sys.executable, "-c", script], check=True)
"""


def test_subprocesses_of_a_script_import_the_same_paddle(tmp_path: Path) -> None:
    (tmp_path / "children.py").write_text(CHILDREN)
    done = run(tmp_path, "children.py", "a")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "fork paddlelike.fluid ['children.py', 'a']",
        "spawn paddlelike.fluid ['children.py', 'a']",
        "command paddlelike.fluid",
    ]


@pytest.mark.parametrize("prefix", [["paddlelike"], ["paddlelike", "run", "-m", "paddle"]], ids=" ".join)
def test_a_launched_script_imports_paddle(tmp_path: Path, prefix: list[str]) -> None:
    (tmp_path / "job.py").write_text("import paddle.fluid as fluid\nprint('job', fluid.__name__)\n")
    prefix[-1] += ".distributed.launch"
    done = python(
        "-m", *prefix, "--server_num", "1", "--worker_num", "1", "--log_dir", "log", "job.py", cwd=tmp_path
    )
    assert (tmp_path / "log" / "workerlog.0").read_text() == "job paddlelike.fluid\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "usage: python -m paddlelike run SCRIPT [args]"),
        (["run", "-m"], "run: no script was given"),
        (["run", "absent.py"], "run: the script absent.py does not exist (looked in "),
    ],
    ids=["no-script", "no-module", "absent"],
)
def test_a_wrong_command_line_prints_the_usage(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = python("-m", "paddlelike", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(said)


def test_an_interpreter_that_ignores_the_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text(SHOW)
    project = Path(__file__).parent.parent.parent
    start = f"import sys; sys.path.append({str(project)!r}); sys.argv = ['paddlelike', 'run', 'show.py']\n"
    start += "import runpy; runpy.run_module('paddlelike', run_name='__main__')"
    done = python("-E", "-c", start, cwd=tmp_path)
    assert done.returncode == 2
    assert "Python was started with -E or -I" in done.stderr
    assert "paddlelike.install()" in done.stderr


def test_a_script_that_imports_paddle_may_use_a_variable_as_a_condition(tmp_path: Path) -> None:
    (tmp_path / "ask.py").write_text(
        "import paddle.fluid as fluid\n"
        "x = fluid.data('x', [None])\n"
        "print('there' if x else 'not there', not x)\n"
    )
    ours = run(tmp_path, "ask.py")
    assert ours.stdout == "there False\n"
    assert "ask.py:3: UserWarning: variable 'x' is always true while the program is built" in ours.stderr
