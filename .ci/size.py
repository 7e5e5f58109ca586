"""The lines of code of each room, beside its budget; README.md's table is checked, or written with ``--fix``.

A line of code holds a token: blank lines, comments and docstrings do not count. README.md rounds to hundreds.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

PROJECT = Path(__file__).parent.parent
README = PROJECT / "README.md"

#: How many lines a room of the core may have; "others" are all rooms that are not named.
ROOMS = {
    "ops": 23_500,
    "layers": 8_530,
    "io": 6_870,
    "storage": 4_620,
    "framework": 4_230,
    "formats": 3_700,
    "executor": 3_500,
    "core": 1_440,
    "others": 10_470,
}
#: Rooms around the core; ``collection`` and ``bundle`` are DyNet's and Theano's ways of saving.
AROUND = {
    "distributed": 14_870,
    "interop": 15_600,
    "compiled": 9_000,
    "training": 2_300,
    "collection": 1_640,
    "bundle": 800,
    "scan": 1_600,
    "view": 1_320,
    "cli": 1_150,
    "testing": 600,
}
CORE = 65_000
_WITHOUT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def count_lines(source: str) -> int:
    """Return the lines of code of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _WITHOUT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and ast.get_docstring(node) is not None
        ):
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def measure() -> dict[str, int]:
    """Return the lines of code of every room; those of all others under "others"."""
    found = dict.fromkeys([*ROOMS, *AROUND], 0)
    for path in sorted((PROJECT / "paddlelike").rglob("*.py")):
        room = path.relative_to(PROJECT / "paddlelike").parts[0]
        found[room if room in found else "others"] += count_lines(path.read_text(encoding="utf-8"))
    return found


def format_table(found: dict[str, int]) -> str:
    """Return the table of README.md."""
    core = sum(count for room, count in found.items() if room not in AROUND)
    rows = [("`paddlelike/`", "lines of code"), ("---", "--:")]
    rows += [(room if room == "others" else f"`{room}/`", f"{found[room]:,}") for room in ROOMS]
    rows.append(("**the core**", f"**{core:,}**"))
    rows += [(f"`{room}/`", f"{found[room]:,}") for room in AROUND]
    rows.append(("**all**", f"**{sum(found.values()):,}**"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Compare the rooms with their budgets and README.md with the rooms; return 1 where one is exceeded."""
    found = measure()
    budgets = {**ROOMS, **AROUND}
    problems = []
    for room, count in found.items():
        budget = budgets[room]
        print(f"{room:<12} {count:>7,} of {budget:>7,}")
        if count > budget:
            problems.append(f"{room}/ has {count:,} lines of code, its budget is {budget:,}: what can go?")
    core = sum(count for room, count in found.items() if room not in AROUND)
    print(f"{'the core':<12} {core:>7,} of {CORE:>7,}")
    if core > CORE:
        problems.append(f"the core has {core:,} lines of code, its budget is {CORE:,}")
    text = README.read_text(encoding="utf-8")
    table = format_table({room: round(count, -2) for room, count in found.items()})
    shown = re.search(r"\| `paddlelike/` \|(?:.*\n)+?\| \*\*all\*\* .*", text)
    assert shown is not None, "README.md has no table of rooms"
    if "--fix" in sys.argv:
        README.write_text(text.replace(shown[0], table), encoding="utf-8")
    elif _is_outdated(shown[0], found):
        problems.append("README.md's table is more than 5 % off: nox -s size -- --fix")
    print(*problems, sep="\n")
    return 1 if problems else 0


def _is_outdated(shown: str, found: dict[str, int]) -> bool:
    counts = [int(number.replace(",", "")) for number in re.findall(r"\| ([\d,]+) \|", shown)]
    return len(counts) != len(found) or any(
        abs(count - now) > max(0.05 * now, 100) for count, now in zip(counts, found.values(), strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
