"""From nothing: Program, Executor, backward, save and load in plain numpy.

The idea of Fluid, told once in a few hundred lines. Nothing of paddlelike is used until the end: there it
opens the directory that this script wrote, and continues the training with the same numbers. Each part names
its room in the package, where the same thing is done completely.
"""

# %% Data: those of the first tutorial.
from __future__ import annotations

import math
import shutil
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path(__file__).parent / "out" / "from_nothing"
shutil.rmtree(OUT, ignore_errors=True)

rng = np.random.RandomState(0)
X = rng.uniform(-1, 1, (256, 13)).astype("float32")
Y = (X @ np.linspace(-1, 1, 13, dtype="float32")[:, None] + 0.5).astype("float32")


# %% A program is data: variables, and operators that name them.
# In the package: `paddlelike/framework/`. There a program also has blocks (the bodies of loops), and an
# operator infers the shapes of its outputs as it is appended.
@dataclass
class Variable:
    name: str
    shape: tuple[int, ...]  # -1: as many rows as are fed
    persistable: bool = False  # lives in the scope, and is saved; the others die with each run


@dataclass
class Operator:
    type: str
    inputs: dict[str, str]  # slot -> the name of a variable
    outputs: dict[str, str]
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Program:
    vars: dict[str, Variable] = field(default_factory=dict)
    ops: list[Operator] = field(default_factory=list)

    def create_var(self, name: str, shape: Iterable[int], *, persistable: bool = False) -> str:
        if name in self.vars:
            raise ValueError(f"the program has a variable {name!r} already")
        self.vars[name] = Variable(name, tuple(shape), persistable)
        return name

    def append_op(self, type: str, inputs: dict[str, str], outputs: dict[str, str], **attrs: Any) -> None:
        for name in (*inputs.values(), *outputs.values()):
            if name not in self.vars:
                raise ValueError(f"operator {type!r} names the variable {name!r}, which the program lacks")
        self.ops.append(Operator(type, inputs, outputs, attrs))


# %% An operator is a function of arrays, and a function of the gradients of its outputs.
# In the package: `paddlelike/ops/`, several hundred of them. Slots and attributes are Paddle's.
Arrays = dict[str, np.ndarray]
FORWARD: dict[str, Callable[..., Arrays]] = {
    "mul": lambda X, Y, **_: {"Out": X @ Y},
    "elementwise_add": lambda X, Y, **_: {"Out": X + Y},  # Y, one number a column, is added to each row
    "elementwise_sub": lambda X, Y, **_: {"Out": X - Y},
    "elementwise_mul": lambda X, Y, **_: {"Out": X * Y},
    "square": lambda X: {"Out": X * X},
    "mean": lambda X: {"Out": X.mean(dtype=X.dtype).reshape(1)},
    "sum": lambda X, Y: {"Out": X + Y},
}


