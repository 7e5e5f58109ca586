"""``paddlelike/ops/operators.txt`` lists each operator with the modules that register it.

``python -m tests.ops.test_operator_index`` writes it anew.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import paddlelike.ops

INDEX = Path(paddlelike.ops.__file__).with_name("operators.txt")
HEAD = (
    "# The operators that each module registers, but for the gradients of its own; those that it gives "
    "gradients to.\n# Written by python -m tests.ops.test_operator_index.\n"
)


def list_registrations() -> str:
    """Return the index, as loading all operators in this process registers them."""
    from paddlelike.framework.opdef.definition import OPERATORS
    from paddlelike.ops.second_order import registration

    found: defaultdict[str, set[str]] = defaultdict(set)
    register, set_maker = OPERATORS.register, registration._set_maker

    def note(type: str) -> None:
        frame: Any = sys._getframe(1)
        while frame.f_code.co_name != "<module>" or not frame.f_globals["__name__"].startswith(
            "paddlelike.ops."
        ):
            frame = frame.f_back
        found[type].add(frame.f_globals["__name__"].removeprefix("paddlelike.ops."))

    def note_register(type: str, entry: Any) -> None:
        note(type)
        register(type, entry)

    def note_maker(type: str, *given: Any) -> None:
        note(f"{type}_grad")
        set_maker(type, *given)

    OPERATORS.register = note_register  # type: ignore[method-assign]
    registration._set_maker = note_maker  # type: ignore[assignment]
    paddlelike.ops.load_operators()
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for type, where in found.items():
        if not type.endswith("_grad") or found.get(type.removesuffix("_grad")) != where:
            for module in where:
                modules[module].append(type)
    lines = [" ".join([module, *sorted(types)]) for module, types in sorted(modules.items())]
    return HEAD + "\n".join(lines) + "\n"


def test_the_operator_index_matches_the_registered_operators() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from tests.ops import test_operator_index as t; print(t.list_registrations(), end='')",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert INDEX.read_text() == done.stdout, "python -m tests.ops.test_operator_index writes it"


LOOK_UPS = """
import sys
from paddlelike.framework.opdef import registry
assert registry.find({type!r}).type == {type!r}
loaded = [name for name in sys.modules if name.startswith("paddlelike.ops.")]
assert len(loaded) < 60, len(loaded)
{more}
"""


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


def test_a_lookup_imports_only_the_module_of_the_operator() -> None:
    run(LOOK_UPS.format(type="softmax", more="assert 'paddlelike.ops.detection' not in sys.modules"))
    run(LOOK_UPS.format(type="relu_grad", more="assert registry.find_or_none('conv2d@2') is None"))


def test_an_operator_missing_from_the_index_is_found_by_loading_all() -> None:
    run(
        "import paddlelike.ops\n"
        "paddlelike.ops._read_index().pop('sum')\n"
        "from paddlelike.framework.opdef import registry\n"
        "assert registry.find('sum').type == 'sum'\n"
        "assert registry.find_or_none('nothing') is None\n"
    )


def test_gradients_of_gradients_are_registered_with_the_gradient() -> None:
    run(
        "from paddlelike.framework.opdef import OpDef, registry\n"
        "assert registry.find('mul_grad').make_grad.__func__ is not OpDef.make_grad.__func__\n"
    )


if __name__ == "__main__":
    INDEX.write_text(list_registrations())
