"""Write ONNX models of PyTorch's two exporters, with inputs and onnxruntime's outputs.

python dump_torch.py FOLDER    (torch, onnx, onnxruntime, onnxscript)
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(3)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.a = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.b = nn.BatchNorm2d(outer)
        self.c = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.d = nn.BatchNorm2d(outer)
        self.short = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.d(self.c(F.relu(self.b(self.a(x))))) + self.short(x))


class Tagger(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.words = nn.Embedding(20, 5)
        self.rnn = kind(5, 4, batch_first=True, **options)
        self.out = nn.Linear(8 if options.get("bidirectional") else 4, 3)

    def forward(self, ids):
        states, last = self.rnn(self.words(ids))
        last = last[0] if isinstance(last, tuple) else last
        return self.out(states), last


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.places = nn.Embedding(10, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(8, 4)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1])[None])
        return F.log_softmax(self.out(self.encoder(x).mean(1)), -1)


class Causal(nn.Module):
    """Attention with a mask, as small language models write it."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / 2.0
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        one = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        other = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + one, other


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(12, 6), nn.Embedding(15, 6)
        self.deep = nn.Sequential(nn.Linear(12, 8), nn.ELU(), nn.Linear(8, 1))

    def forward(self, user, item):
        a, b = self.user(user), self.item(item)
        wide = (a * b).sum(-1, keepdim=True)
        return torch.sigmoid(wide + self.deep(torch.cat([a, b], -1))), F.cosine_similarity(a, b)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 4, 3, 2, 1, 1)
        self.norm, self.group = nn.InstanceNorm2d(4, affine=True), nn.GroupNorm(2, 4)
        self.depth = nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=4)
        self.pool, self.most = nn.AvgPool2d(3, 2, 1), nn.MaxPool2d(3, 2, 1, ceil_mode=True)
        self.prelu = nn.PReLU(4)

    def forward(self, x):
        y = self.prelu(self.group(self.norm(self.up(x))))
        z = F.hardswish(self.depth(y))
        big = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        near = F.interpolate(x, size=(7, 9), mode="nearest")
        return (
            self.pool(z),
            self.most(y),
            F.pixel_shuffle(y, 2),
            big,
            near,
            F.pad(x, (1, 2, 0, 1), mode="reflect"),
            F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
        )


