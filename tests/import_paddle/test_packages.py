"""Whole packages of Fluid's time, unmodified, by their own commands.

``PADDLELIKE_PACKAGES`` names the folders they are imported from, as PYTHONPATH does; their own requirements
must be installed. ``tutorials/how_to/porting.md`` has what real Paddle 1.8.5 gave for the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FOLDERS = os.environ.get("PADDLELIKE_PACKAGES", "")


def drive(package: str, script: str, folder: Path) -> list[str]:
    """The lines that a script prints; skips where the package is not there."""
    if PathFinder.find_spec(package, [*FOLDERS.split(os.pathsep), *sys.path]) is None:
        pytest.skip(f"{package} is not in the folders of PADDLELIKE_PACKAGES ({FOLDERS or 'not set'})")
    (folder / "drive.py").write_text(script, encoding="utf-8")
    path = f"{FOLDERS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-m", "paddlelike", "run", "drive.py"],
        cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


LAC = """
import random
from LAC import LAC
random.seed(1)
text = "春天的花开秋天的风以及冬天的落阳"
lines = ["春天的花 开 秋天的风 以及 冬天的落阳", "百度 是 一家 高科技 公司"] * 12
open("seg.tsv", "w", encoding="utf8").write("\\n".join(lines))
lac = LAC(mode="seg")
print(" ".join(lac.run(text)))
own = LAC(mode="lac")
open("own.txt", "w", encoding="utf8").write("春天/SEASON\\n花/n 开/v\\n秋天的风\\n落 阳")
own.load_customization("own.txt")
words, tags = own.run(text)
print(" ".join(f"{word}/{tag}" for word, tag in zip(words, tags)))
words, tags, ranks = LAC(mode="rank").run("百度是一家高科技公司")
print(" ".join(f"{word}/{rank}" for word, rank in zip(words, ranks)))
lac.train(model_save_dir="mine", train_data="seg.tsv", test_data="seg.tsv")
print(" ".join(LAC(model_path="mine").run([text])[0][0]))
"""


def test_the_package_lac_segments_tags_and_ranks_words_trains_and_loads_its_model_again(
    tmp_path: Path,
) -> None:
    """The words are those of real Paddle 1.8.5."""
    printed = drive("LAC", LAC, tmp_path)
    assert printed[0] == "春天 的 花开 秋天 的 风 以及 冬天 的 落阳"
    assert printed[1] == "春天/SEASON 的/u 花/n 开/v 秋天的风/n 以及/c 冬天/TIME 的/u 落/vn 阳/vn"
    assert printed[2] == "百度/3 是/0 一家/2 高科技/3 公司/1"
    assert printed[-1] == "春天的花 开 秋天的风 以及 冬天的落阳"


SLIM = """
import paddle.fluid as fluid
from paddleslim.analysis import flops
from paddleslim.prune import Pruner
image = fluid.data("image", [None, 3, 16, 16])
conv = fluid.layers.conv2d(image, 16, 3, padding=1, act="relu", param_attr="w1", bias_attr=False)
conv = fluid.layers.conv2d(conv, 16, 3, padding=1, param_attr="w2", bias_attr=False)
out = fluid.layers.fc(fluid.layers.pool2d(fluid.layers.batch_norm(conv, act="relu"), global_pooling=True), 10)
main = fluid.default_main_program()
fluid.Executor().run(fluid.default_startup_program())
print(flops(main))
pruned, _, _ = Pruner().prune(main, fluid.global_scope(), ["w1", "w2"], [0.5, 0.25], fluid.CPUPlace())
weights = [p for p in pruned.global_block().all_parameters() if p.name in ("w1", "w2")]
print(flops(pruned), sorted((p.name, p.shape) for p in weights))
"""


def test_paddleslim_prunes(tmp_path: Path) -> None:
    """The numbers are those of real Paddle 1.8.5."""
    before, after = drive("paddleslim", SLIM, tmp_path)[-2:]
    assert (before, after) == ("700576.0", "276600.0 [('w1', (8, 3, 3, 3)), ('w2', (12, 8, 3, 3))]")
