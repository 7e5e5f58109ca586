"""From nothing: Program, Executor, backward, save and load in plain Python and numpy.

This is the idea of Fluid, small enough for one sitting. Nothing of paddlelike is used until the end, where it
opens what was written here, byte for byte, and trains on. Each part says in which room the real one is.
"""

# %% Real data: 442 patients, 10 measurements each, and how far their diabetes went within a year.
from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

OUT = Path(__file__).parent / "out" / "from_nothing"
Array = np.ndarray
features, progress = load_diabetes(return_X_y=True)
X = (features / features.std(0)).astype("float32")
Y = ((progress - progress.mean()) / progress.std()).astype("float32")[:, None]


# %% A program is data: variables by name, and operators in the order in which they run.
# An operator names its inputs and outputs by slot; while a program is built nothing is computed.
# (`paddlelike/framework/graph/`; the rooms below are in `paddlelike/`, too.)
@dataclass
class Variable:
    name: str
    shape: tuple[int, ...]  # -1: known when the program runs
    persistable: bool = False  # lives on between runs: parameters, velocities, the learning rate


@dataclass
class Operator:
    type: str
    inputs: dict[str, str]
    outputs: dict[str, str]
    attrs: dict[str, int] = field(default_factory=dict)


@dataclass
class Program:
    variables: dict[str, Variable] = field(default_factory=dict)
    ops: list[Operator] = field(default_factory=list)

    def add(self, name: str, *shape: int, persistable: bool = False) -> Variable:
        self.variables[name] = Variable(name, shape, persistable)
        return self.variables[name]

    def append(
        self, type: str, inputs: dict[str, Variable], outputs: dict[str, Variable], **attrs: int
    ) -> None:
        slots = ({slot: variable.name for slot, variable in part.items()} for part in (inputs, outputs))
        self.ops.append(Operator(type, *slots, attrs))


# %% Layers append operators, and create parameters under Fluid's names. (`layers/`)
def data(program: Program, name: str, width: int) -> Variable:
    return program.add(name, -1, width)


def fc(program: Program, number: int, x: Variable, size: int, *, relu: bool = False) -> Variable:
    """Multiply rows by a weight, add a bias: operators mul and elementwise_add, as Fluid's fc has them."""
    w = program.add(f"fc_{number}.w_0", x.shape[1], size, persistable=True)
    b = program.add(f"fc_{number}.b_0", size, persistable=True)
    product, total = (program.add(f"fc_{number}.tmp_{k}", -1, size) for k in (0, 1))
    program.append("mul", {"X": x, "Y": w}, {"Out": product}, x_num_col_dims=1, y_num_col_dims=1)
    program.append("elementwise_add", {"X": product, "Y": b}, {"Out": total}, axis=1)
    if not relu:
        return total
    out = program.add(f"fc_{number}.tmp_2", -1, size)
    program.append("relu", {"X": total}, {"Out": out})
    return out


def mean_square(program: Program, prediction: Variable, target: Variable) -> Variable:
    difference, square, loss = (
        program.add("difference", -1, 1),
        program.add("square", -1, 1),
        program.add("loss", 1),
    )
    program.append("elementwise_sub", {"X": prediction, "Y": target}, {"Out": difference}, axis=-1)
    program.append("square", {"X": difference}, {"Out": square})
    program.append("mean", {"X": square}, {"Out": loss})
    return loss


