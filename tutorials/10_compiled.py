"""Compiled programs: train on a device with JAX, save, go on with numpy, and back.

A program can run as one XLA computation instead of operator by operator. Names, scopes and files are the
same, so that a training may change the engine at any save. Needs the extra ``jax``:
``pip install '.[jax]'``.
"""

# %% Without JAX there is nothing to see here.
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import paddlelike as fluid

if find_spec("jax") is None:
    print("JAX is not installed: pip install '.[jax]'")
    sys.exit()

FOLDER = Path(__file__).parent / "out" / "compiled"
rng = np.random.RandomState(0)
IMAGES = rng.standard_normal((512, 1, 16, 16)).astype("float32")
LABELS = (IMAGES[:, 0, :8].sum((1, 2)) > IMAGES[:, 0, 8:].sum((1, 2))).astype("int64")[:, None]


# %% A network as ever: convolutions, batch norm, dropout, Adam.
def build():
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        image = fluid.data("image", [None, 1, 16, 16])
        label = fluid.data("label", [None, 1], "int64")
        hidden = fluid.nets.simple_img_conv_pool(image, 8, 3, 2, 2, act="relu")
        hidden = fluid.layers.dropout(fluid.layers.batch_norm(hidden), 0.2)
        guess = fluid.layers.fc(hidden, 2, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(guess, label))
        fluid.optimizer.Adam(0.01).minimize(loss)
    return main, startup, loss


def train(program, loss, steps):
    losses = []
    for step in steps:
        rows = slice(step * 64 % 512, step * 64 % 512 + 64)
        feed = {"image": IMAGES[rows], "label": LABELS[rows]}
        losses.append(exe.run(program, feed=feed, fetch_list=[loss])[0].item())
    return losses


# %% The same program, with another engine.
main, startup, loss = build()
compiled = fluid.CompiledProgram(main).with_backend("jax")
exe = fluid.Executor(fluid.CPUPlace())  # CUDAPlace(0) where JAX sees a GPU

# %% What will be compiled together? All of it: forward, backward, and the updates.
print(compiled.explain(["image", "label"], [loss]))

# %% Train on the device, and save in the middle. The first step compiles.
exe.run(startup)
begin = time.perf_counter()
first = train(compiled, loss, range(1))
print(f"the first step, with its compilation: {time.perf_counter() - begin:.1f} s")
begin = time.perf_counter()
first += train(compiled, loss, range(1, 20))
print(f"19 more: {time.perf_counter() - begin:.2f} s")

# %% Parameters and moments stay on the device between runs; a save reads them from there.
fluid.io.save_persistables(exe, str(FOLDER / "after_20"), main)
seed = fluid.global_scope().generator.state  # of the dropout masks, which are Paddle's with both engines
on_device = train(compiled, loss, range(20, 40))

# %% Go on with numpy, from the files.
fluid.io.load_persistables(exe, str(FOLDER / "after_20"), main)
fluid.global_scope().generator.state = seed
with_numpy = train(main, loss, range(20, 40))
# Float32 sums in another order, over 20 steps.
np.testing.assert_allclose(with_numpy, on_device, rtol=1e-3)

# %% And back, in the middle, without files: both engines use the same scope.
more = train(compiled, loss, range(40, 60))
print(f"loss {first[0]:.3f} -> {on_device[-1]:.3f} -> {more[-1]:.3f}")
assert np.mean(more[-8:]) < np.mean(first[:8])

# %% A program compiles again for every new shape of its feeds; explain says how often it did.
rows = slice(0, 32)
exe.run(compiled, feed={"image": IMAGES[rows], "label": LABELS[rows]}, fetch_list=[loss])
told = compiled.explain(["image", "label"], [loss])
print(told)
assert "compiled 2 times" in told

# %% Sequences of any lengths are padded to few sizes: twelve batches, but no twelve compilations.
words_main, words_startup = fluid.Program(), fluid.Program()
with fluid.unique_name.guard(), fluid.program_guard(words_main, words_startup):
    words = fluid.data("words", [None, 1], "int64", lod_level=1)
    rows_of_words = fluid.layers.embedding(words, size=[50, 8])
    mean = fluid.layers.mean(fluid.layers.sequence_pool(rows_of_words, "average"))
    fluid.optimizer.SGD(0.1).minimize(mean)
own = fluid.Scope()
exe.run(words_startup, scope=own)
on_words = fluid.CompiledProgram(words_main).with_backend("jax")
for _ in range(12):
    lengths = rng.randint(3, 9, 16).tolist()
    fed = fluid.create_lod_tensor(rng.randint(0, 50, (sum(lengths), 1)), [lengths], fluid.CPUPlace())
    exe.run(on_words, feed={"words": fed}, fetch_list=[mean], scope=own)
told = on_words.explain(["words"], [mean])
print(told)
assert "piece 1" in told
assert "compiled 12 times" not in told

# %% The network that was compiled, as a picture.
FOLDER.mkdir(parents=True, exist_ok=True)
main.plot(FOLDER / "network.svg", level="layers")

# %% [markdown]
# ![Layers with the operators of their gradients and updates](out/compiled/network.svg)
