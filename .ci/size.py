"""Count the tokens of each room and compare them with its budget; ``--fix`` writes CONTRIBUTING.md's table.

Tokens, so that joining lines gains nothing. Comments and docstrings do not count; tables, stubs, scripts and
style sheets do. A change that needs more than a budget raises it, and says what it buys.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

PROJECT = Path(__file__).parent.parent
PAGE = PROJECT / "CONTRIBUTING.md"

#: How many thousand tokens each room may have; "others" are all rooms that are not named.
BUDGETS = {
    "ops": 275,
    "layers": 72,
    "io": 71,
    "storage": 50,
    "framework": 38,
    "formats": 45,
    "executor": 33,
    "core": 15,
    "inference": 23,
    "fluid": 35,
    "foundation": 14,
    "interop": 202,
    "distributed": 142,
    "compiled": 109,
    "training": 19,
    "scan": 11,
    "collection": 16,
    "view": 50,
    "cli": 11,
    "bundle": 8,
    "testing": 7,
    "others": 80,
}
_COUNTED = {".txt", ".js", ".css", ".pyi", ".toml", ".html"}
_WITHOUT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip


def count_tokens(path: Path) -> int:
    """Return the tokens of a file that count."""
    if path.suffix in _COUNTED:
        return len(re.findall(r"\w+|[^\w\s]", path.read_text(encoding="utf-8")))
    if path.suffix != ".py":
        return 0
    source = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    # A docstring is one token, whatever its length.
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = sum(
        isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        for node in ast.walk(ast.parse(source))
    )
    return sum(token.type not in _WITHOUT_CODE for token in tokens) - docstrings


def measure() -> dict[str, int]:
    """Return the tokens of every room in thousands, rounded up; those of all others under "others"."""
    found = dict.fromkeys(BUDGETS, 0)
    for path in sorted((PROJECT / "paddlelike").rglob("*")):
        room = path.relative_to(PROJECT / "paddlelike").parts[0]
        found[room if room in found else "others"] += count_tokens(path) if path.is_file() else 0
    return {room: -(-count // 1000) for room, count in found.items()}


def format_table(found: dict[str, int]) -> str:
    """Return the table of CONTRIBUTING.md."""
    rows = [("`paddlelike/`", "thousand tokens"), ("---", "--:")]
    rows += [(room if room == "others" else f"`{room}/`", f"{count}") for room, count in found.items()]
    rows.append(("**all**", f"**{sum(found.values()):,}**"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    """Compare the rooms with their budgets, and the table with the rooms; return 1 where one is exceeded."""
    found = measure()
    problems = []
    for room, count in found.items():
        print(f"{room:<12} {count:>5,} of {BUDGETS[room]:>5,} thousand tokens")
        if count > BUDGETS[room]:
            problems.append(f"{room}/ exceeds its budget of {BUDGETS[room]:,} thousand tokens: what can go?")
    text = PAGE.read_text(encoding="utf-8")
    shown = re.search(r"\| `paddlelike/` \|(?:.*\n)+?\| \*\*all\*\* .*", text)
    assert shown is not None, f"{PAGE.name} has no table of rooms"
    if "--fix" in sys.argv:
        PAGE.write_text(text.replace(shown[0], format_table(found)), encoding="utf-8")
    elif _is_outdated(shown[0], found):
        problems.append(f"{PAGE.name}'s table is more than 5 % off: nox -s size -- --fix")
    print(*problems, sep="\n")
    return 1 if problems else 0


def _is_outdated(shown: str, found: dict[str, int]) -> bool:
    counts = [int(number.replace(",", "")) for number in re.findall(r"\| ([\d,]+) \|", shown)]
    return len(counts) != len(found) or any(
        abs(count - now) > max(0.05 * now, 1) for count, now in zip(counts, found.values(), strict=True)
    )


if __name__ == "__main__":
    sys.exit(main())