# %% A kernel computes one operator on arrays; a gradient is an operator like any other. (`ops/`)
# Each kernel gets arrays by slot. That of `<type>_grad` has the forward inputs, and `Out@GRAD`.
Arrays = dict[str, Array]
Kernel = Callable[[Arrays], Arrays]
KERNELS: dict[str, Kernel] = {
    "mul": lambda s: {"Out": s["X"] @ s["Y"]},
    "mul_grad": lambda s: {"X": s["Out@GRAD"] @ s["Y"].T, "Y": s["X"].T @ s["Out@GRAD"]},
    "elementwise_add": lambda s: {"Out": s["X"] + s["Y"]},
    "elementwise_add_grad": lambda s: {"X": s["Out@GRAD"], "Y": s["Out@GRAD"].sum(0)},
    "elementwise_sub": lambda s: {"Out": s["X"] - s["Y"]},
    "elementwise_sub_grad": lambda s: {"X": s["Out@GRAD"], "Y": -s["Out@GRAD"]},
    "relu": lambda s: {"Out": np.maximum(s["X"], 0)},
    "relu_grad": lambda s: {"X": s["Out@GRAD"] * (s["X"] > 0)},
    "square": lambda s: {"Out": s["X"] * s["X"]},
    "square_grad": lambda s: {"X": 2 * s["X"] * s["Out@GRAD"]},
    "mean": lambda s: {"Out": s["X"].mean().reshape(1)},
    "mean_grad": lambda s: {"X": np.full_like(s["X"], s["Out@GRAD"][0] / s["X"].size)},
    "fill_ones": lambda s: {"Out": np.ones(1, "float32")},
}


def momentum(s: Arrays) -> Arrays:
    """Move a parameter along its velocity: 0.9 of the last one, and the gradient."""
    velocity = np.float32(0.9) * s["Velocity"] + s["Grad"]
    return {"ParamOut": s["Param"] - s["LearningRate"] * velocity, "VelocityOut": velocity}


KERNELS["momentum"] = momentum


# %% Backward walks the operators from the last to the first and appends the gradient of each. (`backward/`)
# Here every variable is read once, so that nothing has to be added up.
def append_backward(program: Program, loss: Variable) -> list[tuple[Variable, Variable]]:
    """Return every parameter with the variable of its gradient."""
    forward = list(program.ops)
    program.append("fill_ones", {}, {"Out": program.add("loss@GRAD", 1)})
    wanted = {"loss"}
    for op in reversed(forward):
        out = op.outputs["Out"]
        if out not in wanted:
            continue
        inputs = {slot: program.variables[name] for slot, name in op.inputs.items()}
        inputs["Out@GRAD"] = program.variables[f"{out}@GRAD"]
        gradients = {}
        for slot, name in op.inputs.items():
            gradients[slot] = program.add(f"{name}@GRAD", *program.variables[name].shape)
            wanted.add(name)
        program.append(f"{op.type}_grad", inputs, gradients)
    parameters = [v for v in program.variables.values() if v.persistable]
    return [(parameter, program.variables[f"{parameter.name}@GRAD"]) for parameter in parameters]


def minimize(program: Program, loss: Variable) -> None:
    """Append the backward pass and an update of each parameter. (`optimizer/`, `ops/update/momentum.py`)"""
    pairs = append_backward(program, loss)
    rate = program.add("learning_rate_0", 1, persistable=True)
    for parameter, gradient in pairs:
        velocity = program.add(f"{parameter.name}_velocity_0", *parameter.shape, persistable=True)
        program.append(
            "momentum",
            {"Param": parameter, "Grad": gradient, "Velocity": velocity, "LearningRate": rate},
            {"ParamOut": parameter, "VelocityOut": velocity},
        )


# %% The executor runs the operators on arrays. Persistables are kept in a scope, the rest dies with the run.
# (`executor/`; the real one binds a program once, reuses memory, and says which line of a script failed.)
Scope = dict[str, Array]


def run(program: Program, scope: Scope, feed: Arrays, fetch: str) -> Array:
    values = scope | feed
    for op in program.ops:
        results = KERNELS[op.type]({slot: values[name] for slot, name in op.inputs.items()})
        for slot, name in op.outputs.items():
            values[name] = results[slot]
    for name, variable in program.variables.items():
        if variable.persistable:
            scope[name] = values[name]
    return values[fetch]


def start(program: Program) -> Scope:
    """Give every persistable its first value; in Fluid a program of its own does this. (`initializer.py`)"""
    rng = np.random.default_rng(7)
    scope = {}
    for name, variable in program.variables.items():
        if variable.persistable:
            is_weight = name.endswith(".w_0")
            scope[name] = (rng.standard_normal(variable.shape) * 0.3 * is_weight).astype("float32")
    scope["learning_rate_0"] = np.array([0.02], "float32")
    return scope


