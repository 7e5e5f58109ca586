"""Random convolutions and pools, and what sums over the places of the kernel give.

A case draws the size of the image (1 to 40 along each axis), the kernel, strides, paddings, dilations, groups, channels, the
data format and the memory order of each input. Value and gradients are compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import paddlelike as fluid
from paddlelike.framework.opdef import registry
from tests.ops.harness import contract

Pads = list[tuple[int, int]]


class Drawn(NamedTuple):
    """One operator with its inputs and what a sum over the kernel's places gives."""

    type: str
    inputs: dict[str, np.ndarray]
    attrs: dict[str, Any]
    out: np.ndarray
    d_out: np.ndarray
    gradients: dict[str, np.ndarray]  # by input slot


def draw(seed: int) -> Drawn:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    return (_draw_convolution if rng.random() < 0.65 else _draw_pool)(rng)


def find_differences(drawn: Drawn) -> Iterator[str]:
    """Run the operator and its gradient; yield a line for each result that is not the expected one."""
    op = registry.find(drawn.type)
    view = contract.View(
        drawn.type, {slot: [slot] for slot in drawn.inputs}, {op.output_slots[0].name: ["out"]}, drawn.attrs
    )
    values: dict[str, Any] = dict(drawn.inputs)
    contract.run(view, values, {})
    yield from _compare("out", values["out"], drawn.out)
    values[contract.grad_name("out")] = drawn.d_out
    for grad in op.make_grad(view):
        contract.run(contract.View(grad.type, grad.inputs, grad.outputs, grad.attrs), values, {})
    for slot, expected in drawn.gradients.items():
        yield from _compare(f"gradient of {slot}", values[contract.grad_name(slot)], expected)


