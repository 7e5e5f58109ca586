"""PaddleOCR's DB in torch, on the values that the recipe ``db`` converts, computes what it computes in Fluid.

The network is written down once; what a layer does, and under which names its values are kept, twice: by
Fluid's layers with the names of PaddleOCR 1.1, and by torch with those of the recipe.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import layers
from paddlelike.interop.recipes import db

torch = pytest.importorskip("torch", reason="the twin is computed in torch")
pytestmark = pytest.mark.slow


class FluidNet:
    """Layers of Fluid. Those whose names have a dot are not named, but for the biases that heads share."""

    def conv(
        self, x: Any, name: str, count: int, size: int, stride: int = 1, *, depthwise: bool = False
    ) -> Any:
        attr = None if "." in name else f"{name}_weights"
        groups = x.shape[1] if depthwise else 1
        bias = f"{name}_offset" if "_se_" in name else False
        more = {"param_attr": attr, "bias_attr": bias, "use_cudnn": not depthwise}
        return layers.conv2d(x, count, size, stride, size // 2, groups=groups, **more)

    def norm(self, x: Any, name: str) -> Any:
        if "." in name:
            return layers.batch_norm(x)
        scale, offset, mean, variance = (f"{name}_{end}" for end in ("scale", "offset", "mean", "variance"))
        return layers.batch_norm(
            x, param_attr=scale, bias_attr=offset, moving_mean_name=mean, moving_variance_name=variance
        )

    def widen(self, x: Any, name: str, count: int) -> Any:
        return layers.conv2d_transpose(x, count, filter_size=2, stride=2, bias_attr=f"{name[-5:]}_b_attr")

    def act(self, x: Any, kind: str) -> Any:
        return getattr(layers, kind)(x)

    def pool(self, x: Any, kind: str, size: int) -> Any:
        return layers.pool2d(x, size, kind, 2, size // 2 if kind == "max" else 0)

    def gate(self, x: Any, factors: Any) -> Any:
        return layers.elementwise_mul(x, layers.hard_sigmoid(factors), axis=0)

    def mean(self, x: Any) -> Any:
        return layers.pool2d(x, pool_type="avg", global_pooling=True)

    def grow(self, x: Any, times: int) -> Any:
        return layers.resize_nearest(x, scale=times)

    def concat(self, parts: list[Any]) -> Any:
        return layers.concat(parts, 1)

    def step(self, x: Any, y: Any) -> Any:
        return layers.reciprocal(1 + layers.exp(-50 * (x - y)))


class TorchNet:
    """Functions of torch on converted values; ``used`` are the names that were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values, self.used = values, set[str]()

    def get(self, name: str) -> Any:
        self.used.add(name)
        return self.values[name]

    def conv(
        self, x: Any, name: str, count: int, size: int, stride: int = 1, *, depthwise: bool = False
    ) -> Any:
        bias = self.get(f"{name}.bias") if "_se_" in name else None
        groups = x.shape[1] if depthwise else 1
        found = torch.nn.functional.conv2d(
            x, self.get(f"{name}.weight"), bias, stride, size // 2, groups=groups
        )
        assert found.shape[1] == count
        return found

    def norm(self, x: Any, name: str) -> Any:
        ends = ("running_mean", "running_var", "weight", "bias")
        return torch.nn.functional.batch_norm(x, *(self.get(f"{name}.{end}") for end in ends))

    def widen(self, x: Any, name: str, count: int) -> Any:
        weight, bias = self.get(f"{name}.weight"), self.get(f"{name}.bias")
        assert weight.shape[1] == count
        return torch.nn.functional.conv_transpose2d(x, weight, bias, stride=2)

    def act(self, x: Any, kind: str) -> Any:
        return {"hard_swish": torch.nn.functional.hardswish}.get(kind, getattr(torch, kind, None))(x)

    def pool(self, x: Any, kind: str, size: int) -> Any:
        functions = torch.nn.functional
        return functions.max_pool2d(x, size, 2, size // 2) if kind == "max" else functions.avg_pool2d(x, size)

    def gate(self, x: Any, factors: Any) -> Any:
        return x * torch.clamp(0.2 * factors + 0.5, 0, 1)  # not torch's hardsigmoid, whose slope is 1 / 6

    def mean(self, x: Any) -> Any:
        return x.mean((2, 3), keepdim=True)

    def grow(self, x: Any, times: int) -> Any:
        # The corners of both images are one, as in Fluid unless it is told otherwise; not torch's "nearest".
        for axis in (2, 3):
            old, new = x.shape[axis], times * x.shape[axis]
            x = x.index_select(axis, (torch.arange(new) * (old - 1) / (new - 1) + 0.5).long())
        return x

    def concat(self, parts: list[Any]) -> Any:
        return torch.cat(parts, 1)

    def step(self, x: Any, y: Any) -> Any:
        return torch.sigmoid(50 * (x - y))


def build_resnet_vd(net: Any, x: Any) -> list[Any]:
    """The backbone of 18 layers, with few channels."""

    def convolve(x: Any, name: str, count: int, size: int, stride: int = 1) -> Any:
        return net.norm(net.conv(x, name, count, size, stride), f"bn{name[3:]}")

    for name, count, stride in (("conv1_1", 4, 2), ("conv1_2", 4, 1), ("conv1_3", 8, 1)):
        x = net.act(convolve(x, name, count, 3, stride), "relu")
    x, found = net.pool(x, "max", 3), []
    for stage, block in itertools.product(range(4), "ab"):
        name, count, stride = f"res{stage + 2}{block}", 8 << stage, 2 if block == "a" and stage else 1
        y = net.act(convolve(x, f"{name}_branch2a", count, 3, stride), "relu")
        y = convolve(y, f"{name}_branch2b", count, 3)
        if block == "a":
            x = convolve(net.pool(x, "avg", 2) if stage else x, f"{name}_branch1", count, 1)
        x = net.act(x + y, "relu")
        if block == "b":
            found.append(x)
    return found


def build_mobilenet_v3(net: Any, x: Any) -> list[Any]:
    """The backbone with one or two blocks of each stage."""

    def convolve(x: Any, name: str, count: int, size: int, kind: str | None = None, **more: Any) -> Any:
        x = net.norm(net.conv(x, name, count, size, **more), f"{name}_bn")
        return x if kind is None else net.act(x, kind)

    x, found, inside = convolve(x, "conv1", 8, 3, "hard_swish", stride=2), [], 8
    rows = [
        (3, 16, 8, False, "relu", 1), (3, 32, 16, False, "relu", 2), (5, 40, 24, True, "relu", 2),
        (5, 64, 24, True, "relu", 1), (3, 96, 40, True, "hard_swish", 2), (5, 96, 48, False, "hard_swish", 2),
    ]  # fmt: skip
    for index, (size, middle, count, squeezed, kind, stride) in enumerate(rows):
        if stride == 2 and index > 1:
            found.append(x)
        name = f"conv{index + 2}"
        y = convolve(x, f"{name}_expand", middle, 1, kind)
        y = convolve(y, f"{name}_depthwise", middle, size, kind, stride=stride, depthwise=True)
        if squeezed:
            factors = net.act(net.conv(net.mean(y), f"{name}_se_1", middle // 4, 1), "relu")
            y = net.gate(y, net.conv(factors, f"{name}_se_2", middle, 1))
        y = convolve(y, f"{name}_linear", count, 1)
        x, inside = (x + y if stride == 1 and inside == count else y), count
    return [*found, convolve(x, "conv_last", 64, 1, "hard_swish")]


def build_db(net: Any, found: list[Any], heads: list[str]) -> Any:
    """The neck over the four maps of a backbone, and the head: one map, or three in training."""
    inner = [net.conv(x, f"neck.in{5 - i}_conv", 16, 1) for i, x in enumerate(found[::-1])]
    for i in (1, 2, 3):
        inner[i] = net.grow(inner[i - 1], 2) + inner[i]
    parts = [net.conv(x, f"neck.p{5 - i}_conv", 4, 3) for i, x in enumerate(inner)]
    fused = net.concat([*(net.grow(x, 8 >> i) for i, x in enumerate(parts[:3])), parts[3]])
    maps = []
    for head in heads:
        x = net.act(net.norm(net.conv(fused, f"head.{head}.conv1", 4, 3), f"head.{head}.conv_bn1"), "relu")
        x = net.widen(x, f"head.{head}.conv2", 4)
        x = net.widen(net.act(net.norm(x, f"head.{head}.conv_bn2"), "relu"), f"head.{head}.conv3", 1)
        maps.append(net.act(x, "sigmoid"))
    return net.concat([*maps, net.step(*maps)]) if len(maps) > 1 else maps[0]


@pytest.mark.parametrize("heads", [["binarize"], ["binarize", "thresh"]], ids=["prediction", "training"])
@pytest.mark.parametrize("backbone", [build_resnet_vd, build_mobilenet_v3])
def test_the_equivalent_torch_model_computes_the_same(
    backbone: Callable[[Any, Any], list[Any]], heads: list[str], tmp_path: Path
) -> None:
    program, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    rng, exe = np.random.default_rng(6), fluid.Executor()
    x = rng.normal(size=(2, 3, 64, 96)).astype("float32")
    with fluid.program_guard(program, startup), fluid.unique_name.guard(), fluid.scope_guard(scope):
        image = fluid.data("image", [None, 3, 64, 96], "float32")
        net = FluidNet()
        maps = build_db(net, backbone(net, image), heads)
        exe.run(startup)
        for name in [var.name for var in program.list_vars() if var.persistable]:
            tensor = scope.find_var(name).get_tensor()
            shape = tensor.shape()
            low, high = (0.5, 1.5) if len(shape) == 1 else (-2, 2)  # variances are positive
            scale = np.sqrt(np.prod(shape[1:]))
            tensor.set((rng.uniform(low, high, shape) / scale).astype("float32"), fluid.CPUPlace())
        (wanted,) = exe.run(program.clone(for_test=True), feed={"image": x}, fetch_list=[maps])
        fluid.io.save_persistables(exe, str(tmp_path / "saved"), program)
    fluid.convert(tmp_path / "saved", tmp_path / "twin.pt", rules=db)
    twin = TorchNet(torch.load(tmp_path / "twin.pt", weights_only=True))
    found = build_db(twin, backbone(twin, torch.from_numpy(x)), heads).numpy()
    assert twin.used == set(twin.values)
    assert wanted.std() > 0.05  # values of every size are compared
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)  # float32, of values from 0 to 1
