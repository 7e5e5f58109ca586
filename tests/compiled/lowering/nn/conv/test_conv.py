"""Convolutions and their gradients on images and volumes that XLA would exchange with the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import build, train

pytestmark = pytest.mark.slow

L = fluid.layers

Layer = Callable[[Any], Any]

#: By name, the shape of the images or volumes, and the layer.
LAYERS: dict[str, tuple[tuple[int, ...], Layer]] = {
    "a kernel larger than the image": ((2, 3, 2, 2), lambda x: L.conv2d(x, 4, 3, padding=1)),
    "a kernel larger than the row": ((2, 3, 1, 7), lambda x: L.conv2d(x, 4, [5, 3], padding=[2, 1])),
    "an image that becomes larger": ((2, 3, 5, 6), lambda x: L.conv2d(x, 4, 2, padding=[1, 1, 1, 0])),
    "few places of wide steps": ((2, 3, 4, 4), lambda x: L.conv2d(x, 4, 3, stride=2, padding=1)),
    "rows that no window reaches": ((2, 3, 8, 7), lambda x: L.conv2d(x, 4, 2, stride=3)),
    "a wide kernel": ((2, 3, 3, 4), lambda x: L.conv2d(x, 4, 3, padding=2, dilation=2)),
    "padding beyond a kernel": ((2, 3, 3, 3), lambda x: L.conv2d(x, 4, 2, padding=3, stride=2)),
    "transposed": ((2, 3, 3, 4), lambda x: L.conv2d_transpose(x, 5, filter_size=4, stride=2, padding=1)),
    "transposed, a size asked for": (
        (2, 3, 3, 4),
        lambda x: L.conv2d_transpose(x, 5, [9, 12], filter_size=5, stride=3, padding=2),
    ),
    "transposed, wide": (
        (2, 3, 4, 3),
        lambda x: L.conv2d_transpose(x, 5, filter_size=3, stride=[1, 2], padding=3, dilation=2),
    ),
    "transposed, with gaps": ((2, 3, 3, 2), lambda x: L.conv2d_transpose(x, 5, filter_size=2, stride=3)),
    "transposed groups": (
        (2, 4, 3, 4),
        lambda x: L.conv2d_transpose(x, 6, [8, 12], filter_size=5, stride=3, padding=[2, 1], groups=2),
    ),
    "transposed channels": (
        (2, 3, 3, 2),
        lambda x: L.conv2d_transpose(x, 3, filter_size=4, stride=2, padding=1, groups=3),
    ),
    "transposed groups, with gaps": (
        (2, 4, 3, 2),
        lambda x: L.conv2d_transpose(x, 4, filter_size=2, stride=3, groups=2),
    ),
    "volumes": (
        (2, 3, 5, 6, 4),
        lambda x: L.conv3d(x, 4, [3, 2, 3], stride=[2, 1, 2], padding=[1, 1, 0], dilation=[2, 1, 1]),
    ),
    "volumes smaller than the kernel": ((2, 3, 2, 2, 2), lambda x: L.conv3d(x, 4, 3, padding=1)),
    "volumes transposed": (
        (2, 3, 3, 2, 4),
        lambda x: L.conv3d_transpose(x, 4, filter_size=[3, 4, 2], stride=[1, 2, 2], padding=[0, 1, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_convolutions_and_their_gradients_match_numpy(name: str) -> None:
    shape, layer = LAYERS[name]

    def loss() -> Any:
        x = fluid.data("x", [None, *shape[1:]], "float64")
        # With a layer before, there is a gradient of the data.
        x = L.scale(x, 1.0) * L.create_parameter(list(shape[1:]), "float64", name="factor")
        return L.mean(L.tanh(layer(x)))

    rng = np.random.default_rng(5)
    feeds = [{"x": rng.normal(size=shape)} for _ in range(2)]
    found = []
    for backend in ("numpy", "jax"):
        net = build(loss, lambda: fluid.optimizer.SGD(0.5))
        losses = train(net, feeds, backend)
        parameters = [np.array(net.scope.find_var(p.name).get_tensor()) for p in net.main.all_parameters()]
        found.append([np.ravel(losses), *parameters])
    assert len(found[0]) == 4
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
