"""Write every public name of the modules of real Paddle 1.8.5, with its parameters, one a line.

path/to/python3.7 tests/import_paddle/dump_api.py tests/import_paddle/api185.txt

A line is ``module name(parameters)``, or ``module name`` for what has no parameters that Python can tell.
"""

import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from pathlib import Path

#: Generated from descriptions of messages, or built on libraries that are not part of Paddle.
SKIPPED = ("_pb2", "core_avx", "core_noavx", "test_data_generator", "libs", "dygraph_to_static")


def walk(name):
    """The name and module, and those below it, as far as they can be imported."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        print("not imported:", name, repr(error), file=sys.stderr)
        return
    yield name, module
    for below in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not any(part in below.name for part in SKIPPED):
            yield from walk(name + "." + below.name)


def parameters(value):
    try:
        return re.sub(r" (object )?at 0x\w+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def lines(path, module):
    own = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    listed = [n.strip(",") for one in getattr(module, "__all__", own) for n in one.split()]
    for name in sorted({name for name in listed if not name.startswith("_") and hasattr(module, name)}):
        value = getattr(module, name)
        yield "%s %s%s" % (path, name, "" if inspect.ismodule(value) else parameters(value))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    import paddle  # noqa: F401

    found = [line for path, module in walk("paddle") for line in lines(path, module)]
    Path(sys.argv[1]).write_text("\n".join(found) + "\n")