def sum_to(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the gradient of what was repeated along the first axes."""
    return gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))


BACKWARD: dict[str, Callable[..., Arrays]] = {
    "mul": lambda d, X, Y, **_: {"X": d @ Y.T, "Y": X.T @ d},
    "elementwise_add": lambda d, X, Y, **_: {"X": d, "Y": sum_to(d, Y.shape)},
    "elementwise_sub": lambda d, X, Y, **_: {"X": d, "Y": sum_to(-d, Y.shape)},
    "elementwise_mul": lambda d, X, Y, **_: {"X": d * Y, "Y": sum_to(d * X, Y.shape)},
    "square": lambda d, X: {"X": 2 * X * d},
    "mean": lambda d, X: {"X": np.full_like(X, d.item() / X.size)},
}


def momentum(
    Param: np.ndarray, Grad: np.ndarray, Velocity: np.ndarray, LearningRate: np.ndarray, *, mu: float
) -> Arrays:
    velocity = np.float32(mu) * Velocity + Grad
    return {"ParamOut": Param - LearningRate * velocity, "VelocityOut": velocity}


FORWARD["momentum"] = momentum


def run_gradient(operator: Operator, values: Arrays) -> Arrays:
    """Carry out ``<type>_grad``: what its operator read, and the gradient of what it wrote."""
    inputs = {slot: values[name] for slot, name in operator.inputs.items()}
    d = inputs.pop("Out@GRAD")
    gradients = BACKWARD[operator.type.removesuffix("_grad")](d, **inputs, **operator.attrs)
    return {f"{slot}@GRAD": gradient for slot, gradient in gradients.items()}


# %% The executor runs the operators in order. Persistables are in the scope; temporaries die with the run.
# In the package: `paddlelike/executor/`. There a program is bound once for each choice of feeds and fetches,
# and a temporary is dropped after its last reader.
class Executor:
    def __init__(self) -> None:
        self.scope: Arrays = {}

    def run(self, program: Program, feed: Arrays, fetch_list: list[str]) -> list[np.ndarray]:
        values = {**self.scope, **feed}
        for operator in program.ops:
            if operator.type.endswith("_grad"):
                results = run_gradient(operator, values)
            else:
                inputs = {slot: values[name] for slot, name in operator.inputs.items()}
                results = FORWARD[operator.type](**inputs, **operator.attrs)
            for slot, name in operator.outputs.items():
                values[name] = results[slot]
        kept = [name for name, var in program.vars.items() if var.persistable and name in values]
        self.scope.update({name: values[name] for name in kept})
        return [values[name] for name in fetch_list]


# %% Backward appends operators: for each, from the last to the first, the one of its gradient.
# In the package: `paddlelike/backward/`. A variable that is read twice gets a gradient from each reader; the
# second is written under a name of its own, and `sum` adds the two.
def append_backward(program: Program, loss: str) -> list[tuple[str, str]]:
    """Append the operators of the gradients; return the pairs of a parameter and its gradient."""
    needed = {name for name, var in program.vars.items() if var.persistable}
    forward = list(program.ops)
    for operator in forward:  # what depends on a parameter
        if needed & set(operator.inputs.values()):
            needed |= set(operator.outputs.values())
    program.create_var(f"{loss}@GRAD", (1,))  # its value, 1, is fed
    has_gradient = {loss}
    for operator in reversed(forward):
        out = operator.outputs["Out"]
        if out not in has_gradient:
            continue
        outputs, sums = {}, []
        for slot, name in operator.inputs.items():
            if name not in needed:
                continue
            gradient = f"{name}@GRAD"
            if name in has_gradient:
                total, gradient = gradient, f"{gradient}@RENAME@{len(program.ops)}_{slot}"
                sums.append({"X": total, "Y": gradient})
            has_gradient.add(name)
            outputs[f"{slot}@GRAD"] = program.create_var(gradient, program.vars[name].shape)
        inputs = {**operator.inputs, "Out@GRAD": f"{out}@GRAD"}
        program.append_op(f"{operator.type}_grad", inputs, outputs, **operator.attrs)
        for pair in sums:
            program.append_op("sum", pair, {"Out": pair["X"]})
    return [(name, f"{name}@GRAD") for name in sorted(has_gradient) if program.vars[name].persistable]


# %% The gradients are those of difference quotients, also of a variable that is read twice.
twice = Program()
twice.create_var("w", (3,), persistable=True)
for name in ("w2", "w3"):
    twice.create_var(name, (3,))
twice.create_var("out", (1,))
twice.append_op("square", {"X": "w"}, {"Out": "w2"})
twice.append_op("elementwise_mul", {"X": "w2", "Y": "w"}, {"Out": "w3"})
twice.append_op("mean", {"X": "w3"}, {"Out": "out"})
pairs = append_backward(twice, "out")
assert pairs == [("w", "w@GRAD")]


def cube_mean(w: np.ndarray) -> tuple[float, np.ndarray]:
    exe = Executor()
    exe.scope["w"] = w
    out, gradient = exe.run(twice, {"out@GRAD": np.ones(1)}, ["out", "w@GRAD"])
    return out.item(), gradient


w, direction = np.array([0.5, -1.0, 2.0]), np.array([0.3, 0.2, -0.7])
quotient = (cube_mean(w + 1e-5 * direction)[0] - cube_mean(w - 1e-5 * direction)[0]) / 2e-5
assert math.isclose(quotient, cube_mean(w)[1] @ direction, rel_tol=1e-7)

# %% The network of the first tutorial, under the names that Fluid gives.
# In the package: `paddlelike/layers/` and `paddlelike/optimizer/` append these operators.
main = Program()
for name, shape in {"x": (-1, 13), "y": (-1, 1)}.items():
    main.create_var(name, shape)
for name, shape in {"fc_0.w_0": (13, 1), "fc_0.b_0": (1,)}.items():
    main.create_var(name, shape, persistable=True)
for name in ("fc_0.tmp_0", "fc_0.tmp_1", "difference", "cost"):
    main.create_var(name, (-1, 1))
main.create_var("loss", (1,))
main.append_op("mul", {"X": "x", "Y": "fc_0.w_0"}, {"Out": "fc_0.tmp_0"}, x_num_col_dims=1, y_num_col_dims=1)
main.append_op("elementwise_add", {"X": "fc_0.tmp_0", "Y": "fc_0.b_0"}, {"Out": "fc_0.tmp_1"}, axis=1)
prediction = Program(dict(main.vars), list(main.ops))  # what a server runs
main.append_op("elementwise_sub", {"X": "fc_0.tmp_1", "Y": "y"}, {"Out": "difference"})
main.append_op("square", {"X": "difference"}, {"Out": "cost"})
main.append_op("mean", {"X": "cost"}, {"Out": "loss"})

parameters = append_backward(main, "loss")
main.create_var("learning_rate_0", (1,), persistable=True)
for parameter, gradient in parameters:
    velocity = main.create_var(f"{parameter}_velocity_0", main.vars[parameter].shape, persistable=True)
    read = {"Param": parameter, "Grad": gradient, "Velocity": velocity, "LearningRate": "learning_rate_0"}
    main.append_op("momentum", read, {"ParamOut": parameter, "VelocityOut": velocity}, mu=0.9)
print(*(f"{one.type:20s} {one.inputs} -> {one.outputs}" for one in main.ops), sep="\n")


# %% Train 20 steps.
def batch(step: int) -> Arrays:
    rows = slice(step * 32 % 256, step * 32 % 256 + 32)
    return {"x": X[rows], "y": Y[rows]}


def train(exe: Executor, steps: Iterable[int]) -> list[float]:
    one = np.ones(1, "float32")
    return [exe.run(main, {**batch(step), "loss@GRAD": one}, ["loss"])[0].item() for step in steps]


exe = Executor()
for name, var in main.vars.items():  # what a startup program does
    if var.persistable:
        exe.scope[name] = np.zeros(var.shape, "float32")
exe.scope["fc_0.w_0"] = rng.uniform(-0.5, 0.5, (13, 1)).astype("float32")
exe.scope["learning_rate_0"] = np.array([0.02], "float32")
first = train(exe, range(20))
print(f"loss: {first[0]:.4f} at the start, {first[-1]:.4f} after 20 steps")


# %% Paddle's file of one variable: two versions, no LoD, type and shape as a protobuf message, the elements.
# In the package: `paddlelike/formats/paddle/`, where damage, LoD and the other types are provided for.
def encode_varint(value: int) -> bytes:
    """Return an integer in groups of 7 bits, the lowest first; -1 is 2**64 - 1, as protobuf has it."""
    value %= 1 << 64
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


def encode_field(number: int, value: int | str | bytes) -> bytes:
    """Return one field of a protobuf message: its number and wire type, then its value."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    data = value.encode() if isinstance(value, str) else value
    return encode_varint(number << 3 | 2) + encode_varint(len(data)) + data


FP32, LOD_TENSOR, FEED_MINIBATCH, FETCH_LIST = 5, 7, 9, 10  # of Paddle's enum VarType.Type


def encode_tensor_desc(shape: Iterable[int]) -> bytes:
    return encode_field(1, FP32) + b"".join(encode_field(2, size) for size in shape)


def encode_variable(array: np.ndarray) -> bytes:
    description = encode_tensor_desc(array.shape)
    header = struct.pack("<IQIi", 0, 0, 0, len(description))  # LoD version, LoD levels, version, length
    return header + description + array.astype("<f4").tobytes()


def decode_variable(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    expected = encode_variable(np.zeros(shape, "float32"))
    front = len(expected) - 4 * math.prod(shape)
    if len(data) != len(expected) or data[:front] != expected[:front]:
        raise ValueError(f"the file is not float32 {list(shape)}: it begins with {data[:front].hex(' ')}")
    return np.frombuffer(data, "<f4", offset=front).reshape(shape).astype("float32")


# %% Save writes a new directory and renames it; load decodes everything before it changes anything.
# In the package: `paddlelike/io/`, on `paddlelike/storage/`, which replaces an old directory, too, so that a
# crash at any instant leaves the old one or the new one.
def save_persistables(exe: Executor, directory: Path, program: Program, **others: bytes) -> None:
    files = {name: encode_variable(exe.scope[name]) for name, var in program.vars.items() if var.persistable}
    staging = directory.with_name(directory.name + ".new")
    staging.mkdir(parents=True)
    for name, data in {**files, **others}.items():
        (staging / name).write_bytes(data)
    staging.rename(directory)


def load_persistables(exe: Executor, directory: Path, program: Program) -> None:
    wanted = [var for var in program.vars.values() if var.persistable]
    exe.scope.update(
        {var.name: decode_variable((directory / var.name).read_bytes(), var.shape) for var in wanted}
    )


CHECKPOINT = OUT / "checkpoint"
save_persistables(exe, CHECKPOINT, main)
rest = train(exe, range(20, 40))

resumed = Executor()
load_persistables(resumed, CHECKPOINT, main)
assert train(resumed, range(20, 40)) == rest  # the same bits, as if nothing had happened
print(*(f"{path.stat().st_size:4d} bytes  {path.name}" for path in sorted(CHECKPOINT.iterdir())), sep="\n")


# %% A model for prediction is such a directory with its program in `__model__`, a protobuf message.
# In the package: `paddlelike/framework/codec/`. Numbers of fields are those of Paddle's framework.proto.
def encode_var_desc(var: Variable) -> bytes:
    kind = {"feed": FEED_MINIBATCH, "fetch": FETCH_LIST}.get(var.name, LOD_TENSOR)
    variable_type = encode_field(1, kind)
    if kind == LOD_TENSOR:
        variable_type += encode_field(3, encode_field(1, encode_tensor_desc(var.shape)))
    return encode_field(1, var.name) + encode_field(2, variable_type) + encode_field(3, int(var.persistable))


def encode_op_desc(operator: Operator) -> bytes:
    data = b""
    for number, slots in ((1, operator.inputs), (2, operator.outputs)):
        for slot, name in slots.items():
            data += encode_field(number, encode_field(1, slot) + encode_field(2, name))
    data += encode_field(3, operator.type)
    for name, value in operator.attrs.items():  # all are integers: type 0, in field 3
        data += encode_field(4, encode_field(1, name) + encode_field(2, 0) + encode_field(3, value))
    return data


def encode_program(program: Program) -> bytes:
    block = encode_field(1, 0) + encode_field(2, -1)  # index of the block, and of its parent: none
    block += b"".join(encode_field(3, encode_var_desc(var)) for var in program.vars.values())
    block += b"".join(encode_field(4, encode_op_desc(operator)) for operator in program.ops)
    return encode_field(1, block)


used = {name for one in prediction.ops for name in (*one.inputs.values(), *one.outputs.values())}
served = Program({name: var for name, var in prediction.vars.items() if name in used})
served.create_var("feed", (), persistable=True)
served.create_var("fetch", (), persistable=True)
served.append_op("feed", {"X": "feed"}, {"Out": "x"}, col=0)
served.ops += prediction.ops
served.append_op("fetch", {"X": "fc_0.tmp_1"}, {"Out": "fetch"}, col=0)
MODEL = OUT / "model"
save_persistables(exe, MODEL, prediction, __model__=encode_program(served))

# %% paddlelike builds the same network, loads the checkpoint, and continues with the same numbers.
import paddlelike as fluid

fluid_main, startup = fluid.Program(), fluid.Program()
with fluid.unique_name.guard(), fluid.program_guard(fluid_main, startup):
    x = fluid.data(name="x", shape=[None, 13], dtype="float32")
    y = fluid.data(name="y", shape=[None, 1], dtype="float32")
    loss = fluid.layers.mean(fluid.layers.square_error_cost(input=fluid.layers.fc(input=x, size=1), label=y))
    fluid.optimizer.Momentum(learning_rate=0.02, momentum=0.9).minimize(loss)

fluid_exe = fluid.Executor(fluid.CPUPlace())
AGAIN = OUT / "saved_by_paddlelike"
with fluid.scope_guard(fluid.Scope()):
    fluid_exe.run(startup)
    print(fluid.io.load_persistables(fluid_exe, str(CHECKPOINT), fluid_main))
    fluid.io.save_persistables(fluid_exe, str(AGAIN), fluid_main)
    losses = [fluid_exe.run(fluid_main, batch(step), [loss])[0].item() for step in range(20, 40)]
    np.testing.assert_allclose(losses, rest, rtol=1e-4)  # float32, in another order of additions
    for parameter, _ in parameters:
        value = np.array(fluid.global_scope().find_var(parameter).get_tensor())
        np.testing.assert_allclose(value, exe.scope[parameter], rtol=1e-5, atol=1e-6)
print(f"loss: {losses[-1]:.6f} by paddlelike, {rest[-1]:.6f} by this script")

# %% It writes the same bytes.
# Its directory has one file more: the manifest, with what was saved and the checksums.
ours = {path.name: path.read_bytes() for path in CHECKPOINT.iterdir()}
theirs = {path.name: path.read_bytes() for path in AGAIN.iterdir()}
assert theirs.pop("__manifest__")
assert ours == theirs

# %% It serves the model.
with fluid.scope_guard(fluid.Scope()):
    program, feeds, fetches = fluid.io.load_inference_model(str(MODEL), fluid_exe)
    assert feeds == ["x"]
    (predicted,) = fluid_exe.run(program, {"x": X[:5]}, fetches)
(expected,) = exe.run(prediction, {"x": X[:5]}, ["fc_0.tmp_1"])
np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-6)
print(np.c_[predicted, expected, Y[:5]])
