"""Runs the examples in the docstrings of Paddle 1.8.5, each in a process of its own; for Python 3.7, too.

``driver_examples.py job.json``: the job names ``examples``, a file that is written if it is not there, and
``out``.
"""

import inspect
import json
import os
import pkgutil
import random
import re
import signal
import sys
import tempfile
import textwrap
import time
import traceback
from importlib import import_module
from pathlib import Path

LIMIT = 40  # seconds of an example


def collect():
    """Return the examples of the installed Paddle by the names of what they explain, without dygraph's."""
    found, seen = {}, set()
    paddle = import_module("paddle")
    modules = [paddle]
    for one in pkgutil.walk_packages(paddle.__path__, "paddle.", onerror=lambda _: None):
        if ".tests" in one.name or ".proto" in one.name or one.name.endswith(("_pb2", "__main__")):
            continue
        try:
            modules.append(import_module(one.name))
        except Exception:  # modules of Python 2, of other packages
            continue
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or not getattr(value, "__module__", "").startswith("paddle"):
                continue
            members = [(name, value)]
            if inspect.isclass(value):
                members += [("%s.%s" % (name, k), v) for k, v in sorted(vars(value).items()) if k[0] != "_"]
            for path, member in members:
                for index, text in enumerate(cut_examples(getattr(member, "__doc__", None) or "")):
                    if text not in seen and "dygraph" not in text and "paddle" in text:
                        seen.add(text)
                        found["%s.%s#%d" % (value.__module__, path, index)] = text
    return found


def cut_examples(doc):
    """Return the blocks of Python of a docstring."""
    parts = re.split(r"^([ \t]*)\.\. code-block:: *python *\n", doc, flags=re.M)
    texts = []
    for indent, rest in zip(parts[1::2], parts[2::2]):  # noqa: B905  (Python 3.7)
        lines = []
        for line in rest.splitlines():
            if line.strip() and len(line) - len(line.lstrip()) <= len(indent.expandtabs()):
                break
            lines.append(line)
        texts.append(textwrap.dedent("\n".join(lines)).strip() + "\n")
    return texts


def describe_programs(fluid):
    """Return the operators and the shapes of the default programs, as text."""
    lines = []
    for program in (fluid.default_startup_program(), fluid.default_main_program()):
        for block in program.blocks:
            lines += [op.type for op in block.ops]
            lines += sorted(
                "%s %s" % (var.name, list(var.shape) if "LOD_TENSOR" in str(var.type) else "")
                for var in block.vars.values()
            )
    return "\n".join(lines)


def run_example(text, out):
    """Run one example; write what it printed and the programs that it left to ``out``."""
    os.setsid()
    os.chdir(tempfile.mkdtemp())
    target = os.open(out + ".log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(target, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    numpy, fluid = import_module("numpy"), import_module("paddle.fluid")
    random.seed(0)
    numpy.random.seed(0)
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 1
    result = {}
    try:
        exec(compile(text, "<example>", "exec"), {"__name__": "__main__"})
        result["programs"] = describe_programs(fluid)
    except BaseException:
        result["error"] = traceback.format_exc()[-600:]
    sys.stdout.flush()
    result["printed"] = Path(out + ".log").read_text()
    Path(out).write_text(json.dumps(result))
    os._exit(0)


def main(job):
    listed = Path(job["examples"])
    if not listed.exists():
        listed.write_text(json.dumps(collect()))
        # Some of the modules that this has imported change Paddle; the examples want one that is not changed.
        os.execv(sys.executable, [sys.executable, "-W", "ignore", *sys.argv])
    examples = json.loads(listed.read_text())
    import_module("paddle.fluid")
    if "paddlelike" in sys.modules:  # once, not in each process
        import_module("paddlelike.ops").load_operators()
    folder, results = tempfile.mkdtemp(), {}
    for index, (name, text) in enumerate(sorted(examples.items())):
        out = Path(folder, str(index))
        child = os.fork()
        if child == 0:
            run_example(text, str(out))
        end = time.time() + LIMIT
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.time() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.02)
        results[name] = {"error": "no end"}
        if out.exists():
            results[name] = json.loads(out.read_text())
    Path(job["out"]).write_text(json.dumps(results))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