def find_compiled_differences(drawn: Drawn) -> Iterator[str]:
    """The same for a compiled program (extra ``jax``)."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        block = main.global_block()
        for slot, array in drawn.inputs.items():
            fluid.data(slot, list(array.shape), str(array.dtype)).stop_gradient = False
        weights = fluid.data("weights", list(drawn.out.shape), str(drawn.d_out.dtype))
        out = block.create_var(name="out", dtype=str(drawn.d_out.dtype))
        first = registry.find(drawn.type).output_slots[0].name
        inputs = {slot: [block.var(slot)] for slot in drawn.inputs}
        block.append_op(type=drawn.type, inputs=inputs, outputs={first: [out]}, attrs=drawn.attrs)
        loss = fluid.layers.reduce_sum(fluid.layers.elementwise_mul(out, weights))
        found = fluid.gradients([loss], [block.var(slot) for slot in drawn.gradients])
        results = fluid.Executor().run(
            fluid.CompiledProgram(main).with_backend("jax"),
            feed={**drawn.inputs, "weights": drawn.d_out},
            fetch_list=[out, *found],
        )
    names = ["out", *(f"gradient of {slot}" for slot in drawn.gradients)]
    for name, value, expected in zip(names, results, [drawn.out, *drawn.gradients.values()], strict=True):
        yield from _compare(name, value, expected)


def _compare(name: str, found: np.ndarray, expected: np.ndarray) -> Iterator[str]:
    if found.shape != expected.shape:
        yield f"{name} has the shape {found.shape}, expected {expected.shape}"
        return
    # Winograd's tiles lose two digits of float32; sums of products grow with their count.
    close = (1e-4 if found.dtype == np.float32 else 1e-9) * (np.abs(expected).max(initial=0) + 1)
    wrong = int((~(np.abs(found - expected) <= close)).sum())
    if wrong:
        yield f"{name}: {wrong} of {expected.size} numbers are wrong"


def _draw_size(rng: np.random.Generator) -> int:
    return int(rng.integers(1, 41) if rng.random() < 0.7 else rng.integers(1, 5))


def _lay_out(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    """Return equal values whose memory is in another order, or has gaps."""
    kind = rng.integers(4)
    if kind == 0:  # channels last in memory, as chains of convolutions pass them on
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)
    if kind == 1:
        wider = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wider[..., ::2] = array
        return wider[..., ::2]
    return np.ascontiguousarray(array)


def _draw_pads(rng: np.random.Generator, attrs: dict[str, Any], largest: list[int]) -> Pads:
    """Draw the paddings of each spatial axis into ``attrs``; return them in pairs."""
    if rng.random() < 0.5:
        pairs = [(0, 0)] * len(largest)
    else:
        pairs = [tuple(int(rng.integers(0, most + 1)) for _ in range(2)) for most in largest]
    if rng.random() < 0.5:
        pairs = [(low, low) for low, _ in pairs]
        attrs["paddings"] = [low for low, _ in pairs]
    else:
        attrs["paddings"] = [side for pair in pairs for side in pair]
    return pairs


def _find_places(kernel: list[int], count: list[int], strides: list[int], dilations: list[int]) -> Any:
    """Yield each place of the kernel, and the index of the padded elements that it meets."""
    for place in itertools.product(*map(range, kernel)):
        starts = (p * d for p, d in zip(place, dilations, strict=True))
        spans = (slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, count, strides, strict=True))
        yield place, (..., *spans)


def _draw_convolution(rng: np.random.Generator) -> Drawn:
    rank = 2 if rng.random() < 0.85 else 3
    spatial = [_draw_size(rng) if rank == 2 else int(rng.integers(1, 9)) for _ in range(rank)]
    depthwise = rank == 2 and rng.random() < 0.25
    groups = int(rng.choice([1, 1, 1, 2, 3]))
    taken = int(rng.choice([1, 1, 1, 2, 3, 5, 16])) if rank == 2 else int(rng.integers(1, 4))
    given = int(rng.choice([1, 2, 3, 7, 16])) if rank == 2 else int(rng.integers(1, 4))
    if depthwise:
        groups, taken, given = int(rng.choice([1, 2, 5, 8])), 1, 1
    strides = [int(rng.choice([1, 1, 1, 2, 3])) for _ in range(rank)]
    dilations = [int(rng.choice([1, 1, 1, 2])) for _ in range(rank)]
    attrs: dict[str, Any] = {"strides": strides, "dilations": dilations, "groups": groups}
    pads = _draw_pads(rng, attrs, [3] * rank)
    wide = rng.random() < 0.5  # a filter as wide as the image is what texts have
    kernel = [
        int(rng.integers(1, 1 + ((n + sum(p) - 1) // d + 1 if wide else min(5, (n + sum(p) - 1) // d + 1))))
        for n, p, d in zip(spatial, pads, dilations, strict=True)
    ]
    dtype = np.float32 if rng.random() < 0.8 else np.float64
    x = rng.standard_normal((int(rng.integers(1, 4)), groups * taken, *spatial)).astype(dtype)
    w = rng.standard_normal((groups * given, taken, *kernel)).astype(dtype)
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    count = [(n + sum(p) - e) // s + 1 for n, p, e, s in zip(spatial, pads, spans, strides, strict=True)]
    d_out = rng.standard_normal((len(x), len(w), *count)).astype(dtype)

    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads])
    by_group = padded.reshape(len(x), groups, taken, *padded.shape[2:])
    filters = w.astype(np.float64).reshape(groups, given, taken, *kernel)
    slopes = d_out.astype(np.float64).reshape(len(x), groups, given, *count)
    out, dx, dw = np.zeros(slopes.shape), np.zeros(by_group.shape), np.zeros(filters.shape)
    for place, where in _find_places(kernel, count, strides, dilations):
        pixels, weights = by_group[where], filters[(..., *place)]
        out += np.einsum("ngc...,goc->ngo...", pixels, weights)
        dx[where] += np.einsum("ngo...,goc->ngc...", slopes, weights)
        dw[(..., *place)] = np.einsum("ngcp,ngop->goc", _flat(pixels), _flat(slopes))
    inside = (..., *(slice(low, low + n) for n, (low, _) in zip(spatial, pads, strict=True)))
    gradients = {"Input": dx.reshape(padded.shape)[inside], "Filter": dw.reshape(w.shape)}
    values = {"Input": x, "d_out": d_out, "out": out.reshape(d_out.shape), "dx": gradients["Input"]}
    if rank == 2 and not depthwise and rng.random() < 0.2:
        attrs["data_format"] = "NHWC"
        values = {name: np.moveaxis(value, 1, -1) for name, value in values.items()}
        gradients["Input"] = values["dx"]
    inputs = {"Input": _lay_out(rng, values["Input"]), "Filter": _lay_out(rng, w)}
    type = "depthwise_conv2d" if depthwise else f"conv{rank}d"
    return Drawn(type, inputs, attrs, values["out"], _lay_out(rng, values["d_out"]), gradients)


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(*array.shape[:3], -1)


def _draw_pool(rng: np.random.Generator) -> Drawn:
    rank = 2 if rng.random() < 0.85 else 3
    spatial = [_draw_size(rng) if rank == 2 else int(rng.integers(1, 9)) for _ in range(rank)]
    kind = str(rng.choice(["max", "avg"]))
    strides = [int(rng.integers(1, 4)) for _ in range(rank)]
    kernel = [int(rng.integers(1, min(n, 12 if rank == 2 else 4) + 1)) for n in spatial]
    attrs: dict[str, Any] = {"pooling_type": kind, "ksize": kernel, "strides": strides}
    attrs["exclusive"] = bool(rng.random() < 0.5)
    pads = _draw_pads(rng, attrs, [(k - 1) // 2 for k in kernel])
    dtype = np.float32 if rng.random() < 0.8 else np.float64
    shape = (int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 16])), *spatial)
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(dtype)  # no two are equal
    x = x / x.size - dtype(0.5)
    count = [(n + sum(p) - k) // s + 1 for n, p, k, s in zip(spatial, pads, kernel, strides, strict=True)]
    d_out = rng.standard_normal((*shape[:2], *count)).astype(dtype)

    ones = [1] * rank
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *pads], constant_values=np.nan)
    seen = np.stack([padded[where] for _, where in _find_places(kernel, count, strides, ones)])
    data = ~np.isnan(seen)
    if kind == "max":
        out = np.nanmax(seen, 0)
        share = (seen == out).astype(np.float64)
    else:
        share = data / (data.sum(0) if attrs["exclusive"] else seen.shape[0])
        out = (np.where(data, seen, 0) * share).sum(0)
    dx = np.zeros(padded.shape)
    for i, (_, where) in enumerate(_find_places(kernel, count, strides, ones)):
        dx[where] += share[i] * d_out
    dx = dx[(..., *(slice(low, low + n) for n, (low, _) in zip(spatial, pads, strict=True)))]
    if rank == 2 and rng.random() < 0.3:
        attrs["data_format"] = "NHWC"
        x, out, dx, d_out = (np.moveaxis(value, 1, -1) for value in (x, out, dx, d_out))
    return Drawn(f"pool{rank}d", {"X": _lay_out(rng, x)}, attrs, out, _lay_out(rng, d_out), {"X": dx})