class Signals(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv1d(3, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.pool, self.up = nn.MaxPool1d(2), nn.ConvTranspose1d(4, 2, 2, 2)

    def forward(self, x):
        y = F.leaky_relu(self.norm(self.conv(x)))
        return self.up(self.pool(y)), F.avg_pool1d(y, 2), y.mean(-1), F.adaptive_avg_pool1d(y, 1)


class Shapes(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        c = torch.stack([a, b], 1).flatten(1)
        d = x[:, 1:4:2].repeat(1, 3)
        e = x.unsqueeze(1).expand(-1, 3, -1)
        f = torch.cat([x.max(1).values[:, None], x.min(1, keepdim=True).values, x.std(1, keepdim=True)], 1)
        return c, d, e, f, x.view(x.size(0), 2, -1).transpose(1, 2), torch.roll(x, 1, 1), x.flip(1)


class Choices(nn.Module):
    def forward(self, x):
        top, at = x.topk(3, -1)
        order = x.argsort(-1)
        y = torch.where(x > 0, x, x * 0.5)
        return (
            top,
            at,
            order,
            y,
            x.argmax(-1),
            torch.gather(x, 1, at),
            x.clamp(-0.5, 0.5),
            x.cumsum(1),
            F.one_hot(at, 6),
            (x > 0) & (x < 1),
            x.index_select(1, torch.tensor([2, 0])),
            x[x.abs() > 9.0],
            torch.logsumexp(x, 1),
            x.norm(dim=1),
            x.prod(1),
            torch.triu(x),
            x.round(),
            torch.fmod(x, 0.3),
        )


class Functions(nn.Module):
    def forward(self, x):
        return torch.stack(
            [
                F.gelu(x),
                F.gelu(x, approximate="tanh"),
                F.silu(x),
                F.mish(x),
                F.selu(x),
                F.celu(x),
                F.softplus(x),
                F.softsign(x),
                F.hardtanh(x),
                F.relu6(x),
                F.hardsigmoid(x),
                F.softshrink(x),
                F.hardshrink(x),
                F.tanhshrink(x),
                F.logsigmoid(x),
                torch.erf(x),
                torch.exp(x),
                torch.log(x.abs() + 1),
                torch.sqrt(x.abs()),
                torch.rsqrt(x.abs() + 1),
                x.pow(2),
                x.abs().pow(0.5),
                torch.sin(x),
                torch.cos(x),
                torch.tan(x * 0.1),
                torch.atan(x),
                torch.sinh(x),
                torch.cosh(x),
                torch.floor(x),
                torch.ceil(x),
                torch.sign(x),
                1 / (x + 9),
                torch.asin(x * 0.1),
                torch.acos(x * 0.1),
                F.softmin(x, -1),
                F.glu(torch.cat([x, x], -1)),
                F.normalize(x),
                torch.maximum(x, -x),
                torch.minimum(x, x * x),
                torch.log1p(x.abs()),
                torch.expm1(x * 0.1),
                torch.asinh(x),
                torch.atanh(x * 0.1),
                torch.acosh(x.abs() + 1.5),
                F.threshold(x, 0.2, -1.0),
                torch.trunc(x),
            ]
        )


class Products(nn.Module):
    def forward(self, x, y):
        return (
            torch.einsum("bij,bjk->bik", x, y),
            torch.einsum("bij,bjk->bk", x, y),
            x @ y[0],
            torch.baddbmm(x @ y, x, y),
            x[:, 0] @ y[0],
        )


class Chosen(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


@torch.jit.script
def repeat(x, times: int):
    for _ in range(times):
        x = x * 0.5 + 1
    return x


@torch.jit.script
def choose(x):
    if bool(x.sum() > 0):  # noqa: SIM108
        y = x * 2
    else:
        y = x - 1
    return y


class Scripted(nn.Module):
    def forward(self, x):
        return repeat(x, x.shape[0]), choose(x)


def rand(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("float32"))


def ids(high, *shape):
    return torch.from_numpy(np.random.default_rng(1).integers(0, high, shape))


def convnet():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(6, 5),
        nn.Softmax(-1),
    )


class Shrunk(nn.Module):
    def forward(self, x):
        return [F.interpolate(x, size=(5, 3), mode=mode, antialias=True) for mode in ("bilinear", "bicubic")]


MODELS = {
    "convnet": (convnet, (rand(2, 1, 12, 12),)),
    "resnet": (
        lambda: nn.Sequential(
            Block(3, 4, 1), Block(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)
        ),
        (rand(2, 3, 8, 8),),
    ),
    "mlp": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3), nn.LogSoftmax(-1)),
        (rand(3, 4),),
    ),
    "lstm": (lambda: Tagger(nn.LSTM), (ids(20, 2, 5),)),
    "lstm2": (lambda: Tagger(nn.LSTM, bidirectional=True, num_layers=2), (ids(20, 2, 5),)),
    "gru": (lambda: Tagger(nn.GRU), (ids(20, 2, 5),)),
    "gru2": (lambda: Tagger(nn.GRU, bidirectional=True), (ids(20, 2, 5),)),
    "rnn": (lambda: Tagger(nn.RNN), (ids(20, 2, 5),)),
    "transformer": (Transformer, (ids(30, 2, 6),)),
    "causal": (Causal, (rand(2, 5, 8),)),
    "embedder": (Embedder, (ids(12, 3), ids(15, 3))),
    "images": (Images, (rand(2, 2, 5, 6),)),
    "signals": (Signals, (rand(2, 3, 8),)),
    "shapes": (Shapes, (rand(3, 6),)),
    "choices": (Choices, (rand(3, 6),)),
    "functions": (Functions, (rand(3, 6) * 2,)),
    "products": (Products, (rand(2, 3, 4), rand(2, 4, 4, seed=1)[:, :, :3].contiguous())),
    "cond": (Chosen, (rand(2, 3),)),
    "scripted": (Scripted, (rand(2, 3),)),
    "antialias": (Shrunk, (rand(2, 3, 8, 8),)),
    "circular": (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), (rand(2, 3, 8, 8),)),
    "rms_norm": (lambda: nn.RMSNorm(8), (rand(2, 3, 8),)),
}
OPSETS = {"antialias": 20, "circular": 23, "rms_norm": 23}
SCRIPT_ONLY, DYNAMO_ONLY = {"scripted"}, {"cond", *OPSETS}


def run(file, given):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    return names, session.run(None, dict(zip(names, given, strict=True)))


def main(folder):
    for name, (make, args) in MODELS.items():
        for way in ("script", "dynamo"):
            if name in (DYNAMO_ONLY if way == "script" else SCRIPT_ONLY):
                continue
            torch.manual_seed(0)
            model = make().eval()
            for part in model.modules():
                if isinstance(part, nn.BatchNorm2d | nn.BatchNorm1d):
                    part.running_mean.uniform_(-1, 1)
                    part.running_var.uniform_(0.5, 2)
            target = folder / f"torch-{way}-{name}.onnx"
            names = [f"in{i}" for i in range(len(args))]
            try:
                if way == "script":
                    axes = {one: {0: "batch"} for one in names}
                    torch.onnx.export(
                        model,
                        args,
                        str(target),
                        input_names=names,
                        dynamic_axes=axes,
                        dynamo=False,
                        opset_version=17,
                    )
                else:
                    batch = torch.export.Dim("batch")
                    shapes = None if name == "cond" else tuple({0: batch} for _ in args)
                    torch.onnx.export(
                        model,
                        args,
                        str(target),
                        input_names=names,
                        dynamic_shapes=shapes,
                        dynamo=True,
                        external_data=False,
                        verbose=False,
                        opset_version=OPSETS.get(name, 18),
                    )
                given = [one.numpy() for one in args]
                _, outs = run(target, given)
            except Exception as error:
                print(target.name, type(error).__name__, str(error)[:300].replace("\n", " "))
                target.unlink(missing_ok=True)
                continue
            arrays = {f"in{i}": one for i, one in enumerate(given)} | {
                f"out{i}": one for i, one in enumerate(outs)
            }
            np.savez(target.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
