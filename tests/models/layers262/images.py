"""Activations, and functions of images."""

import paddle
from inputs import IMAGE, SERIES, VOLUME, of, real, unit
from paddle import nn
from paddle.nn import functional as F  # noqa: N812


def activations():
    names = (
        "relu relu6 gelu silu swish mish hardswish hardsigmoid hardtanh elu celu selu leaky_relu softplus "
        "softshrink hardshrink tanhshrink softsign log_sigmoid log_softmax softmax "
        " thresholded_relu glu sigmoid tanh"
    )
    for name in names.split():
        yield name, of(getattr(F, name), real(4, 6))
    yield "gelu_tanh", of(lambda x: F.gelu(x, approximate=True), real(4, 6))
    yield "softmax_axis", of(lambda x: F.softmax(x, axis=1), real(*IMAGE))
    yield "softmax_double", of(lambda x: F.softmax(x, dtype="float64"), real(4, 6))
    yield "log_softmax_axis", of(lambda x: F.log_softmax(x, axis=1), real(*IMAGE))
    yield "prelu", of(lambda x: nn.PReLU()(x), real(*IMAGE))
    yield "prelu_channels", of(lambda x: nn.PReLU(3, init=0.1)(x), real(*IMAGE))
    yield "maxout", of(lambda x: F.maxout(x, 2), real(2, 4, 3, 3))
    yield "softplus_beta", of(lambda x: F.softplus(x, beta=2.0, threshold=3.0), real(4, 6))


def images():
    for name, layer in (
        ("max_pool2d", nn.MaxPool2D(2)),
        ("max_pool2d_ceil", nn.MaxPool2D(4, 3, ceil_mode=True)),
        ("avg_pool2d", nn.AvgPool2D(3, 2, padding=1)),
        ("avg_pool2d_inclusive", nn.AvgPool2D(3, 2, 1, exclusive=False)),
        ("adaptive_avg_pool2d", nn.AdaptiveAvgPool2D(4)),
        ("adaptive_max_pool2d", nn.AdaptiveMaxPool2D(4)),
        ("global_pool", nn.AdaptiveAvgPool2D(1)),
        ("upsample_nearest", nn.Upsample(scale_factor=2)),
        ("upsample_size", nn.Upsample(size=[9, 4])),
        ("upsample_bilinear", nn.Upsample(scale_factor=1.5, mode="bilinear")),
        ("upsample_corners", nn.Upsample(size=[9, 4], mode="bilinear", align_corners=True)),
        ("upsample_align1", nn.Upsample(size=[9, 4], mode="bilinear", align_mode=1)),
        ("upsample_bicubic", nn.Upsample(size=[9, 8], mode="bicubic")),
        ("upsample_bicubic_corners", nn.Upsample(size=[9, 8], mode="bicubic", align_corners=True)),
        ("upsample_area", nn.Upsample(size=[3, 3], mode="area")),
        ("pad2d", nn.Pad2D([1, 2, 0, 3], value=1.5)),
        ("pad2d_reflect", nn.Pad2D([1, 2, 2, 3], mode="reflect")),
        ("pad2d_replicate", nn.Pad2D(2, mode="replicate")),
        ("pad2d_circular", nn.Pad2D([1, 2, 0, 3], mode="circular")),
        ("zero_pad2d", nn.ZeroPad2D(1)),
        ("pixel_unshuffle", nn.PixelUnshuffle(2)),
        ("channel_shuffle", nn.ChannelShuffle(3)),
        ("unfold", nn.Unfold(3, paddings=1)),
        ("flatten", nn.Flatten()),
    ):
        yield name, of(layer, real(*IMAGE))
    for name, layer in (
        ("max_pool1d", nn.MaxPool1D(2)),
        ("avg_pool1d", nn.AvgPool1D(3, 2)),
        ("adaptive_avg_pool1d", nn.AdaptiveAvgPool1D(3)),
        ("adaptive_max_pool1d", nn.AdaptiveMaxPool1D(3)),
        ("pad1d", nn.Pad1D([1, 2], mode="reflect")),
        ("upsample_linear", nn.Upsample(size=[5], mode="linear", data_format="NCW")),
    ):
        yield name, of(layer, real(*SERIES))
    for name, layer in (
        ("max_pool3d", nn.MaxPool3D(2)),
        ("avg_pool3d", nn.AvgPool3D(2)),
        ("adaptive_avg_pool3d", nn.AdaptiveAvgPool3D(3)),
        ("adaptive_max_pool3d", nn.AdaptiveMaxPool3D(2)),
        ("pad3d", nn.Pad3D([1, 0, 2, 1, 0, 1])),
        ("upsample_trilinear", nn.Upsample(size=[5, 3, 6], mode="trilinear", data_format="NCDHW")),
        ("upsample_nearest3d", nn.Upsample(size=[5, 3, 6], data_format="NCDHW")),
    ):
        yield name, of(layer, real(*VOLUME))
    yield "max_pool_mask", of(lambda x: list(F.max_pool2d(x, 2, return_mask=True)), real(*IMAGE))
    yield "max_unpool", of(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_mask=True), 2), real(*IMAGE))
    yield "adaptive_max_mask", of(lambda x: list(F.adaptive_max_pool2d(x, 3, return_mask=True)), real(*IMAGE))
    yield "avg_pool_nhwc", of(lambda x: F.avg_pool2d(x, 2, data_format="NHWC"), real(*IMAGE))
    yield (
        "upsample_like",
        of(
            lambda x, y: F.interpolate(x, size=paddle.shape(y)[2:], mode="bilinear"),
            real(*IMAGE),
            real(1, 1, 9, 7),
        ),
    )
    yield "pixel_shuffle", of(lambda x: F.pixel_shuffle(x, 2), real(2, 4, 3, 3))
    yield "fold", of(lambda x: F.fold(x, [4, 4], 2), real(2, 12, 9))
    yield "grid_sample", of(lambda x, g: F.grid_sample(x, g), real(*IMAGE), unit(2, 4, 4, 2))
    yield "affine_grid", of(lambda t: F.affine_grid(t, [2, 3, 4, 4], align_corners=False), real(2, 2, 3))
    yield "temporal_shift", of(lambda x: F.temporal_shift(x, 2, 0.34), real(4, 3, 2, 2))
