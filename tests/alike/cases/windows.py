"""Windows of pools and convolutions that fit badly: larger than the data, over their end, beyond it."""

from __future__ import annotations

import numpy as np

from tests.alike.recording import refused


def _draw(rng, rank, dilated):
    """Sizes of data that are often smaller than the window."""
    kernel = rng.randint(1, 9, rank).tolist()
    return {
        "size": rng.randint(1, 8, rank).tolist(),
        "kernel": kernel,
        "stride": rng.randint(1, 8, rank).tolist(),
        "padding": [int(rng.randint(0, (k + 1) // 2)) if rng.rand() < 0.5 else 0 for k in kernel],
        "dilation": rng.randint(1, 3, rank).tolist() if dilated else [1] * rank,
        "ceil": bool(rng.rand() < 0.5),
        "exclusive": bool(rng.rand() < 0.5),
    }


def _run(fluid, build, drawn, rng):
    """Shape, value and gradient of a layer on random data, or the refusal."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 3
    guards = fluid.program_guard(main, startup), fluid.scope_guard(fluid.core.Scope())
    values = rng.uniform(-1, 1, [1, 2] + drawn["size"]).astype("float32")
    with guards[0], guards[1]:
        x = fluid.data("x", [None, 2] + drawn["size"])
        x.stop_gradient = False
        out = build(fluid.layers, x, drawn)
        loss = fluid.layers.reduce_sum(fluid.layers.tanh(out))
        gradient = fluid.backward.gradients(loss, x)[0]
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        found = exe.run(main, feed={"x": values}, fetch_list=[out, gradient], return_numpy=False)
    return [list(out.shape), *[np.array(one) for one in found]]


def _run_all(fluid, build, rank, dilated=False, count=24):
    """Of every draw that has a window: an empty result is refused here, and nothing to compare."""
    rng = np.random.RandomState(5)
    found = []
    for _ in range(count):
        drawn = _draw(rng, rank, dilated)
        spans = [d * (k - 1) + 1 for k, d in zip(drawn["kernel"], drawn["dilation"])]  # noqa: B905
        ends = zip(drawn["size"], drawn["padding"], spans, drawn["stride"])  # noqa: B905
        if all(size + 2 * pad - span > -stride for size, pad, span, stride in ends):
            found.append(refused(_run, fluid, build, drawn, rng))
    return found


def pools(fluid):
    def build(layers, x, d):
        window = (d["kernel"], "max", d["stride"], d["padding"])
        return layers.pool2d(x, *window, ceil_mode=d["ceil"])

    return _run_all(fluid, build, 2)


def means(fluid):
    def build(layers, x, d):
        window = (d["kernel"], "avg", d["stride"], d["padding"])
        return layers.pool2d(x, *window, ceil_mode=d["ceil"], exclusive=d["exclusive"])

    return _run_all(fluid, build, 2)


def pools_of_volumes(fluid):
    def build(layers, x, d):
        kind = "max" if d["exclusive"] else "avg"
        return layers.pool3d(x, d["kernel"], kind, d["stride"], d["padding"], ceil_mode=d["ceil"])

    return _run_all(fluid, build, 3)


def convolutions(fluid):
    def build(layers, x, d):
        return layers.conv2d(x, 3, d["kernel"], d["stride"], d["padding"], d["dilation"])

    return _run_all(fluid, build, 2, dilated=True)


def convolutions_by_channel(fluid):
    def build(layers, x, d):
        options = {"groups": 2, "use_cudnn": False}
        return layers.conv2d(x, 2, d["kernel"], d["stride"], d["padding"], d["dilation"], **options)

    return _run_all(fluid, build, 2, dilated=True)


def sequences_of_windows(fluid):
    def build(layers, x, d):
        return layers.im2sequence(x, d["kernel"], d["stride"], d["padding"] * 2)

    return _run_all(fluid, build, 2)


def unfolded(fluid):
    def build(layers, x, d):
        return layers.unfold(x, d["kernel"], d["stride"], d["padding"], d["dilation"])

    return _run_all(fluid, build, 2, dilated=True)


def transposed_in_groups(fluid):
    """Of channels that the groups divide, and that they do not."""
    found = []
    for groups, filters, channels in ((2, 4, 4), (2, 3, 4), (3, 4, 4), (2, 4, 3)):

        def build(layers, x, drawn, groups=groups, filters=filters, channels=channels):
            wide = layers.concat([x] * 2, 1) if channels == 4 else layers.concat([x, x], 1)[:, :3]
            return layers.conv2d_transpose(wide, filters, filter_size=3, stride=2, padding=1, groups=groups)

        found.append(refused(_run, fluid, build, {"size": [3, 3]}, np.random.RandomState(groups)))
    return found
