"""Layers of images (N, C, H, W)."""

from __future__ import annotations

import paddlelike as fluid
from tests.fuzz.training.network import Layer, Network

__all__ = ["IMAGES"]

L = fluid.layers


def _side(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def conv(net: Network) -> None:
    value = net.take("image")
    c, h, w = value.dims
    kernel, stride, padding = net.rng.choice(
        [(1, 1, 0), (3, 1, 1), (3, 1, 0), (3, 2, 1), (1, 2, 0), (5, 1, 2)]
    )
    if min(h, w) < kernel:
        kernel, stride, padding = 1, 1, 0
    filters = net.rng.choice([2, 4, 8])
    groups = c if net.maybe(0.15) else 1
    if groups > 1:
        filters = c * net.rng.choice([1, 2])
    out = L.conv2d(
        value.variable,
        filters,
        kernel,
        stride=stride,
        padding=padding,
        groups=groups,
        act=net.rng.choice([None, "relu", "tanh"]),
        bias_attr=False if net.maybe(0.4) else None,
        use_cudnn=False,
    )
    net.add(out, "image", filters, _side(h, kernel, stride, padding), _side(w, kernel, stride, padding))


def pool(net: Network) -> None:
    value = net.take("image")
    c, h, w = value.dims
    kernel, stride, padding = net.rng.choice([(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0)])
    if min(h, w) < kernel:
        to_row(net)
        return
    out = L.pool2d(
        value.variable,
        kernel,
        net.rng.choice(["max", "avg"]),
        pool_stride=stride,
        pool_padding=padding,
        exclusive=net.maybe(),
        use_cudnn=False,
    )
    net.add(out, "image", c, _side(h, kernel, stride, padding), _side(w, kernel, stride, padding))


def norm(net: Network) -> None:
    value = net.take("image")
    x, c = value.variable, value.dims[0]
    choices = [
        lambda: L.batch_norm(x, act=net.rng.choice([None, "relu", "leaky_relu"]), momentum=0.7),
        lambda: L.batch_norm(x, use_global_stats=True),
        lambda: L.group_norm(x, groups=2 if c % 2 == 0 else 1),
        lambda: L.instance_norm(x),
        lambda: L.layer_norm(x, begin_norm_axis=1),
        lambda: L.lrn(x, n=3),
        lambda: L.prelu(x, net.rng.choice(["all", "channel", "element"])),
        lambda: L.dropout(x, 0.25),
        lambda: L.affine_channel(x, net.parameter(c), net.parameter(c)),
    ]
    net.add(net.rng.choice(choices)(), "image", *value.dims)


def residual(net: Network) -> None:
    value = net.take("image")
    c = value.dims[0]
    branch = L.conv2d(value.variable, c, 3, padding=1, bias_attr=False, use_cudnn=False)
    if net.maybe():
        branch = L.batch_norm(branch, act=net.rng.choice([None, "relu"]))
    net.add(
        L.elementwise_add(value.variable, branch, act=net.rng.choice([None, "relu"])), "image", *value.dims
    )


def arranged(net: Network) -> None:
    value = net.take("image")
    x, (c, h, w) = value.variable, value.dims
    form = net.rng.randrange(10)
    if form == 0:
        net.add(L.transpose(x, [0, 2, 3, 1]), "image", h, w, c)
    elif form == 1:
        net.add(L.concat([x, L.relu(x)], axis=1), "image", c * 2, h, w)
    elif form == 2 and h < 10:
        net.add(L.resize_nearest(x, [h + 2, w + 1]), "image", c, h + 2, w + 1)
    elif form == 3 and h < 10:
        net.add(L.resize_bilinear(x, [h + 1, w + 2]), "image", c, h + 1, w + 2)
    elif form == 4 and h < 10:
        net.add(L.pad2d(x, [1, 0, 0, 1], mode=net.rng.choice(["constant", "edge"])), "image", c, h + 1, w + 1)
    elif form == 5 and h < 6:
        net.add(L.conv2d_transpose(x, 3, filter_size=2, stride=2, use_cudnn=False), "image", 3, h * 2, w * 2)
    elif form == 6 and c % 4 == 0 and h < 10:
        net.add(L.pixel_shuffle(x, 2), "image", c // 4, h * 2, w * 2)
    elif form == 7 and c % 2 == 0:
        net.add(L.maxout(x, 2), "image", c // 2, h, w)
    elif form == 8 and c > 1:
        net.add(L.slice(x, axes=[1], starts=[1], ends=[c]), "image", c - 1, h, w)
    elif c % 2 == 0:
        net.add(L.split(x, 2, dim=1)[net.rng.randrange(2)], "image", c // 2, h, w)


def to_row(net: Network) -> None:
    value = net.take("image")
    x, (c, h, w) = value.variable, value.dims
    form = net.rng.randrange(6)
    if form == 0:
        net.add(L.fc(x, 6, act=net.activation()), "row", 6)
    elif form == 1:
        net.add(L.reduce_mean(x, dim=[2, 3]), "row", c)
    elif form == 2:
        pooled = L.pool2d(x, pool_type=net.rng.choice(["avg", "max"]), global_pooling=True, use_cudnn=False)
        net.add(L.squeeze(pooled, axes=[2, 3]), "row", c)
    elif form == 3:
        net.add(L.reshape(x, [0, c, h * w]), "cube", c, h * w)
    elif form == 4:
        pooled = L.adaptive_pool2d(x, [2, 2], net.rng.choice(["avg", "max"]))
        net.add(L.reshape(pooled, [-1, c * 4]), "row", c * 4)
    else:
        net.add(L.fc(L.flatten(x), 4), "row", 4)


IMAGES: tuple[Layer, ...] = (conv, conv, conv, pool, norm, norm, residual, arranged, arranged, to_row, to_row)
