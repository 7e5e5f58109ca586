"""Faults in ``paddlelike/ops/``."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

MUTATIONS = [
    Mutation(
        "the gradient of softmax along another axis lacks its sum",
        "ops/nn/softmax.py",
        "d_x = np.subtract(d_out, np.add.reduce(d_out * out, axis=axis, keepdims=True))",
        "d_x = np.subtract(d_out, np.add.reduce(d_out, axis=axis, keepdims=True))",
    ),
    Mutation(
        "maxout gives all equal elements the gradient to the last",
        "ops/nn/softmax.py",
        "np.cumsum(equal, axis) == 1",
        "np.cumsum(equal, axis) == equal.sum(axis, keepdims=True)",
    ),
    Mutation(
        "momentum looks ahead always",
        "ops/update/momentum.py",
        "lr * (g + mu * v if use_nesterov else v), v",
        "lr * (g + mu * v), v",
    ),
    Mutation(
        "LARS has no decay",
        "ops/update/momentum.py",
        "v = v * mu + local * (g + decay * p)",
        "v = v * mu + local * g",
    ),
    Mutation(
        "RMSProp centers with a plus",
        "ops/update/rmsprop.py",
        "np.sqrt(s + epsilon - a * a)",
        "np.sqrt(s + epsilon + a * a)",
    ),
    Mutation(
        "dropout keeps too much",
        "ops/nn/dropout.py",
        ">= np.float32(attrs.dropout_prob)",
        "> np.float32(attrs.dropout_prob) / 2",
    ),
    Mutation(
        "dropout's gradient is not scaled",
        "ops/nn/dropout.py",
        "if attrs.dropout_implementation == _UPSCALE and attrs.dropout_prob < 1:",
        "if attrs.dropout_implementation == _UPSCALE and attrs.dropout_prob > 1:",
    ),
    Mutation(
        "dropout in tests is scaled the other way",
        "ops/nn/dropout.py",
        "return x if upscale else x *",
        "return x if not upscale else x *",
    ),
    Mutation(
        "the last row of a sequence is the one after it",
        "ops/sequence/pool.py",
        '"LAST": lambda starts, ends: ends - 1,',
        '"LAST": lambda starts, ends: starts,',
    ),
    Mutation(
        "the average of a sequence is its sum by the root",
        "ops/sequence/pool.py",
        '"AVERAGE": lambda n: 1 / n,',
        '"AVERAGE": lambda n: 1 / np.sqrt(n),',
    ),
    Mutation(
        "the gradient of an average in a sequence is that of a sum",
        "ops/sequence/pool.py",
        '            if pooltype != "SUM":\n                d_rows = ',
        '            if pooltype == "SQRT":\n                d_rows = ',
    ),
    Mutation(
        "pairs of equal labels count",
        "ops/metric/pairs.py",
        "            differ = labels[first] != labels[second]\n",
        "            differ = labels[first] >= labels[second]\n",
    ),
    Mutation(
        "trace puts its gradient above the diagonal",
        "ops/linalg/matrices.py",
        "down, right = max(-offset, 0), max(offset, 0)",
        "down, right = max(offset, 0), max(-offset, 0)",
    ),
    Mutation(
        "arg_min is arg_max",
        "ops/reduction/places.py",
        "(_make_arg(is_greatest=False))",
        "(_make_arg(is_greatest=True))",
    ),
    Mutation(
        "an exclusive sum begins with the total",
        "ops/reduction/sums.py",
        "        np.moveaxis(out, axis, 0)[0] = nothing\n",
        "",
    ),
    Mutation(
        "stack reshapes behind the axis",
        "ops/tensor/stack.py",
        "joined.reshape(*shape[:axis], len(x), *shape[axis:])",
        "joined.reshape(len(x), *shape)",
    ),
    Mutation(
        "a LoD that ends too early passes",
        "ops/kernels/lod.py",
        "    if offsets[-1] != rows:",
        "    if offsets[-1] > rows:",
    ),
]