# %% Build, and train 60 steps.
def build() -> tuple[Program, Variable, Variable]:
    program = Program()
    hidden = fc(program, 0, data(program, "x", 10), 16, relu=True)
    prediction = fc(program, 1, hidden, 1)
    loss = mean_square(program, prediction, data(program, "y", 1))
    minimize(program, loss)
    return program, prediction, loss


def train(program: Program, scope: Scope, steps: range) -> list[float]:
    losses = []
    for step in steps:
        rows = slice(step * 34 % 442, step * 34 % 442 + 34)
        losses.append(run(program, scope, {"x": X[rows], "y": Y[rows]}, "loss").item())
    return losses


program, prediction, loss = build()
scope = start(program)
before = train(program, scope, range(60))
print(
    f"{len(program.ops)} operators; loss {before[0]:.3f} at first, {np.mean(before[-13:]):.3f} after 60 steps"
)


# %% A file of Paddle's holds one variable: two versions, a LoD, dtype and shape as a protobuf message,
# the elements. (`formats/paddle/lod_tensor.py`; FP32 is number 5 of Paddle's types.)
def varint(number: int) -> bytes:
    """Protobuf's whole numbers: seven bits a byte, the lowest first."""
    number &= (1 << 64) - 1
    head = b""
    while number > 127:
        head += bytes([number & 127 | 128])
        number >>= 7
    return head + bytes([number])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    """A protobuf message of numbered fields: whole numbers, and bytes with their length before them."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts.append(varint(number << 3) + varint(value))
        else:
            data = value.encode() if isinstance(value, str) else value
            parts.append(varint(number << 3 | 2) + varint(len(data)) + data)
    return b"".join(parts)


FP32 = 5


def describe(shape: tuple[int, ...]) -> bytes:
    """A TensorDesc: the element type, then every dim."""
    return message((1, FP32), *((2, dim) for dim in shape))


def encode(array: Array) -> bytes:
    desc = describe(array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + array.astype("<f4").tobytes()


def decode(data: bytes) -> Array:
    version, levels, again, size = struct.unpack_from("<IQIi", data)
    assert (version, levels, again) == (0, 0, 0), "no Paddle tensor without LoD"
    desc, elements = data[20 : 20 + size], data[20 + size :]
    assert desc[:2] == b"\x08\x05", "no float32"
    dims, at = [], 2
    while at < len(desc):  # each dim: the byte 0x10, then a varint
        shift = dim = 0
        at += 1
        while True:
            dim |= (desc[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if desc[at - 1] < 128:
                break
        dims.append(dim)
    return np.frombuffer(elements, "<f4").reshape(dims)


# %% A saved training is a directory with a file for each persistable. (`io/save/`, `io/load/`)
# The real one is all or nothing, whatever is killed meanwhile, and checks every byte: see `storage/`.
def save(program: Program, scope: Scope, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, variable in program.variables.items():
        if variable.persistable:
            (folder / name).write_bytes(encode(scope[name]))


def load(program: Program, folder: Path) -> Scope:
    names = [name for name, variable in program.variables.items() if variable.persistable]
    scope = {name: decode((folder / name).read_bytes()) for name in names}
    for name, array in scope.items():
        assert array.shape == program.variables[name].shape, f"{name}: {array.shape}"
    return scope


save(program, scope, OUT / "training")
again = load(program, OUT / "training")
assert all(np.array_equal(again[name], scope[name]) for name in scope)
onwards = train(program, scope, range(60, 80))
assert train(program, again, range(60, 80)) == onwards  # the same bits, as if nothing had happened

# %% Now paddlelike: the same network under the same names opens the directory, and trains on alike.
import paddlelike as fluid

main, startup = fluid.Program(), fluid.Program()
with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    x, y = fluid.data("x", [None, 10]), fluid.data("y", [None, 1])
    out = fluid.layers.fc(fluid.layers.fc(x, 16, act="relu"), 1)
    cost = fluid.layers.mean(fluid.layers.square_error_cost(out, y))
    fluid.optimizer.Momentum(0.02, 0.9).minimize(cost)

exe = fluid.Executor(fluid.CPUPlace())
with fluid.scope_guard(fluid.Scope()):
    exe.run(startup)
    print(fluid.io.load_persistables(exe, str(OUT / "training"), main))
    fluid.io.save_persistables(exe, str(OUT / "copy"), main)
    theirs = []
    for step in range(60, 80):
        rows = slice(step * 34 % 442, step * 34 % 442 + 34)
        (value,) = exe.run(main, feed={"x": X[rows], "y": Y[rows]}, fetch_list=[cost])
        theirs.append(value.item())

np.testing.assert_allclose(theirs, onwards, rtol=1e-5)  # float32, added up in another order
for name in again:
    assert (OUT / "copy" / name).read_bytes() == (OUT / "training" / name).read_bytes()
print(
    f"{len(again)} files, the same bytes; loss after 80 steps: here {onwards[-1]:.6f}, there {theirs[-1]:.6f}"
)

# %% A model for prediction is the program as bytes beside its parameters. (`framework/codec/`, `io/export/`)
# Paddle's messages, by hand: ProgramDesc > BlockDesc > VarDesc, OpDesc; feeding and fetching are operators.
LOD_TENSOR, FEED_MINIBATCH, FETCH_LIST = 7, 9, 10
INT = 0  # the type of an attribute


def encode_variable(variable: Variable) -> bytes:
    tensor = message((1, describe(variable.shape)))  # LoDTensorDesc
    return message(
        (1, variable.name), (2, message((1, LOD_TENSOR), (3, tensor))), (3, int(variable.persistable))
    )


def encode_operator(op: Operator) -> bytes:
    slots = [
        [message((1, slot), (2, name)) for slot, name in part.items()] for part in (op.inputs, op.outputs)
    ]
    attrs = [message((1, name), (2, INT), (3, value)) for name, value in op.attrs.items()]
    return message(
        *((1, one) for one in slots[0]),
        *((2, one) for one in slots[1]),
        (3, op.type),
        *((4, a) for a in attrs),
    )


def encode_model(program: Program, feed: str, fetch: str) -> bytes:
    last = next(index for index, op in enumerate(program.ops) if fetch in op.outputs.values())
    ops = [Operator("feed", {"X": "feed"}, {"Out": feed}, {"col": 0}), *program.ops[: last + 1]]
    ops.append(Operator("fetch", {"X": fetch}, {"Out": "fetch"}, {"col": 0}))
    used = dict.fromkeys(name for op in ops for part in (op.inputs, op.outputs) for name in part.values())
    held = [encode_variable(program.variables[name]) for name in used if name in program.variables]
    for name, kind in (("feed", FEED_MINIBATCH), ("fetch", FETCH_LIST)):
        held.append(message((1, name), (2, message((1, kind))), (3, 1)))
    block = message((1, 0), (2, -1), *((3, one) for one in held), *((4, encode_operator(op)) for op in ops))
    return message((1, block), (4, message((1, 1_008_005))))


model = OUT / "model"
save(program, scope, model)  # the velocities are there, too: a model reads what it names
(model / "__model__").write_bytes(encode_model(program, "x", prediction.name))

with fluid.scope_guard(fluid.Scope()):
    loaded, feeds, fetches = fluid.io.load_inference_model(str(model), exe)
    (predicted,) = exe.run(loaded, feed={feeds[0]: X[:5]}, fetch_list=fetches)
mine = run(program, dict(scope), {"x": X[:5], "y": Y[:5]}, prediction.name)
np.testing.assert_allclose(predicted, mine, rtol=1e-5, atol=1e-6)
print(f"{feeds} -> {fetches[0].name}: {np.round(predicted[:3, 0], 3)}, as here")

# %% The same network as paddlelike draws it.
main.plot(OUT / "network.svg", level="layers")

# %% [markdown]
# ![Two layers and their operators](out/from_nothing/network.svg)

# %% What is missing is the rest: hundreds of operators with shape rules and gradients, loops and sequences,
# files that survive crashes, servers that share the parameters, errors that say what to do.
