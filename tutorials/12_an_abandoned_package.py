"""An abandoned package works again.

LAC, Baidu's segmenter of Chinese texts, was last released in 2021. It imports ``paddle.fluid``, which no
Paddle has that installs today. With paddlelike beneath it, it segments, learns the user's own words with its
own ``lac.train``, and what it saves is what Paddle would have saved. Nothing of it is edited.

``pip install wheel "setuptools<70"`` and ``pip install --no-deps --no-build-isolation LAC==2.1.2`` get it,
with its models (its ``setup.py`` needs an old setuptools, and it asks for a Paddle that is gone). Where it is
not installed, a small package of the same kind takes its place, written as packages were then. Files go to
``tutorials/out/abandoned/``.
"""

# %% The package: LAC, or the small one, which this cell writes; either says ``import paddle.fluid``.
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).parent / "out" / "abandoned"
shutil.rmtree(HOME, ignore_errors=True)
HOME.mkdir(parents=True)

SMALL = '''
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.core import AnalysisConfig, PaddleTensor, create_paddle_predictor


def to_ids(text):
    return [[ord(char) % 1000] for char in text]


def build():
    chars = fluid.data("chars", [None, 1], "int64", lod_level=1)
    words = fluid.layers.embedding(chars, (1000, 16))
    seen = fluid.layers.sequence_conv(words, 32, filter_size=5, act="tanh")
    return fluid.layers.fc(seen, 2, act="softmax")


class Segmenter(object):
    """Cuts texts into words; the model in a directory, as it was deployed."""

    def __init__(self, path):
        self.path = path
        self.predictor = create_paddle_predictor(AnalysisConfig(path))

    def run(self, text):
        tensor = PaddleTensor(np.array(to_ids(text), "int64"))
        tensor.lod = [[0, len(text)]]
        ends = self.predictor.run([tensor])[0].as_ndarray()[:, 1] > 0.5
        marked = "".join(char + (" " if end else "") for char, end in zip(text, ends))
        return marked.split()

    def train(self, model_save_dir, train_data):
        train(model_save_dir, train_data, self.path)


def train(model_save_dir, train_data, path=None):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    exe = fluid.Executor(fluid.CPUPlace())
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), fluid.scope_guard(fluid.Scope()):
        ends = build()
        test = main.clone(for_test=True)
        label = fluid.data("label", [None, 1], "int64", lod_level=1)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(ends, label))
        fluid.optimizer.Adam(0.02).minimize(loss)
        exe.run(startup)
        if path:
            fluid.io.load_params(exe, path, test)
        lines = [line.split() for line in open(train_data, encoding="utf8")]
        for _ in range(40):
            for words in lines:
                marks = [[int(i + 1 == len(word))] for word in words for i in range(len(word))]
                lod = [[sum(map(len, words))]]
                feed = {
                    "chars": fluid.create_lod_tensor(np.array(to_ids("".join(words))), lod, exe.place),
                    "label": fluid.create_lod_tensor(np.array(marks), lod, exe.place),
                }
                cost, = exe.run(main, feed=feed, fetch_list=[loss])
        print("loss %.4f" % cost)
        fluid.io.save_inference_model(model_save_dir, ["chars"], [ends], exe, test)
'''


def paddlelike(*arguments: str) -> list[str]:
    """Run a command as ``paddlelike ...`` does, in a new process; show and return its output."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "paddlelike", *arguments]
    done = subprocess.run(command, cwd=HOME, check=True, stdout=subprocess.PIPE, encoding="utf8")
    print(done.stdout, f"({time.perf_counter() - begin:.1f} s)", sep="")
    return done.stdout.splitlines()


def run(script: str) -> list[str]:
    (HOME / "script.py").write_text(script, encoding="utf8")
    return paddlelike("run", "script.py")


def write_corpus(name: str, *lines: str) -> None:
    (HOME / name).write_text("\n".join(lines), encoding="utf8")


if has_lac := find_spec("LAC") is not None:
    first = 'from LAC import LAC\ndeployed = LAC(mode="seg")'
    again = 'from LAC import LAC\nmine = LAC(model_path="mine", mode="seg")'
    saved = "mine/model"
else:
    print("LAC is not installed: the small package takes its place.")
    (HOME / "small.py").write_text(SMALL, encoding="utf8")
    write_corpus("words.tsv", *["春天 的 花 开 秋天 的 风 以及 冬天 的 落阳", "百度 是 一 家 公司"] * 4)
    run('import small\nsmall.train("deployed", "words.tsv")')
    first = 'from small import Segmenter\ndeployed = Segmenter("deployed")'
    again = 'from small import Segmenter\nmine = Segmenter("mine")'
    saved = "mine"

# %% Before anything is run: ``paddlelike scan`` reads the package, and says what would stop.
found = find_spec("LAC")
paddlelike("scan", str(HOME) if found is None or found.origin is None else str(Path(found.origin).parent))

# %% The first sentence, in a new process.
TEXT = "春天的花开秋天的风以及冬天的落阳"
(before,) = run(f'{first}\nprint(" ".join(deployed.run("{TEXT}")))')
assert before.startswith("春天 的")

# %% The user's own words: the deployed model goes on learning, by the package's own command.
write_corpus("mine.tsv", *["春天的花 开 秋天的风 以及 冬天的落阳", "百度 是 一家 高科技 公司"] * 12)
run(f'{first}\ndeployed.train(model_save_dir="mine", train_data="mine.tsv")')

# %% A new process opens what was saved, and cuts as it was taught.
(after,) = run(f'{again}\nprint(" ".join(mine.run("{TEXT}")))')
assert after == "春天的花 开 秋天的风 以及 冬天的落阳"

# %% What was saved is Paddle's own, with one more file of checksums, which Paddle reads over.
(verified,) = paddlelike("verify", saved)
assert "files are as they were saved" in verified
paddlelike("convert", saved, "mine.pdmodel")  # for Paddle 2.x
assert (HOME / "mine.pdiparams").exists()
