"""Draw the front page's picture, ``tutorials/lac.svg``: a terminal in which LAC, unmodified, works again.

Commands are typed and answered one after the other, once; who asks for less motion sees the last frame. The
commands are run as they are shown, in a temporary folder. LAC 2.1.2 must be importable
(``pip install --no-deps LAC==2.1.2``), and Paddle must not.
"""

from __future__ import annotations

import html
import io
import re
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "tutorials" / "lac.svg"
SCRIPT = """\
from LAC import LAC

text = "春天的花开秋天的风以及冬天的落阳"
print(*LAC(mode="seg").run(text))
LAC(mode="seg").train("mine", train_data="mine.tsv")
print(*LAC("mine", mode="seg").run(text))
"""
CORPUS = "春天的花 开 秋天的风 以及 冬天的落阳\n百度 是 一家 高科技 公司\n" * 12
PAUSE, SECONDS_PER_KEY = 0.7, 0.03
MOTION = """
    .lac-matrix text { animation: lac-appear 1ms backwards }
    @keyframes lac-appear { from { visibility: hidden } }
    @keyframes lac-type { from { clip-path: inset(0 100% 0 0) } to { clip-path: inset(0) } }
    @media (prefers-reduced-motion: reduce) { .lac-matrix text { animation: none !important } }
"""
#: rich's own format without the frame of a window: the page is short.
FORMAT = """\
<svg viewBox="-14 -8 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font: {char_height}px/{line_height}px monospace; font-variant-east-asian: full-width
    }}
    {styles}
    </style>
    <defs>{lines}</defs>
    <rect x="-14" y="-8" width="100%" height="100%" rx="8" fill="#292929"/>
    <g class="{unique_id}-matrix">{matrix}</g>
</svg>
"""
COMMANDS = [
    "python segment.py 2>&1 | tail -1",
    "paddlelike run segment.py 2>log | grep -v ^Load",
    "paddlelike verify mine/model | sed 's/.*: //'",
]


def main() -> None:
    terminal = Console(record=True, width=122, file=io.StringIO())
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "segment.py").write_text(SCRIPT, encoding="utf8")
        (Path(folder) / "mine.tsv").write_text(CORPUS, encoding="utf8")
        for command in COMMANDS:
            shell = ["bash", "-c", command]
            done = subprocess.run(shell, cwd=folder, stdout=subprocess.PIPE, encoding="utf8")  # noqa: S603
            terminal.print(Text("$ ", "bold green") + Text(command, "bold white"))
            terminal.print(Text(done.stdout.rstrip()))
        terminal.print()  # the picture ends above its last line
    drawn = terminal.export_svg(code_format=FORMAT, unique_id="lac")
    PICTURE.write_text(animate(drawn), encoding="utf8")


def animate(drawn: str) -> str:
    """Return rich's picture of a terminal with its commands typed and its lines appearing in their order."""
    now = PAUSE

    def time(found: re.Match[str]) -> str:
        nonlocal now
        kind, text = found["kind"], html.unescape(found["text"])
        if kind == "r2":  # a command
            begin, duration = now, SECONDS_PER_KEY * len(text)
            now += duration + PAUSE
            typed = f"animation:lac-type {duration:.2f}s steps({len(text)}) {begin:.2f}s backwards"
            return f'{found[0][:-1]} style="{typed}">'
        if kind == "r1":  # a prompt
            now += PAUSE
        return f'{found[0][:-1]} style="animation-delay:{now:.2f}s">'

    lines = re.compile(r'<text class="lac-(?P<kind>r\d)"[^>]*>(?=(?P<text>[^<]*))')
    return lines.sub(time, drawn.replace("</style>", MOTION + "    </style>", 1))


if __name__ == "__main__":
    main()
