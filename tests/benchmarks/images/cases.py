"""Shapes of operators of images as well-known networks have them. Python 3.7 imports it, for Fluid 1.8.5."""

from collections import OrderedDict, namedtuple

Convolution = namedtuple("Convolution", "op x w stride pad dilation groups")
Pool = namedtuple("Pool", "op x kind kernel stride pad mode")
Norm = namedtuple("Norm", "op x")


def _convolution(
    batch, channels, size, filters, kernel, stride=1, pad=None, dilation=1, groups=1, op="conv2d"
):
    kernel = kernel if isinstance(kernel, tuple) else (kernel,) * (3 if op == "conv3d" else 2)
    size = size if isinstance(size, tuple) else (size,) * len(kernel)
    if pad is None:
        pad = tuple(dilation * (k - 1) // 2 for k in kernel)
    pad = pad if isinstance(pad, tuple) else (pad,) * len(kernel)
    first, second = (channels, filters) if op.endswith("transpose") else (filters, channels)
    w = (first, second // groups, *kernel)
    each = len(kernel)
    return Convolution(op, (batch, channels, *size), w, (stride,) * each, pad, (dilation,) * each, groups)


def _transposed(*args, **keywords):
    return _convolution(*args, op="conv2d_transpose", **keywords)


def _volume(*args, **keywords):
    return _convolution(*args, op="conv3d", **keywords)


CASES = OrderedDict(
    vgg1_first=_convolution(2, 3, 224, 64, 3),
    vgg1=_convolution(1, 64, 224, 64, 3),
    vgg2=_convolution(2, 128, 112, 128, 3),
    vgg3=_convolution(2, 256, 56, 256, 3),
    vgg4=_convolution(2, 512, 28, 512, 3),
    vgg5=_convolution(4, 512, 14, 512, 3),
    vgg5_one=_convolution(1, 512, 14, 512, 3),
    cifar_first=_convolution(64, 3, 32, 16, 3),
    cifar16=_convolution(32, 16, 32, 16, 3),
    cifar32=_convolution(32, 32, 16, 32, 3),
    cifar64=_convolution(32, 64, 8, 64, 3),
    cifar_wide=_convolution(32, 64, 32, 64, 3),
    cifar_one=_convolution(1, 32, 32, 32, 3),
    resnet_stem=_convolution(4, 3, 224, 64, 7, 2),
    resnet_stem_one=_convolution(1, 3, 224, 64, 7, 2),
    resnet_1x1_up=_convolution(4, 64, 56, 256, 1),
    resnet_1x1_down=_convolution(4, 256, 56, 64, 1),
    resnet_1x1_last=_convolution(8, 512, 7, 2048, 1),
    resnet_1x1_stride=_convolution(4, 256, 56, 512, 1, 2),
    resnet_1x1_one=_convolution(1, 1024, 14, 256, 1),
    resnet_3x3=_convolution(4, 64, 56, 64, 3),
    resnet_3x3_stride=_convolution(4, 128, 56, 128, 3, 2),
    resnet_3x3_late=_convolution(4, 256, 14, 256, 3),
    resnet_3x3_last=_convolution(8, 512, 7, 512, 3),
    resnet_3x3_last_one=_convolution(1, 512, 7, 512, 3),
    mobile32=_convolution(4, 32, 112, 32, 3, groups=32),
    mobile64_stride=_convolution(4, 64, 112, 64, 3, 2, groups=64),
    mobile128=_convolution(4, 128, 56, 128, 3, groups=128),
    mobile128_stride=_convolution(4, 128, 56, 128, 3, 2, groups=128),
    mobile256=_convolution(4, 256, 28, 256, 3, groups=256),
    mobile512=_convolution(4, 512, 14, 512, 3, groups=512),
    mobile512_stride=_convolution(4, 512, 14, 512, 3, 2, groups=512),
    mobile1024=_convolution(4, 1024, 7, 1024, 3, groups=1024),
    mobile256_one=_convolution(1, 256, 28, 256, 3, groups=256),
    depthwise_5x5=_convolution(4, 96, 28, 96, 5, groups=96),
    depthwise_7x7=_convolution(2, 96, 56, 96, 7, groups=96),
    depthwise_dilated=_convolution(4, 128, 28, 128, 3, dilation=2, groups=128),
    depthwise_twice=_convolution(4, 64, 28, 128, 3, groups=64),
    resnext128=_convolution(2, 128, 56, 128, 3, groups=32),
    resnext256=_convolution(2, 256, 28, 256, 3, groups=32),
    resnext512=_convolution(2, 512, 14, 512, 3, groups=32),
    resnext256_stride=_convolution(2, 256, 56, 256, 3, 2, groups=32),
    alexnet_groups=_convolution(4, 96, 27, 256, 5, groups=2),
    shufflenet_1x1=_convolution(4, 240, 28, 240, 1, groups=3),
    alexnet_first=_convolution(4, 3, 224, 64, 11, 4, 2),
    lenet1=_convolution(64, 1, 28, 20, 5, pad=0),
    lenet2=_convolution(64, 20, 12, 50, 5, pad=0),
    inception_5x5=_convolution(2, 192, 27, 192, 5),
    inception_1x7=_convolution(2, 192, 17, 192, (1, 7)),
    inception_7x1=_convolution(2, 192, 17, 192, (7, 1)),
    deeplab2=_convolution(2, 256, 28, 256, 3, dilation=2),
    deeplab12=_convolution(1, 256, 33, 256, 3, dilation=12),
    few_channels=_convolution(1, 8, 256, 8, 3),
    large_image=_convolution(1, 16, 512, 16, 3),
    gray_image=_convolution(1, 1, 512, 1, 3),
    to_rgb=_convolution(1, 64, 128, 3, 9),
    textcnn=_convolution(32, 1, (50, 128), 100, (3, 128), pad=(1, 0)),
    sequence_3=_convolution(32, 128, (1, 200), 128, (1, 3)),
    discriminator=_convolution(8, 64, 32, 128, 4, 2, 1),
    volume_first=_volume(1, 3, (16, 56, 56), 32, 3),
    volume64=_volume(1, 64, (8, 28, 28), 64, 3),
    volume_stride=_volume(1, 32, (16, 28, 28), 64, 3, 2),
    volume_1x1=_volume(1, 64, (8, 28, 28), 128, 1),
    generator_first=_transposed(64, 100, 1, 256, 4, 1, 0),
    generator512=_transposed(4, 512, 8, 256, 4, 2, 1),
    generator128=_transposed(8, 128, 16, 64, 4, 2, 1),
    generator_last=_transposed(8, 64, 32, 3, 4, 2, 1),
    unet_up=_transposed(2, 256, 28, 128, 2, 2, 0),
    fcn_up=_transposed(1, 21, 32, 21, 16, 8, 4),
    depthwise_up=_transposed(2, 64, 28, 64, 4, 2, 1, groups=64),
)
for _kind in ("max", "avg"):
    CASES[_kind + "_2x2"] = Pool("pool2d", (8, 64, 56, 56), _kind, 2, 2, 0, "")
    CASES[_kind + "_stem"] = Pool("pool2d", (8, 64, 112, 112), _kind, 3, 2, 1, "")
    CASES[_kind + "_inception"] = Pool("pool2d", (8, 192, 28, 28), _kind, 3, 1, 1, "")
    CASES[_kind + "_spp"] = Pool("pool2d", (1, 512, 13, 13), _kind, 5, 1, 2, "")
    CASES[_kind + "_global"] = Pool("pool2d", (16, 512, 7, 7), _kind, 7, 1, 0, "global")
CASES["avg_adaptive"] = Pool("pool2d", (4, 256, 14, 14), "avg", 6, 1, 0, "adaptive")
for _name, _shape in (
    ("resnet", (4, 64, 56, 56)),
    ("cifar", (32, 16, 32, 32)),
    ("late", (8, 2048, 7, 7)),
    ("rgb", (8, 3, 128, 128)),
):
    CASES["norm_" + _name] = Norm("batch_norm", _shape)


def measure_output(case):
    """Return the shape of what an operator returns."""
    if case.op == "batch_norm":
        return case.x
    if case.op == "pool2d":
        sizes = {"global": 1, "adaptive": case.kernel}
        size = sizes.get(case.mode) or (case.x[2] + 2 * case.pad - case.kernel) // case.stride + 1
        return (*case.x[:2], size, size)
    along = zip(case.x[2:], case.stride, case.pad, case.dilation, case.w[2:])  # noqa: B905  (Python 3.7)
    if case.op.endswith("transpose"):
        spatial = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in along]
        return (case.x[0], case.w[1] * case.groups, *spatial)
    return (case.x[0], case.w[0], *((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, p, d, k in along))
