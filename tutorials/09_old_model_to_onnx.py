"""From an old Fluid model to onnxruntime in one line.

A directory that Fluid saved for prediction becomes an ONNX file, which runs where no Paddle does:
onnxruntime, browsers, phones. Files go to ``tutorials/out/``. Extra packages: ``pip install
"paddlelike[onnx]" onnxruntime``. On the command line the same is ``python -m paddlelike convert old_model
model.onnx``.
"""

# %% An old model: a classifier of digits, as ``save_inference_model`` of Fluid 1.8 leaves it.
# Take your own directory instead: ``__model__`` with a file per variable, with ``__params__``, or a .pdmodel.
from pathlib import Path

import matplotlib as mpl
import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

import paddlelike as fluid

OUT = Path(__file__).parent / "out" / "onnx"
OUT.mkdir(parents=True, exist_ok=True)

pictures, labels = load_digits(return_X_y=True)
pictures = (pictures / 16).astype("float32").reshape(-1, 1, 8, 8)
labels = labels.astype("int64").reshape(-1, 1)

main, startup = fluid.Program(), fluid.Program()
main.random_seed = startup.random_seed = 5
with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    image = fluid.data("image", [None, 1, 8, 8])
    label = fluid.data("label", [None, 1], "int64")
    hidden = fluid.layers.conv2d(image, 8, 3, act="relu")
    hidden = fluid.layers.batch_norm(fluid.layers.pool2d(hidden, 2, "max", 2))
    prediction = fluid.layers.fc(fluid.layers.dropout(hidden, 0.3), 10, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(prediction, label))
    fluid.optimizer.Adam(0.01).minimize(loss)

exe = fluid.Executor(fluid.CPUPlace())
exe.run(startup)
rng = np.random.RandomState(0)
for _ in range(150):
    rows = rng.randint(0, 1500, 64)
    exe.run(main, feed={"image": pictures[rows], "label": labels[rows]}, fetch_list=[])
fluid.io.save_inference_model(str(OUT / "old_model"), ["image"], [prediction], exe, main)

# %% The one line. The report says what was written; an operator that ONNX does not have would be named.
report = fluid.export_onnx(OUT / "old_model", OUT / "model.onnx")
print(report)
assert report.inputs == ["image"]

# %% onnxruntime computes what Fluid's program computes, for a batch of any size.
session = onnxruntime.InferenceSession(OUT / "model.onnx", providers=["CPUExecutionProvider"])
tested = pictures[1500:]
(probabilities,) = session.run(None, {"image": tested})
with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model(str(OUT / "old_model"), exe)
    (wanted,) = exe.run(program, feed={feeds[0]: tested}, fetch_list=fetches)
difference = np.abs(probabilities - wanted)
print(f"{len(tested)} pictures, largest difference {difference.max():.1e}")
assert difference.max() < 1e-5  # float32 sums in another order
right = (probabilities.argmax(1) == labels[1500:, 0]).mean()
print(f"right: {right:.1%}")
assert right > 0.8

# %% Sequences: ONNX has no LoD. They become a padded batch and the lengths.
words, start = fluid.Program(), fluid.Program()
with fluid.unique_name.guard(), fluid.program_guard(words, start):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    states, _ = fluid.layers.dynamic_lstm(fluid.layers.fc(fluid.layers.embedding(ids, (50, 8)), 40), 40)
    score = fluid.layers.fc(fluid.layers.sequence_pool(states, "max"), 2, act="softmax")
exe.run(start)
report = fluid.export_onnx(words, OUT / "lstm.onnx", ["ids"], [score])
print(report.inputs)
assert report.inputs == ["ids", "ids.lengths"]
tokens, lengths = rng.randint(0, 50, 9), [4, 2, 3]
sequences = fluid.create_lod_tensor(tokens.reshape(-1, 1), [lengths], fluid.CPUPlace())
(wanted,) = exe.run(words, feed={"ids": sequences}, fetch_list=[score])
padded = np.zeros((3, 4, 1), "int64")
for row, part in enumerate(np.split(tokens, np.cumsum(lengths)[:-1])):
    padded[row, : len(part), 0] = part
session = onnxruntime.InferenceSession(OUT / "lstm.onnx", providers=["CPUExecutionProvider"])
(got,) = session.run(None, {"ids": padded, "ids.lengths": np.array(lengths)})
assert np.abs(got - wanted).max() < 1e-5

# %% And back: an ONNX model, of PyTorch or scikit-learn as well, is a program that can be trained.
scope = fluid.Scope()
program, feeds, fetches = fluid.import_onnx(OUT / "model.onnx", scope=scope)
names = sorted(one.name for one in program.all_parameters())
print(feeds, names)
assert "conv2d_0.w_0" in names
(again,) = exe.run(program, feed={feeds[0]: tested}, fetch_list=fetches, scope=scope)
assert np.abs(again - probabilities).max() < 1e-5

# %% Where the two disagree, drawn: nowhere by more than float32 has digits.
mpl.use("agg")
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(6, 3))
axes.hist(np.log10(difference.max(1) + 1e-12), 40)
axes.set_xlabel("log10 of the largest difference of a picture's probabilities")
axes.set_ylabel("pictures")
figure.tight_layout()
figure.savefig(OUT / "differences.png")
print("wrote", OUT / "differences.png")
