"""Coming from DyNet: collections, keys, builders and ``dy.save``; training the parameters with Fluid.

``import paddlelike.collection as dy`` stands for ``import dynet as dy``. The files are DyNet's own: what this
script writes, DyNet 2.1 reads, and the other way round. They go to ``tutorials/out/dynet/``.
"""

# %% A collection: parameters under hierarchical names.
from pathlib import Path

import numpy as np

import paddlelike as fluid
import paddlelike.collection as dy

OUT = Path(__file__).parent / "out" / "dynet"
OUT.mkdir(parents=True, exist_ok=True)
fluid.default_startup_program().random_seed = 1  # the same first values at every run

model = dy.ParameterCollection()
a = model.add_parameters(10, name="a")
table = model.add_lookup_parameters((10, 2), name="la")
sub = model.add_subcollection("m3")
inner = sub.add_parameters((3, 7))
print([p.name() for p in (a, table, inner)])
assert [p.name() for p in (a, table, inner)] == ["/a", "/la", "/m3/_0"]

# %% Low level: text files. A collection is loaded by the order of its parameters, a single one by its key.
model.save(OUT / "whole.model")
again = dy.ParameterCollection()
again.add_parameters(10)
again.add_lookup_parameters((10, 2))
again.add_subcollection().add_parameters((3, 7))
again.populate(OUT / "whole.model")
assert np.array_equal(again.parameters_list()[0].as_array(), a.as_array())

table.save(OUT / "part.model", "/X")
a.save(OUT / "part.model", append=True)
other = dy.ParameterCollection()
table2 = other.add_lookup_parameters((10, 2))
table2.populate(OUT / "part.model", "/X")
assert np.array_equal(table2.as_array(), table.as_array())

# %% What DyNet does silently is an error here: a file that was cut, a doubled name, another collection.
(OUT / "cut.model").write_bytes((OUT / "whole.model").read_bytes()[:-20])
try:
    again.populate(OUT / "cut.model")
except fluid.errors.FormatError as error:
    print("refused:", error)
else:
    raise AssertionError("a file that was cut must be refused")


# %% High level: any object with ``param_collection()``, ``spec`` and ``from_spec``; DyNet's own example.
class OneLayerMLP:
    def __init__(self, model, num_input, num_hidden, num_out, act=dy.tanh):
        pc = model.add_subcollection()
        self.W1 = pc.add_parameters((num_hidden, num_input))
        self.W2 = pc.add_parameters((num_out, num_hidden))
        self.b1 = pc.add_parameters(num_hidden)
        self.b2 = pc.add_parameters(num_out)
        self.pc = pc
        self.act = act
        self.spec = (num_input, num_hidden, num_out, act)

    def __call__(self, input_exp):
        W1, W2 = dy.parameter(self.W1), dy.parameter(self.W2)
        b1, b2 = dy.parameter(self.b1), dy.parameter(self.b2)
        return dy.softmax(W2 * self.act(W1 * input_exp + b1) + b2)

    def param_collection(self):
        return self.pc

    @staticmethod
    def from_spec(spec, model):
        num_input, num_hidden, num_out, act = spec
        return OneLayerMLP(model, num_input, num_hidden, num_out, act)


words = dy.ParameterCollection()
E = words.add_lookup_parameters((4, 3))
mlp = OneLayerMLP(words, 3, 8, 2, dy.rectify)

# %% Training: expressions are variables of a Program, so a Fluid optimizer trains them.
labels = [0, 1, 1, 0]
probabilities = [mlp(dy.lookup(E, word)) for word in range(4)]
picked = [fluid.layers.log(p[label].variable) for p, label in zip(probabilities, labels, strict=True)]
loss = fluid.layers.scale(fluid.layers.sums(picked), scale=-0.25)
fluid.optimizer.Adam(learning_rate=0.05).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
losses = [exe.run(fetch_list=[loss])[0].item() for _ in range(60)]
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
assert losses[-1] < 0.1 < losses[0]

# %% Or with DyNet's trainers, a graph for every example.
trainer = dy.AdamTrainer(words, alpha=0.02)
for step in range(8):
    dy.renew_cg()
    scores = dy.parameter(mlp.W2) * dy.tanh(dy.parameter(mlp.W1) * E[step % 4])
    error = dy.pickneglogsoftmax(scores, labels[step % 4])
    error.backward()
    trainer.update()
trainer.status()

# %% ``dy.save`` and ``dy.load``: both files or neither; a class of yours is used only when you pass it.
encoder = dy.LSTMBuilder(1, 3, 4, words)
dy.save(OUT / "model", [E, mlp, encoder])
E2, mlp2, encoder2 = dy.load(OUT / "model", dy.ParameterCollection(), [OneLayerMLP])
dy.renew_cg()
before, after = mlp(dy.lookup(E, 1)).npvalue(), mlp2(dy.lookup(E2, 1)).npvalue()
assert np.array_equal(before, after)
steps = [dy.inputVector([1.0, 2.0, 3.0])] * 2
same = [
    x.npvalue() == y.npvalue()
    for x, y in zip(
        encoder.initial_state().transduce(steps), encoder2.initial_state().transduce(steps), strict=True
    )
]
assert np.all(same)
print("model.data and model.meta hold", [type(one).__name__ for one in (E2, mlp2, encoder2)])

# %% The encoder and what it was trained with, as a picture: its layers.
fluid.default_main_program().plot(OUT / "network.svg")

# %% [markdown]
# ![Layers with the operators of their gradients and updates](out/dynet/network.svg)
