"""Random programs of nested loops that overwrite tensors; `fluid` is ours, or the real one under Python 3.7.

    python3.7 tests/backward/overwritten_cases.py FIRST COUNT OUT.json.gz

Writes what real Fluid 1.8.5 makes of the programs of these seeds, unless it refuses them: ``[plan, digest of
the program, which gradients exist, the numbers of the loss and of these gradients]``.
"""

import gzip
import hashlib
import json
import random
import sys
import warnings

import numpy as np

FEED = {
    "x": np.array([[1, 2], [3, -4]], "float32") / 4,
    "y": np.array([[0.5, -0.25], [1.25, 0.75]], "float32"),
    "w": np.array([[1.5, 0.5], [-0.75, 1.25]], "float32"),
}


def make_plan(seed):
    """Return statements ``[kind, ...]`` over a, b and w: new and overwritten tensors, and loops."""
    rng, names = random.Random(seed), iter(f"t{i}" for i in range(99))
    deepest = rng.choice([1, 2, 2, 2, 3])

    def make_block(visible, depth):
        statements, visible = [], list(visible)
        for _ in range(rng.randint(1, 3)):
            formula = [rng.choice(["mul", "add", "scale", "tanh"]), rng.choice(visible), rng.choice(visible)]
            kind = rng.choice(["new", "set", "set", "while"])
            if kind == "set":
                statements.append(["set", rng.choice([name for name in visible if name != "w"]), formula])
            elif kind == "new":
                statements.append(["new", next(names), formula])
                visible.append(statements[-1][1])
            elif depth < deepest:
                statements.append(["while", rng.randint(1, 3), make_block(visible, depth + 1)])
        return statements

    return {"body": make_block(["a", "b", "w"], 0), "loss": rng.choice([["a"], ["a", "b"], ["b"]])}


def build(fluid, plan):
    """Return a program, its loss, and the gradients of x, y and w."""
    layers, program = fluid.layers, fluid.Program()
    formulas = {
        "mul": layers.elementwise_mul,
        "add": layers.elementwise_add,
        "scale": lambda one, _: layers.scale(one, 0.5),
        "tanh": lambda one, _: layers.tanh(one),
    }

    def append(statements, found):
        found = dict(found)
        for kind, what, rest in statements:
            if kind == "while":
                i, n = (layers.fill_constant([1], "int64", value) for value in (0, what))
                going = layers.less_than(i, n)
                with layers.While(going).block():
                    append(rest, found)
                    layers.increment(i)
                    layers.less_than(i, n, cond=going)
                continue
            value = formulas[rest[0]](found[rest[1]], found[rest[2]])
            if kind == "new":
                found[what] = value
            else:
                layers.assign(value, found[what])

    with fluid.program_guard(program, fluid.Program()), fluid.unique_name.guard():
        given = [fluid.data(name, [2, 2]) for name in "xyw"]
        for one in given:
            one.stop_gradient = False
        found = {"a": layers.scale(given[0], 1.0), "b": layers.scale(given[1], 1.0), "w": given[2]}
        append(plan["body"], found)
        loss = layers.sums([layers.reduce_sum(found[name]) for name in plan["loss"]])
        return program, loss, fluid.gradients(loss, given)


def digest(program):
    """Return a digest of the operators; variables of a loop come in any order in Fluid."""
    lines = []
    for block in program.blocks:
        lines.append(block.parent_idx)
        for op in block.ops:
            order = sorted if op.type.startswith("while") else list
            slots = [[(slot, order(op.input(slot))) for slot in sorted(op.input_names) if op.input(slot)]]
            slots.append(
                [(slot, order(op.output(slot))) for slot in sorted(op.output_names) if op.output(slot)]
            )
            lines.append([op.type, slots])
    return hashlib.sha1(json.dumps(lines).encode()).hexdigest()


def answer(fluid, plan, compile=lambda program: program):
    """Return the digest, which gradients exist, and the loss and the gradients."""
    program, loss, gradients = build(fluid, plan)
    fetch = [loss] + [one for one in gradients if one is not None]
    found = fluid.Executor(fluid.CPUPlace()).run(compile(program), FEED, fetch)
    return [
        digest(program),
        [one is not None for one in gradients],
        np.concatenate([np.array(one).reshape(-1) for one in found]).tolist(),
    ]


def main(first, count, out):
    import paddle.fluid as fluid

    warnings.simplefilter("ignore")
    kept = []
    for plan in map(make_plan, range(int(first), int(first) + int(count))):
        if "while" in str(plan):
            try:
                kept.append([plan, *answer(fluid, plan)])
            except fluid.core.EnforceNotMet:
                continue
    with gzip.GzipFile(out, "wb", mtime=0) as file:
        file.write(json.dumps(kept, separators=(",", ":")).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
